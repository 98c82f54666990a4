"""The text of a repro.py: kernel, signature, launch, and the parts that tell the symptom. Pure."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import dataclass
from enum import StrEnum
from textwrap import dedent, indent

from harness.model import (
    Array,
    CellResult,
    Constant,
    Hints,
    Parameter,
    ScalarParameter,
    Verdict,
)
from harness.oracle import COMPILE_SECONDS, Compared, HasAdvice, Oracle, SameVerdict
from harness.repro import parts
from harness.repro.launching import Launch, argument_words, torch_lines
from harness.repro.spec import ReproError


class Symptom(StrEnum):
    """What a repro.py looks at."""

    DEADLOCK = "deadlock"
    OCCUPANCY = "occupancy"
    TMA = "tma"
    SPILLS = "spills"
    SLOW = "slow"
    ENDLESS = "endless"
    FAILS = "fails"
    FRONTEND = "frontend"


_ADVICE = {
    "occupancy_missed": Symptom.OCCUPANCY,
    "hint_ignored": Symptom.TMA,
    "spills": Symptom.SPILLS,
    "slow_compile": Symptom.SLOW,
}
_VERDICTS = {
    Verdict.PREDICTED_DEADLOCK: Symptom.DEADLOCK,
    Verdict.COMPILE_TIMEOUT: Symptom.ENDLESS,
    Verdict.COMPILER_CRASH: Symptom.FAILS,
    Verdict.COMPILE_ERROR: Symptom.FAILS,
    Verdict.FRONTEND_ERROR: Symptom.FRONTEND,
}

EXPECTED = {
    Symptom.DEADLOCK: "A kernel that ends: what some warps ask for, others must give back first.",
    Symptom.OCCUPANCY: "Few enough registers a thread for the occupancy that was asked for, or a warning.",
    Symptom.TMA: "No TMA loads where allow_tma=False forbids them.",
    Symptom.SPILLS: "No spills.",
    Symptom.SLOW: "A compile time like that of neighbouring settings and of other releases.",
    Symptom.ENDLESS: "A compile that ends, or a diagnosis.",
    Symptom.FAILS: "A cubin, or a diagnosis that names what the kernel does wrong.",
    Symptom.FRONTEND: "Bytecode, or an error that points at a line of the kernel.",
}


@dataclass(frozen=True)
class Content:
    """All that a script is made from. `text` is a file that holds the kernel `function`.

    `bound` is what a number must not exceed (CPU seconds for SLOW); `arch` the default target.
    """

    title: str
    summary: str
    text: str
    function: str
    parameters: tuple[Parameter, ...]
    hints: Hints
    launch: Launch
    symptom: Symptom
    arch: str
    bad: str
    deadline: float
    bound: float | None = None
    error_type: str | None = None


def symptom_of(result: CellResult, oracle: Oracle) -> tuple[Symptom, float | None]:
    """What a script must look at to see what the oracle sees, and the bound. Raises ReproError."""
    match oracle:
        case HasAdvice(kind=kind) if kind in _ADVICE:
            return _ADVICE[kind], 5.0 if kind == "slow_compile" else None
        case Compared(metric=metric, comparison=comparison, bound=bound) if (
            metric == COMPILE_SECONDS and comparison in (">", ">=")
        ):
            return Symptom.SLOW, bound
        case Compared():
            raise ReproError(
                f'"{oracle}" is not something repro.py can look at; '
                "use an advice, a signature or compile_seconds"
            )
        case HasAdvice() | SameVerdict() if result.verdict not in _VERDICTS:
            raise ReproError(f'"{oracle}" is not something repro.py can look at')
    if result.verdict not in _VERDICTS:
        raise ReproError(f"a {result.verdict} cannot be shown without the device it happened on")
    symptom = _VERDICTS[result.verdict]
    if symptom is Symptom.ENDLESS and result.judgement.component == "cuda-tile":
        raise ReproError("a frontend that does not end has no bytecode to show; write this repro by hand")
    return symptom, None


def script_text(content: Content) -> str:
    """The whole file. Raises ReproError for what cannot be spelled."""
    chosen = _closure(_main(content))
    bodies = [_part(name) for name in chosen]
    needed = _modules("\n".join([*bodies, _main(content), _ROLES]))
    sections = [
        _heading(content),
        "\n".join(f"import {module}" for module in needed),
        _imports(content),
        _settings(content),
        _kernel(content),
        _signature(content),
        _launch(content),
        *bodies,
        _main(content),
        _ROLES.format(function=content.function, format=_format(content)),
    ]
    head, rest = sections[:4], sections[4:]
    text = "\n\n".join(section.strip("\n") for section in head) + "\n\n\n"
    text += "\n\n\n".join(section.strip("\n") for section in rest) + "\n"
    ast.parse(text)
    return text


def kernel_text(text: str, function: str, hints: Hints) -> tuple[str, list[str]]:
    """The kernel with hints in its decorator and all that it needs of its file, and that file's imports.

    Raises ReproError where the kernel is not a plain function under `@ct.kernel`.
    """
    module = ast.parse(text)
    by_name: dict[str, ast.stmt] = {}
    imports = []
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(node))
        for name in _bound(node):
            by_name[name] = node
    kernel = by_name.get(function)
    if not isinstance(kernel, ast.FunctionDef) or len(kernel.decorator_list) != 1:
        raise ReproError(f"{function} is not a plain function under @ct.kernel; write this repro by hand")
    wanted, todo = {function}, [function]
    while todo:
        for name in _read(by_name[todo.pop()]):
            if name in by_name and name not in wanted:
                wanted.add(name)
                todo.append(name)
    lines = text.splitlines()
    kept = [node for node in module.body if any(name in wanted for name in _bound(node))]
    pieces = []
    for node in kept:
        first = node.lineno - 1
        source = "\n".join(lines[first : node.end_lineno])
        if node is kernel:
            source = f"@{_decorator(kernel.decorator_list[0], hints)}\n{source}"
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            source = "\n".join(lines[node.decorator_list[0].lineno - 1 : node.end_lineno])
        pieces.append(source)
    return "\n\n\n".join(pieces), imports


def _decorator(given: ast.expr, hints: Hints) -> str:
    keywords: dict[str, str] = {}
    name = given
    if isinstance(given, ast.Call):
        keywords = {str(k.arg): ast.unparse(k.value) for k in given.keywords}
        name = given.func
    plain = Hints()
    given_hints = {k: v for k, v in hints.to_json().items() if v not in (None, getattr(plain, k))}
    keywords |= {k: str(v) for k, v in given_hints.items()}
    listed = ", ".join(f"{key}={value}" for key, value in keywords.items())
    return f"{ast.unparse(name)}({listed})" if listed else ast.unparse(name)


def _bound(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _read(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


# --- sections -----------------------------------------------------------------------------------


def _heading(content: Content) -> str:
    return (
        f'"""{_prose(content.title)}\n\n{_prose(content.summary)}\n\n'
        f"{_prose(content.bad)}\n    python repro.py                  "
        "# launches where torch sees a GPU, else compiles for "
        f"{content.arch}\n    python repro.py --arch sm_120    # another target\n\n"
        "The last line is SYMPTOM, OK or UNKNOWN with what was seen; the exit code 1, 0 or 2.\n"
        '"""'
    )


