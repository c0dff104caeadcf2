"""How old the data is. A Kubernetes minor comes every four months: data that is older lacks one, very likely."""

from __future__ import annotations

import datetime
from typing import Final

from winboot.config.compat.facts import Compat

# Three releases a year (https://kubernetes.io/releases/release/): 120 days hold at most one.
LIMIT_DAYS: Final = 120


def today() -> datetime.date:
    """This machine's date, in UTC."""
    return datetime.datetime.now(tz=datetime.UTC).date()


def judged_on(compat: Compat) -> str:
    """The day on which ends of life are judged: today, or the date of the data where the clock is before it."""
    return max(compat.as_of, today().isoformat())


def days(compat: Compat) -> int:
    """Days since the date of the data; 0 where the clock is before it."""
    return max(0, (today() - datetime.date.fromisoformat(compat.as_of)).days)


def parts(compat: Compat) -> list[tuple[str, str, int]]:
    """Each part of the data: its name, the day up to which upstream was read for it, and the days since then."""
    return [
        (name, day, max(0, (today() - datetime.date.fromisoformat(day)).days))
        for name, day in compat.section("seen").items()
    ]


def said(compat: Compat) -> str | None:
    """One sentence about data that is too old to know the newest minor, or None."""
    old = days(compat)
    if old <= LIMIT_DAYS:
        return None
    return (
        f"the compatibility data is of {compat.as_of}, {old} days old, and ends with Kubernetes {compat.newest}: "
        "newer minors, patches and end-of-life dates are missing"
    )
