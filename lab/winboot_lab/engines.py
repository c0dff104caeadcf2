"""Which engine runs the scripts of lab machines: the lab's own, or a real PowerShell (`use_powershell`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from winboot_lab.engine.run import Emit, Ended
    from winboot_lab.windows.door import Door

__all__ = ["HOW_TO_GET", "find_powershell", "listen", "powershell_in_use", "run_script", "use_powershell"]

HOW_TO_GET: Final = (
    "Install PowerShell 7 (https://aka.ms/powershell), or name one: --engine pwsh --pwsh /path/to/pwsh "
    "(on Windows: powershell.exe)"
)


class _Choice:
    """What was chosen for this process."""

    path: str | None = None
    listener: Callable[[str, Any], None] | None = None


def find_powershell(path: str = "pwsh") -> str | None:
    """The PowerShell of that name or path, or None if this machine has none."""
    return shutil.which(path)


def use_powershell(path: str | None) -> None:
    """From now on scripts run in the PowerShell at this path; None: in the lab's own engine."""
    _Choice.path = path


def powershell_in_use() -> str | None:
    """The path of the PowerShell that runs the scripts; None: the lab's own engine does."""
    return _Choice.path


def listen(listener: Callable[[str, Any], None] | None) -> None:
    """From now on call `listener` with the stream and the value of all script output; None ends that."""
    _Choice.listener = listener


def run_script(
    machine: Door,
    text: str,
    parameters: Mapping[str, object],
    *,
    emit: Emit,
    cancelled: Callable[[], bool] = lambda: False,
    location: str | None = None,
    local_scope: bool = False,
) -> Ended:
    """Run `text` on `machine` in the engine that was chosen; see `winboot_lab.engine.run.run_script`."""
    if _Choice.listener is not None:
        emit = _heard(emit, _Choice.listener)
    if _Choice.path is None:
        from winboot_lab.engine import run as own  # heavy: `winboot lab --help` has no use for it

        return own.run_script(
            machine,
            text,
            parameters,
            emit=emit,
            cancelled=cancelled,
            location=location,
            local_scope=local_scope,
        )
    from winboot_lab.pwsh import run as real  # slow: compiles C# and starts a process

    return real.run_script(
        _Choice.path,
        machine,
        text,
        parameters,
        emit=emit,
        cancelled=cancelled,
        location=location,
        local_scope=local_scope,
    )


def _heard(emit: Emit, listener: Callable[[str, Any], None]) -> Emit:
    def both(stream: Any, value: Any) -> None:
        listener(stream, value)
        emit(stream, value)

    return both
