"""Make a real torch answer as if there were a GPU, with its tensors in host memory."""

from __future__ import annotations

from typing import Any

from .torch_stand_in import device_answers


def lend_host_memory(torch: Any, capability: tuple[int, int]) -> None:
    """From now on, tensors that were to lie on a GPU lie in host memory."""
    from torch.overrides import TorchFunctionMode

    class OnHost(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, kinds: Any, args: Any = (), options: dict[str, Any] | None = None
        ) -> Any:
            options = dict(options or {})
            if "cuda" in str(options.get("device", "")):
                options["device"] = "cpu"
            if getattr(function, "__name__", "") == "cuda":
                return args[0]
            args = tuple("cpu" if isinstance(a, str) and a.startswith("cuda") else a for a in args)
            return function(*args, **options)

    OnHost().__enter__()
    for name, answer in device_answers(capability).items():
        setattr(torch.cuda, name, lambda *args, answer=answer, **options: answer)
