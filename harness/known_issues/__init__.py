"""Faults that are known: an expected one fails nothing, one that is unexpectedly gone is news.

conditions.py  what one property of a cell may be, and whether two such sets meet
entry.py       a known issue, and which cells it speaks of
load.py        known_issues.toml, checked in full
assess.py      results against entries: expected, fixed, returned, expired, stale
"""

from harness.known_issues.assess import NOTHING_KNOWN, Assessment, assess
from harness.known_issues.entry import Issue
from harness.known_issues.load import FILE_NAME, load_known_issues

__all__ = ["FILE_NAME", "NOTHING_KNOWN", "Assessment", "Issue", "assess", "load_known_issues"]
