"""What is a store, and what must never be taken for one."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.compile.cache import Cache, CacheError
from harness.lab import Lab
from harness.toolchain.errors import StoreError, StoreFailed
from harness.toolchain.marker import MARKER, SHELVES, is_marked, is_store
from harness.toolchain.store import existing_store, open_store

USE = """
import sys, time
from pathlib import Path
from harness.lab import Lab
with Lab(Path(sys.argv[1])):
    print("in use", flush=True)
    time.sleep(60)
"""


def test_a_new_store_is_marked(tmp_path: Path) -> None:
    root = open_store(tmp_path / "store").root
    assert is_marked(root)
    content = (root / MARKER).read_text()
    open_store(root)
    assert (root / MARKER).read_text() == content


def test_file_systems_leave_things_in_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".snapshot").mkdir()
    assert is_marked(open_store(tmp_path).root)


def test_a_store_of_before_there_were_markers_gets_one(tmp_path: Path) -> None:
    for name in SHELVES:
        (tmp_path / name).mkdir()
    (tmp_path / "cache" / "blobs").mkdir()
    assert is_store(tmp_path)
    with pytest.raises(StoreError, match="mark it first with: python -m harness doctor --store"):
        existing_store(tmp_path)
    open_store(tmp_path)
    assert existing_store(tmp_path).root == tmp_path


@pytest.mark.parametrize("path", ["precious.txt", "cache/precious.txt", "components/app.js", "src/main.py"])
def test_no_store_is_made_among_the_files_of_others(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text("precious")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"is not empty \(it holds .*\) and is no store of this harness"):
            open_store(tmp_path)
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()] == [path]


def test_what_lies_in_a_cache_tells_a_strangers_from_ours(tmp_path: Path) -> None:
    for name in ("cache", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "cache" / "precious").write_text("")
    with pytest.raises(StoreError, match="is not empty"):
        open_store(tmp_path)


def test_a_marked_store_may_hold_other_files(tmp_path: Path) -> None:
    open_store(tmp_path)
    (tmp_path / "note.txt").write_text("")
    assert open_store(tmp_path).writable


def test_whoever_uses_a_store_keeps_others_from_having_it_alone_until_death(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    user = subprocess.Popen([sys.executable, "-c", USE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert user.stdout is not None
    with user:
        assert user.stdout.readline() == "in use\n"
        with pytest.raises(StoreError, match=r"a run is using the store .*; wait for its end"), store.alone():
            pass
        with Lab(tmp_path):
            pass
        os.kill(user.pid, signal.SIGKILL)
        user.wait(10)
    with store.alone(), pytest.raises(StoreFailed, match="held by another process"), store.shared(0.1):
        pass
    with Lab(tmp_path), pytest.raises(StoreError, match="a run is using"), store.alone():
        pass
    with store.alone():
        pass


def test_no_child_inherits_the_lock(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with Lab(tmp_path) as lab, lab.supervisor.scratch():
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        with store.alone():
            pass
    finally:
        child.kill()
        child.wait(10)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A store on a file system that was mounted read-only after something was remembered there."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        store = open_store(tmp_path)
        store.directory("locked")
        cache = Cache(store.root / "cache")
        cache.remember("kind", "key", {"sha256": cache.put(b"kept")})
        subprocess.run(["mount", "-o", "remount,ro", "none", tmp_path], check=True)
        yield tmp_path
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_store_that_may_only_be_read_serves_what_it_holds(read_only: Path) -> None:
    with Lab(read_only, offline=True) as lab:
        assert not lab.store.writable
        known = lab.cache.recall("kind", "key")
        assert known is not None
        assert lab.cache.get(known["sha256"]) == b"kept"
        assert lab.cache.put(b"kept") == known["sha256"]
        lab.cache.remember("kind", "other", {})
        assert lab.cache.recall("kind", "other") is None
        with lab.cache.exclusive("key", 1):
            pass
        assert lab.provisioner.lock_report() == {}
        with pytest.raises(CacheError, match="Read-only file system"):
            lab.cache.put(b"new")
        with pytest.raises(StoreFailed, match="read-only file system"), lab.store.lock("thing"):
            pass
        with pytest.raises(StoreFailed, match="read-only file system"), lab.store.alone():
            pass


def test_a_store_that_may_only_be_read_is_locked_all_the_same(read_only: Path) -> None:
    with Lab(read_only):
        fd = os.open(read_only / MARKER, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


def test_an_empty_directory_that_may_only_be_read_is_no_store(read_only: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written") as caught:
        open_store(read_only / "store")
    assert not isinstance(caught.value, StoreFailed)
