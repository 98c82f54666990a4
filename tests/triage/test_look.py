"""Scripts of all kinds get to their launches without a GPU and without what they import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from harness.model import Frontend
from harness.process import Supervisor
from harness.triage import look_worker
from harness.triage.extract import extract
from harness.triage.look import FoundLaunch, Seen, TriageError, look

FRONTEND = Path(__file__).parent.parent / "resources/triage/frontend"
KERNEL = """
import cuda.tile as ct

@ct.kernel
def k(x, y, n, T: ct.Constant[int]):
    ct.store(y, index=(0,), tile=ct.load(x, index=(0,), shape=(T,)))

"""


@pytest.fixture
def see(tmp_path: Path) -> Any:
    def seen(body: str, kernel: str = KERNEL, arguments: tuple[str, ...] = (), **files: str) -> Seen:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(dedent(text))
        path = tmp_path / "report.py"
        path.write_text(kernel + dedent(body))
        with Supervisor() as supervisor:
            frontend = Frontend(version="1.7.0", root=str(FRONTEND), sha256="f" * 64)
            return look(path, frontend, supervisor, arguments=arguments)

    return seen


def launches(seen: Seen) -> tuple[FoundLaunch, ...]:
    assert seen.error is None
    return next(kernel.launches for kernel in seen.kernels)


def array(dtype: str, *shape: int, strides: list[int] | None = None, offset: int = 0) -> dict[str, Any]:
    usual = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        usual[axis] = usual[axis + 1] * shape[axis + 1]
    return {
        "kind": "array",
        "dtype": dtype,
        "shape": list(shape),
        "strides": strides or usual,
        "offset": offset,
    }


def test_modules_and_functions_of_torch_are_called(see: Any) -> None:
    seen = see(
        """
        import torch
        from torch import nn
        from dataclasses import dataclass

        @dataclass
        class Config:
            tile: int = 64

        class Copy(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, tile):
                ctx.save_for_backward(x)
                y = torch.empty_like(x)
                ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.shape[0], tile),), k, (x, y, 1, tile))
                return y

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                ct.launch(0, (2,), k, (gradient, x, 2, 32))
                return gradient, None

        class Layer(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.config = config
                self.proj = nn.Linear(16, 256, dtype=torch.bfloat16)

            def forward(self, x):
                return Copy.apply(self.proj(x), self.config.tile)

        @torch.compile
        def run(layer, x):
            return layer(x)

        y = run(Layer(Config()).to("cuda").half(), torch.randn(512, 16, device="cuda", dtype=torch.bfloat16))
        y.sum().backward()
        """
    )
    forward, backward = launches(seen)
    assert forward.arguments[:2] == (array("bfloat16", 512, 256),) * 2
    assert forward.grid == (8,)
    assert backward.arguments[3]["value"] == 32


@pytest.mark.parametrize(
    ("imports", "make", "dtype"),
    [
        (
            "import torch, numpy as np",
            "torch.from_numpy(np.ones((8, 4), dtype=np.float32)).cuda()",
            "float32",
        ),
        ("import cupy as cp", "cp.random.rand(8, 4).astype(cp.float16)", "float16"),
        ("import cupy as cp", "cp.zeros((8, 4))", "float64"),
        ("import jax.numpy as jnp", "jnp.ones((8, 4))", "float32"),
        ("import torch", "torch.randn(16, 4)[::2].contiguous()", "float32"),
        (
            "import torch, einops, flash_attn.ops",
            "torch.stack([torch.zeros(4, dtype=torch.half)] * 8)",
            "float16",
        ),
    ],
)
def test_arrays_of_other_libraries(see: Any, imports: str, make: str, dtype: str) -> None:
    seen = see(f"{imports}\nx = {make}\nct.launch(0, (1,), k, (x, x, 8, 4))\n")
    (launch,) = launches(seen)
    assert launch.arguments[0] == array(dtype, 8, 4)


def test_views_keep_their_strides(see: Any) -> None:
    seen = see(
        """
        import torch
        q, key, v = torch.zeros(4, 96, device="cuda").chunk(3, dim=-1)
        ct.launch(0, (1,), k, (q, key, 8, 4))
        ct.launch(0, (1,), k, (v.mT, v[..., 1:], 8, 4))
        """
    )
    first, second = launches(seen)
    assert first.arguments[1] == array("float32", 4, 32, strides=[96, 1], offset=32)
    assert second.arguments[0] == array("float32", 32, 4, strides=[1, 96], offset=64)
    assert second.arguments[1] == array("float32", 4, 31, strides=[96, 1], offset=65)


def test_operators_pairs_and_broadcasts(see: Any) -> None:
    seen = see(
        """
        import torch

        @torch.library.custom_op("lab::k", mutates_args=())
        def op(x: torch.Tensor) -> torch.Tensor:
            ct.launch(torch.cuda.current_stream().cuda_stream, (x.size(0),), k, (x, x, 1, 2))
            return x

        @op.register_fake
        def _(x):
            return x

        op.register_autograd(lambda ctx, g: g)
        weights, chosen = torch.topk(torch.softmax(torch.zeros(6, 8, device="cuda"), dim=-1), k=2)
        op(weights)
        op(torch.argsort(chosen.view(-1)).to(torch.int32)[None])
        op(torch.cat([torch.zeros(2, 4), torch.zeros(3, 4)]).amax(dim=0, keepdim=True) * torch.zeros(7, 1))
        """
    )
    first, second, third = launches(seen)
    assert first.arguments[0] == array("float32", 6, 2)
    assert second.arguments[0] == array("int32", 1, 12)
    assert third.arguments[0] == array("float32", 7, 4)


def test_what_measures_is_called_once(see: Any) -> None:
    seen = see(
        """
        import torch, triton
        import torch.utils.benchmark as benchmark
        x = torch.zeros(4096)
        f = lambda n: ct.launch(0, (triton.cdiv(4096, n),), k, (x, x, 8, n))
        print(triton.testing.do_bench(lambda: f(128)))
        benchmark.Timer(stmt="f(256)", globals={"f": f}).timeit(100)
        torch.cuda.make_graphed_callables(lambda: f(512))
        """
    )
    assert [launch.grid for launch in launches(seen)] == [(32,), (16,), (8,)]


def test_tests_are_called_with_their_parameters(see: Any) -> None:
    seen = see(
        """
        import pytest, torch

        @pytest.fixture
        def device():
            return "cuda"

        @pytest.mark.parametrize("n,t", [(1024, 64), pytest.param(2048, 32, id="big")])
        @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
        def test_k(n, t, dtype, device):
            x = torch.zeros(n, dtype=dtype, device=device)
            ct.launch(0, (n // t,), k, (x, x, n, t))
            torch.testing.assert_close(x, x)

        if __name__ == "__main__":
            pytest.main([__file__])
        """
    )
    assert [(launch.arguments[0]["dtype"], launch.grid[0]) for launch in launches(seen)] == [
        ("float16", 16),
        ("float16", 64),
        ("float32", 16),
        ("float32", 64),
    ]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import fire", "fire.Fire(main)"),
        ("import tyro", "tyro.cli(main)"),
        ("from absl import app", "app.run(lambda words: main())"),
        ("import unittest", "unittest.main()"),
        ("get_ipython().run_line_magic('pip', 'install torch')", "main()"),
    ],
)
def test_commands_are_run_with_their_defaults(see: Any, imports: str, call: str) -> None:
    seen = see(
        f"""
        {imports}
        import torch, unittest

        def main(n: int = 64):
            x = torch.zeros(n)
            ct.launch(0, (n,), k, (x, x, n, 8))

        class Case(unittest.TestCase):
            def test_main(self):
                main()

        if __name__ == "__main__":
            {call}
        """
    )
    assert [launch.grid for launch in launches(seen)] == [(64,)]


def test_lambdas_are_told_apart_by_their_place(see: Any) -> None:
    seen = see(
        """
        import cuda.tile as ct
        def make(act, n):
            acts = {"relu": lambda t: ct.f(t, n), "id": lambda t: t}
            f = acts[act]
            @ct.kernel
            def fused(x):
                f(x)
            return fused
        ct.launch(0, (1,), make("relu", 3), (1,))
        ct.launch(0, (1,), make("id", 3), (1,))
        """,
        kernel="",
    )
    texts = [extract("__main__", kernel.function, seen.modules, kernel.nested) for kernel in seen.kernels]
    assert "f = lambda t: ct.f(t, n)\nn = 3" in texts[0]
    assert texts[1].rstrip().endswith("f = lambda t: t")


def test_a_script_for_another_gpu_is_told_of_one(see: Any) -> None:
    seen = see(
        """
        import sys, torch
        if torch.cuda.get_device_capability()[0] < 10:
            sys.exit("needs Blackwell")
        ct.launch(0, (1,), k, (torch.zeros(8), torch.zeros(8), 8, 8))
        """
    )
    assert len(launches(seen)) == 1


def test_a_search_is_recorded_in_part(see: Any) -> None:
    seen = see(
        """
        import torch
        from cuda.tile.tune import exhaustive_search
        x = torch.zeros(4096)
        found = exhaustive_search(
            range(1, 21), 0, grid_fn=lambda c: (c,), kernel=k, args_fn=lambda c: (x, x, 0, 32),
            hints_fn=lambda c: {"occupancy": c},
        )
        ct.launch(0, (7,), k.replace_hints(occupancy=found.best.config), (x, x, 0, 32))
        """
    )
    (search,) = seen.searches
    assert (search.size, search.asked) == (20, 8)
    found = launches(seen)
    assert [launch.grid[0] for launch in found] == [1, 4, 6, 9, 12, 15, 17, 20]
    assert found[0].hints == (("occupancy", 1),)


def test_equal_launches_count_once_however_their_kernel_was_made(see: Any) -> None:
    seen = see(
        """
        import torch
        for occupancy in (4, 8, 16):
            for step in range(2000):
                x = torch.empty(4096)
                ct.launch(0, (step + 1,), k.replace_hints(occupancy=occupancy), (x, x, step, 32))
        """
    )
    assert [launch.hints for launch in launches(seen)] == [(("occupancy", n),) for n in (4, 8, 16)]
    assert not seen.stopped


@pytest.mark.parametrize("last", [64, 65])
def test_a_script_that_launches_more_than_is_recorded_is_known_for_it(see: Any, last: int) -> None:
    seen = see(f"for i in range({last}): ct.launch(0, (1,), k, (1, 2, 3, i))\n")
    assert (seen.different_launches, seen.stopped) == (64, last > 64)


def test_a_script_that_launches_for_ever_is_stopped(see: Any) -> None:
    seen = see("while True: ct.launch(0, (1,), k, (1, 2, 3, 4))\n")
    assert (seen.different_launches, seen.stopped) == (1, True)


def test_kernels_without_a_name_are_found_by_their_launch(see: Any) -> None:
    seen = see(
        """
        import cuda.tile as ct

        class Ops:
            @staticmethod
            @ct.kernel
            def twice(x, T: ct.Constant[int]): ...

        def make(width, dtype):
            def inner(tile):
                return tile * width
            @ct.kernel(occupancy=width)
            def scale(x):
                ct.store(x, index=(0,), tile=inner(ct.load(x, index=(0,), shape=(width,)).astype(dtype)))
            return scale

        ct.launch(0, (1,), Ops.twice, (1, 2))
        ct.launch(0, (1,), make(4, ct.float32), (1,))
        ct.launch(0, (1,), make(8, ct.float32), (1,))
        """,
        kernel="",
    )
    assert [(kernel.name, len(kernel.launches)) for kernel in seen.kernels] == [
        ("Ops.twice", 1),
        ("make.scale", 1),
        ("make.scale", 1),
    ]
    nested = seen.kernels[1].nested
    assert nested is not None and nested["hints"]["occupancy"] == 4
    assert nested["values"]["dtype"] == {"text": "ct.float32"}
    assert nested["values"]["inner"]["function"]["values"] == {"width": {"text": "4"}}


def test_kernels_of_a_helper_are_found_where_they_are(see: Any) -> None:
    seen = see(
        "import torch\nfrom lib import k\nct.launch(0, (1,), k, (1, 2, 3, 4))\n",
        "import cuda.tile as ct\n",
        lib=KERNEL,
    )
    (kernel,) = seen.kernels
    assert (kernel.module, kernel.bound) == ("lib", "k")
    assert set(seen.modules) == {"__main__", "lib"}


def test_an_error_is_told_with_its_line_once(see: Any) -> None:
    with pytest.raises(TriageError) as caught:
        see("def f(:\n", kernel="")
    assert str(caught.value).count("line 1") == 1
    assert see("import torch\n1 / 0\n").error.startswith(
        "ZeroDivisionError: division by zero (report.py, line 9"
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "import argparse\np = argparse.ArgumentParser()\n"
            "p.add_argument('--n', required=True)\np.parse_args()\n",
            "with exit code 2 (report.py, line 11: p.parse_args()), saying: report.py: error: the following "
            "arguments are required: --n",
        ),
        ("raise SystemExit('no GPU')\n", "(report.py, line 8: raise SystemExit('no GPU')), saying: no GPU"),
        ("import sys\nsys.exit()\n", "without a word (report.py, line 9: sys.exit())"),
        ("ct.launch(0, (1,), k, (1, 2, 3, 4))\nexit(3)\n", "with exit code 3 (report.py, line 9: exit(3))"),
    ],
)
def test_a_script_that_ends_itself_is_known_for_it(see: Any, body: str, said: str) -> None:
    seen = see(body)
    assert seen.ended.endswith(said)
    assert seen.cut_short.endswith("can be given: python -m harness triage report.py -- ARGS")


def test_a_script_that_is_through_with_its_launches_may_end_itself(see: Any) -> None:
    assert see("ct.launch(0, (1,), k, (1, 2, 3, 4))\nexit(0)\n").ended is None


def test_a_script_gets_its_arguments(see: Any) -> None:
    body = "import sys\nct.launch(0, (1,), k, (1, 2, 3, int(sys.argv[2])))\n"
    (launch,) = launches(see(body, arguments=("--size", "64")))
    assert launch.arguments[3]["value"] == 64


def test_what_comes_out_of_a_missing_library_is_unknown(see: Any) -> None:
    (launch,) = launches(
        see("import torch\nx = torch.load('w')['x']\nct.launch(0, (1,), k, (x, x.T, 1, 2))\n")
    )
    assert [said["kind"] for said in launch.arguments] == ["unknown", "unknown", "scalar", "scalar"]
    assert (Path(launch.file).name, launch.line) == ("report.py", 10)


def test_libraries_still_miss_what_they_miss(tmp_path: Path) -> None:
    """Stand-ins are for the reader's imports: the standard library asks for what only other systems have."""
    path = tmp_path / "report.py"
    path.write_text(f"{KERNEL}import subprocess, torch\nprint(subprocess.run(['true']).returncode)\n")
    done = subprocess.run(
        [sys.executable, "-I", look_worker.__file__, FRONTEND, path, "9.0"],
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["error"] is None and report["stand_ins"] == ["torch"]
