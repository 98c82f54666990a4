"""Scale a row of a rank-3 array by its own sum, through advanced indexing."""

import cuda.tile as ct


@ct.kernel
def in_place(data, N: ct.Constant[int]):
    """Reads from and writes to the same array."""
    picked = (ct.Slice(0, 1), ct.arange(1, dtype=ct.int32), ct.Slice(0, N))
    row = ct.load_advanced_indexing(data, picked).reshape((1, N))
    total = ct.sum(row, axis=1).reshape((1, 1))
    ct.store_advanced_indexing(data, picked, (row * total).reshape((1, 1, N)))


@ct.kernel
def apart(source, target, N: ct.Constant[int]):
    """The same, from one array to another."""
    picked = (ct.Slice(0, 1), ct.arange(1, dtype=ct.int32), ct.Slice(0, N))
    row = ct.load_advanced_indexing(source, picked).reshape((1, N))
    total = ct.sum(row, axis=1).reshape((1, 1))
    ct.store_advanced_indexing(target, picked, (row * total).reshape((1, 1, N)))
