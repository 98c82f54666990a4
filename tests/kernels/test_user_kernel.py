"""A kernel in a file of the user's own."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.kernels import get


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("k.py", "k.py"),
        ("my-kernel_2.1.py", "my-kernel_2.1.py"),
        ("sp ace'q\"é.py", "sp_ace_q__.py"),
        ("new\nline.py", "new_line.py"),
    ],
)
def test_compilers_are_shown_a_harmless_name(tmp_path: Path, file: str, shown: str) -> None:
    (tmp_path / file).write_text("text")
    source = get(f"{file}:k", tmp_path).source()
    assert (source.path, source.canonical) == (str(tmp_path / file), f"kernels/user/{shown}")


@given(name=st.text(min_size=1, max_size=40).filter(lambda name: ":" not in name and "\0" not in name))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_character_of_a_name_reaches_a_compiler_that_could_act_there(tmp_path: Path, name: str) -> None:
    shown = get(f"{name}:k", tmp_path).canonical.removeprefix("kernels/user/")
    assert all(c.isascii() and (c.isalnum() or c in "._-") for c in shown)
