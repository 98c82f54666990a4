"""From a finding to a folder that shows it to whoever can mend it.

spec.py         repro.toml: what must hold, as a record
parts.py        functions that repro.py files are put together from
script.py       the text of repro.py
launching.py    how its kernel is launched on a GPU
new.py          writes a folder, after asking the laboratory what holds
environment.py  Python environments of their own for repro.py
verify.py       does everything still hold?
issue.py        the text for upstream
scrub.py        takes out of a text what is nobody's business
"""
