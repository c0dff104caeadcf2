"""Select-String."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.cmdlets.contents import content_places
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import dotnet, named
from winboot_lab.engine.encodings import decode
from winboot_lab.engine.exceptions import ArgumentException, DotNetException
from winboot_lab.engine.locations import FILES
from winboot_lab.engine.regexes import Match, Regex, escape
from winboot_lab.engine.types.fileinfo import FileSystemInfo
from winboot_lab.engine.values import Array, Instance, plain

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


@cmdlet(
    "Select-String",
    """
    InputObject: psobject mandatory value null empty none set=Object
    Pattern: string[] mandatory position=0
    Path: string[] mandatory position=1 name set=File
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralFile
    SimpleMatch: switch
    CaseSensitive: switch
    Quiet: switch
    List: switch
    Include: string[]
    Exclude: string[]
    NotMatch: switch
    AllMatches: switch
    Encoding: string words=unicode,utf7,utf8,utf32,ascii,bigendianunicode,default,oem
    Context: int[] refused
    """,
    default_set="File",
)
class SelectString:
    """The lines in which a pattern is found."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.number = 0
        self.done = False
        self.simple = call.flag("SimpleMatch")
        self.options = 0 if call.flag("CaseSensitive") else IGNORE_CASE
        self.patterns = [(pattern, self._compile(pattern)) for pattern in call.items("Pattern")]

    def _compile(self, pattern: str) -> Regex:
        try:
            return Regex(escape(pattern) if self.simple else pattern, self.options)
        except ArgumentException as failure:
            self.call.fail(
                ArgumentException(
                    f"The string {pattern} is not a valid regular expression: {failure.message}"
                ),
                "InvalidRegex",
                "InvalidArgument",
            )

    def process(self) -> None:
        call = self.call
        if self.done:
            return
        if not call.has("InputObject"):
            self._files()
            return
        bare = plain(call["InputObject"])
        if isinstance(bare, FileSystemInfo):
            call.refuse("with files as input objects")
        self.number += 1
        self._line(call.text(call["InputObject"]), self.number, "InputStream")

    def _files(self) -> None:
        for place in content_places(self.call):
            if place.provider != FILES:
                self.call.refuse(f"of {place.provider}")
            for number, line in enumerate(self._lines(place.path), 1):
                found = self._line(line, number, place.path)
                if self.done:
                    return
                if found and self.call.flag("List"):
                    break

    def _lines(self, path: str) -> Iterator[str]:
        try:
            content = ask_one(self.call.scope, "file.read", path=path, share="ReadWrite")
        except DotNetException as failure:
            self.call.refuse(f"of a file that cannot be read: {failure.message}")
        text = decode(content, self.call.get("Encoding", "utf8"))
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        yield from lines[:-1] if not lines[-1] else lines

    def _line(self, line: str, number: int, path: str) -> bool:
        for pattern, regex in self.patterns:
            found = self._matches(regex, line)
            if bool(found) == self.call.flag("NotMatch"):
                continue
            self._give(line, number, path, pattern, found)
            return True
        return False

    def _matches(self, regex: Regex, line: str) -> list[Match]:
        if self.call.flag("AllMatches"):
            return list(regex.matches(line))
        first = regex.search(line)
        return [first] if first.success else []

    def _give(self, line: str, number: int, path: str, pattern: str, found: list[Match]) -> None:
        if self.call.flag("Quiet"):
            self.done = True
            self.call.write(True)
            return
        matches = [] if self.simple and not self.call.flag("AllMatches") else found
        self.call.write(MatchInfo(line, number, pattern, matches, path, ignore_case=bool(self.options)))
