"""Stand-ins for modules that are not installed, and that are none of a kernel's business."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import numpy_stand_in, pytest_stand_in, torch_stand_in
from .anything import Anything, Module, tried


def cdiv(a: Any, b: Any) -> Any:
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    return 1 << max(0, int(n) - 1).bit_length()


def do_bench(function: Any, *args: Any, **options: Any) -> float:
    """Called once, for its launches."""
    function()
    return 1.0


def unchanged(items: Any = (), *args: Any, **options: Any) -> Any:
    return items


def run_main(function: Any = None, *args: Any, **options: Any) -> Any:
    """What turns a function into a command line calls it with its defaults."""
    return tried(function) if isinstance(function, types.FunctionType) else Anything()


def run_app(main: Any, *args: Any, **options: Any) -> Any:
    """As `run_main`, for a function that takes the command line's words."""
    return main([])


_KNOWN: dict[str, dict[str, Any]] = {
    "triton": {"cdiv": cdiv, "next_power_of_2": next_power_of_2},
    "triton.testing": {"do_bench": do_bench, "do_bench_cudagraph": do_bench},
    "fire": {"Fire": run_main},
    "tyro": {"cli": run_main},
    "absl": {"app": types.SimpleNamespace(run=run_app)},
    "tqdm": {"tqdm": unchanged, "trange": range},
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what nothing else finds and a file of the reader's imports, and torch for whoever imports it.
    Put it last.

    What a library tries to import for itself stays missing, as do modules in `real`. `used` are the names
    that were asked for, `known` further contents by module.
    """

    def __init__(
        self,
        is_readers: Callable[[str], bool],
        real: Sequence[str],
        capability: tuple[int, int],
        known: dict[str, dict[str, Any]],
    ) -> None:
        self.is_readers = is_readers
        self.real = (*real, *sys.stdlib_module_names)
        self.capability = capability
        self.known = _KNOWN | known
        self.used: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self.real):
            return None
        if fullname.partition(".")[0] != "torch" and not self.is_readers(_importer()):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        name = spec.name
        self.used.append(name)
        if name == "torch":
            return torch_stand_in.make(self.capability)
        if name.startswith("torch."):
            return torch_stand_in.submodule(name, sys.modules)
        if name == "pytest":
            return pytest_stand_in.make()
        return numpy_stand_in.make(name) or Module(name, self.known.get(name))

    def exec_module(self, module: types.ModuleType) -> None: ...


def _importer() -> str:
    """The file whose import statement is being answered."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame.f_code.co_filename
