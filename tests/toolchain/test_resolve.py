from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.toolchain import resolve
from harness.toolchain.errors import InstallError, NotInStore, UnknownVersion
from harness.toolchain.package_tools import PackageTools
from harness.toolchain.resolve import Pin, Resolver, parse_pins
from harness.toolchain.store import Store

Faulty = Callable[..., PackageTools]

TEXT = """\
# a comment
cuda-tile==1.3.0 \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
typing-extensions==4.16.0 ; python_version < '4' \\
    --hash=sha256:{c}
"""
hashes = st.lists(st.text("0123456789abcdef", min_size=64, max_size=64), min_size=1, max_size=3, unique=True)


def resolver(store: Store, tools: PackageTools, offline: bool = False) -> Resolver:
    return Resolver(store, tools, "cp311", offline)


def test_pins_are_read_from_requirements_text() -> None:
    a, b, c = "b" * 64, "a" * 64, "c" * 64
    assert parse_pins(TEXT.format(a=a, b=b, c=c)) == (
        Pin("cuda-tile", "1.3.0", (b, a)),
        Pin("typing-extensions", "4.16.0", (c,)),
    )


@given(hashes)
def test_a_pin_survives_being_written_and_read(found: list[str]) -> None:
    pin = Pin("nvidia-nvvm", "13.3.73", tuple(sorted(found)))
    assert parse_pins(pin.requirement + "\n") == (pin,)
    assert Pin.from_json(pin.to_json()) == pin


@given(st.text())
def test_no_text_crashes_the_parser(text: str) -> None:
    assert isinstance(parse_pins(text), tuple)


def test_versions_are_listed_oldest_first_and_only_where_there_is_a_tileiras(
    store: Store, faulty: Faulty
) -> None:
    asked = resolver(store, faulty())
    assert asked.versions("cuda-toolkit") == ("13.3.1", "13.4.3")
    assert asked.versions("cuda-tile") == ("1.2.0", "1.3.0", "1.5.0")


def test_an_index_without_a_usable_version(
    store: Store, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PackageTools, "list_versions", lambda *_: ("13.0.2", "12.9.1"))
    with pytest.raises(InstallError, match=r"no usable cuda-toolkit: it lists only 13\.0\.2, 12\.9\.1"):
        resolver(store, faulty()).versions("cuda-toolkit")


def test_what_the_index_said_is_remembered(store: Store, faulty: Faulty) -> None:
    resolver(store, faulty()).versions("cuda-tile")
    again = resolver(store, faulty("unreachable"), offline=True)
    assert again.versions("cuda-tile") == ("1.2.0", "1.3.0", "1.5.0")
    assert again.choose("cuda-tile", "1.5") == "1.5.0"


