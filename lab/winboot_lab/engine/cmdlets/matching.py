"""Select-String."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.dotnet import dotnet
from winboot_lab.engine.regexes import Match
from winboot_lab.engine.values import Instance

Value = Any
IGNORE_CASE = 1


class MatchInfo(Instance):
    """A line that fits: Microsoft.PowerShell.Commands.MatchInfo."""

    def __init__(
        self, line: str, number: int, pattern: str, matches: list[Match], path: str, *, ignore_case: bool
    ) -> None:
        self.line = line
        self.number = number
        self.pattern = pattern
        self.matches = matches
        self.path = path
        self.ignore_case = ignore_case

    @property
    def file_name(self) -> str:
        return self.path.rpartition("\\")[2]

    def __str__(self) -> str:
        if self.path == "InputStream":
            return self.line
        return f"{self.path}:{self.number}:{self.line}"


MATCH_INFO = dotnet("Microsoft.PowerShell.Commands.MatchInfo", MatchInfo)
