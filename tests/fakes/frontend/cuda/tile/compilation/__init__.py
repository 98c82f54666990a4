import os
import signal
import sys
import time

from cuda.tile import _exception


class ArrayConstraint:
    def __init__(
        self,
        dtype,
        ndim,
        *,
        index_dtype,
        stride_lower_bound_incl,
        alias_groups,
        may_alias_internally,
        stride_constant,
        stride_divisible_by,
        shape_divisible_by,
        base_addr_divisible_by,
    ):
        pass


class ScalarConstraint:
    def __init__(self, dtype):
        pass


class ConstantConstraint:
    def __init__(self, value):
        if isinstance(value, str):
            raise TypeError(f"Unexpected constant value type {type(value)}")


class CallingConvention:
    @staticmethod
    def cutile_python_v1():
        return "v1"


class KernelSignature:
    symbol = None

    def __init__(self, parameters, calling_convention):
        self.parameters = parameters

    def with_mangled_symbol(self, name):
        self.symbol = f"{name}_mangled"
        return self


def export_kernel(kernel, signatures, output, *, gpu_code, output_format, bytecode_version):
    name = kernel._annotated_function.pyfunc.__name__
    where = kernel._annotated_function.pyfunc.__code__.co_filename
    if name == "hang":
        time.sleep(1000)
    elif name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif name == "exits":
        sys.exit(3)
    elif name == "key_error":
        raise KeyError("c.0")
    elif name == "type_error":
        raise _exception.TileTypeError(f'wrong type\n  "{where}", line 3')
    elif name == "unsupported":
        raise _exception.TileUnsupportedFeatureError("this requires tileiras 13.9 or later")
    elif name == "internal":
        raise _exception.TileInternalError("cannot happen")
    elif name == "number":
        int(gpu_code.removeprefix("sm_"))
    elif name == "talks":
        print("to standard output " * 10_000)
    output.write(f"{name} {where} {vars(kernel._compiler_options)} {gpu_code} {bytecode_version}".encode())