def test_an_old_list_is_better_than_none(
    store: Store, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver(store, faulty()).versions("cuda-tile")
    monkeypatch.setattr(resolve, "FRESH_SECONDS", 0.0)
    said: list[str] = []
    stale = Resolver(store, faulty("unreachable"), "cp311", announce=said.append)
    assert stale.versions("cuda-tile") == ("1.2.0", "1.3.0", "1.5.0")
    assert said and said[0].startswith("cannot ask for newer versions of cuda-tile: ")


def test_an_exact_version_needs_no_fresh_list(
    store: Store, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver(store, faulty()).versions("cuda-tile")
    monkeypatch.setattr(resolve, "FRESH_SECONDS", 0.0)
    said: list[str] = []
    assert Resolver(store, faulty("unreachable"), "cp311", announce=said.append).choose("cuda-tile", "1.3.0")
    assert said == []


def test_a_series_is_announced_once(store: Store, faulty: Faulty) -> None:
    said: list[str] = []
    asked = Resolver(store, faulty(), "cp311", announce=said.append)
    assert [asked.choose("cuda-toolkit", "13.3") for _ in range(2)] == ["13.3.1", "13.3.1"]
    assert said == ["cuda-toolkit 13.3 is 13.3.1"]


def test_an_unknown_version_lists_what_exists(store: Store, faulty: Faulty) -> None:
    with pytest.raises(UnknownVersion) as caught:
        resolver(store, faulty()).choose("cuda-toolkit", "13.3.2")
    assert str(caught.value) == (
        'unknown cuda-toolkit version "13.3.2": did you mean 13.3.1? It can be one of 13.3.1, 13.4.3.'
    )


@pytest.mark.parametrize("offline", [True, False])
def test_no_network_and_an_empty_store(store: Store, faulty: Faulty, offline: bool) -> None:
    why = "offline was asked for" if offline else "Name or service not known"
    with pytest.raises(NotInStore) as caught:
        resolver(store, faulty("unreachable"), offline).choose("cuda-toolkit", "13.3.1")
    assert str(caught.value) == (
        f"the list of cuda-toolkit versions is not in the store {store.root} "
        f"and the package index cannot be asked ({why}); "
        "run once with a network, or point HARNESS_STORE at a store that has it"
    )


def test_a_locked_toolkit_never_asks_again(store: Store, faulty: Faulty) -> None:
    first = resolver(store, faulty()).toolkit("13.3.1")
    again = resolver(store, faulty("unreachable"))
    assert again.choose("cuda-toolkit", "13.3.1") == "13.3.1"
    assert again.toolkit("13.3.1") == first
    assert list(again.report()) == ["cuda-toolkit-13.3.1"]
    assert {p["package"] for p in again.report()["cuda-toolkit-13.3.1"]["packages"]} > set(resolve.COMPONENTS)


def test_a_component_by_its_own_version_or_a_toolkits(store: Store, faulty: Faulty) -> None:
    asked = resolver(store, faulty())
    assert asked.component("nvidia-cuda-tileiras", "13.4.92").version == "13.4.92"
    assert asked.component("nvidia-cuda-tileiras", "13.3.1").version == "13.3.36"
    assert asked.component("nvidia-nvvm", "13.3").version == "13.3.73"


def test_a_component_of_a_locked_toolkit_needs_no_network(store: Store, faulty: Faulty) -> None:
    resolver(store, faulty()).toolkit("13.3.1")
    away = resolver(store, faulty("unreachable"))
    assert away.component("nvidia-cuda-tileiras", "13.3.36").version == "13.3.36"
    assert away.component("nvidia-cuda-tileiras", "13.3.1").version == "13.3.36"


def test_an_unknown_component_version(store: Store, faulty: Faulty) -> None:
    with pytest.raises(UnknownVersion) as caught:
        resolver(store, faulty()).component("nvidia-cuda-tileiras", "13.4.93")
    assert str(caught.value) == (
        'unknown nvidia-cuda-tileiras version "13.4.93": did you mean 13.4.92? '
        "It can be one of 13.3.36, 13.4.92. A cuda-toolkit version may stand there, too."
    )


def test_a_damaged_lock_is_made_again(store: Store, faulty: Faulty) -> None:
    first = resolver(store, faulty()).toolkit("13.3.1")
    (store.root / "locked" / "cuda-toolkit-13.3.1.json").write_text('{"requirement": 1}')
    assert resolver(store, faulty()).toolkit("13.3.1").packages == first.packages


def test_a_frontend_is_locked_per_python(store: Store, faulty: Faulty) -> None:
    resolver(store, faulty()).frontend("1.5.0")
    other = Resolver(store, faulty("unreachable"), "cp312")
    assert other.locked("cuda-tile", "1.5.0") is None
    assert resolver(store, faulty("unreachable")).locked("cuda-tile", "1.5.0") is not None


def test_pins_without_hashes_are_refused(
    store: Store, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PackageTools, "resolve", lambda *_, **__: "nvidia-nvvm==13.3.73\n")
    with pytest.raises(InstallError, match=r"uv gave no hash for nvidia-nvvm"):
        resolver(store, faulty()).component("nvidia-nvvm", "13.3.73")
