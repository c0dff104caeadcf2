"""The hook of the wheel: the manual page goes where man(1) looks for pages of programs that pip and pipx install."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE: Final = "build/winboot.1"


class ManualPage(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the manual page that `make wheel` has written; a wheel that pip builds has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the page among the shared data of the wheel."""
        page = Path(self.root, PAGE)
        if page.is_file():
            build_data["shared_data"][str(page)] = "share/man/man1/winboot.1"
