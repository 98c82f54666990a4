"""Rarely trodden paths that a hostile tester found to be broken, a kernel each."""

import cuda.tile as ct

increment = lambda t: t + 1  # noqa: E731  a lambda is what this is about


@ct.kernel
def loop_until_sum_is_added(a, b):
    """A loop whose condition adds a tile's sum atomically."""
    t = ct.load(a, index=(0, 0), shape=(16, 32)).astype(ct.float32)
    while ct.atomic_add(b, (0, 0), ct.sum(t).astype(b.dtype)):
        t = t + 1
    ct.store(a, index=(0, 0), tile=t.astype(a.dtype))


@ct.kernel
def product_in_a_waiting_loop(a, b):
    """A matrix product that is carried through a loop with an atomic condition."""
    c = ct.zeros((4, 4), dtype=ct.float32)
    while ct.atomic_add(b, (0, 0), 0):
        t = ct.load(a, index=(0, 0), shape=(4, 4))
        c = ct.mma(t, t, c)
    ct.store(b, index=(0, 0), tile=c)


@ct.kernel
def calls_a_lambda(a):
    t = ct.load(a, index=(0, 0), shape=(8, 8))
    ct.store(a, index=(0, 0), tile=increment(t))


@ct.kernel
def power_of_integers(a):
    t = ct.load(a, index=(0, 0), shape=(8, 8))
    ct.store(a, index=(0, 0), tile=t**t)


@ct.kernel
def ceiling_division_of_floats(a):
    t = ct.load(a, index=(0, 0), shape=(8, 8))
    ct.store(a, index=(0, 0), tile=ct.cdiv(t, t))


@ct.kernel
def compares(a):
    t = ct.load(a, index=(0, 0), shape=(8, 8))
    ct.store(a, index=(0, 0), tile=ct.where(t > t, t, t))


@ct.kernel
def negates(a):
    t = ct.load(a, index=(0, 0), shape=(8, 8))
    ct.store(a, index=(0, 0), tile=ct.negative(t))


@ct.kernel
def pads_with_nan(a):
    t = ct.load(a, index=(0, 0), shape=(8, 8), padding_mode=ct.PaddingMode.NAN)
    ct.store(a, index=(0, 0), tile=t)
