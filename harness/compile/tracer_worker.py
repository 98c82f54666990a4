"""The tracer: turns kernels into TileIR bytecode inside one cuda-tile's environment.

Started by path as `python -I tracer_worker.py FRONTEND_ROOT`, where FRONTEND_ROOT is a directory with
`cuda/tile` in it. Imports the standard library and cuda.tile only, and is one file, because nothing of this
package can be imported there; `beside` is loaded by path. It never calls a compiler.

Protocol: one JSON object a line. The worker first says hello with its version and the bytecode
versions it writes; then it answers each request, and exits at end of file. Before the answer, which has a
"status", a line with a "stage" alone tells what comes next: "import" of the kernel's file, which may do
anything, or "trace". So whoever waits can tell whose fault a death or an endless wait is. Requests come on
what was standard input at the start, answers go to what was standard output; afterwards both are detached,
so that a kernel's module may print.

Bytecode embeds file names. So kernels are compiled under the request's canonical name, and
cuda.tile's own files under their names relative to FRONTEND_ROOT: two checkouts and two stores
give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import io
import json
import linecache
import os
import re
import sys
import time
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any

TEXT_LIMIT = 12_000
"""Characters of a message or a traceback that are handed on."""

IMPORT, SIGNATURE, TRACE = "import", "signature", "trace"


class Refusal(Exception):
    """An answer that is not an accident: status, then a sentence.

    `lasting` is false where the answer hangs on more than the request: on the file system, or on
    what else is installed for a kernel's module to import.
    """

    def __init__(
        self,
        status: str,
        message: str,
        error_type: str | None = None,
        *,
        lasting: bool = True,
        stage: str = TRACE,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type
        self.lasting = lasting
        self.stage = stage


# --- cuda.tile under canonical file names -----------------------------------------------------


def renamed(code: types.CodeType, filename: str) -> types.CodeType:
    """The same code object, and those nested in it, with another file name."""
    constants = tuple(renamed(c, filename) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=filename, co_consts=constants)


class CanonicalLoader(importlib.machinery.SourceFileLoader):
    """Loads a module as ever, but its functions name their file relative to the frontend's root."""

    root = ""

    def get_code(self, fullname: str) -> types.CodeType | None:
        code = super().get_code(fullname)
        return renamed(code, os.path.relpath(self.path, self.root)) if code is not None else None


class CanonicalFinder(importlib.abc.MetaPathFinder):
    """Finds cuda.* in the frontend's root, ahead of whatever else is installed."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.loader = type("Loader", (CanonicalLoader,), {"root": root})

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("cuda."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not (spec.origin or "").startswith(self.root + os.sep):
            return spec
        if type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = self.loader(spec.loader.name, spec.loader.path)
        return spec


# --- kernels ----------------------------------------------------------------------------------


def beside() -> Any:
    """The module `beside`, which no import path leads to."""
    name = "_tile_harness_beside"
    if name not in sys.modules:
        place = os.path.join(os.path.dirname(os.path.realpath(__file__)), "beside.py")
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


MAX_MODULES = 128
_loaded: dict[tuple[str, str, str], tuple[types.ModuleType, list[str], dict[str, str]]] = {}


def load_module(path: str, canonical: str, sha256: str) -> tuple[types.ModuleType, list[str], dict[str, str]]:
    """The kernel's module and its source lines, compiled under the canonical name, and the files beside it
    that it imported, with their SHA-256."""
    key = (path, canonical, sha256)
    if key in _loaded and beside().unchanged(os.path.dirname(path), _loaded[key][2]):
        return _loaded[key]
    while len(_loaded) >= MAX_MODULES:
        del _loaded[next(iter(_loaded))]
    _loaded[key] = _load_module(path, canonical, sha256)
    return _loaded[key]


def _load_module(
    path: str, canonical: str, sha256: str
) -> tuple[types.ModuleType, list[str], dict[str, str]]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        why = f"cannot read {canonical}: {error.strerror}"
        raise Refusal("error", why, type(error).__name__, lasting=False, stage=IMPORT) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        why = f"{canonical} changed on disk while the run was going on; run again"
        raise Refusal("error", why, lasting=False, stage=IMPORT)
    text = importlib.util.decode_source(data)
    lines = text.splitlines(keepends=True)
    register_lines(canonical, lines)
    name = f"tile_kernel_{sha256}"
    module = types.ModuleType(name)
    module.__file__ = canonical
    sys.modules[name] = module
    finder = beside().BesideFinder(os.path.dirname(path), os.path.dirname(canonical), register_lines)
    with beside().importable(finder):
        exec(compile(text, canonical, "exec", dont_inherit=True), module.__dict__)
    return module, lines, finder.read


def register_lines(canonical: str, lines: list[str]) -> None:
    """cuda.tile reads a kernel's text through linecache; modification time None keeps the entry."""
    linecache.cache[canonical] = (sum(map(len, lines)), None, lines, canonical)


