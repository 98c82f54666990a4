"""The text of a repro.py: kernel, signature, launch, and the parts that tell the symptom. Pure."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import dataclass
from textwrap import dedent, indent

from harness.kernels.arrays import contiguous
from harness.model import Hints, Parameter, Specialization
from harness.repro import parts
from harness.repro.kernel_text import kernel_text, names_of
from harness.repro.launching import Launch, argument_words, torch_lines
from harness.repro.signature_text import imported_names, signature_text
from harness.repro.spec import ReproError
from harness.repro.symptom import Symptom, symptom_lines
from harness.repro.torch_text import reference_text


@dataclass(frozen=True)
class Content:
    """All that a script is made from. `text` is a file that holds the kernel `function`.

    `bound` is what a number must not exceed (CPU seconds for SLOW); `arch` the default target. For DEVICE,
    `reference` says what the outputs should be, and `fault` that the launch itself fails.
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
    calling_convention: str = Specialization.calling_convention
    reference: tuple[tuple[str, str], ...] = ()
    fault: bool = False


def script_text(content: Content) -> str:
    """The whole file. Raises ReproError for what cannot be spelled."""
    chosen = _closure(f"{_main(content)}\n{_launch(content)}")
    bodies = [_part(name) for name in chosen]
    needed = _modules("\n".join([*bodies, _main(content), _ROLES]))
    sections = [
        _heading(content),
        "\n".join([*(f"import {module}" for module in needed), *_typing(bodies)]),
        _imports(content),
        _settings(content),
        _kernel(content),
        signature_text(content.parameters, content.calling_convention),
        _launch(content),
        *bodies,
        _main(content),
        _ROLES.format(function=content.function, format=_format(content)),
    ]
    head, rest = sections[:4], sections[4:]
    text = "\n\n".join(section.strip("\n") for section in head) + "\n\n\n"
    text += "\n\n\n".join(section.strip("\n") for section in rest) + "\n"
    _refuse_clashes(content, bodies, needed)
    ast.parse(text)
    return text


def _refuse_clashes(content: Content, bodies: list[str], modules: list[str]) -> None:
    """A name of the script's own that the kernel's file binds too would be overwritten."""
    kernel, imports = kernel_text(content.text, content.function, content.hints)
    theirs = names_of("\n".join([*imports, kernel])) - {"ct"}
    own = {"signature", "array", "launch", "main", "reference", "Any", *modules}
    own |= (
        names_of(_settings(content)) | names_of("\n\n".join(bodies)) | set(imported_names(content.parameters))
    )
    plain = {line.split()[-1] for line in imports if line.startswith("import ")} & set(modules)
    for name in sorted(theirs & own - plain):
        raise ReproError(
            f"the kernel's file binds {name}, which repro.py needs for itself; rename it, or show the "
            "reduced kernel with --reduced"
        )


# --- sections -----------------------------------------------------------------------------------


def _typing(bodies: list[str]) -> list[str]:
    return ["from typing import Any"] if any(re.search(r"\bAny\b", body) for body in bodies) else []


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
        "from cuda.tile.compilation import " + ", ".join(imported_names(content.parameters)),
    ]
    return "\n".join([*wanted, *(line for line in imports if line not in wanted)])


def _settings(content: Content) -> str:
    lines = [
        f'ARCH = "{content.arch}"  # where there is no GPU',
        f"SECONDS = {content.deadline:g}  # for one compile",
        "LAUNCH_SECONDS = 10  # for the kernel to end",
        "NO_GPU, DIFFERS = 3, 4  # exit codes",
    ]
    if content.symptom is Symptom.DEVICE:
        share = max((_TOLERANCES.get(a.dtype, 0.0) for a in content.launch.arrays), default=0.0)
        lines.append(f"TOLERANCE = {share:g}  # of the largest number: far more than rounding costs")
    return "\n".join(lines)


_TOLERANCES = {
    "float64": 2.0**-20,
    "float32": 2.0**-10,
    "tfloat32": 2.0**-6,
    "float16": 2.0**-6,
    "bfloat16": 2.0**-5,
    "float8_e4m3fn": 0.25,
    "float8_e5m2": 0.5,
}


