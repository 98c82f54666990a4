"""May we upgrade? A candidate judged against its baseline, cell by cell.

select.py    which toolchain of the candidate is compared with which of the baseline
evidence.py  what earlier runs, here or on other hosts, recorded
compare.py   pairs of cells and how they differ
noise.py     whether one time is really longer than another
decide.py    what the matrix's [gate] rules make of it
decision.py  the answer: go, no-go, cannot tell, and why
"""

from harness.gate.compare import Change, Difference, Pair, compare
from harness.gate.decide import decide
from harness.gate.decision import Answer, Decision, Reason

__all__ = ["Answer", "Change", "Decision", "Difference", "Pair", "Reason", "compare", "decide"]