def find_kernel(source: dict[str, str], kernel_type: type, imported: dict[str, str]) -> Any:
    """The kernel; `imported` learns the files that its module imported from its own folder."""
    try:
        module, lines, read = load_module(source["path"], source["canonical"], source["sha256"])
        imported.update(read)
    except Refusal:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt are a module's to raise, too
        text, kind = exception_text(error), type(error).__name__
        raise Refusal("error", text, kind, lasting=False, stage=IMPORT) from error
    register_lines(source["canonical"], lines)
    found: Any = module
    for part in source["function"].split("."):
        if not hasattr(found, part):
            have = sorted(n for n, v in vars(module).items() if isinstance(v, kernel_type))
            listed = f"; its kernels are {', '.join(have)}" if have else "; it has no kernels"
            raise Refusal("error", f"{source['canonical']} has no {source['function']!r}{listed}")
        found = getattr(found, part)
    if not isinstance(found, kernel_type):
        raise Refusal(
            "error",
            f"{source['function']!r} in {source['canonical']} is not a kernel but {type(found).__name__!r}; "
            "decorate it with @ct.kernel",
        )
    return found


def with_hints(kernel: Any, hints: dict[str, Any], version: str) -> Any:
    """Hints of the request over those in the file; None leaves a hint as written."""
    wanted = {name: value for name, value in hints.items() if value is not None}
    options = kernel._compiler_options
    for name in wanted:
        if not hasattr(options, name):
            raise Refusal("unsupported", f"cuda-tile {version} knows no hint {name!r}")
    changed = {name: value for name, value in wanted.items() if getattr(options, name) != value}
    try:
        return kernel.replace_hints(**changed) if changed else kernel
    except ValueError as error:
        raise Refusal("unsupported", str(error), "ValueError") from error


def opt_level(kernel: Any, arch: str) -> int:
    """The level that a JIT launch would compile this kernel with for this architecture."""
    options = kernel._compiler_options
    if hasattr(options, "opt_level_for_target"):
        return int(options.opt_level_for_target(arch))
    level = options.opt_level
    if isinstance(level, int):
        return level
    by_target = level._by_target.get(arch, level._default)
    return by_target if isinstance(by_target, int) else 3


# --- signatures -------------------------------------------------------------------------------


