"""Select-String."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.dotnet import dotnet, named
from winboot_lab.engine.regexes import Match
from winboot_lab.engine.values import Array, Instance

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
MATCH_INFO.prop("IgnoreCase", "bool", lambda self: self.ignore_case)
MATCH_INFO.prop("LineNumber", "int", lambda self: self.number)
MATCH_INFO.prop("Line", "string", lambda self: self.line)
MATCH_INFO.prop("Filename", "string", lambda self: self.file_name)
MATCH_INFO.prop("Path", "string", lambda self: self.path)
MATCH_INFO.prop("Pattern", "string", lambda self: self.pattern)
MATCH_INFO.prop("Context", "object", lambda self: None)
MATCH_INFO.prop(
    "Matches",
    "object",
    lambda self: Array(self.matches, named("System.Text.RegularExpressions.Match")),
)
MATCH_INFO.method("ToString()")(str)
MATCH_INFO.refuses("RelativePath ToEmphasizedString")
