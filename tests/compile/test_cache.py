from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.compile.cache import Cache, CacheError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(data=st.binary(max_size=200))
@SHARED
def test_a_blob_comes_back_under_its_digest(cache: Cache, data: bytes) -> None:
    sha256 = cache.put(data)
    assert sha256 == hashlib.sha256(data).hexdigest()
    assert cache.get(sha256) == data


@given(key=st.text(), value=st.dictionaries(st.text(), JSON, max_size=4))
@SHARED
def test_an_outcome_comes_back_under_its_key(cache: Cache, key: str, value: dict[str, Any]) -> None:
    cache.remember("kind", key, value)
    assert cache.recall("kind", key) == value
    assert cache.recall("other", key) is None


def test_what_is_not_there_is_none(cache: Cache) -> None:
    assert cache.get("0" * 64) is None
    assert cache.recall("kind", "key") is None


@pytest.mark.parametrize("corrupt", [b"", b"content plus", b"cOntent"])
def test_a_corrupt_blob_is_deleted_and_can_be_stored_again(cache: Cache, corrupt: bytes) -> None:
    sha256 = cache.put(b"content")
    path = cache.root / "blobs" / sha256[:2] / sha256
    path.write_bytes(corrupt)
    assert cache.get(sha256) is None
    assert not path.exists()
    assert cache.get(cache.put(b"content")) == b"content"


def memo(cache: Cache) -> Path:
    (path,) = (cache.root / "memo").rglob("*.json")
    return path


@pytest.mark.parametrize(
    "corrupt",
    [b"", b"{", b"[]", b"null", b'{"key": "key", "value": {"a": 1}}', b'{"sha256":"","memo":[]}\n', b"\xff"],
)
def test_a_corrupt_outcome_is_absent(cache: Cache, corrupt: bytes) -> None:
    cache.remember("kind", "key", {"a": 1})
    memo(cache).write_bytes(corrupt)
    assert cache.recall("kind", "key") is None
    cache.remember("kind", "key", {"a": 2})
    assert cache.recall("kind", "key") == {"a": 2}


def test_an_outcome_is_json_that_other_tools_can_read(cache: Cache) -> None:
    cache.remember("kind", "key", {"a": 1})
    assert json.loads(memo(cache).read_bytes())["memo"] == ["kind", "key", {"a": 1}]


@given(at=st.integers(0), bit=st.integers(0, 7))
@SHARED
def test_a_flipped_bit_anywhere_makes_an_outcome_absent(cache: Cache, at: int, bit: int) -> None:
    cache.remember("kind", "key", {"registers": 24, "answer": "impossible"})
    data = bytearray(memo(cache).read_bytes())
    data[at % len(data)] ^= 1 << bit
    memo(cache).write_bytes(data)
    assert cache.recall("kind", "key") is None


def test_an_outcome_in_the_place_of_another_is_absent(cache: Cache) -> None:
    cache.remember("kind", "key", {"a": 1})
    cache.remember("kind", "other", {"a": 2})
    cache.remember("sort", "key", {"a": 3})
    places = {path.parent.parent.name: path for path in (cache.root / "memo").rglob("*.json")}
    places["kind"].write_bytes(places["sort"].read_bytes())
    assert sum(cache.recall("kind", key) is None for key in ("key", "other")) == 1


def planted(value: dict[str, Any]) -> Any:
    return value["a"]["b"]


@pytest.mark.parametrize("value", [{}, {"a": 1}, {"a": []}, {"a": {}}])
def test_what_cannot_be_decoded_is_absent(cache: Cache, value: dict[str, Any]) -> None:
    cache.remember("kind", "key", value)
    assert cache.recall_as("kind", "key", planted) is None
    cache.remember("kind", "key", {"a": {"b": 7}})
    assert cache.recall_as("kind", "key", planted) == 7


def test_hundreds_of_look_ups_take_well_under_a_second(cache: Cache) -> None:
    for number in range(500):
        cache.remember("kind", str(number), {"sha256": cache.put(b"x" * 50_000)})
    begun = time.perf_counter()
    for number in range(500):
        value = cache.recall("kind", str(number))
        assert value is not None and cache.get(value["sha256"]) is not None
    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_sentence_and_leaves_no_rest(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CacheError) as caught:
        cache.put(b"content")
    assert str(caught.value) == (
        f"no space left to write the cache at {cache.root}: "
        "free some space, or move the store with HARNESS_STORE"
    )
    assert [path for path in cache.root.rglob("*") if path.is_file()] == []


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    root = tmp_path / "file" / "cache"
    with pytest.raises(CacheError) as caught:
        Cache(root).put(b"content")
    assert str(caught.value) == (
        f"cannot write the cache at {root}: Not a directory; "
        "check its permissions, or move the store with HARNESS_STORE"
    )


def test_threads_and_processes_may_write_the_same(cache: Cache) -> None:
    script = """
import sys, pathlib
from harness.compile.cache import Cache
cache = Cache(pathlib.Path(sys.argv[1]))
for _ in range(200):
    cache.remember("kind", "key", {"sha256": cache.put(b"x" * 10_000)})
    assert cache.get(cache.recall("kind", "key")["sha256"]) == b"x" * 10_000
"""
    others = [subprocess.Popen([sys.executable, "-c", script, str(cache.root)]) for _ in range(3)]
    assert [other.wait(30) for other in others] == [0, 0, 0]


def test_equal_work_is_held_off_in_this_process(cache: Cache) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        with cache.exclusive("key", 10):
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == 1


HOLDER = """
import sys, pathlib
from harness.compile.cache import Cache
with Cache(pathlib.Path(sys.argv[1])).exclusive("key", 10):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_equal_work_is_held_off_between_processes_but_not_for_ever(cache: Cache) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(cache.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdin is not None and other.stdout is not None
    assert other.stdout.readline() == b"held\n"

    def seconds(key: str, patience: float, stop: bool = False) -> float:
        begun = time.monotonic()
        with cache.exclusive(key, patience, lambda: stop):
            return time.monotonic() - begun

    assert seconds("another key", 5) < 0.5
    assert seconds("key", 0.3) >= 0.3
    assert seconds("key", 30, stop=True) < 0.5
    threading.Timer(0.3, other.stdin.close).start()
    assert 0.2 < seconds("key", 30) < 10
    assert other.wait(10) == 0
    other.stdout.close()
