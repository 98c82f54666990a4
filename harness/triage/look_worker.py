"""Run a reader's file without a GPU, and say which kernels it defines and how it launches them.

Started by path as `python -I look_worker.py FRONTEND_ROOT FILE CAPABILITY ARGS...`, with a capability such
as 9.0 and the arguments of the file. Imports the standard library, cuda.tile and, where it is there, torch
only. Launches are recorded instead of made; tensors that were to lie on a GPU lie in host memory, or nowhere
(`recording`).

The last line on the descriptor that was standard output is one JSON object: what `Recorder.report` tells,
`torch` (real | stand-in | unused), `stand_ins` and, where the file raised or ended itself, `error` or `ended`
with the traceback.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
import types
from pathlib import Path
from typing import Any

_PACKAGE = "_tile_harness_recording"


def recording(part: str) -> Any:
    """A module of the package beside this file, which no import path leads to."""
    if _PACKAGE not in sys.modules:
        folder = Path(__file__).parent / "recording"
        spec = importlib.util.spec_from_file_location(
            _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None and spec.loader is not None
        sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{_PACKAGE}.{part}")


def run(
    file: str, text: str, pytest_stand_in: Any, recorder: Any
) -> tuple[types.ModuleType, dict[str, str] | None, dict[str, str] | None]:
    """Execute the file as a script and, where that launches nothing, call its tests; gives the module, what
    was raised, if anything was, and how it ended itself before it was through, if it did."""
    module = types.ModuleType("__main__")
    module.__file__ = file
    module.__dict__["get_ipython"] = recording("anything").Anything  # a notebook's, saved as a script
    sys.modules["__main__"] = module
    enough = importlib.import_module(f"{_PACKAGE}.recorder").Enough
    error = ended = None
    try:
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
    except enough:
        pass
    except SystemExit as raised:
        if raised.code not in (None, 0) or not recorder.launches:  # else it was through
            ended = told(raised)
    except BaseException as raised:
        error = told(raised)
    if error is not None or recorder.launches:
        return module, error, ended
    for test, arguments in pytest_stand_in.calls(module.__dict__):
        try:
            test(**arguments)
        except (enough, SystemExit):
            break
        except BaseException as raised:
            error = told(raised)
    return module, error, ended


def told(raised: BaseException) -> dict[str, str]:
    """An exception as plain data."""
    trace = traceback.format_exc()[-8000:]
    return {"type": type(raised).__name__, "message": str(raised), "traceback": trace}


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    root, file = os.path.realpath(sys.argv[1]), sys.argv[2]
    major, _, minor = sys.argv[3].partition(".")
    capability = int(major), int(minor)
    folder = str(Path(file).parent)
    sys.path[:0] = [root, folder]
    ct = importlib.import_module("cuda.tile")

    def is_readers(name: str) -> bool:
        inside = name == file or name.startswith(folder + os.sep)
        return inside and not name.startswith((root + os.sep, sys.prefix + os.sep))

    recorder = recording("recorder").Recorder(ct, is_readers)
    setattr(ct, "launch", recorder.launch)  # noqa: B010 - a frontend says what it has
    if importlib.util.find_spec("cuda.tile.tune") is not None:
        tune = importlib.import_module("cuda.tile.tune")
        setattr(tune, "exhaustive_search", recorder.search)  # noqa: B010
    pytest_stand_in = recording("pytest_stand_in")
    sys.modules["pytest"] = pytest_stand_in.make()
    experimental = {"cuda.tile_experimental": {"autotune_launch": recorder.autotune}}
    finder = recording("missing").Finder(is_readers, ["cuda.tile"], capability, experimental)
    real_torch = importlib.util.find_spec("torch") is not None
    text = Path(file).read_text(encoding="utf-8")
    sys.meta_path.append(finder)
    if real_torch and "torch" in text:
        recording("host_memory").lend_host_memory(importlib.import_module("torch"), capability)
    sys.argv = [file, *sys.argv[4:]]
    module, error, ended = run(file, text, pytest_stand_in, recorder)
    torch = "stand-in" if "torch" in finder.used else "real" if "torch" in sys.modules else "unused"
    report = {
        **recorder.report(module),
        "torch": torch,
        "stand_ins": sorted({name.partition(".")[0] for name in finder.used}),
        "error": error,
        "ended": ended,
    }
    answers.write(json.dumps(report).encode("ascii") + b"\n")


if __name__ == "__main__":
    main()
