"""The exit codes that belong to no error class."""

from __future__ import annotations

from typing import Final

EXIT_USAGE: Final = 64
EXIT_INTERRUPTED: Final = 130
