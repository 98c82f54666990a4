"""From one bad cell to the versions and the component to blame.

search.py      which version to try next, and what the answers prove: pure
versions.py    the axis that is searched, equal versions folded
components.py  which mixes of a good and a bad toolchain to try, and whom they convict: pure
result.py      what came out, as a record
run.py         asks the laboratory, step by step
show.py        the result in words and commands
"""
