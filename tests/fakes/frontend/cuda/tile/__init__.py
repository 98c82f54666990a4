"""As much of cuda.tile as the tracer touches, with faults on request: the kernel's name is the fault."""

import os

if os.environ.get("FAKE_FRONTEND") == "broken":
    raise ImportError("libfake.so: cannot open shared object file")

__version__ = "0.0.fake"


class Options:
    occupancy = None
    num_ctas = None
    opt_level = 3


class Annotated:
    def __init__(self, pyfunc):
        self.pyfunc = pyfunc


class kernel:
    def __init__(self, function, options=None):
        self._annotated_function = Annotated(function)
        self._compiler_options = options or Options()

    def replace_hints(self, **hints):
        if hints.get("occupancy", 0) > 16:
            raise ValueError("occupancy should be at most 16")
        options = Options()
        options.__dict__.update(self._compiler_options.__dict__ | hints)
        return kernel(self._annotated_function.pyfunc, options)


class dtype(str):
    pass


float32 = dtype("float32")
int32 = dtype("int32")
