"""The options that say how fast a command goes over many nodes, and when it stops by itself; see winboot.node.fleet.budget."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from winboot.base.errors import UsageError

if TYPE_CHECKING:
    from winboot.node.fleet import Budget, Share

_SHARE: Final = re.compile(r"(\d{1,6})(%?)")
_TIME: Final = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,7})s?)?")
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Pacing:
    """How fast a command goes over many nodes, and when it stops by itself."""

    canary: Annotated[
        str | None,
        typer.Option(
            "--canary",
            metavar="N|N%",
            help="winboot changes this many nodes first; the others begin when these are Ready.",
        ),
    ] = None
    max_unavailable: Annotated[
        str | None,
        typer.Option(
            "--max-unavailable",
            metavar="N|N%",
            help="How many nodes of a group may be unavailable at once: in work, NotReady or cordoned.",
        ),
    ] = None
    max_failed: Annotated[
        str | None,
        typer.Option(
            "--max-failed",
            metavar="N|N%",
            help="How many nodes may fail; after that no further node is started (exit code 4).",
        ),
    ] = None
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="TIME|HH:MM",
            help="Start no node after this time from now (2h), or after this time of day (05:30).",
        ),
    ] = None

    def budget(self, now: datetime | None = None) -> Budget:
        """What these options ask for; `now` is local time. Raises UsageError that names the option."""
        from winboot.node.fleet import Budget

        return Budget(
            canary=_share("--canary", self.canary, least=1),
            max_unavailable=_share("--max-unavailable", self.max_unavailable, least=1),
            max_failed=_share("--max-failed", self.max_failed),
            deadline=_deadline(self.deadline, now or datetime.now()),
        )

    def words(self) -> tuple[str, ...]:
        """The same options on a command line. Raises UsageError where one is wrong."""
        self.budget()
        given = {f"--{name.replace('_', '-')}": text for name, text in asdict(self).items()}
        return tuple(word for option, text in given.items() if text is not None for word in (option, text))


def _share(option: str, text: str | None, *, least: int = 0) -> Share | None:
    from winboot.node.fleet import Share

    if text is None:
        return None
    found = _SHARE.fullmatch(text.strip())
    if found is None or int(found[1]) < least or (found[2] and int(found[1]) > 100):
        low = "1" if least else "0"
        raise UsageError(
            f"{option} {text}",
            hint=f"Expected a number of nodes from {low} on, or a percentage such as 10%.",
        )
    return Share(int(found[1]), percent=bool(found[2]))


def _seconds(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    found = _TIME.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise UsageError(f"{option} {text}", hint="Expected a time such as 90s, 10m or 1h30m.")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(hours * 3600 + minutes * 60 + seconds)


def _deadline(text: str | None, now: datetime) -> float | None:
    found = _CLOCK.fullmatch((text or "").strip())
    if found is None:
        return _seconds("--deadline", text)
    then = now.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
    if then <= now:
        then += timedelta(days=1)
    return (then - now).total_seconds()
