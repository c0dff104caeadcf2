"""How often a process with a lab in it looks for circles of objects."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Look every 20,000 new objects instead of every 700.

    The lab's syntax trees live as long as the process, and a join makes millions of objects beside them: the collector
    took a quarter of its time.
    """
    gc.set_threshold(20_000, 20, 100)
