from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.toolchain import package_tools
from harness.toolchain.errors import IndexUnreachable, InstallError, StoreError
from harness.toolchain.package_tools import PackageTools, parse_version_list, uv_settings_from_pip
from harness.toolchain.store import Store

Faulty = Callable[..., PackageTools]


def test_both_answers_of_pip_are_understood(faulty: Faulty) -> None:
    expected = ("1.5.0", "1.3.0", "1.2.0")
    assert faulty().list_versions("cuda-tile") == expected
    assert faulty("old-pip").list_versions("cuda-tile") == expected


@given(st.text())
def test_no_answer_of_pip_crashes_the_parser(text: str) -> None:
    assert isinstance(parse_version_list(text), tuple)
    assert isinstance(parse_version_list("{" + text), tuple)


def test_no_network(faulty: Faulty, store: Store) -> None:
    for behaviour in ("unreachable", "half-reachable"):
        with pytest.raises(IndexUnreachable, match=r"^Name or service not known$"):
            faulty(behaviour).list_versions("cuda-tile")
    with pytest.raises(IndexUnreachable, match=r"^Name or service not known$"):
        faulty("unreachable").resolve("cuda-tile==1.5.0", dependencies=True)


def test_a_full_disk_under_uv(faulty: Faulty, store: Store) -> None:
    with pytest.raises(StoreError, match=r"is full \(about 200 MB needed, \d+ MB free\)"):
        faulty("disk-full").install("cuda-tile==1.5.0\n", store.root / "target", 200_000_000)


def test_any_other_failure_says_the_innermost_cause(faulty: Faulty) -> None:
    with pytest.raises(InstallError) as caught:
        faulty("refuse").resolve("cuda-tile==1.5.0", dependencies=True)
    assert str(caught.value) == "cannot resolve cuda-tile==1.5.0: Because pigs cannot fly, you lose."


def test_an_install_has_a_deadline(faulty: Faulty, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_tools, "INSTALL_DEADLINE_SECONDS", 0.5)
    with pytest.raises(InstallError, match=r"cannot install cuda-tile==1\.5\.0: no answer within"):
        faulty("half").install("cuda-tile==1.5.0\n", store.root / "target", None)


def test_a_missing_tool_is_named(store: Store, faulty: Faulty) -> None:
    tools = PackageTools(store, faulty().supervisor, uv=("/nonexistent/uv",), pip=("/nonexistent/pip",))
    with pytest.raises(InstallError, match="cannot start /nonexistent/pip"):
        tools.list_versions("cuda-tile")


def test_pips_index_is_handed_to_uv() -> None:
    listing = "\n".join(
        [
            "global.index-url='https://mirror.example/simple'",
            "global.extra-index-url='\\nhttps://a.example/simple\\nhttps://b.example/simple'",
            ":env:.index-url='https://env.example/simple'",
            ":env:.find-links='/wheels /more'",
            "global.cert='/ca.pem'",
            "global.timeout='9'",
            "global.index-url=not python",
        ]
    )
    assert uv_settings_from_pip(listing, {"SSL_CERT_FILE": "/own.pem"}) == {
        "UV_DEFAULT_INDEX": "https://env.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    assert uv_settings_from_pip("", {}) == {}
