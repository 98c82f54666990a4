"""One tile of ones, stored. If this does not compile, no other kernel is to blame."""

import cuda.tile as ct


@ct.kernel
def control(out):
    ct.store(out, index=(0,), tile=ct.full((16,), 1.0, dtype=ct.float32))