def _prose(text: str) -> str:
    """Fit to stand in a docstring, in lines of readable length."""
    plain = text.replace("\\", "/").replace('"""', "'''").rstrip('"')
    return "\n".join(
        line if line.startswith("    ") else textwrap.fill(line, 108, break_long_words=False)
        for line in plain.splitlines()
    )


def _imports(content: Content) -> str:
    _, imports = kernel_text(content.text, content.function, content.hints)
    wanted = [
        "import cuda.tile as ct",
        "from cuda.tile.compilation import " + ", ".join(_compilation(content)),
    ]
    return "\n".join([*wanted, *(line for line in imports if line not in wanted)])


def _compilation(content: Content) -> list[str]:
    names = ["CallingConvention", "KernelSignature", "export_kernel"]
    if any(isinstance(p, Array) for p in content.parameters):
        names.append("ArrayConstraint")
    if any(isinstance(p, ScalarParameter) for p in content.parameters):
        names.append("ScalarConstraint")
    return sorted(names)


def _settings(content: Content) -> str:
    lines = [
        f'ARCH = "{content.arch}"  # where there is no GPU',
        f"SECONDS = {content.deadline:g}  # for one compile",
        "LAUNCH_SECONDS = 10  # for the kernel to end",
        "NO_GPU = 3  # exit code",
    ]
    return "\n".join(lines)


def _kernel(content: Content) -> str:
    return kernel_text(content.text, content.function, content.hints)[0]


