"""The plain way to check one case, which ci/bench_device.py measures: a fresh Python that imports torch,
loads a cubin, runs it once and compares with float64.

    python3 ci/torch_baseline.py REQUEST.json

The request names cubin, symbol, grid, eps, offset, seed, and the arrays in calling-convention order.
Exit code 0 if the answer is right to within twice the precision of its type, else 1.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import torch

RELATIVE = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-16}


def check(status: int, call: str) -> None:
    if status:
        raise SystemExit(f"{call} answered CUDA error {status}")


def array(description: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, description["dtype"])
    if description["role"] == "out":
        return torch.full(description["shape"], float("nan"), dtype=dtype, device="cuda")
    return torch.randn(description["shape"], dtype=torch.float32).to(dtype).cuda()


def parameters(tensors: list[torch.Tensor]) -> list[Any]:
    """cutile_python_v1: pointer, shape and strides of every array."""
    values: list[Any] = []
    for tensor in tensors:
        values.append(ctypes.c_uint64(tensor.data_ptr()))
        values += [ctypes.c_int32(n) for n in (*tensor.shape, *tensor.stride())]
    return values


def main() -> int:
    request = json.loads(Path(sys.argv[1]).read_text())
    torch.manual_seed(request["seed"])
    named = {a["name"]: array(a) for a in request["arrays"]}
    torch.cuda.synchronize()
    cuda = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    image = Path(request["cubin"]).read_bytes()
    check(cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    found = cuda.cuModuleGetFunction(ctypes.byref(function), module, request["symbol"].encode())
    check(found, "cuModuleGetFunction")
    values = parameters(list(named.values()))
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    check(
        cuda.cuLaunchKernel(function, *request["grid"], 1, 1, 1, 0, stream, pointers, None), "cuLaunchKernel"
    )
    torch.cuda.synchronize()
    x, w, y, rstd = (named[name].double() for name in ("x", "w", "y", "rstd"))
    r = torch.rsqrt((x * x).mean(1) + request["eps"])
    exact = x * r[:, None] * (request["offset"] + w)
    relative = RELATIVE[request["arrays"][0]["dtype"]]
    right = (y - exact).abs() <= relative * exact.abs() + 1e-30
    rstd_right = (rstd - r).abs() <= 2.0**-16 * r
    return 0 if bool(right.all()) and bool(rstd_right.all()) else 1


if __name__ == "__main__":
    sys.exit(main())
