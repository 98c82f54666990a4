"""Run a reader's file without a GPU, and say which kernels it defines and how it launches them.

Started by path as `python -I look_worker.py FRONTEND_ROOT FILE`. Imports the standard library,
cuda.tile and, where it is installed, torch only. `ct.launch` records its arguments instead of
launching; tensors that were to lie on a GPU lie in host memory, or nowhere (`torch_stand_in`).

The last line on the descriptor that was standard output is one JSON object: `kernels`, `launches`,
`torch` (real | stand-in | unused) and, where the file raised, `error` with its traceback.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
import types
from pathlib import Path
from typing import Any

MAX_LAUNCHES = 64


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
    """Name and annotation of a kernel's parameters: constant, scalar or nothing said."""
    found = []
    for name, parameter in inspect.signature(function_of(kernel)).parameters.items():
        text = parameter.annotation if isinstance(parameter.annotation, str) else repr(parameter.annotation)
        if parameter.annotation is parameter.empty:
            said = ""
        elif "Constant" in text:
            said = "constant"
        elif parameter.annotation in (int, float, bool) or text in ("int", "float", "bool"):
            said = getattr(parameter.annotation, "__name__", text)
        else:
            said = ""
        found.append({"name": name, "said": said})
    return found


class Recorder:
    """What the file defines and launches."""

    def __init__(self, ct: Any) -> None:
        self.ct = ct
        self.launches: list[dict[str, Any]] = []
        self.launched: list[Any] = []

    def launch(self, stream: Any, grid: Any, kernel: Any, args: Any = (), *rest: Any, **options: Any) -> None:
        self.launched.append(kernel)
        size = [int(n) for n in (grid if isinstance(grid, tuple | list) else (grid,))]
        self.launches.append(
            {"of": len(self.launched) - 1, "grid": size, "arguments": [describe(a) for a in args]}
        )
        if len(self.launches) >= MAX_LAUNCHES:
            raise Enough

    def report(self, module: dict[str, Any]) -> dict[str, Any]:
        named = {name: value for name, value in module.items() if isinstance(value, self.ct.kernel)}
        functions = {id(function_of(value)): name for name, value in reversed(named.items())}
        launches = [
            {**entry, "kernel": functions.get(id(function_of(self.launched[entry.pop("of")])))}
            for entry in self.launches
        ]
        kernels = []
        for name, kernel in named.items():
            function = function_of(kernel)
            kernels.append(
                {
                    "name": name,
                    "function": function.__name__,
                    "line": function.__code__.co_firstlineno,
                    "file": function.__code__.co_filename,
                    "parameters": parameters_of(kernel),
                }
            )
        plain = {
            name: value
            for name, value in module.items()
            if isinstance(value, bool | int | float | str) and not name.startswith("__")
        }
        return {"kernels": kernels, "launches": launches, "globals": plain}


def lend_host_memory(torch: Any) -> None:
    """Make a real torch answer as if there were a GPU, with its tensors in host memory."""
    from torch.overrides import TorchFunctionMode

    class OnHost(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, kinds: Any, args: Any = (), options: dict[str, Any] | None = None
        ) -> Any:
            options = dict(options or {})
            if "cuda" in str(options.get("device", "")):
                options["device"] = "cpu"
            if getattr(function, "__name__", "") == "cuda":
                return args[0]
            args = tuple("cpu" if isinstance(a, str) and a.startswith("cuda") else a for a in args)
            return function(*args, **options)

    OnHost().__enter__()
    stream = types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None)
    for name, answer in (
        ("is_available", True),
        ("current_stream", stream),
        ("current_device", 0),
        ("device_count", 1),
        ("synchronize", None),
        ("get_device_capability", (9, 0)),
        ("manual_seed", None),
    ):
        setattr(torch.cuda, name, lambda *args, answer=answer, **options: answer)


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    root, file = os.path.realpath(sys.argv[1]), sys.argv[2]
    sys.path[:0] = [root, str(Path(file).parent)]
    ct = importlib.import_module("cuda.tile")
    recorder = Recorder(ct)
    setattr(ct, "launch", recorder.launch)  # noqa: B010 - a frontend says what it has
    text = Path(file).read_text(encoding="utf-8")
    torch = "unused"
    if "torch" in text:
        torch = "real" if importlib.util.find_spec("torch") else "stand-in"
        if torch == "real":
            lend_host_memory(importlib.import_module("torch"))
        else:
            path = Path(__file__).with_name("torch_stand_in.py")
            spec = importlib.util.spec_from_file_location("torch_stand_in", path)
            assert spec is not None and spec.loader is not None
            stand_in = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(stand_in)
            stand_in.install(sys.modules)
    sys.argv = [file]
    module = types.ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    error = None
    try:
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
    except (Enough, SystemExit):
        pass
    except BaseException as raised:
        error = {
            "type": type(raised).__name__,
            "message": str(raised),
            "traceback": traceback.format_exc()[-8000:],
        }
    report = {**recorder.report(module.__dict__), "torch": torch, "error": error}
    answers.write(json.dumps(report).encode("ascii") + b"\n")


if __name__ == "__main__":
    main()