def _signature(content: Content) -> str:
    lines = [_constraint(parameter) + f",  # {parameter.name}" for parameter in content.parameters]
    inside = indent("\n".join(lines), " " * 8)
    arrays = any(isinstance(p, Array) for p in content.parameters)
    text = (_ARRAY if arrays else "") + dedent('''
        def signature():
            """What a launch lets the compiler assume, and the constants that it bakes in."""
            parameters = [
        ''')
    return (
        text
        + inside
        + "\n    ]\n    return KernelSignature(parameters, CallingConvention.cutile_python_v1())\n"
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


def _constraint(parameter: Parameter) -> str:
    match parameter:
        case Constant():
            return repr(parameter.value)
        case ScalarParameter():
            return f"ScalarConstraint({_dtype(parameter.dtype)})"
        case Array():
            words = [
                _dtype(parameter.dtype),
                repr(parameter.shape_divisible_by),
                repr(parameter.stride_divisible_by),
                repr(parameter.stride_constant),
            ]
            if parameter.base_divisible_by != 16:
                words.append(f"base_addr_divisible_by={parameter.base_divisible_by}")
            if any(size is not None for size in parameter.shape_constant):
                words.append(f"shape_constant={parameter.shape_constant!r}")
            if parameter.alias_groups:
                words.append(f"alias_groups={parameter.alias_groups!r}")
            if parameter.may_alias_internally:
                words.append("may_alias_internally=True")
            if parameter.index_dtype != "int32":
                words.append(f"index_dtype={_dtype(parameter.index_dtype)}")
            return f"array({', '.join(words)})"
    raise ReproError(f"parameter {parameter.name} is a list or tuple; write this repro by hand")


def _dtype(name: str) -> str:
    return "ct.bool_" if name == "bool" else f"ct.{name}"


def _launch(content: Content) -> str:
    arguments = ", ".join(argument_words(content.parameters, content.launch))
    arguments += "," if len(content.parameters) == 1 else ""
    lines = torch_lines(content.launch)
    if content.launch.guessed:
        lines.insert(0, "# Sizes are a guess: the fault shows while compiling.")
    body = indent("\n".join(lines), "    ")
    return f'''
def launch():
    """Launch the kernel once, and wait for it no longer than LAUNCH_SECONDS."""
    try:
        import torch
    except ImportError:
        sys.exit(NO_GPU)
    if not torch.cuda.is_available():
        sys.exit(NO_GPU)
    torch.manual_seed(0)
{body}
    arguments = ({arguments})
    ct.launch(torch.cuda.current_stream(), {content.launch.grid}, {content.function}, arguments)
    signal.alarm(LAUNCH_SECONDS)  # ends the process, also while it is inside the driver
    torch.cuda.synchronize()
'''


def _main(content: Content) -> str:
    body = _BODIES[content.symptom].format(
        occupancy=content.hints.occupancy, bound=f"{content.bound or 0:g}", error=_error_name(content)
    )
    return _MAIN + indent(dedent(body).strip("\n"), " " * 8) + "\n"


def _error_name(content: Content) -> str:
    """The exception's name, as all versions of cuda.tile have it: some put "Tile" before it."""
    return (content.error_type or "").removeprefix("Tile")


_MAIN = '''
def main():
    """Show the symptom, as far as it shows here."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\\n")[0])
    parser.add_argument("--arch", default=ARCH, help="architecture to compile for without a GPU")
    arch = parser.parse_args().arch
    with tempfile.TemporaryDirectory() as scratch:
'''

_COMPILED = """
code, cubin, output, _ = compile_apart(arch, scratch)
if code is None:
    finish("UNKNOWN", f"compiling for {{arch}} did not end within {{SECONDS:g}} s")
if code != 0:
    finish("UNKNOWN", last_words(output))
"""

_LAUNCHED = """
print("on a GPU:", *launch_apart(scratch))
"""

_BODIES = {
    Symptom.DEADLOCK: """
outcome, words = launch_apart(scratch)
if outcome == "hangs":
    finish("SYMPTOM", words)
if outcome == "finishes":
    finish("OK", words)
"""
    + _COMPILED
    + """
registers, threads = resources(cubin)
grow, shrink = pool_requests(cubin)
facts = f"{{arch}}: {{registers}} registers, {{threads}} threads, warps grow to {{grow}}"
facts += f", shrink to {{shrink}}"
if any(count > registers for count in grow) and not any(count < registers for count in shrink):
    finish("SYMPTOM", f"{{facts}}: no warp ever gives back what others wait for")
finish("OK", facts)
""",
    Symptom.OCCUPANCY: _COMPILED
    + _LAUNCHED
    + """
registers, threads = resources(cubin)
blocks = 65536 // (-(-registers // 8) * 8 * threads)
room = (2048 if arch in ("sm_80", "sm_90", "sm_100", "sm_103") else 1536) // threads
facts = f"{{arch}}: occupancy={occupancy} was asked for, "
facts += f"{{registers}} registers x {{threads}} threads allow {{blocks}}"
finish("SYMPTOM" if blocks < min({occupancy}, room) else "OK", facts)
""",
    Symptom.TMA: _COMPILED
    + _LAUNCHED
    + """
loads = tensor_loads(cubin)
finish("SYMPTOM" if loads else "OK", f"{{arch}}: {{loads}} TMA loads of tiles with allow_tma=False")
""",
    Symptom.SPILLS: _COMPILED
    + _LAUNCHED
    + """
count = local_accesses(cubin)
facts = f"{{arch}}: {{count}} instructions read or write local memory"
finish("SYMPTOM" if count else "OK", facts)
""",
    Symptom.SLOW: """
code, _, output, cpu = compile_apart(arch, scratch)
if code not in (0, None):
    finish("UNKNOWN", last_words(output))
seconds = sum(cpu.get(name, 0.0) for name in ("tileiras", "ptxas"))
facts = f"compiling for {{arch}} took {{seconds:.1f}} s of CPU ({{shares(cpu)}})"
finish("SYMPTOM" if seconds > {bound} or code is None else "OK", facts)
""",
    Symptom.ENDLESS: """
code, _, output, cpu = compile_apart(arch, scratch)
if code is None:
    words = f"did not end within {{SECONDS:g}} s ({{shares(cpu)}} of CPU)"
    finish("SYMPTOM", f"compiling for {{arch}} {{words}}")
if code != 0:
    finish("UNKNOWN", last_words(output))
finish("OK", f"compiling for {{arch}} ended ({{shares(cpu)}} of CPU)")
""",
    Symptom.FAILS: """
code, _, output, _ = compile_apart(arch, scratch)
if code is None:
    finish("UNKNOWN", f"compiling for {{arch}} did not end within {{SECONDS:g}} s")
words = last_words(output)
if code != 0 and "CompilerExecutionError" in words and not refused(words):
    finish("SYMPTOM", f"compiling for {{arch}} fails: {{words}}")
finish("OK" if code == 0 else "UNKNOWN", f"{{arch}} compiles" if code == 0 else words)
""",
    Symptom.FRONTEND: """
code, _, output, _ = compile_apart(arch, scratch)
words = last_words(output)
if code == 1 and "{error}" in words.partition(":")[0]:
    finish("SYMPTOM", f"tracing the kernel fails: {{words}}")
finish("OK" if code == 0 else "UNKNOWN", "the kernel becomes bytecode" if code == 0 else words)
""",
}

_ROLES = """
if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["compile"]:
            _, _, arch, path = sys.argv
            export_kernel({function}, [signature()], path, gpu_code=arch, {format})
        elif sys.argv[1:2] == ["launch"]:
            launch()
        else:
            main()
    except Exception as error:
        sys.exit(f"FAILED {{type(error).__name__}}: {{error}}")
"""


def _format(content: Content) -> str:
    if content.symptom is Symptom.FRONTEND:
        return 'output_format="tileir_bytecode", bytecode_version="13.1"'
    return 'output_format="cubin"'


# --- parts --------------------------------------------------------------------------------------

_ORDER = [name for name, value in vars(parts).items() if inspect.isfunction(value)]


def _part(name: str) -> str:
    return inspect.getsource(getattr(parts, name))


def _closure(text: str) -> list[str]:
    """Names of the parts that a text uses, directly or through others, in the order of their file."""
    found: set[str] = set()
    todo = [text]
    while todo:
        names = {node.id for node in ast.walk(ast.parse(dedent(todo.pop()))) if isinstance(node, ast.Name)}
        for name in names & set(_ORDER) - found:
            found.add(name)
            todo.append(_part(name))
    return [name for name in _ORDER if name in found]


def _modules(text: str) -> list[str]:
    """The standard modules that a text uses."""
    known = ("argparse", "contextlib", "os", "signal", "struct", "subprocess", "sys", "tempfile", "time")
    always = {"signal", "sys"}
    return [m for m in known if m in always or re.search(rf"\b{m}\.", text)]
