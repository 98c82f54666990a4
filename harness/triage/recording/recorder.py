"""What a reader's file defines and launches, as plain data."""

from __future__ import annotations

import inspect
import math
import sys
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MAX_LAUNCHES = 64
"""Launches that differ; of equal ones the first is kept."""

MAX_CALLS = 1000
MAX_SEARCHED = 8
"""Configurations of one search that are recorded, spread evenly over it."""

LAMBDA = "<lambda>"
HINTS = ("occupancy", "num_ctas", "opt_level")


class Enough(BaseException):
    """So many launches were recorded that more would tell nothing new."""


def describe(value: Any) -> dict[str, Any]:
    """An argument of a launch, in plain data."""
    if isinstance(value, bool):
        return {"kind": "scalar", "dtype": "bool", "value": value}
    if isinstance(value, int):
        return {"kind": "scalar", "dtype": "int32" if -(2**31) <= value < 2**31 else "int64", "value": value}
    if isinstance(value, float):
        return {"kind": "scalar", "dtype": "float32", "value": value}
    if isinstance(value, list):
        return {"kind": "list", "items": [describe(item) for item in value]}
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [describe(item) for item in value]}
    shape, dtype = getattr(value, "shape", None), str(getattr(value, "dtype", "")).rpartition(".")[2]
    if shape is None or not dtype:
        return {"kind": "unknown", "text": f"{type(value).__name__}"}
    strides = value.stride() if callable(getattr(value, "stride", None)) else None
    if strides is None:
        strides = tuple(step // value.dtype.itemsize for step in value.strides)
        offset = value.__array_interface__["data"][0] % 256 // value.dtype.itemsize
    else:
        offset = int(value.storage_offset())
    return {
        "kind": "array",
        "dtype": dtype,
        "shape": [int(n) for n in shape],
        "strides": [int(n) for n in strides],
        "offset": offset,
    }


def function_of(kernel: Any) -> Any:
    """The Python function of a kernel: the same for all its variants of hints."""
    return getattr(getattr(kernel, "_annotated_function", None), "pyfunc", kernel)


def parameters_of(kernel: Any) -> list[dict[str, Any]]:
    """Names of a kernel's parameters, and what annotations say: constant (of a type), scalar, nothing."""
    found = []
    for name, parameter in inspect.signature(function_of(kernel)).parameters.items():
        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else repr(annotation)
        said = of = ""
        if annotation is not parameter.empty:
            if "Constant" in text:
                said = "constant"
                of = next(
                    (word for word in ("float", "bool", "int") if word in text.rpartition("Constant")[2]), ""
                )
            elif annotation in (int, float, bool) or text in ("int", "float", "bool"):
                said = getattr(annotation, "__name__", text)
        found.append({"name": name, "said": said, "of": of})
    return found


def plain(value: Any) -> bool:
    """Whether `spelled` can write the value down."""
    if isinstance(value, tuple):
        return all(map(plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def spelled(value: Any) -> str:
    """A plain value as an expression."""
    if isinstance(value, tuple):
        return f"({', '.join(map(spelled, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


class Recorder:
    """Stands in for what launches and searches. `is_readers` tells the reader's own files by their names."""

    def __init__(self, ct: Any, is_readers: Callable[[str], bool]) -> None:
        self.ct = ct
        self.is_readers = is_readers
        self.launches: list[dict[str, Any]] = []
        self.launched: list[Any] = []
        self.searches: list[dict[str, Any]] = []
        self.calls = 0

    def launch(self, stream: Any, grid: Any, kernel: Any, args: Any = (), *rest: Any, **options: Any) -> None:
        """In the place of `ct.launch`."""
        args = options.get("kernel_args", args)
        size = [int(n) for n in (grid if isinstance(grid, tuple | list) else (grid,))]
        told = {"grid": size, "arguments": [describe(a) for a in args], "line": self._line()}
        pairs = zip(self.launched, self.launches, strict=True)
        if not any(other is kernel and entry == told for other, entry in pairs):
            self.launched.append(kernel)
            self.launches.append(told)
        self.calls += 1
        if len(self.launches) >= MAX_LAUNCHES or self.calls >= MAX_CALLS:
            raise Enough

    def search(
        self,
        search_space: Any,
        stream: Any,
        grid_fn: Any,
        kernel: Any,
        args_fn: Any,
        hints_fn: Any = None,
        **options: Any,
    ) -> Any:
        """In the place of `exhaustive_search`: some of the space, launched once each."""
        space = list(search_space() if callable(search_space) else search_space)
        chosen = space
        if len(space) > MAX_SEARCHED:
            last = len(space) - 1
            chosen = [space[round(i * last / (MAX_SEARCHED - 1))] for i in range(MAX_SEARCHED)]
        self.searches.append({"line": self._line(), "size": len(space), "asked": len(chosen)})
        for config in chosen:
            made = kernel if isinstance(kernel, self.ct.kernel) else kernel(config)
            hints = hints_fn(config) if hints_fn is not None else {}
            self.launch(
                stream, grid_fn(config), made.replace_hints(**hints) if hints else made, args_fn(config)
            )
        best = SimpleNamespace(
            config=space[0] if space else None, mean_us=1.0, error_margin_us=0.0, num_samples=1
        )
        return SimpleNamespace(
            best=best, successes=(best,), failures=(), summary=lambda **words: "", tuned_config=best.config
        )

    def autotune(
        self,
        stream: Any,
        grid_fn: Any,
        kernel: Any,
        args_fn: Any,
        hints_fn: Any = None,
        *,
        search_space: Any = (),
        **options: Any,
    ) -> Any:
        """In the place of `cuda.tile_experimental.autotune_launch`."""
        return self.search(search_space, stream, grid_fn, kernel, args_fn, hints_fn)

    def _line(self) -> int:
        """The line of the reader's file that is being executed."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and not self.is_readers(frame.f_code.co_filename):
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 0

    # --- the report ---------------------------------------------------------------------------

    def report(self, main: types.ModuleType) -> dict[str, Any]:
        """Kernels with their launches, and the text and plain values of the modules they are of."""
        groups: dict[Any, dict[str, Any]] = {}
        for name, value in vars(main).items():
            if isinstance(value, self.ct.kernel):
                groups.setdefault(self._key(value), {"kernel": value, "name": name, "launches": []})
        for kernel, launch in zip(self.launched, self.launches, strict=True):
            group = groups.setdefault(self._key(kernel), {"kernel": kernel, "launches": []})
            told = {**launch, "hints": self._hints(kernel, group["kernel"])}
            group["launches"].append(told)
        kernels = [self._kernel(group, main) for group in groups.values()]
        homes = {kernel["module"] for kernel in kernels}
        return {
            "kernels": kernels,
            "modules": self._modules(main, homes),
            "searches": self.searches,
        }

    def _key(self, kernel: Any) -> Any:
        """Equal for kernels of the same text and the same closure."""
        function = function_of(kernel)
        cells = tuple(spelled(c) if plain(c) else id(c) for c in _closure(function).values())
        return function.__code__.co_filename, function.__code__.co_firstlineno, function.__qualname__, cells

    def _hints(self, kernel: Any, bound: Any) -> dict[str, Any]:
        """Hints of a launched kernel that are not those of its decorator, as far as they are plain."""
        mine, usual = getattr(kernel, "_compiler_options", None), getattr(bound, "_compiler_options", None)
        found = {}
        for name in HINTS:
            value = getattr(mine, name, None)
            if isinstance(value, int) and value != getattr(usual, name, None):
                found[name] = value
        return found

    def _kernel(self, group: dict[str, Any], main: types.ModuleType) -> dict[str, Any]:
        kernel = group["kernel"]
        function = function_of(kernel)
        home = self._module_of(function, main)
        names = {} if home is None else {id(function_of(v)): n for n, v in reversed(vars(home).items())}
        bound = names.get(id(function))
        nested = "." in function.__qualname__
        options = getattr(kernel, "_compiler_options", None)
        hints = {n: v for n in HINTS if isinstance(v := getattr(options, n, None), int)}
        return {
            "name": bound or group.get("name") or function.__qualname__.replace(".<locals>", ""),
            "function": function.__name__,
            "bound": bound,
            "line": function.__code__.co_firstlineno,
            "module": home.__name__ if home is not None else None,
            "nested": {**self._nested(function, home), "hints": hints} if nested else None,
            "parameters": parameters_of(kernel),
            "launches": group["launches"],
        }

    def _module_of(self, function: Any, main: types.ModuleType) -> types.ModuleType | None:
        file = function.__code__.co_filename
        every = [main, *list(sys.modules.values())]
        return next((m for m in every if getattr(m, "__file__", None) == file), None)

    def _nested(self, function: Any, home: types.ModuleType | None, depth: int = 4) -> dict[str, Any]:
        """A function inside another or a class: its line, and what the names are that it has from outside."""
        values: dict[str, Any] = {}
        for name, value in _closure(function).items():
            values[name] = self._value(value, home, depth)
        told = {"line": function.__code__.co_firstlineno, "name": function.__name__, "values": values}
        return {**told, "column": _first_column(function.__code__)} if told["name"] == LAMBDA else told

    def _value(self, value: Any, home: types.ModuleType | None, depth: int) -> dict[str, Any]:
        if plain(value):
            return {"text": spelled(value)}
        names = vars(home) if home is not None else {}
        for name, other in names.items():
            if other is value:
                return {"text": name}
            if other is self.ct:
                inside = next((n for n, v in vars(self.ct).items() if v is value), None)
                if inside is not None:
                    return {"text": f"{name}.{inside}"}
        inner = inspect.unwrap(function_of(value))
        if depth and isinstance(inner, types.FunctionType):
            return {"function": self._nested(inner, home, depth - 1)}
        return {"unknown": type(value).__name__}

    def _modules(self, main: types.ModuleType, homes: set[str | None]) -> dict[str, Any]:
        """The reader's own modules, and those of the packages that launched kernels are of."""
        packages = {name.partition(".")[0] for name in homes if name} - {"__main__"}
        found = {}
        for name, module in [("__main__", main), *sorted(sys.modules.items())]:
            file = getattr(module, "__file__", None)
            if name in found or not isinstance(file, str) or not file.endswith(".py"):
                continue
            if name != "__main__" and not self.is_readers(file) and name.partition(".")[0] not in packages:
                continue
            if name == "__main__" or Path(file).is_file():
                found[name] = {
                    "file": file,
                    "values": {n: spelled(v) for n, v in vars(module).items() if plain(v) and n[:2] != "__"},
                }
        return found


def _first_column(code: types.CodeType) -> int:
    """Where on its line the body of a lambda begins, in bytes."""
    places = code.co_positions()
    columns = [column for line, _, column, _ in places if line == code.co_firstlineno and column]
    return min(columns, default=0)


def _closure(function: Any) -> dict[str, Any]:
    """Values of the names that a function has from the functions around it."""
    code, cells = function.__code__, function.__closure__ or ()
    found = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # bound to nothing yet
            continue
    return found