class SignatureBuilder:
    """Builds cuda.tile's KernelSignature from the lab's parameters, as far as this version can."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.ct = importlib.import_module("cuda.tile")
        self.api = importlib.import_module("cuda.tile.compilation")

    def build(self, parameters: list[dict[str, Any]], calling_convention: str) -> Any:
        make = getattr(self.api.CallingConvention, calling_convention, None)
        if make is None:
            raise Refusal(
                "unsupported", f"cuda-tile {self.version} has no calling convention {calling_convention!r}"
            )
        try:
            return self.api.KernelSignature([self.constraint(p) for p in parameters], make())
        except (TypeError, ValueError) as error:
            text, kind = f"invalid signature: {error}", type(error).__name__
            raise Refusal("error", text, kind, stage=SIGNATURE) from error

    def constraint(self, parameter: dict[str, Any]) -> Any:
        return getattr(self, "_" + parameter["type"])(parameter)

    def _Array(self, parameter: dict[str, Any]) -> Any:
        given = {
            "index_dtype": self.dtype(parameter["index_dtype"], parameter),
            "stride_lower_bound_incl": 0,
            "alias_groups": parameter["alias_groups"],
            "may_alias_internally": parameter["may_alias_internally"],
            "stride_constant": parameter["stride_constant"],
            "stride_divisible_by": parameter["stride_divisible_by"],
            "shape_divisible_by": parameter["shape_divisible_by"],
            "base_addr_divisible_by": parameter["base_divisible_by"],
        }
        if any(size is not None for size in parameter["shape_constant"]):
            if "shape_constant" not in inspect.signature(self.api.ArrayConstraint.__init__).parameters:
                raise Refusal(
                    "unsupported",
                    f"cuda-tile {self.version} knows no constant array shapes "
                    f"(parameter {parameter['name']!r})",
                )
            given["shape_constant"] = parameter["shape_constant"]
        rank = len(parameter["stride_constant"])
        return self.api.ArrayConstraint(self.dtype(parameter["dtype"], parameter), rank, **given)

    def _ScalarParameter(self, parameter: dict[str, Any]) -> Any:
        return self.api.ScalarConstraint(self.dtype(parameter["dtype"], parameter))

    def _Constant(self, parameter: dict[str, Any]) -> Any:
        value = parameter["value"]
        # JSON knows no NaN and no infinities; the lab writes {"float": "-inf"}.
        return self.api.ConstantConstraint(float(value["float"]) if isinstance(value, dict) else value)

    def _ArrayList(self, parameter: dict[str, Any]) -> Any:
        return self.api.ListConstraint(
            self.constraint(parameter["element"]),
            alias_groups=parameter["alias_groups"],
            elements_may_alias=parameter["elements_may_alias"],
        )

    def _TupleParameter(self, parameter: dict[str, Any]) -> Any:
        if not hasattr(self.api, "TupleConstraint"):
            raise Refusal(
                "unsupported",
                f"cuda-tile {self.version} knows no tuple parameters (parameter {parameter['name']!r})",
            )
        return self.api.TupleConstraint([self.constraint(item) for item in parameter["items"]])

    def dtype(self, name: str, parameter: dict[str, Any]) -> Any:
        found = getattr(self.ct, "bool_" if name == "bool" else name, None)
        if found is None:
            raise Refusal(
                "unsupported",
                f"cuda-tile {self.version} has no dtype {name!r} (parameter {parameter['name']!r})",
            )
        return found


# --- one request ------------------------------------------------------------------------------


class Tracer:
    def __init__(self) -> None:
        self.ct = importlib.import_module("cuda.tile")
        self.api = importlib.import_module("cuda.tile.compilation")
        self.errors = importlib.import_module("cuda.tile._exception")
        compiler = importlib.import_module("cuda.tile._compile")
        self.version = self.ct.__version__
        self.bytecode_versions = [v.as_string() for v in compiler._SUPPORTED_VERSIONS]
        self.signatures = SignatureBuilder(self.version)
        self.imported: dict[str, str] = {}

    def answer(self, request: dict[str, Any], announce: Callable[[str], None]) -> dict[str, Any]:
        """{"status": "ok", "bytecode", "symbol"}, or a status with error_type, message, traceback, stage.

        "lasting": false tells not to remember the answer; "imported" are files beside the kernel's own, with
        their SHA-256, that it hangs on as well. `announce` hears each stage before it begins.
        """
        self.imported = {}
        answer = self._answer(request, announce)
        return {**answer, "imported": self.imported} if self.imported else answer

    def _answer(self, request: dict[str, Any], announce: Callable[[str], None]) -> dict[str, Any]:
        try:
            return self.trace(request["spec"], request["arch"], request["bytecode_version"], announce)
        except Refusal as refusal:
            answer = failure(
                refusal.status, refusal.error_type, str(refusal), traceback_of(refusal.__cause__)
            )
            return {**answer, "lasting": refusal.lasting, "stage": refusal.stage}
        except Exception as error:
            status, message, stage = self.classify(error, request["arch"])
            answer = failure(status, type(error).__name__, message, traceback_of(error))
            return {**answer, "stage": stage}

    def trace(
        self, spec: dict[str, Any], arch: str, bytecode_version: str, announce: Callable[[str], None]
    ) -> dict[str, Any]:
        if bytecode_version not in self.bytecode_versions:
            raise Refusal(
                "unsupported",
                f"cuda-tile {self.version} cannot write bytecode {bytecode_version}, "
                f"only {', '.join(self.bytecode_versions)}",
            )
        announce(IMPORT)
        kernel = find_kernel(spec["source"], self.ct.kernel, self.imported)
        announce(TRACE)
        kernel = with_hints(kernel, spec["hints"], self.version)
        function = kernel._annotated_function.pyfunc
        self.check_parameters(function, spec)
        signature = self.signatures.build(spec["parameters"], spec["calling_convention"])
        signature = signature.with_mangled_symbol(function.__name__)
        buffer = io.BytesIO()
        self.api.export_kernel(
            kernel,
            [signature],
            buffer,
            gpu_code=arch,
            output_format="tileir_bytecode",
            bytecode_version=bytecode_version,
        )
        return {
            "status": "ok",
            "bytecode": base64.b64encode(buffer.getvalue()).decode("ascii"),
            "symbol": signature.symbol,
            "opt_level": opt_level(kernel, arch),
        }

    def check_parameters(self, function: types.FunctionType, spec: dict[str, Any]) -> None:
        names = list(inspect.signature(function).parameters)
        given = [parameter["name"] for parameter in spec["parameters"]]
        if len(names) != len(given):
            raise Refusal(
                "error",
                f"kernel {spec['source']['function']!r} takes {len(names)} parameters ({', '.join(names)}), "
                f"but the signature describes {len(given)} ({', '.join(given)})",
                stage=SIGNATURE,
            )

    def classify(self, error: Exception, arch: str) -> tuple[str, str, str]:
        """Status, text and stage: the user's error, the version's refusal, or the frontend's own fault."""
        text = exception_text(error)
        if isinstance(error, self.errors.TileUnsupportedFeatureError):
            return "unsupported", text, TRACE
        if isinstance(error, self.errors.TileInternalError):
            return "internal", text, TRACE
        if isinstance(error, self.errors.TileError):
            return "error", text, TRACE
        if isinstance(error, (ValueError, KeyError)) and repr(arch.removeprefix("sm_")) in str(error):
            return "unsupported", f"cuda-tile {self.version} {refused_architecture(arch)}", TRACE
        if isinstance(error, TypeError) and str(error).startswith("Invalid "):
            return "error", text, SIGNATURE  # how cuda.tile words a signature that does not fit the kernel
        return "internal", text, TRACE


