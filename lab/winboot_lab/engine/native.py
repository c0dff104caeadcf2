"""Programs: the command line as Windows PowerShell 5.1 builds it, the output as lines, and script files read from disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from winboot_lab.engine import common
from winboot_lab.engine.binder import ABSENT, Argument
from winboot_lab.engine.commands import Application
from winboot_lab.engine.door import ask, failure_of
from winboot_lab.engine.encodings import decode
from winboot_lab.engine.exceptions import (
    ApplicationFailedException,
    ErrorRecord,
    RemoteException,
)
from winboot_lab.engine.lines import lines_of
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.engine.stages import Line, Stage
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import NOTHING, NUMBER_CLASSES, enumerate_value, plain

Value = Any


def read_script(scope: Scope, path: str) -> str:
    """The text of a script file: by its mark, else ANSI, as Windows PowerShell reads scripts."""
    content = ask(scope, "file.read", path=path)[0]
    return decode(bytes(content))


class NativeStage(Stage):
    """A program at work: it gets the pipeline's objects as lines and writes its own lines when it has ended."""

    def __init__(
        self,
        scope: Scope,
        command: Application,
        arguments: Sequence[Argument],
        out: Emit,
        line: Line,
        *,
        expects_input: bool,
    ) -> None:
        super().__init__(scope, out, line, expects_input=expects_input)
        self.command = command
        self.command_line = command_line(scope, command.path, arguments)
        self.lines: list[str] = []

    def process(self, item: Value) -> None:
        self.lines.extend(lines_of(item, self.scope))

    def once(self) -> None:
        """Without input the program starts when the command ends."""

    def end(self) -> None:
        session = self.session
        result = session.machine.invoke(
            "program.run",
            {
                "command_line": self.command_line,
                "working_directory": working_directory(self.scope),
                "stdin": "".join(text + "\r\n" for text in self.lines).encode("ascii", "replace"),
            },
        )
        if result.errors:
            raise self._cannot_run(failure_of(result.errors[0]).message)
        ended = result.objects[0]
        self.scope.top.put("LASTEXITCODE", int(ended["exit_code"]))  # type: ignore[index,call-overload,arg-type]
        for text in text_lines(bytes(ended["stdout"])):  # type: ignore[index,call-overload,arg-type]
            self.out(text)
        for number, text in enumerate(text_lines(bytes(ended["stderr"]))):  # type: ignore[index,call-overload,arg-type]
            self._complain(text, first=number == 0)
        if ended["exit_code"] != 0:  # type: ignore[index,call-overload]
            self.line.failed = True

    def _cannot_run(self, why: str) -> ApplicationFailedException:
        return ApplicationFailedException(
            f"Program '{self.command.name}' failed to run: {why}",
            "NativeCommandFailed",
            "ResourceUnavailable",
        )

    def _complain(self, text: str, *, first: bool) -> None:
        """A line of standard error: under Stop it ends the pipeline, but only where it was redirected."""
        failure = RemoteException(text)
        record = ErrorRecord(
            failure, "NativeCommandError" if first else "NativeCommandErrorMessage", "NotSpecified", text
        )
        failure.record = record
        record.activity = self.command.name
        action = None if self.redirects_errors else "Continue"
        common.write_error(self.scope, record, action)


def working_directory(scope: Scope) -> str:
    """Where a program starts: the file-system location, or the last one when the session stands elsewhere."""
    return str(scope.session.locations.current.path)


def text_lines(content: bytes) -> list[str]:
    """A program's output as lines; the console's encoding is the OEM code page, UTF-8 where it plainly is that."""
    if not content:
        return []
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp437")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


# -- the command line


def command_line(scope: Scope, path: str, arguments: Sequence[Argument]) -> str:
    """The raw command line: embedded quotes stay as they are, and an empty argument vanishes."""
    parts = [f'"{path}"' if needs_quotes(path) or not path else path]
    for argument in arguments:
        text = _argument_text(scope, argument)
        if text:
            parts.append(text)
    return " ".join(parts)


def _argument_text(scope: Scope, argument: Argument) -> str:
    if argument.verbatim:
        return _expanded(scope, str(argument.value))
    if argument.name is None:
        return _value_text(scope, argument)
    if argument.value is ABSENT:
        return quoted(argument.text)
    head = argument.text if argument.text.endswith(":") else f"{argument.text}:"
    return head + _value_text(scope, argument)


def _value_text(scope: Scope, argument: Argument) -> str:
    value = argument.value
    if argument.written and type(value) in NUMBER_CLASSES:
        return argument.written
    items = enumerate_value(value)
    if items is None or value is NOTHING:
        return quoted(_one(scope, value))
    texts = [_one(scope, item) for item in items]
    if argument.is_list:
        return quoted(",".join(texts))
    return " ".join(quoted(text) for text in texts if text)


def _one(scope: Scope, value: Value) -> str:
    bare = plain(value)
    return "" if bare is None or bare is NOTHING else to_text(bare, scope)


def needs_quotes(text: str) -> bool:
    """Is there white space outside of quotes?"""
    quotes, after_backslash = 0, False
    for letter in text:
        if letter == '"' and not after_backslash:
            quotes += 1
        elif letter.isspace() and quotes % 2 == 0:
            return True
        after_backslash = letter == "\\"
    return False


def quoted(text: str) -> str:
    """An argument in quotes where it needs them. A trailing backslash is not doubled."""
    return f'"{text}"' if needs_quotes(text) else text


def _expanded(scope: Scope, text: str) -> str:
    """After `--%` only `%NAME%` is replaced."""

    def value(found: re.Match[str]) -> str:
        got = scope.machine.invoke("environment.get", {"name": found.group(1)}).objects
        return str(got[0]) if got else found.group()

    return re.sub(r"%([^%\s]+)%", value, text)
