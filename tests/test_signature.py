"""Signatures: equal for two sightings of one fault, different for different faults."""

from hypothesis import given
from hypothesis import strategies as st

from harness.legible import legible
from harness.model import Verdict
from harness.signature import normalise, signature


def test_what_differs_between_sightings_is_taken_out() -> None:
    one = "/tmp/tmpab12/kernel_16.py:15: error: tile<16x512xbf16> at 0x7f00aa for sm_90 'k_Kt1_A2' needs 24"
    two = "/home/u/k.py:7: error: tile<4x8192xbf16> at 0x1200 for sm_120 'other' needs 168"
    assert normalise(one) == normalise(two)
    assert normalise(one) == "<path>: error: tile<<shape>xbf16> at <address> for <arch> <name> needs <n>"


def test_words_stay() -> None:
    assert normalise("LLVM ERROR: Cannot select f32 add") == "LLVM ERROR: Cannot select f32 add"
    assert normalise("unsupported Tile version 13.2.0") == "unsupported Tile version <n>"
    assert normalise("digest deadbeef0123 differs") == "digest <hash> differs"


def test_how_a_process_died_stays() -> None:
    deaths = ["it died (SIGSEGV)", "it died (SIGINT)", "it died (signal 35)"]
    deaths += [f"it died (exit code {code})" for code in (0, 1, 7, 255)]
    assert [normalise(death) for death in deaths] == deaths
    assert normalise("line 7, exit code 7 of 9 signals") == "line <n>, exit code 7 of <n> signals"


def test_colours_and_line_breaks_go() -> None:
    assert normalise("\x1b[31merror\x1b[0m:\n  bad") == "error: bad"
    assert normalise(legible("\x1b[31merror\x1b[0m:\n  bad")) == "error: bad"


@given(st.text(max_size=200))
def test_normalising_twice_changes_nothing_more(message: str) -> None:
    once = normalise(message)
    assert normalise(once) == once


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from(["sm_90", "sm_100a", "compute_120"]))
def test_numbers_and_architectures_do_not_matter(first: int, second: int, arch: str) -> None:
    def text(number: int, target: str) -> str:
        return f"line {number}: out of {number} registers on {target}"

    assert normalise(text(first, arch)) == normalise(text(second, "sm_121"))


def test_signature_names_verdict_component_and_pattern() -> None:
    assert signature(Verdict.COMPILE_ERROR, "ptxas", "bad 3") == "compile_error/ptxas/bad <n>"
    assert signature(Verdict.COMPILE_TIMEOUT, None, "") == "compile_timeout/unknown/no message"
    assert len(signature(Verdict.COMPILE_ERROR, "ptxas", "word " * 100)) < 200