def refused_architecture(arch: str) -> str:
    """What to say of an architecture that cuda.tile cannot even read."""
    suffixed = re.fullmatch(r"(sm_\d+)[a-z]+", arch)
    if suffixed is None:
        return f"does not know the architecture {arch!r}"
    return f"takes no architecture suffix: name {suffixed[1]!r} instead of {arch!r}"


def exception_text(error: BaseException) -> str:
    """Message of an exception; a bare KeyError('c.0') would say little."""
    try:
        text = str(error).strip()
    except Exception:  # the error is the kernel's own, and so is its __str__
        text = "(its text cannot be made)"
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error)).strip()
    if hasattr(error, "loc"):  # cuda.tile's own: its text says it all
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def traceback_of(error: BaseException | None) -> str:
    """Its traceback from where it left this file, which is not what went wrong; nothing without an error."""
    if error is None:
        return ""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def failure(status: str, error_type: str | None, message: str, trace: str) -> dict[str, Any]:
    return {"status": status, "error_type": error_type, "message": cut(message), "traceback": cut(trace)}


def cut(text: str) -> str:
    """Head and tail of a text too long."""
    if len(text) <= TEXT_LIMIT:
        return text
    return text[: TEXT_LIMIT // 2] + "\n...\n" + text[-TEXT_LIMIT // 2 :]


def main() -> None:
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    root = os.path.realpath(sys.argv[1])
    sys.path.insert(0, root)
    sys.meta_path.insert(0, CanonicalFinder(root))

    me = os.getpid()

    def say(value: dict[str, Any]) -> None:
        if os.getpid() != me:  # a copy that a kernel's module forked: there must be one answer
            os._exit(0)
        answers.write(json.dumps(value).encode("ascii") + b"\n")

    tracer = Tracer()
    say({"version": tracer.version, "bytecode_versions": tracer.bytecode_versions})
    for line in requests:
        before = time.process_time()
        answer = tracer.answer(json.loads(line), lambda stage: say({"stage": stage}))
        say({**answer, "cpu_seconds": time.process_time() - before})


if __name__ == "__main__":
    main()
