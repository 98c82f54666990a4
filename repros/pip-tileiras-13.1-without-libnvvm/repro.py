"""tileiras 13.1 as pip installs it cannot find libnvvm.

It looks for nvvm/lib64/libnvvm.so beside its bin directory. nvidia-nvvm 13.1 puts lib/libnvvm.so.4 there. So
every compile ends in exit code 5, "failed to compile Tile IR program", and nothing says why. With a
link in the place it looks at, the same installation compiles.

    pip install cuda-tile==1.7.0 'cuda-toolkit[nvcc,nvvm,tileiras]==13.1.1'
    python repro.py

Needs no GPU. The last line is SYMPTOM, OK or UNKNOWN; the exit code 1, 0 or 2.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

ARCH = "sm_100"


@ct.kernel
def ones(out):
    ct.store(out, index=(0,), tile=ct.full((16,), 1.0, dtype=ct.float32))


def bytecode(path):
    out = ArrayConstraint(
        ct.float32,
        1,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(1,),
    )
    signature = KernelSignature([out], CallingConvention.cutile_python_v1())
    options = {"output_format": "tileir_bytecode", "bytecode_version": "13.1"}
    export_kernel(ones, [signature], str(path), gpu_code=ARCH, **options)


def installation():
    """The directory that pip put the compilers into."""
    import nvidia.cu13

    return Path(nvidia.cu13.__path__[0])


def compile_with(root, scratch):
    """Exit code and last words of tileiras."""
    command = [root / "bin" / "tileiras", scratch / "k.tileirbc", "-o", scratch / "k.cubin"]
    done = subprocess.run(
        [*command, "--gpu-name", ARCH], check=False, capture_output=True, text=True, timeout=60
    )
    return done.returncode, " ".join(done.stderr.split())


def with_link(root, scratch):
    """The same files, and libnvvm where tileiras looks for it."""
    tree = scratch / "linked"
    for file in ("bin/tileiras", "bin/ptxas", "lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so"):
        source = root / ("lib/libnvvm.so.4" if file.endswith("libnvvm.so") else file)
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, tree / file)
        except OSError:  # another file system
            (tree / file).write_bytes(source.read_bytes())
            (tree / file).chmod(0o755)
    (tree / "nvvm" / "libdevice").symlink_to(root / "nvvm" / "libdevice")
    return tree


def finish(word, text):
    print(f"{word}: {text}")
    sys.exit({"SYMPTOM": 1, "OK": 0}.get(word, 2))


def main():
    root = installation()
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        bytecode(scratch / "k.tileirbc")
        code, words = compile_with(root, scratch)
        if code == 0:
            finish("OK", "compiles as installed")
        there = [str(path.relative_to(root)) for path in sorted(root.rglob("libnvvm.so*"))]
        again, _ = compile_with(with_link(root, scratch), scratch)
        words = f"exit code {code} ({words}) with {', '.join(there) or 'no libnvvm'}"
        if code == 5 and again == 0:
            finish("SYMPTOM", f"{words}; exit code 0 with the same file as nvvm/lib64/libnvvm.so")
        finish("UNKNOWN", f"{words}; exit code {again} with a link")


if __name__ == "__main__":
    main()
