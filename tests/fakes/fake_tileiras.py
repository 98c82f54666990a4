"""A tileiras that misbehaves on request: the bytecode names the fault, one word a file.

Called as the real one is: `tileiras FILE -o OUT --gpu-name ARCH ...`. Every call adds a line to
`calls` beside bin/. `writes_elf` alone looks like success; it serves tests of the cache.
"""

import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PTXAS = os.path.join(HERE, "ptxas")


def burn():
    while True:
        pass


def fail(code=5, text="error: failed to compile Tile IR program\n"):
    sys.stderr.write(text)
    sys.exit(code)


def hang_in_ptxas():
    subprocess.run([PTXAS, "burn"], check=False)


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def orphan():
    """Dies of an abort while its ptxas, deaf to SIGTERM, burns on."""
    subprocess.Popen([PTXAS, "deaf"])
    time.sleep(0.3)
    os.abort()


def flood():
    for stream in (1, 2):
        for _ in range(64):
            os.write(stream, b"x" * (1 << 16))
    fail()


def full_disk():
    fail(1, "error: could not write: No space left on device\n")


def ptxas_fails():
    ptx = os.path.join(os.environ["TMPDIR"], "kernel-1.ptx")
    with open(ptx, "w") as file:
        file.write(".version 9.3\n")
    if subprocess.run([PTXAS, "fail", ptx], check=False).returncode != 0:
        fail()


def ptxas_exits_139():
    end_in_ptxas("exit", "139")


def ptxas_dies_of_SIGSEGV():
    end_in_ptxas("die", str(int(signal.SIGSEGV)))


def ptxas_dies_of_SIGTERM():
    end_in_ptxas("die", str(int(signal.SIGTERM)))


def end_in_ptxas(*words):
    code = subprocess.run([PTXAS, *words], check=False).returncode
    fail(5, f"ptxas ended with {code}\n")


def speaks_in_escapes():
    fail(5, "error: \x1b[31mred\x00\r\n")


def terminated():
    os.kill(os.getpid(), signal.SIGTERM)


def cannot_write():
    sys.exit(2)


def garbage():
    write(b"not a cubin")


def no_output():
    pass


def writes_elf():
    write(b"\x7fELF of " + os.fsencode(sys.argv[5]))


def environment():
    fail(5, repr(sorted(os.environ)) + "\n")


def write(data):
    with open(sys.argv[3], "wb") as file:
        file.write(data)


def main():
    with open(os.path.join(HERE, "..", "calls"), "a") as file:
        file.write(" ".join(sys.argv[1:]) + "\n")
    with open(sys.argv[1]) as file:
        word = file.read().strip()
    globals()[word]()


main()
