from __future__ import annotations

import os
import subprocess
import sys

from harness.process.table import Sampler, Seen, look_at, look_at_group


def seen(pid: int, name: str, cpu: float, reaped: float = 0.0, rss: int = 1, started: int = 0) -> Seen:
    return Seen(pid, started, name, cpu, reaped, rss, rss)


def test_this_process_is_seen() -> None:
    me = look_at(os.getpid())
    assert me is not None
    assert me.cpu_seconds > 0
    assert me.peak_rss_bytes >= me.rss_bytes > 1 << 20


def test_a_process_that_is_gone_is_none() -> None:
    child = subprocess.Popen(["/bin/true"])
    child.wait(5)
    assert look_at(child.pid) is None
    assert look_at_group(child.pid) == ()


def test_a_zombie_is_no_member() -> None:
    child = subprocess.Popen(["/bin/true"], start_new_session=True)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert look_at_group(child.pid) == ()
    child.wait(5)


def test_a_name_with_blanks_and_brackets_is_read(tmp_path: object) -> None:
    text = "import os; open('/proc/self/comm', 'w').write('a) (b 1 2'); print(flush=True); input()"
    child = subprocess.Popen([sys.executable, "-ISsc", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    child.stdout.readline()
    found = look_at(child.pid)
    child.communicate(b"\n", timeout=10)
    assert found is not None and found.name == "a) (b 1 2"


def test_the_holder_is_whose_cpu_grew_most_not_who_has_most() -> None:
    sampler = Sampler(1, 1.0)
    sampler._before = {10: 9.0, 11: 0.1}
    sampler.last = (seen(10, "tileiras", 9.01), seen(11, "ptxas", 0.9))
    assert sampler.holder == "ptxas"


def test_a_newcomer_may_be_the_holder() -> None:
    sampler = Sampler(1, 1.0)
    sampler._before = {10: 9.0}
    sampler.last = (seen(10, "tileiras", 9.1), seen(11, "ptxas", 0.3))
    assert sampler.holder == "ptxas"


def test_where_none_grew_the_youngest_is_the_holder() -> None:
    sampler = Sampler(1, 1.0)
    sampler._before = {10: 9.0, 11: 0.5}
    sampler.last = (seen(10, "tileiras", 9.0, started=5), seen(11, "ptxas", 0.5, started=6))
    assert sampler.holder == "ptxas"


def test_without_a_sample_there_is_no_holder() -> None:
    assert Sampler(1, 1.0).holder is None


def test_only_what_the_leader_did_not_reap_is_added() -> None:
    sampler = Sampler(1, 1.0)
    sampler.last = (seen(1, "tileiras", 5.0, reaped=2.0), seen(2, "ptxas", 3.0, reaped=0.5))
    assert sampler.unreaped_cpu_seconds(leader=1) == 3.5


def test_usage_adds_up_by_name() -> None:
    sampler = Sampler(1, 1.0)
    for one in (seen(1, "tileiras", 5.0, rss=7), seen(2, "ptxas", 1.0, rss=3), seen(3, "ptxas", 2.0, rss=4)):
        sampler._most[one.pid] = one
    assert [(u.name, u.cpu_seconds, u.peak_rss_bytes) for u in sampler.usage] == [
        ("tileiras", 5.0, 7),
        ("ptxas", 3.0, 4),
    ]
