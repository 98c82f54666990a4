"""Answers to whatever a script wants of a library that is not there, so that it gets to its launch."""

from __future__ import annotations

import contextlib
import inspect
import types
from typing import Any


def _special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class Anything:
    """Called, indexed, entered, compared, inherited from: it goes along."""

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if _special(name):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args: Any, **options: Any) -> Any:
        """A lone function or class is what a decorator is given: it comes back. Other functions are
        called, as something that measures or compares them would."""
        if len(args) == 1 and not options and isinstance(args[0], type):
            return args[0]
        functions = [a for a in (*args, *options.values()) if isinstance(a, types.FunctionType)]
        if len(args) == 1 and not options and functions and functions[0].__name__ != "<lambda>":
            return args[0]
        for function in functions:
            tried(function)
        return Anything()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return () if any(isinstance(base, type) and issubclass(base, Base) for base in bases) else (Base,)

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __getitem__(self, key: Any) -> Any:
        return Anything()

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __float__(self) -> float:
        return 1.0

    def __format__(self, spec: str) -> str:
        return "?"

    def _same(self, *other: Any) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _same
    __neg__ = __pos__ = __abs__ = __round__ = __invert__ = _same
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __lshift__ = __rshift__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = _same


class Base:
    """What classes of a missing library are as base classes: made of anything, and called by `forward`."""

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __init_subclass__(cls, **options: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if _special(name):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.forward(*args, **options)


def tried(function: Any) -> Any:
    """The function's value, where it can be called without arguments; an Exception of its own is let go."""
    with contextlib.suppress(TypeError, ValueError):
        needed = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if needed:
            return Anything()
    try:
        return function()
    except Exception:
        return Anything()


class Module(types.ModuleType):
    """A module that has everything that is asked of it, and is a package as far as imports can tell."""

    __path__: list[str] = []  # noqa: RUF012 - a package's attribute
    __file__ = ""
    __version__ = "2.9.0"

    def __init__(self, name: str, known: dict[str, Any] | None = None) -> None:
        super().__init__(name)
        self.__dict__.update(known or {})

    def __getattr__(self, name: str) -> Any:
        if _special(name):
            raise AttributeError(name)
        return Anything()
