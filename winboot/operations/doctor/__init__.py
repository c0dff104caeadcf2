"""`winboot doctor`: what is wrong with a node, why, and what to do.

`gather` asks the machine and the cluster, and gives one `Document` a node; `judge` reads nothing but documents, so that a
saved one gives the same verdicts. `rules` has one function a rule.
"""

from winboot.operations.doctor.bundle import load
from winboot.operations.doctor.document import Document, save
from winboot.operations.doctor.gather import gather, live
from winboot.operations.doctor.judge import Finding, Verdict, judge

__all__ = ["Document", "Finding", "Verdict", "gather", "judge", "live", "load", "save"]
