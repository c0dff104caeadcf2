"""The primitives of the door by family; importing this package registers them (door.py has the table)."""

from __future__ import annotations

from winboot_lab.windows.primitives import access, console, files, hcn, network, programs, registry, system

__all__ = ["access", "console", "files", "hcn", "network", "programs", "registry", "system"]
