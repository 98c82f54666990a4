"""The text of a `KernelSignature`: what a launch lets the compiler assume. Pure."""

from __future__ import annotations

from textwrap import dedent, indent

from harness.model import Array, ArrayList, Constant, Parameter, ScalarParameter, TupleParameter
from harness.repro.launching import number_text

_CLASSES = {
    Array: "ArrayConstraint",
    ScalarParameter: "ScalarConstraint",
    ArrayList: "ListConstraint",
    TupleParameter: "TupleConstraint",
}


def imported_names(parameters: tuple[Parameter, ...]) -> list[str]:
    """What the text needs from `cuda.tile.compilation`."""
    names = {"CallingConvention", "KernelSignature", "export_kernel"}
    names |= {_CLASSES[type(one)] for one in _within(parameters) if type(one) in _CLASSES}
    tuples = [parameter for parameter in parameters if isinstance(parameter, TupleParameter)]
    if any(isinstance(item, Constant) for parameter in tuples for item in parameter.items):
        names.add("ConstantConstraint")
    return sorted(names)


def _within(parameters: tuple[Parameter, ...]) -> list[Parameter]:
    """The parameters, and those inside lists and tuples."""
    found: list[Parameter] = []
    for parameter in parameters:
        found.append(parameter)
        if isinstance(parameter, ArrayList):
            found.append(parameter.element)
        elif isinstance(parameter, TupleParameter):
            found += parameter.items
    return found


def signature_text(parameters: tuple[Parameter, ...], calling_convention: str) -> str:
    """The function `signature` of a script, and `array` where it needs that."""
    lines = [f"{_parameter(parameter)},  # {parameter.name}" for parameter in parameters]
    arrays = any(isinstance(one, Array) for one in _within(parameters))
    head = dedent('''
        def signature():
            """What a launch lets the compiler assume, and the constants that it bakes in."""
            parameters = [
        ''')
    return (
        (_ARRAY if arrays else "")
        + head
        + indent("\n".join(lines), " " * 8)
        + f"\n    ]\n    return KernelSignature(parameters, CallingConvention.{calling_convention}())\n"
    )


_ARRAY = '''
def array(dtype, shape_divisible_by, stride_divisible_by, stride_constant, **more):
    """An array parameter: divisors and strides in elements, one a dimension; None is not known."""
    usual = {"base_addr_divisible_by": 16, "alias_groups": (), "may_alias_internally": False}
    return ArrayConstraint(
        dtype,
        len(stride_constant),
        **{"index_dtype": ct.int32, **usual, **more},
        stride_lower_bound_incl=0,
        shape_divisible_by=shape_divisible_by,
        stride_divisible_by=stride_divisible_by,
        stride_constant=stride_constant,
    )

'''


def _parameter(parameter: Parameter) -> str:
    return number_text(parameter.value) if isinstance(parameter, Constant) else _constraint(parameter)


def _constraint(parameter: Parameter) -> str:
    match parameter:
        case Constant():
            return f"ConstantConstraint({number_text(parameter.value)})"
        case ScalarParameter():
            return f"ScalarConstraint({_dtype(parameter.dtype)})"
        case Array():
            return _array(parameter)
        case ArrayList():
            more = (
                f"alias_groups={parameter.alias_groups!r}, elements_may_alias={parameter.elements_may_alias}"
            )
            return f"ListConstraint({_array(parameter.element)}, {more})"
        case TupleParameter():
            return f"TupleConstraint([{', '.join(map(_constraint, parameter.items))}])"


def _array(array: Array) -> str:
    words = [
        _dtype(array.dtype),
        repr(array.shape_divisible_by),
        repr(array.stride_divisible_by),
        repr(array.stride_constant),
    ]
    if array.base_divisible_by != 16:
        words.append(f"base_addr_divisible_by={array.base_divisible_by}")
    if any(size is not None for size in array.shape_constant):
        words.append(f"shape_constant={array.shape_constant!r}")
    if array.alias_groups:
        words.append(f"alias_groups={array.alias_groups!r}")
    if array.may_alias_internally:
        words.append("may_alias_internally=True")
    if array.index_dtype != "int32":
        words.append(f"index_dtype={_dtype(array.index_dtype)}")
    return f"array({', '.join(words)})"


def _dtype(name: str) -> str:
    return "ct.bool_" if name == "bool" else f"ct.{name}"
