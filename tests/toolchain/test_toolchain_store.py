from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from harness.toolchain.errors import StoreError
from harness.toolchain.store import Store, open_store


def run_python(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments], stdout=subprocess.PIPE, text=True
    )


HOLD = """
    import sys, time
    from pathlib import Path
    from harness.toolchain.store import open_store
    store = open_store(Path(sys.argv[1]))
    with store.lock("thing"), store.scratch("work") as scratch:
        (scratch / "half").write_bytes(b"half")
        print(scratch, flush=True)
        time.sleep(60)
"""


def test_the_environment_moves_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STORE", str(tmp_path / "deep" / "store"))
    assert open_store().root == tmp_path / "deep" / "store"
    assert open_store(tmp_path / "named").root == tmp_path / "named"


def test_the_default_lies_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert open_store().root == tmp_path / "tile-harness"


def test_a_store_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path / "file" / "store")
    assert str(caught.value) == (
        f"the store {tmp_path}/file/store cannot be written (not a directory); "
        "set HARNESS_STORE to a directory where you may write"
    )


def test_a_store_without_write_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path)
    assert str(caught.value) == (
        f"the store {tmp_path} cannot be written (permission denied); "
        "set HARNESS_STORE to a directory where you may write"
    )


def test_a_full_disk_names_the_place_and_the_room(store: Store) -> None:
    with pytest.raises(StoreError) as caught, store.guarded(needed_bytes=300_000_000):
        raise OSError(errno.ENOSPC, "No space left on device")
    text = str(caught.value)
    assert text.startswith(f"the disk of the store {store.root} is full (about 300 MB needed, ")
    assert "MB free); free some space, or set HARNESS_STORE" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_really_full_disk(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        store = open_store(tmp_path)
        with pytest.raises(StoreError, match=r"is full \(0 MB free\)"):
            store.write_json(store.root / "big.json", {"big": "x" * 200_000})
        assert not (store.root / "big.json").exists()
        assert list((store.root / "scratch").iterdir()) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_names_from_outside_cannot_leave_the_store(store: Store) -> None:
    for name in ("../x", "a/b", "", ".hidden", "x\n", "-rf"):
        with pytest.raises(StoreError), store.lock(name):
            pass


def test_publish_is_all_or_nothing_and_the_first_wins(store: Store) -> None:
    final = store.directory("components") / "thing"
    for content, expected in (("first", True), ("second", False)):
        with store.scratch("work") as scratch:
            (scratch / "built").mkdir()
            (scratch / "built" / "file").write_text(content)
            assert store.publish(scratch / "built", final) is expected
    assert (final / "file").read_text() == "first"
    store.discard(final)
    assert not final.exists()
    assert list((store.root / "scratch").iterdir()) == []


def test_unreadable_json_counts_as_absent(store: Store) -> None:
    path = store.directory("locked") / "x.json"
    assert store.read_json(path) is None
    for text in ("", "{", "[]", "\x00"):
        path.write_text(text)
        assert store.read_json(path) is None
    store.write_json(path, {"a": 1})
    assert store.read_json(path) == {"a": 1}


def test_a_lock_excludes_threads_of_one_process(store: Store) -> None:
    inside = threading.Lock()
    clashes = []

    def work() -> None:
        for _ in range(5):
            with store.lock("thing"):
                clashes.append(not inside.acquire(blocking=False))
                inside.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == [False] * 20


def test_a_held_lock_is_waited_for_with_patience(store: Store) -> None:
    waits = []
    with (
        store.lock("thing"),
        pytest.raises(StoreError, match=r"held by another process for 0\.12 s; end that process"),
        store.lock("thing", lambda: waits.append(1), patience=0.12),
    ):
        pass
    assert waits


def test_waiting_may_give_up(store: Store) -> None:
    def give_up() -> None:
        raise KeyboardInterrupt

    with store.lock("thing"), pytest.raises(KeyboardInterrupt), store.lock("thing", give_up):
        pass


def test_sigkill_frees_the_lock_and_the_litter_is_swept(store: Store) -> None:
    holder = run_python(HOLD, str(store.root))
    assert holder.stdout is not None
    with holder:
        litter = Path(holder.stdout.readline().strip())
        assert (litter / "half").exists()
        assert store.sweep() == 0, "a living owner keeps its scratch"
        assert litter.exists()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait(10)
    open_store(store.root)
    assert not litter.exists()
    assert list((store.root / "scratch").iterdir()) == []
    with store.lock("thing", patience=0):
        pass
