"""Judging recorded observations. No compiler, no GPU."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import REFUSAL, Maker

from harness.judge import judge_compile, judge_not_run, judge_skipped
from harness.model import (
    CompileOutcome,
    Inspection,
    Judgement,
    PoolAnswer,
    ProcessUsage,
    TraceOutcome,
    Verdict,
)

CATCH_ALL = "error: failed to compile Tile IR program\n"


def judge(make: Maker, **given_: Any) -> Judgement:
    seen: dict[str, Any] = {
        "trace": make.trace(),
        "compile": make.compiled(),
        "inspection": make.inspection(ctas=16),
    }
    return judge_compile(make.cell(), **{**seen, **given_})


def judge_failed(make: Maker, exit_code: int | None, stderr: str, **given_: Any) -> Judgement:
    return judge(make, compile=make.failed(exit_code, stderr), inspection=None, **given_)


class TestGood:
    def test_compiles_tells_resources(self, make: Maker) -> None:
        judged = judge(make)
        assert judged.verdict is Verdict.COMPILES
        assert judged.signature is None
        assert judged.summary == "Compiles: 255 registers × 256 threads, 16 CTAs per SM."

    def test_undecided_books_are_said_and_no_finding(self, make: Maker) -> None:
        judged = judge(make, inspection=make.inspection(books=make.books(PoolAnswer.UNKNOWN)))
        assert judged.verdict is Verdict.COMPILES
        assert "could not be decided" in judged.summary

    def test_balanced_books_are_good(self, make: Maker) -> None:
        judged = judge(make, inspection=make.inspection(books=make.books(PoolAnswer.BALANCED)))
        assert judged.verdict is Verdict.COMPILES
        assert judged.evidence["register_pool"] == "balanced"


class TestFrontend:
    def trace(self, status: str, error: str, message: str) -> TraceOutcome:
        return TraceOutcome(status, error_type=error, message=message, wall_seconds=30)

    def test_user_error(self, make: Maker) -> None:
        trace = self.trace("error", "TileTypeError", "k.py:12: cannot add int32 and bool")
        judged = judge(make, trace=trace, compile=None)
        assert judged.verdict is Verdict.FRONTEND_ERROR
        assert judged.component == "kernel"
        assert judged.evidence["kind"] == "user"
        assert judged.signature == (
            "frontend_error/kernel/user: TypeError: <path>: cannot add int32 and bool"
        )

    def test_a_statement_of_several_lines_has_a_line(self, make: Maker) -> None:
        said = 'Unsupported syntax\n    "/home/u/k.py", lines 8--11, col 5-8, in k:\n            try:'
        judged = judge(make, trace=self.trace("error", "UnsupportedSyntaxError", said), compile=None)
        assert judged.summary == (
            "cuda-tile 1.5.0 rejects the kernel with UnsupportedSyntaxError: Unsupported syntax "
            "(k.py, line 8: try:)"
        )

    def test_parameters_that_do_not_fit_are_the_matrix_s(self, make: Maker) -> None:
        trace = self.trace(
            "error", "TypeError", "TypeError: Invalid kernel parameter 'T': Expected a scalar."
        )
        judged = judge(make, trace=replace(trace, stage="signature"), compile=None)
        assert (judged.component, judged.evidence["kind"]) == ("matrix", "user")
        assert judged.summary == (
            "cuda-tile 1.5.0 rejects the kernel with TypeError: Invalid kernel parameter 'T': Expected a "
            "scalar; correct the parameters given for it, or the kernel."
        )

    def test_a_module_that_is_not_there_has_a_remedy(self, make: Maker) -> None:
        trace = self.trace("error", "ModuleNotFoundError", "ModuleNotFoundError: No module named 'torch'")
        judged = judge(make, trace=replace(trace, stage="import"), compile=None)
        assert judged.summary.endswith(
            " A kernel's file may import cuda.tile, the standard library and modules that lie beside it: put "
            "the module there, keep the kernel in a file of its own, or let `python -m harness triage` take "
            "it out of this one."
        )

    def test_a_syntax_error_says_what_is_wrong(self, make: Maker) -> None:
        said = 'File "/home/u/k.py", line 1\n    def (:\n        ^\nSyntaxError: invalid syntax'
        traced = replace(self.trace("error", "SyntaxError", said), stage="import")
        judged = judge(make, trace=traced, compile=None)
        assert "fails with SyntaxError: invalid syntax (k.py, line 1: def (:)" in judged.summary

    def test_internal_error(self, make: Maker) -> None:
        judged = judge(make, trace=self.trace("internal", "KeyError", "'latency'"), compile=None)
        assert judged.verdict is Verdict.FRONTEND_ERROR
        assert judged.signature == "frontend_error/cuda-tile/internal: KeyError: <name>"
        assert judged.summary == "cuda-tile 1.5.0 failed inside with KeyError: 'latency'"

    def test_unsupported(self, make: Maker) -> None:
        judged = judge(make, trace=self.trace("unsupported", "", "no bytecode 13.4"), compile=None)
        assert (judged.verdict, judged.signature) == (Verdict.UNSUPPORTED, None)
        assert "no bytecode 13.4" in judged.summary

    def test_crash_and_timeout(self, make: Maker) -> None:
        crash = judge(make, trace=self.trace("crash", "", "signal 11"), compile=None)
        assert (crash.verdict, crash.component) == (Verdict.COMPILER_CRASH, "cuda-tile")
        timeout = judge(make, trace=self.trace("timeout", "", ""), compile=None)
        assert (timeout.verdict, timeout.component) == (Verdict.COMPILE_TIMEOUT, "cuda-tile")
        assert timeout.summary == "cuda-tile 1.5.0 was stopped after 30 s of tracing the kernel."

    def test_a_refusal_that_names_the_frontend_names_it_once(self, make: Maker) -> None:
        words = "cuda-tile 1.5.0 takes no architecture suffix: name 'sm_90' instead of 'sm_90a'"
        judged = judge(make, trace=self.trace("unsupported", "ValueError", words), compile=None)
        assert judged.summary == f"{words}."

    @pytest.mark.parametrize("how", ["SIGSEGV", "SIGINT", "exit code 0", "exit code 1", "exit code 7"])
    def test_deaths_are_told_apart(self, make: Maker, how: str) -> None:
        traced = self.trace("crash", how, f"the frontend's process died while tracing ({how})")
        judged = judge(make, trace=traced, compile=None)
        assert judged.signature == (
            f"compiler_crash/cuda-tile/the frontend's process died while tracing ({how})"
        )
        at_import = replace(
            traced, stage="import", message=f"importing /home/u/k.py ended the process ({how})"
        )
        judged = judge(make, trace=at_import, compile=None)
        assert judged.signature == f"frontend_error/kernel/user: importing ends the process ({how})"

    @pytest.mark.parametrize(
        ("status", "error", "message", "summary", "pattern"),
        [
            ("timeout", None, "", "does not end, and was stopped after 30 s.", "does not end"),
            ("crash", None, "no answer", "ends the process (it gave no answer).", None),
            (
                "error",
                "ModuleNotFoundError",
                "ModuleNotFoundError: No module named 'nosuch'",
                "fails with ModuleNotFoundError: No module named 'nosuch'.",
                "fails with ModuleNotFoundError: No module named <name>",
            ),
            ("error", "SystemExit", "SystemExit: bye", "fails with SystemExit: bye.", None),
        ],
    )
    def test_a_file_that_cannot_be_imported_is_no_fault_of_cuda_tile(
        self, make: Maker, status: str, error: str | None, message: str, summary: str, pattern: str | None
    ) -> None:
        traced = TraceOutcome(status, error_type=error, message=message, wall_seconds=30, stage="import")
        judged = judge_compile(make.cell(kernel="own/k.py:k"), traced, None, None)
        assert (judged.verdict, judged.component) == (Verdict.FRONTEND_ERROR, "kernel")
        assert judged.evidence["kind"] == "user"
        assert judged.summary.startswith(f"Importing k.py {summary}")
        pattern = pattern or summary.removesuffix(".")
        assert judged.signature == f"frontend_error/kernel/user: importing {pattern}"

    def test_frontend_without_export_is_unsupported(self, make: Maker) -> None:
        judged = judge_compile(
            make.cell(), None, None, None, unsupported="cuda-tile 1.0.0 cannot export bytecode"
        )
        assert judged.verdict is Verdict.UNSUPPORTED
        assert judged.summary == "cuda-tile 1.0.0 cannot export bytecode."

    def test_an_exception_keeps_its_name_from_release_to_release(self, make: Maker) -> None:
        old, new = (
            judge(make, trace=self.trace("internal", f"{prefix}InternalError", "no pow, int"), compile=None)
            for prefix in ("Tile", "")
        )
        assert old.signature == new.signature

    def test_an_internal_error_without_words_is_told_by_what_was_raised_first(self, make: Maker) -> None:
        place = '\n  "/home/u/k.py", line 9, col 13-18, in k:\n        u = lam(t)\n'
        traceback = (
            '  File "cuda/tile/_passes/ast2hir.py", line 67, in get\n'
            "    assert isinstance(func_def, ast.FunctionDef)\n"
            "           ^^^^^^^^^^\n"
            "AssertionError\n\nThe above exception was the direct cause of\n"
            'cuda.tile._exception.InternalError: \n    "/home/u/k.py", line 9\n'
        )
        trace = replace(self.trace("internal", "InternalError", place), traceback=traceback)
        judged = judge(make, trace=trace, compile=None)
        assert judged.signature == (
            "frontend_error/cuda-tile/internal: InternalError: AssertionError: "
            "assert isinstance(func_def, ast.FunctionDef)"
        )
        assert "/home/u" not in judged.summary


class TestRefusal:
    def test_unknown_architecture(self, make: Maker) -> None:
        judged = judge_failed(make, 1, REFUSAL)
        assert (judged.verdict, judged.signature) == (Verdict.UNSUPPORTED, None)
        assert REFUSAL in judged.summary

    def test_invalid_architecture_may_mean_new_bytecode(self, make: Maker) -> None:
        judged = judge_failed(make, 2, "error: invalid GPU architecture: 100")
        assert judged.verdict is Verdict.UNSUPPORTED
        assert "too new for them; this is 13.2" in judged.summary

    def test_bytecode_version_told(self, make: Maker) -> None:
        words = "error: error at offset 12: unsupported Tile version 13.2.0, this reader takes [13.1, 13.1]"
        judged = judge_failed(make, 3, words)
        assert judged.verdict is Verdict.UNSUPPORTED
        assert "cannot read the frontend's bytecode" in judged.summary

    def test_refusal_goes_before_a_broken_toolchain(self, make: Maker) -> None:
        judged = judge_failed(make, 1, REFUSAL, control=make.failed(1, REFUSAL))
        assert judged.verdict is Verdict.UNSUPPORTED

    def test_refusal_in_the_control_alone(self, make: Maker) -> None:
        judged = judge_failed(make, 5, CATCH_ALL, control=make.failed(1, REFUSAL))
        assert judged.verdict is Verdict.UNSUPPORTED

    def test_other_bad_option_is_an_error(self, make: Maker) -> None:
        judged = judge_failed(make, 1, "tileiras: Unknown command line argument '--x'.")
        assert judged.verdict is Verdict.COMPILE_ERROR


class TestFailure:
    def test_opaque_exit_is_a_crash(self, make: Maker) -> None:
        judged = judge_failed(make, 5, CATCH_ALL, control=make.compiled())
        assert judged.verdict is Verdict.COMPILER_CRASH
        assert judged.signature == "compiler_crash/tileiras/gives up with exit code 5 and no diagnosis"
        assert judged.summary == "tileiras gave up with exit code 5 and no diagnosis."

    def test_ptxas_never_called(self, make: Maker) -> None:
        judged = judge_failed(make, 5, CATCH_ALL, diagnosis={"ptxas_called": False})
        assert judged.component == "tileiras"
        assert "ptxas was never called" in judged.summary

    def test_what_ptxas_said_to_the_shim_is_a_diagnosis(self, make: Maker) -> None:
        said = "ptxas fatal   : Unsupported .version 9.5; current version is '9.3'"
        diagnosis = {"ptxas_called": True, "ptxas_exit_code": 1, "ptxas_stderr": said}
        judged = judge_failed(make, 5, CATCH_ALL, diagnosis=diagnosis)
        assert (judged.verdict, judged.component) == (Verdict.COMPILE_ERROR, "ptxas")
        assert judged.summary == f"ptxas reports: {said}"

    def test_ptxas_died_of_a_signal(self, make: Maker) -> None:
        diagnosis = {"ptxas_called": True, "ptxas_exit_code": -signal.SIGSEGV, "ptxas_stderr": ""}
        judged = judge_failed(make, 5, CATCH_ALL, diagnosis=diagnosis)
        assert (judged.verdict, judged.component) == (Verdict.COMPILER_CRASH, "ptxas")
        assert judged.summary == "ptxas crashed with SIGSEGV, without a word."

    def test_exit_codes_above_128_are_no_signals(self, make: Maker) -> None:
        said = "ptxas kernel.ptx, line 9; fatal   : Parsing error near 'x': syntax error"
        diagnosis = {"ptxas_called": True, "ptxas_exit_code": 255, "ptxas_stderr": said}
        judged = judge_failed(make, 5, CATCH_ALL, diagnosis=diagnosis)
        assert (judged.verdict, judged.component) == (Verdict.COMPILE_ERROR, "ptxas")
        silent = judge_failed(make, 5, CATCH_ALL, diagnosis={**diagnosis, "ptxas_stderr": ""})
        assert silent.summary == "ptxas gave up with exit code 255 and no diagnosis."

    @pytest.mark.parametrize("said", ["", "Stack dump:"])
    def test_deaths_are_told_apart_by_their_signals(self, make: Maker, said: str) -> None:
        compiles = [make.failed(None, said, signal=number) for number in (4, 6, 7, 8, 11, 35)]
        deaths = [judge(make, compile=compile, inspection=None).signature for compile in compiles]
        diagnoses = [{"ptxas_called": True, "ptxas_exit_code": -n, "ptxas_stderr": said} for n in (4, 6, 11)]
        deaths += [judge_failed(make, 5, CATCH_ALL, diagnosis=seen).signature for seen in diagnoses]
        assert len(set(deaths)) == 9
        assert any("/ptxas/SIGSEGV" in str(name) for name in deaths)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_a_ptxas_that_somebody_stopped_is_no_crash(self, make: Maker, number: int) -> None:
        diagnosis = {"ptxas_called": True, "ptxas_exit_code": -number, "ptxas_stderr": ""}
        judged = judge_failed(make, 5, CATCH_ALL, diagnosis=diagnosis)
        expected = Verdict.OUT_OF_MEMORY if number == signal.SIGKILL else Verdict.INFRA_ERROR
        assert judged.verdict is expected
        assert judged.summary.startswith("ptxas was ")

    def test_diagnosed_error(self, make: Maker) -> None:
        judged = judge_failed(make, 5, f"k.py:3: error: tile too large: 70000\n{CATCH_ALL}")
        assert (judged.verdict, judged.component) == (Verdict.COMPILE_ERROR, "tileiras")
        assert judged.signature == "compile_error/tileiras/<path>: error: tile too large: <n>"

    @pytest.mark.parametrize(("code", "number"), [(-11, None), (None, 11)])
    def test_signal_is_a_crash(self, make: Maker, code: int | None, number: int | None) -> None:
        judged = judge(make, compile=make.failed(code, "", signal=number), inspection=None)
        assert judged.verdict is Verdict.COMPILER_CRASH
        assert judged.signature == "compiler_crash/tileiras/SIGSEGV"

    def test_abort_tells_its_words(self, make: Maker) -> None:
        judged = judge_failed(make, -6, "LLVM ERROR: Cannot select: 0x55aa: f32 = foo\nStack dump:")
        assert judged.verdict is Verdict.COMPILER_CRASH
        assert judged.signature == (
            "compiler_crash/tileiras/SIGABRT: LLVM ERROR: Cannot select: <address>: f32 = foo"
        )

    def test_assertion_without_signal_is_a_crash(self, make: Maker) -> None:
        judged = judge_failed(make, 5, "a.cpp:7: Assertion `x > 0' failed.")
        assert judged.verdict is Verdict.COMPILER_CRASH

    def test_killed_means_out_of_memory(self, make: Maker) -> None:
        compile = make.failed(None, "", signal=signal.SIGKILL, peak_rss_bytes=3 << 30)
        judged = judge(make, compile=compile, inspection=None)
        assert judged.verdict is Verdict.OUT_OF_MEMORY
        assert "3.0 GiB" in judged.summary

    def test_stopped_from_outside_is_no_finding(self, make: Maker) -> None:
        judged = judge(make, compile=make.failed(None, "", signal=signal.SIGTERM), inspection=None)
        assert judged.verdict is Verdict.INFRA_ERROR

    @pytest.mark.parametrize(
        ("code", "said"), [(2, ""), (5, "LLVM ERROR: IO failure: No space left on device")]
    )
    def test_machine_trouble_blames_no_compiler(self, make: Maker, code: int, said: str) -> None:
        assert judge_failed(make, code, said).verdict is Verdict.INFRA_ERROR

    def test_broken_toolchain(self, make: Maker) -> None:
        judged = judge_failed(
            make, 5, CATCH_ALL, control=make.failed(5, CATCH_ALL), diagnosis={"ptxas_called": False}
        )
        assert judged.verdict is Verdict.TOOLCHAIN_BROKEN
        assert judged.summary == (
            "Even a one-line kernel does not compile for sm_90 with tile1.5.0-ctk13.3.1: "
            "exit code 5; ptxas was never called, so tileiras or libnvvm failed before it"
        )

    def test_invalid_bytecode_is_the_writers_fault_wherever_it_is_said(self, make: Maker) -> None:
        said = (
            "error: 'cuda_tile.cmpf' op operand #0 must be tile of f16, but got '!cuda_tile.tile<8xf8>'\n"
            "error: verification failed for deserialized cuda_tile::ModuleOp\n"
            "error: input does not correspond to Tile IR bytecode\n"
        )
        where = '#cuda_tile.di_loc<loc("k.py":7:4) in #cuda_tile.di_subprogram<file = <"k.py" in "k">>>: '
        plain, located = (judge(make, compile=make.failed(5, stderr=text)) for text in (said, where + said))
        assert plain.signature == located.signature
        assert plain.component == "cuda-tile"
        assert "cuda_tile.cmpf" in (plain.signature or "")
        other = judge(make, compile=make.failed(5, stderr=said.replace("cmpf", "negf")))
        assert other.signature != plain.signature


class TestTimeout:
    def timeout(
        self, make: Maker, rss: list[int], holder: str | None = "ptxas", cpu: float = 59
    ) -> Judgement:
        compile = CompileOutcome(
            "timeout",
            wall_seconds=60,
            cpu_seconds=cpu,
            deadline_seconds=60,
            holder=holder,
            usage=(ProcessUsage("tileiras", 1.0, 1), ProcessUsage("ptxas", 58.0, 1)),
            rss_over_time=tuple((float(at), amount) for at, amount in enumerate(rss)),
        )
        return judge(make, compile=compile, inspection=None)

    def test_names_holder_seconds_and_flat_memory(self, make: Maker) -> None:
        judged = self.timeout(make, [100 << 20] * 6)
        assert judged.verdict is Verdict.COMPILE_TIMEOUT
        assert judged.component == "ptxas"
        assert judged.signature == "compile_timeout/ptxas/does not end"
        assert judged.summary == (
            "Compiling was stopped after 60 s: "
            "ptxas held the CPU for 58.0 s and memory stayed flat at 100 MiB."
        )

    def test_growing_memory(self, make: Maker) -> None:
        judged = self.timeout(make, [(100 + 200 * at) << 20 for at in range(8)])
        assert "memory was still growing, from 900 MiB to 1.5 GiB" in judged.summary

    def test_waiting_is_not_computing(self, make: Maker) -> None:
        assert "hardly used the CPU (0.2 s)" in self.timeout(make, [], None, cpu=0.2).summary

    def test_what_will_not_die_is_told(self, make: Maker) -> None:
        never = CompileOutcome("timeout", wall_seconds=70, holder="ptxas", unkillable=True)
        judged = judge(make, compile=never, inspection=None)
        assert judged.verdict is Verdict.UNKILLABLE
        assert judged.summary == "A process of the compiler (ptxas) survived SIGKILL after 70 s."

    def test_toolchain_that_never_ends(self, make: Maker) -> None:
        never = CompileOutcome("timeout", wall_seconds=60, deadline_seconds=60)
        judged = judge(make, compile=never, inspection=None, control=never)
        assert judged.verdict is Verdict.TOOLCHAIN_BROKEN


class TestDeadlock:
    def test_evidence_and_sentence(self, make: Maker) -> None:
        judged = judge(make, inspection=make.deadlocked())
        assert judged.verdict is Verdict.PREDICTED_DEADLOCK
        assert judged.component == "tileiras"
        assert judged.summary == (
            "Can never finish on a GPU: it starts with 24 registers a thread and an empty pool, "
            "warps wait to grow to 32, and no warp gives any back (1024 needed, 0 freed)."
        )
        assert judged.evidence["launch_registers"] == 24
        assert [site["pc"] for site in judged.evidence["sites"]] == [0x8D80, 0x8FB0]
        assert judged.evidence["proof"]

    @given(st.integers(24, 100), st.integers(101, 240), st.sampled_from(["sm_90", "sm_100", "sm_120"]))
    def test_signature_is_equal_over_numbers_and_architectures(
        self, make: Maker, launch: int, grow: int, arch: str
    ) -> None:
        ptx = (f"setmaxnreg.inc.sync.aligned.u32 {grow};",)
        books = make.books(launch=launch, grow=grow)
        judged = judge(make, inspection=make.inspection(launch, books=books, ptx=ptx, arch=arch))
        assert judged.signature == judge(make, inspection=make.deadlocked()).signature

    def blame(self, make: Maker, ptx: tuple[str, ...]) -> str | None:
        inspection: Inspection = make.deadlocked(ptx=ptx)
        return judge(make, inspection=inspection).component

    def test_growth_only_in_the_machine_code_is_ptxas(self, make: Maker) -> None:
        assert self.blame(make, (".maxnreg 16",)) == "ptxas"

    def test_shrinking_lost_by_ptxas(self, make: Maker) -> None:
        lost = ("setmaxnreg.inc.sync.aligned.u32 32;", "setmaxnreg.dec.sync.aligned.u32 \t24;")
        assert self.blame(make, lost) == "ptxas"

    def test_without_ptx_nobody_is_blamed(self, make: Maker) -> None:
        assert self.blame(make, ()) is None


class TestLeftOver:
    def test_infra(self, make: Maker) -> None:
        judged = judge(make, infra="disk is full\nTraceback ...")
        assert (judged.verdict, judged.summary) == (Verdict.INFRA_ERROR, "disk is full.")

    def test_a_traceback_says_most_in_its_last_line(self, make: Maker) -> None:
        told = "Traceback (most recent call last):\n  File ...\nKeyError: 'vamue'\n"
        judged = judge(make, infra=told)
        assert (judged.summary, judged.evidence["message"]) == ("KeyError: 'vamue'.", told)

    def test_uninspected_cubin_is_infra(self, make: Maker) -> None:
        assert judge(make, inspection=None).verdict is Verdict.INFRA_ERROR

    def test_nothing_done_is_not_run(self, make: Maker) -> None:
        assert judge(make, trace=None, compile=None).verdict is Verdict.NOT_RUN
        assert judge(make, compile=None).verdict is Verdict.NOT_RUN

    def test_skipped_and_not_run_say_why(self, make: Maker) -> None:
        skipped = judge_skipped(make.cell(), "no NVIDIA H200 here")
        assert (skipped.verdict, skipped.summary) == (Verdict.SKIPPED, "Skipped: no NVIDIA H200 here.")
        assert judge_not_run(make.cell(), "interrupted").summary == "Not run: interrupted."

    @given(
        st.sampled_from(["ok", "failed", "timeout"]),
        st.one_of(st.none(), st.integers(-31, 255)),
        st.text(max_size=80),
        st.booleans(),
    )
    def test_whatever_a_compiler_does_gets_a_verdict_and_a_sentence(
        self, make: Maker, status: str, code: int | None, said: str, control: bool
    ) -> None:
        compile = make.compiled(status=status, exit_code=code, stderr=said)
        judged = judge(make, compile=compile, control=make.failed(5, "x") if control else None)
        assert judged.summary
        assert (judged.signature is not None) or judged.verdict.is_good or judged.verdict.is_unknown
