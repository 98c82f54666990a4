"""What a reader's file defines and launches, as plain data."""

from __future__ import annotations

import inspect
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .arguments import closure, describe, function_of, identity, parameters_of, plain, question, spelled

MAX_LAUNCHES = 64
"""Launches that differ; of equal ones the first is kept."""

MAX_CALLS = 20_000
"""Launches, equal or not: a script may launch for ever."""

MAX_SECONDS = 40.0
"""How long launches are recorded, well within what a script may run: what is known then is kept."""

MAX_SEARCHED = 8
"""Configurations of one search that are recorded, spread evenly over it."""

LAMBDA = "<lambda>"
HINTS = ("occupancy", "num_ctas", "opt_level")


class Enough(BaseException):
    """No more is recorded of this script."""


class Recorder:
    """Stands in for what launches and searches. `is_readers` tells the reader's own files by their names."""

    def __init__(self, ct: Any, is_readers: Callable[[str], bool]) -> None:
        self.ct = ct
        self.is_readers = is_readers
        self.launches: list[dict[str, Any]] = []
        self.launched: list[Any] = []
        self.searches: list[dict[str, Any]] = []
        self.calls = 0
        self.known: set[Any] = set()
        """What the launches ask of a compiler."""
        self.stopped = False
        """Whether the script launched more than was recorded."""
        self.ends = time.monotonic() + MAX_SECONDS

    def launch(self, stream: Any, grid: Any, kernel: Any, args: Any = (), *rest: Any, **options: Any) -> None:
        """In the place of `ct.launch`."""
        args = options.get("kernel_args", args)
        size = [int(n) for n in (grid if isinstance(grid, tuple | list) else (grid,))]
        arguments = [describe(a) for a in args]
        asks = question(kernel, arguments)
        self.calls += 1
        if asks not in self.known:
            if len(self.launches) >= MAX_LAUNCHES:
                self._stop()
            file, line = self._place()
            self.known.add(asks)
            self.launched.append(kernel)
            self.launches.append({"grid": size, "arguments": arguments, "file": file, "line": line})
        elif self.calls > MAX_CALLS or time.monotonic() > self.ends:
            self._stop()

    def _stop(self) -> None:
        """What the script would launch from here on is not known."""
        self.stopped = True
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
        self.searches.append({"line": self._place()[1], "size": len(space), "asked": len(chosen)})
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

    def _place(self) -> tuple[str, int]:
        """The reader's file that is being executed, and the line."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and not self.is_readers(frame.f_code.co_filename):
            frame = frame.f_back
        return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)

    # --- the report ---------------------------------------------------------------------------

    def report(self, main: types.ModuleType) -> dict[str, Any]:
        """Kernels with their launches, and the text and plain values of the modules they are of."""
        groups: dict[Any, dict[str, Any]] = {}
        for name, value in vars(main).items():
            if isinstance(value, self.ct.kernel):
                groups.setdefault(identity(value), {"kernel": value, "name": name, "launches": []})
        for kernel, launch in zip(self.launched, self.launches, strict=True):
            group = groups.setdefault(identity(kernel), {"kernel": kernel, "launches": []})
            told = {**launch, "hints": self._hints(kernel, group["kernel"])}
            group["launches"].append(told)
        kernels = [self._kernel(group, main) for group in groups.values()]
        homes = {kernel["module"] for kernel in kernels}
        return {
            "kernels": kernels,
            "modules": self._modules(main, homes),
            "searches": self.searches,
            "stopped": self.stopped,
        }

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
            "hints": hints,
            "launches": group["launches"],
        }

    def _module_of(self, function: Any, main: types.ModuleType) -> types.ModuleType | None:
        file = function.__code__.co_filename
        every = [main, *list(sys.modules.values())]
        return next((m for m in every if getattr(m, "__file__", None) == file), None)

    def _nested(self, function: Any, home: types.ModuleType | None, depth: int = 4) -> dict[str, Any]:
        """A function inside another or a class: its line, and what the names are that it has from outside."""
        values: dict[str, Any] = {}
        for name, value in closure(function).items():
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
