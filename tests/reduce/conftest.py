"""Every shipped kernel, as the source search starts from it."""

from __future__ import annotations

import pytest
from made_kernels import shipped

from harness.kernels import names
from harness.reduce.candidate import Candidate


@pytest.fixture(params=names())
def shipped_kernel(request: pytest.FixtureRequest) -> Candidate:
    return shipped(request.param)
