"""Annotations of a Node that winboot writes, or reads from its own programs on the machine."""

from __future__ import annotations

from typing import Final

# The labels and taints that are winboot's own.
OWNED: Final = "winboot.io/owned"
# That winboot has cordoned the Node, and for how long.
CORDON: Final = "winboot.io/cordoned"
# Its value if the machine comes back by itself: the hook lifts the cordon when the Node is Ready again.
FOR_AN_EVENT: Final = "for an event"
# Its value if a caller requested an end, and the cloud could not answer whether the machine really ends.
MEANWHILE: Final = "until its cloud answers"
# What Azure is going to do to the machine, reported by its own task (templates/powershell/lib/events.ps1).
EVENTS: Final = "winboot.io/scheduled-event"
