"""Time and threads as a worker uses them: everything that waits, waits here, so that a test can let hours pass at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from winboot.node.run import Stop


class Running(Protocol):
    """Work that runs at the same time as ours."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        ...

    def join(self) -> None:
        """Wait for its end."""
        ...


class Pace:
    """The clock of this computer, and its threads."""

    def now(self) -> float:
        """Seconds of a clock that only goes forward."""
        return time.monotonic()

    def today(self) -> datetime:
        """What clouds call the time (UTC)."""
        return datetime.now(UTC)

    def stop(self) -> Stop:
        """A signal that one may wait for."""
        return Stop()

    def spawn(self, name: str, work: Callable[[], object]) -> Running:
        """Begin work that does not keep the process alive."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread
