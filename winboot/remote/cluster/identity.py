"""Whether a Node object is the machine we hold: the same name can belong to another one."""

from __future__ import annotations

import uuid


def same_machine(left: str, right: str) -> bool:
    """Whether two SMBIOS UUIDs are one machine's.

    Firmware and tools disagree on the byte order of the first three groups, so both orders count.
    """
    try:
        one, other = uuid.UUID(left.strip("{} ")), uuid.UUID(right.strip("{} "))
    except ValueError:
        return False
    return one.bytes in (other.bytes, other.bytes_le)