def _kernel(content: Content) -> str:
    return kernel_text(content.text, content.function, content.hints)[0]


def _launch(content: Content) -> str:
    words = argument_words(content.parameters, content.launch)
    arguments = f"({', '.join(words)}{',' if len(words) == 1 else ''})"
    made = torch_lines(content.launch, normal=content.symptom is Symptom.DEVICE)
    if content.launch.guessed:
        made.insert(0, "# Sizes are a guess: the fault shows while compiling.")
    call = f"ct.launch(torch.cuda.current_stream(), {content.launch.grid}, {content.function}, {arguments})"
    if content.symptom is Symptom.DEVICE:
        return _checked_launch(content, made, call)
    return f'''
def launch():
    """Launch the kernel once, and wait for it no longer than LAUNCH_SECONDS."""
{_NEEDS_A_GPU}
{indent(chr(10).join(made), "    ")}
    {call}
    signal.alarm(LAUNCH_SECONDS)  # ends the process, also while it is inside the driver
    torch.cuda.synchronize()
'''


_NEEDS_A_GPU = """\
    try:
        import torch
    except ImportError:
        sys.exit(NO_GPU)
    if not torch.cuda.is_available():
        sys.exit(NO_GPU)
    torch.manual_seed(0)"""


def _checked_launch(content: Content, made: list[str], call: str) -> str:
    """Launches on fresh outputs, which must agree with each other and with the reference."""
    launch = content.launch
    roles = dict(zip((a.name for a in launch.arrays), launch.roles, strict=True))
    dense = {a.name for a in launch.arrays if a.strides == contiguous(a.shape)}
    outputs = [name for name, role in roles.items() if role != "in"]
    guarded = [name for name in outputs if roles[name] == "out" and name in dense]
    values = dict(zip((p.name for p in content.parameters), _values(content), strict=True))
    read = {name: text for name, text in values.items() if roles.get(name) != "out"}
    expected, reference = "{}", ""
    if content.reference:
        expected = f"reference(torch, {', '.join(read.values())})"
        reference = "\n\n" + reference_text(content.reference, list(read), set(outputs))
    told = ", ".join(f'"{name}": {name}' for name in outputs)
    kept = "".join(f"    given_{name} = {name}\n" for name in outputs)
    renewed = indent("\n".join(_fresh(name, name in guarded) for name in outputs), " " * 8)
    problem = "disagreement(launches, expected)"
    if guarded:
        kept += "    fences = {}\n"
        problem += " or overrun(fences)"
    return (
        f'''
def launch():
    """Launch the kernel three times on fresh outputs, and say what is wrong with them."""
{_NEEDS_A_GPU}
{indent(chr(10).join(made), "    ")}
    expected = {expected}
{kept}    launches = []
    for _ in range(3):
{renewed}
        {call}
        signal.alarm(LAUNCH_SECONDS)  # ends the process, also while it is inside the driver
        torch.cuda.synchronize()
        signal.alarm(0)
        launches.append({{{told}}})
    problem = {problem}
    if problem:
        print(problem)
        sys.exit(DIFFERS)
'''
        + reference
    )


def _fresh(name: str, guarded: bool) -> str:
    """An output as it is before a launch: with a fence where it is only written and lies in one piece."""
    if guarded:
        return f'{name}, fences["{name}"] = fenced(torch, given_{name})'
    return f"{name} = given_{name}.clone()"


def _values(content: Content) -> list[str]:
    """What a reference is given for every parameter: arrays in float64."""
    arrays = {a.name for a in content.launch.arrays}
    words = argument_words(content.parameters, content.launch)
    return [
        f"{word}.double()" if parameter.name in arrays else word
        for parameter, word in zip(content.parameters, words, strict=True)
    ]


def _main(content: Content) -> str:
    body = symptom_lines(
        content.symptom, content.hints.occupancy, content.bound, _error_name(content), content.fault
    )
    return _MAIN + indent(body, " " * 8) + "\n"


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
