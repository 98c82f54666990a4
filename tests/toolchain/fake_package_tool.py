"""Stands in for pip and uv where a test needs them slow, failing or killed.

    fake_package_tool.py [BEHAVIOUR ...] -- the arguments of the real tool

Behaviours: `unreachable`, `disk-full`, `refuse` (fail, with the words that the real tools use),
`half-reachable` (one of two indexes is away, and the other has only an old version), `old-pip`
(knows no --json), `half` (write a part of the files, then hang), `hollow` (install nothing, call it
success), `slow` (take 0.3 s), `log=FILE` (append one line per install).
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

UNREACHABLE = {
    "pip": "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError("
    "'<HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -2] Name or service "
    "not known')': /simple/cuda-tile/\nERROR: No matching distribution found for cuda-tile",
    "uv": "error: Request failed after 3 retries\n  cause: dns error\n  cause: Name or service not known",
}
DISK_FULL = "error: Failed to install\n  cause: failed to copy file: No space left on device (os error 28)"
WHEELS = {
    "nvidia-cuda-tileiras": ["nvidia/cu13/bin/tileiras"],
    "nvidia-nvvm": ["nvidia/cu13/lib/libnvvm.so.4", "nvidia/cu13/nvvm/libdevice/libdevice.10.bc"],
    "nvidia-cuda-nvcc": ["nvidia/cu13/bin/ptxas"],
    "cuda-tile": ["cuda/tile/compilation/__init__.py"],
    "typing-extensions": ["typing_extensions.py"],
}
TOOLKITS = {"13.3.1": ("13.3.36", "13.3.73"), "13.4.3": ("13.4.92", "13.4.92")}
VERSIONS = {
    "cuda-toolkit": "13.4.3, 13.3.1, 12.9.1",
    "cuda-tile": "1.5.0, 1.3.0, 1.2.0",
    "nvidia-cuda-tileiras": "13.4.92, 13.3.36",
    "nvidia-nvvm": "13.4.92, 13.3.73",
    "nvidia-cuda-nvcc": "13.4.92, 13.3.73",
}


def fail(text: str, code: int = 1) -> None:
    print(text, file=sys.stderr)
    sys.exit(code)


def pinned(package: str, version: str) -> str:
    return f"{package}=={version} \\\n    --hash=sha256:{(package + version).encode().hex():0>64.64}"


def resolve(requirement: str) -> None:
    package, version = re.sub(r"\[.*\]", "", requirement).strip().split("==")
    if package == "cuda-toolkit":
        tileiras, rest = TOOLKITS[version]
        print(pinned("cuda-toolkit", version))
        print(pinned("nvidia-cuda-tileiras", tileiras))
        print(pinned("nvidia-nvvm", rest))
        print(pinned("nvidia-cuda-nvcc", rest))
    else:
        print(pinned(package, version))
        if package == "cuda-tile":
            print(pinned("typing-extensions", "4.16.0"))


def install(behaviours: list[str], target: Path, requirements: str) -> None:
    for behaviour in behaviours:
        if behaviour.startswith("log="):
            with open(behaviour.removeprefix("log="), "a", encoding="utf-8") as log:
                log.write(requirements.split(maxsplit=1)[0] + "\n")
    for line in requirements.splitlines():
        name = line.split()[0]
        for place in WHEELS[name.split("==")[0]]:
            path = target / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n# {name}\nexit 1\n", encoding="utf-8")
            path.chmod(0o755)
            if "half" in behaviours:
                print("half", flush=True)
                time.sleep(60)


def main() -> None:
    split = sys.argv.index("--")
    behaviours, arguments = sys.argv[1:split], sys.argv[split + 1 :]
    tool = "uv" if arguments[0] == "pip" else "pip"
    if "unreachable" in behaviours and arguments[0] != "config":
        fail(UNREACHABLE[tool], 2)
    if "half-reachable" in behaviours and arguments[0] == "index":
        print(UNREACHABLE[tool], file=sys.stderr)
        print('{"versions": ["0.9"]}')
        return
    if "disk-full" in behaviours and arguments[:2] == ["pip", "install"]:
        fail(DISK_FULL, 2)
    if "refuse" in behaviours:
        fail("error: No solution found\n  cause: Because pigs cannot fly, you lose.")
    if "slow" in behaviours:
        time.sleep(0.3)
    if arguments[:2] == ["index", "versions"]:
        if "old-pip" in behaviours and "--json" in arguments:
            fail("Usage: pip index\n\nno such option: --json", 2)
        package = next(a for a in arguments[2:] if a in VERSIONS)
        if "--json" in arguments:
            listed = ", ".join(f'"{v}"' for v in VERSIONS[package].split(", "))
            print(f'{{"name": "{package}", "versions": [{listed}]}}')
        else:
            print(f"{package} (1)\nAvailable versions: {VERSIONS[package]}")
    elif arguments[:2] == ["pip", "compile"]:
        resolve(Path(arguments[-1]).read_text(encoding="utf-8"))
    elif arguments[:2] == ["pip", "install"] and "hollow" not in behaviours:
        target = Path(arguments[arguments.index("--target") + 1])
        install(behaviours, target, Path(arguments[-1]).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
