from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.repro.scrub import Scrubber

ENVIRONMENT = {
    "GITHUB_TOKEN": "plain-looking-value-1",
    "MY_DB_PASSWORD": "correct horse",
    "AWS_SECRET_ACCESS_KEY": "abc/def+ghi=",
    "USER": "mmustermann",
    "HOSTNAME": "build-box-7",
    "PATH": "/usr/bin:/bin",
    "NPM_CONFIG_KEY": "k",
}
PATHS = (("/srv/homes/mm", "~"), ("/srv/checkout", "."))
SCRUBBER = Scrubber.of(ENVIRONMENT, PATHS, ("node-12.corp.example",))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("token plain-looking-value-1 used", "token <redacted> used"),
        ("xplain-looking-value-1x", "x<redacted>x"),
        ("login: correct horse", "login: <redacted>"),
        ("by mmustermann on build-box-7", "by <name> on <name>"),
        ("ssh node-12.corp.example", "ssh <name>"),
        ("/srv/homes/mm/project/k.py:12", "~/project/k.py:12"),
        ("/srv/checkout/k.py", "./k.py"),
        ("/home/someone/k.py", "~/k.py"),
        ("/Users/Some.One/k.py", "~/k.py"),
        ("in /root/.cache/x", "in ~/.cache/x"),
        ("/tmp/tmpa81/sub/kernel.cubin missing", "<tmp>/kernel.cubin missing"),
        ("/var/folders/qq/x/T/tmp.12", "<tmp>/tmp.12"),
        ("wrote to /tmp", "wrote to <tmp>"),
        ("ghp_0123456789abcdefABCDEF", "<redacted>"),
        ("key AKIAABCDEFGHIJKLMNOP.", "key <redacted>."),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer <redacted>"),
        ("API_KEY=abc123 next", "API_KEY=<redacted> next"),
        ('{"password": "hunter2"}', '{"password": <redacted>}'),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", "<redacted>"),
        ("mail some.one@example.org", "mail <address>"),
        ("host 10.1.2.3 up", "host <host> up"),
        ("from https://pkgs.corp.example/simple/x?a=1", "from https://<host>"),
        ("https://user:pw@pypi.org/simple", "https://pypi.org/simple"),
        ("password = hunter2 was", "password = <redacted> was"),
        ("at build17.corp.example.com:8080 now", "at <host>:8080 now"),
        ("on gpu3.lab.internal.", "on <host>."),
        ("from 8.8.4.4:443", "from <host>:443"),
        ("via fe80::1ff:fe23:4567:890a now", "via <host> now"),
        ("via 2001:db8:85a3:0:0:8a2e:370:7334", "via <host>"),
        ("/mnt/nfs/alice/k.py", "<path>/k.py"),
        ("cd ~alice/src", "cd ~/src"),
        ("C:\\\\Users\\\\alice\\\\k.py", "~\\\\k.py"),
        ("\\\\fileserver17\\alice$", "<path>"),
    ],
)
def test_planted_secrets_are_gone(text: str, clean: str) -> None:
    assert SCRUBBER.scrub(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "cuda-toolkit 13.4.1.0, tileiras 13.3.36, driver 580.159.04",
        "pip install cuda-tile==1.5.0 'cuda-toolkit[nvcc,nvvm,tileiras]==13.3.1'",
        "reciprocal root mean square of each row",
        "https://github.com/NVIDIA/cutile-python/issues/12",
        "ct.load(x, index=(tile, 0), shape=(16, 512), allow_tma=False)",
        "tileiras kernel.sm_90.tileirbc -o kernel.cubin --gpu-name sm_90 -O3 --lineinfo",
        "exit code 5, 24 registers, USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20",
        "tokens = x.shape[0]; keys @ values",
        "what(): std::bad_alloc, llvm::cl::opt, a::b",
        "kernel.sm_90.tileirbc:12 and k.py:7:44, [[1, 2], [3, 4]]",
        "y = ~mask & ~other",
    ],
)
def test_what_an_engineer_needs_stays(text: str) -> None:
    assert SCRUBBER.scrub(text) == text


@given(
    secret=st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=8, max_size=30),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_a_secret_is_found_wherever_it_stands(secret: str, before: str, after: str) -> None:
    scrubber = Scrubber.of({"CI_TOKEN": secret}, (), ())
    assert secret not in scrubber.scrub(f"{before}{secret}{after}") or secret in "<redacted><tmp><host>"


@given(st.text(max_size=200))
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    once = SCRUBBER.scrub(text)
    assert SCRUBBER.scrub(once) == once


def test_common_names_of_users_stay_words() -> None:
    scrubber = Scrubber.of({"USER": "root"}, (), ("root", "ab"))
    assert scrubber.scrub("the root of ab") == "the root of ab"


def test_this_machine_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "erika-m")
    monkeypatch.setenv("HF_TOKEN", "a-secret-of-mine")
    text = Scrubber.of_this_machine().scrub("erika-m has a-secret-of-mine")
    assert text == "<name> has <redacted>"


def test_code_keeps_its_names_and_loses_what_people_wrote() -> None:
    scrubber = Scrubber.of(
        {"USER": "maximilian", "MY_API_KEY": "kernel", "T_TOKEN": "ab-cd-ef"}, (), ("load",)
    )
    code = (
        "# by maximilian on load, ghp_0123456789abcdefABCDEF\n"
        "def maximilian(kernel):\n"
        '    """Ask maximilian in /home/maximilian, please."""\n'
        '    return ct.load(kernel, "ab-cd-ef")\n'
    )
    assert scrubber.scrub_code(code) == (
        "# by <name> on <name>, <redacted>\n"
        "def maximilian(kernel):\n"
        '    """Ask <name> in ~, please."""\n'
        '    return ct.load(kernel, "<redacted>")\n'
    )
    assert scrubber.scrub_code("no code: maximilian") == "no code: <name>"
