"""Windows PowerShell 5.1 as a syntax tree: `parse(text)`.

A hand-written recursive descent over `winboot_lab.language.tokens`. It accepts what 5.1 accepts and complains
with PowerShell's ids about the rest; what only newer PowerShells read is refused, by name where it has one.
After a mistake the parser continues as PowerShell does, so several complaints are possible and the first is the
one PowerShell shows.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from winboot_lab.language import semantics
from winboot_lab.language.statements import StatementParser, expanded
from winboot_lab.language.syntax import (
    NamedBlock,
    ParseErrors,
    Requirements,
    ScriptBlock,
    Source,
    Statement,
    StatementBlock,
    Trap,
    Using,
)
from winboot_lab.language.tokens import COMMAND

_BLOCK_NAMES: Final = ("begin", "process", "end", "dynamicparam")
_REQUIRES_PARAMETER = re.compile(r"-(\w+):?(?:[ \t]+(?!-)(@\{[^}]*\}|[^\s]+(?:[ \t]*,[ \t]*[^\s,]+)*))?")


def parse(text: str, source: Source | None = None) -> ScriptBlock:
    """The tree of a script; `source` counts its lines otherwise than from 1, for a text that others stand before.

    Raises `ParseErrors` with every complaint when it is not Windows PowerShell 5.1.
    """
    parser = Parser(source or Source(text))
    tree: ScriptBlock | None = None
    try:
        tree = parser.script_block(None, False)
        semantics.check(parser.noted, parser.permitted, parser.report)
    except RecursionError:
        parser.report("ScriptTooComplicated", parser.pos)
    if parser.errors or tree is None:
        raise ParseErrors(tuple(parser.errors))
    return tree


class Parser(StatementParser):
    """Reads script blocks, and with them whole scripts."""

    __slots__ = ()

    def script_block(self, opened_at: int | None, is_filter: bool) -> ScriptBlock:
        """A script (`opened_at` is None) or what is between braces; the opening one was stepped over."""
        start = 0 if opened_at is None else opened_at
        self.skip_newlines()
        using = self._using_statements() if opened_at is None else ()
        restore = self.pos
        params = self._param_block()
        if params is None:
            # The attributes belong to something else: a cast, a type literal.
            self.pos = restore
        self.skip_terminators()
        self._refuse_clean_block()
        if self.peek(COMMAND) == "kw" and self.value in _BLOCK_NAMES:
            blocks = self._named_blocks(opened_at)
        else:
            blocks = {("process" if is_filter else "end"): self._body(opened_at, is_filter)}
        end = self.size if opened_at is None else self.pos
        return ScriptBlock(
            self.extent(start, end),
            params,
            blocks.get("dynamicparam"),
            blocks.get("begin"),
            blocks.get("process"),
            blocks.get("end"),
            using=using,
            requirements=self._requirements() if opened_at is None else None,
        )

    def _body(self, opened_at: int | None, is_filter: bool) -> NamedBlock:
        """Statements without block names, up to the closing brace or the end."""
        start = self.pos
        statements: list[Statement] = []
        traps: list[Trap] = []
        while True:
            more, more_traps = self.statement_list()
            statements += more
            traps += more_traps
            end = statements[-1].extent.end if statements else start
            if self._close_script_block(opened_at):
                break
        kind: Literal["process", "end"] = "process" if is_filter else "end"
        return NamedBlock(self.extent(start, end), kind, tuple(statements), tuple(traps), True)

    def _close_script_block(self, opened_at: int | None) -> bool:
        """Step over what ends a script block; False when a script continues behind a stray token."""
        kind = self.peek(COMMAND)
        if opened_at is not None:
            if kind == "}":
                self.take()
            else:
                self.report("MissingEndCurlyBrace", opened_at)
            return True
        if kind == "eof":
            return True
        self.report("UnexpectedToken", self.start, self.token_text())
        self.take()
        return False

    def _named_blocks(self, opened_at: int | None) -> dict[str, NamedBlock]:
        blocks: dict[str, NamedBlock] = {}
        while self.peek(COMMAND) == "kw" and self.value in _BLOCK_NAMES:
            name = self.value
            start, name_end = self.start, self.take()
            body = self.statement_block()
            if body is None:
                self.report("MissingNamedStatementBlock", name_end, name)
                body = StatementBlock(self.extent(name_end, name_end), ())
            extent = self.extent(start, body.extent.end)
            if name in blocks:
                self.report("DuplicateScriptCommandClause", start, name)
            blocks[name] = NamedBlock(extent, name, body.statements, body.traps)
            self.skip_terminators()
        self._end_of_named_blocks(opened_at)
        return blocks

    def _end_of_named_blocks(self, opened_at: int | None) -> None:
        kind = self.peek(COMMAND)
        if kind == "word" and self.value.lower() == "clean":
            self.report("CleanBlockNotSupported", self.start)
        elif kind not in ("}", "eof"):
            self.report("MissingNamedBlocks", self.start, self.token_text())
            return
        while not self._close_script_block(opened_at):
            self.statement_list()

    def _refuse_clean_block(self) -> None:
        """`clean { … }` at the beginning would be a command in 5.1; no script means that."""
        if self.peek(COMMAND) == "word" and self.value.lower() == "clean":
            start, restore = self.start, self.pos
            self.take()
            self.skip_newlines()
            if self.peek(COMMAND) == "{":
                self.report("CleanBlockNotSupported", start)
            self.pos = restore

    def _using_statements(self) -> tuple[Using, ...]:
        found: list[Using] = []
        while self.peek(COMMAND) == "kw" and self.value == "using":
            using = self._using_statement()
            if using is not None:
                found.append(using)
            self.skip_terminators()
        return tuple(found)

    def _requirements(self) -> Requirements | None:
        """What the #requires lines say."""
        if not self.requires:
            return None
        version: tuple[int, ...] | None = None
        edition = shell_id = None
        modules: list[str] = []
        administrator = False
        for start, end in self.requires:
            for name, value, at in _requires_parameters(self.text[start:end], start):
                match expanded(name, ("version", "psedition", "modules", "shellid", "runasadministrator")):
                    case "version":
                        if not re.fullmatch(r"\d+(\.\d+){0,3}", value):
                            self.report("RequiresVersionInvalid", at)
                        else:
                            version = tuple(int(part) for part in value.split("."))
                    case "psedition":
                        edition = value
                    case "shellid":
                        shell_id = value
                    case "modules":
                        modules += [part.strip(" '\"") for part in value.split(",")]
                    case "runasadministrator":
                        administrator = True
                    case _:
                        self.report("ScriptRequiresInvalidFormat", start)
        return Requirements(version, edition, tuple(modules), shell_id, administrator)


def _requires_parameters(text: str, start: int) -> list[tuple[str, str, int]]:
    """Name, value and place of each parameter of a #requires line."""
    found = []
    for match in _REQUIRES_PARAMETER.finditer(text):
        value = (match[2] or "").strip("'\"")
        at = start + (match.start(2) if match[2] else match.start())
        found.append((match[1], value, at))
    return found
