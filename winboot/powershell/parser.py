"""Windows PowerShell 5.1 as a syntax tree: `parse(text)`.

A hand-written recursive descent over `winboot.powershell.tokens`. It accepts what 5.1 accepts and complains
with PowerShell's ids about the rest; what only newer PowerShells read is refused, by name where it has one.
After a mistake the parser goes on as PowerShell does, so several complaints are possible and the first is the
one PowerShell shows.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from winboot.powershell import semantics
from winboot.powershell.expressions import ExpressionParser
from winboot.powershell.syntax import (
    ArrayLiteral,
    Assignment,
    Attribute,
    Break,
    CatchClause,
    Command,
    CommandExpression,
    CommandParameter,
    Continue,
    Data,
    DoUntil,
    DoWhile,
    Exit,
    ExpandableString,
    Expression,
    For,
    ForEach,
    FunctionDefinition,
    If,
    NamedBlock,
    ParamBlock,
    Parameter,
    ParseErrors,
    Pipeline,
    Redirection,
    Requirements,
    Return,
    ScriptBlock,
    Source,
    Statement,
    StatementBlock,
    StringConstant,
    Switch,
    Throw,
    Trap,
    Try,
    TypeConstraint,
    Using,
    Variable,
    While,
)
from winboot.powershell.tokens import COMMAND, EXPRESSION, NEWER_NUMBER

# The position of an argument decides what a word may be.
_NAME: Final = "name"
_CALLED: Final = "called"  # after & or .
_ARGUMENT: Final = "argument"
_OTHER: Final = "other"  # a file name, a switch condition

_VALUE_KINDS: Final = frozenset(
    ["var", "splat", "num", "str", "here", "xstr", "xhere", "(", "$(", "@(", "@{", "{"]
)
_NO_ARGUMENT: Final = frozenset(
    ["|", "}", ")", "eof", "nl", ";", "redir", "redirin", "&&", "||", "&", "--", ","]
)
_COMMAND_ENDS: Final = frozenset(["|", "}", ")", "eof", "nl", ";", "&&", "||"])
_NO_FUNCTION_NAME: Final = _VALUE_KINDS - {"$(", "num"} | _NO_ARGUMENT - {"nl", "--", ","}
_BLOCK_NAMES: Final = ("begin", "process", "end", "dynamicparam")
_STREAMS: Final = (
    "* stream",
    "output stream",
    "error stream",
    "warning stream",
    "verbose stream",
    "debug stream",
)
# Where a script ends that is nested beyond reason, whatever Python's own recursion limit is just now.
MOST_NESTING: Final = 500
_SWITCH_FLAGS: Final = ("regex", "wildcard", "exact", "casesensitive", "parallel", "file")


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


class Parser(ExpressionParser):
    """Reads script blocks, statements and commands."""

    __slots__ = ("nesting",)

    def __init__(self, source: Source, text: str | None = None) -> None:
        super().__init__(source, text)
        self.nesting = 0

    # -- script blocks ---------------------------------------------------------------------------------

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
        """Step over what ends a script block; False when a script goes on behind a stray token."""
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
        """`clean { … }` at the beginning would be a command in 5.1; nobody means that."""
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

    def _using_statement(self) -> Using | None:
        start = self.start
        end = self.take()
        self.skip_newlines()
        kind = self.simple_name()
        self.skip_newlines()
        name = self.single_argument()
        match kind[0].lower() if kind else "":
            case "namespace" | "module" | "assembly" as word if isinstance(name, StringConstant):
                return Using(self.extent(start, name.extent.end), word, name.value)
        self.report("InvalidUsingStatement", end)
        return None

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
                match _expanded(name, ("version", "psedition", "modules", "shellid", "runasadministrator")):
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

    # -- parameters ------------------------------------------------------------------------------------

    def _param_block(self) -> ParamBlock | None:
        """`[attributes] param(…)`, or None when there is none (the caller goes back)."""
        self.skip_newlines()
        attributes = self.attribute_list(in_expression=False) if self.text[self.pos] == "[" else []
        self.skip_newlines()
        if self.peek(COMMAND) != "kw" or self.value != "param":
            return None
        start = attributes[0].extent.start if attributes else self.start
        self.take()
        self.skip_newlines()
        if self.peek(COMMAND) != "(":
            # No mistake: a command of the name param is called.
            return None
        opened = self.take()
        parameters = self._parameter_list()
        end = self._end_of_parameters(parameters, opened)[1]
        kept: list[Attribute] = []
        for attribute in attributes:
            if isinstance(attribute, Attribute):
                kept.append(attribute)
            else:
                self.report("TypeNotAllowedBeforeParam", attribute.extent.start, attribute.type.full)
        return self.note(ParamBlock(self.extent(start, end), tuple(kept), tuple(parameters)))

    def _end_of_parameters(self, parameters: list[Parameter], opened: int) -> tuple[bool, int]:
        """The closing parenthesis of a parameter list: was it there, and where did the list end."""
        self.skip_newlines()
        if self.peek(COMMAND) == ")":
            return True, self.take()
        end = parameters[-1].extent.end if parameters else opened
        self.report("MissingEndParenthesisInFunctionParameterList", end)
        return False, end

    def _parameter_list(self) -> list[Parameter]:
        parameters: list[Parameter] = []
        comma_end: int | None = None
        while True:
            parameter = self._parameter_declaration()
            if parameter is None:
                if comma_end is not None:
                    self.report("MissingExpressionAfterToken", comma_end, ",")
                return parameters
            parameters.append(parameter)
            self.skip_newlines()
            if self.peek(COMMAND) != ",":
                return parameters
            comma_end = self.take()

    def _parameter_declaration(self) -> Parameter | None:
        self.skip_newlines()
        attributes = self.attribute_list(in_expression=False)
        self.skip_newlines()
        kind = self.peek(EXPRESSION)
        if kind != "var" and kind != "splat":
            if not attributes:
                return None
            end = attributes[-1].extent.end
            self.report("InvalidFunctionParameter", end)
            self.sync(True, ")")
            place = self.extent(end, end)
            return Parameter(place, self.variable(end, end, "__error__"), tuple(attributes), None)
        variable = self._variable_node(kind == "splat")
        start = attributes[0].extent.start if attributes else variable.extent.start
        end = variable.extent.end
        default: Expression | None = None
        restore = self.pos
        self.skip_newlines()
        if self.peek(EXPRESSION) == "assign" and self.token_text() == "=":
            equals_end = self.take()
            self.skip_newlines()
            default = self.expression(comma=False)
            if default is None:
                self.report("MissingExpressionAfterToken", equals_end, "=")
            else:
                end = default.extent.end
        else:
            self.pos = restore
        return Parameter(self.extent(start, end), variable, tuple(attributes), default)

    # -- statements ------------------------------------------------------------------------------------

    def statement_list(self) -> tuple[list[Statement], list[Trap]]:
        """Statements up to something that ends a block; the traps among them apart."""
        statements: list[Statement] = []
        traps: list[Trap] = []
        self.skip_terminators()
        while True:
            statement = self.statement()
            if statement is None:
                break
            if isinstance(statement, Trap):
                traps.append(statement)
            else:
                statements.append(statement)
            self.skip_terminators()
            kind = self.peek(COMMAND)
            if kind == ")" or kind == "}":
                break
        return statements, traps

    def statement_block(self) -> StatementBlock | None:
        """`{ … }` of a statement, or None when no brace is there."""
        self.skip_newlines()
        if self.peek(COMMAND) != "{":
            return None
        start = self.start
        self.take()
        statements, traps = self.statement_list()
        if self.peek(COMMAND) == "}":
            end = self.take()
        else:
            end = statements[-1].extent.end if statements else start + 1
            self.report("MissingEndCurlyBrace", start)
        return StatementBlock(self.extent(start, end), tuple(statements), tuple(traps))

    def statement(self) -> Statement | None:
        """One statement, or None when there is none."""
        kind = self.peek(COMMAND)
        if kind == "kw":
            rule = _STATEMENTS.get(self.value)
            if rule is not None:
                return rule(self)
            if self.value in ("else", "elseif", "catch", "until") and self.errors:
                # Once something is wrong these words are what is left of it, not commands.
                self.take()
                self.skip_newlines()
                return self.statement()
        elif kind == "label":
            return self._labeled_statement()
        elif kind == "eof":
            return None
        return self.pipeline()

    def _keyword(self) -> tuple[int, str]:
        """Step over the keyword peeked at: where it began, and how it was written."""
        start, written = self.start, self.token_text()
        self.take()
        return start, written

    def _labeled_statement(self) -> Statement | None:
        restore, start, label = self.pos, self.start, self.value
        self.take()
        self.skip_newlines()
        if self.peek(COMMAND) == "kw":
            rule = _LABELED.get(self.value)
            if rule is not None:
                return rule(self, label, start)
        self.pos = restore
        return self.pipeline()

    def _broken(self, start: int) -> Statement:
        """A statement that was given up."""
        return self.hole_statement(start, max(self.pos, start))

    def _if(self) -> Statement:
        start, written = self._keyword()
        clauses: list[tuple[Statement, StatementBlock]] = []
        otherwise: StatementBlock | None = None
        while True:
            clause = self._if_clause(written)
            if clause is None:
                return self._broken(start)
            clauses.append(clause)
            restore = self.pos
            self.skip_newlines()
            if self.peek(COMMAND) == "kw" and self.value == "elseif":
                written = self.token_text()
                self.take()
                continue
            if self.kind == "kw" and self.value == "else":
                else_end = self.take()
                otherwise = self.statement_block()
                if otherwise is None:
                    self.report("MissingStatementBlockAfterElse", else_end)
                    return self._broken(start)
            else:
                self.pos = restore
            break
        end = (otherwise or clauses[-1][1]).extent.end
        return If(self.extent(start, end), tuple(clauses), otherwise)

    def _if_clause(self, written: str) -> tuple[Statement, StatementBlock] | None:
        keyword_end = self.pos
        self.skip_newlines()
        if self.peek(COMMAND) != "(":
            self.report("MissingOpenParenthesisInIfStatement", keyword_end, written)
            return None
        opened = self.take()
        self.skip_newlines()
        condition = self.pipeline()
        if condition is None:
            self.report("IfStatementMissingCondition", opened, written)
        self.skip_newlines()
        if self.peek(COMMAND) != ")":
            if condition is not None:
                self.report("MissingEndParenthesisAfterStatement", self.token_place(), written)
            return None
        closed = self.start
        self.take()
        body = self.statement_block()
        if body is None:
            self.report("MissingStatementBlock", closed, written)
            return None
        return condition or self.hole_statement(opened, opened), body

    def _while(self, label: str | None = None, start: int | None = None) -> Statement:
        keyword_start, written = self._keyword()
        start = keyword_start if start is None else start
        keyword_end = self.pos
        self.skip_newlines()
        if self.peek(COMMAND) != "(":
            self.report("MissingOpenParenthesisAfterKeyword", keyword_end, written)
            return self._broken(start)
        opened = self.take()
        self.skip_newlines()
        condition = self.pipeline()
        if condition is None:
            self.report("MissingExpressionAfterKeyword", opened, "while")
        self.skip_newlines()
        if self.peek(COMMAND) != ")":
            if condition is not None:
                self.report("MissingEndParenthesisAfterStatement", condition.extent.end, "while")
            return self._broken(start)
        closed = self.take()
        body = self.statement_block()
        if body is None:
            self.report("MissingLoopStatement", closed, "while")
            return self._broken(start)
        condition = condition or self.hole_statement(opened, opened)
        return While(self.extent(start, body.extent.end), label, condition, body)

    def _do(self, label: str | None = None, start: int | None = None) -> Statement:
        keyword_start, _ = self._keyword()
        start = keyword_start if start is None else start
        keyword_end = self.pos
        body = self.statement_block()
        if body is None:
            self.report("MissingLoopStatement", keyword_end, "do")
            return self._broken(start)
        self.skip_newlines()
        if self.peek(COMMAND) != "kw" or self.value not in ("while", "until"):
            self.report("MissingWhileOrUntilInDoWhile", body.extent.end)
            return self._broken(start)
        word = self.value
        word_end = self.take()
        self.skip_newlines()
        if self.peek(COMMAND) != "(":
            self.report("MissingOpenParenthesisAfterKeyword", word_end, word)
            return self._broken(start)
        opened = self.take()
        self.skip_newlines()
        condition = self.pipeline()
        if condition is None:
            self.report("MissingExpressionAfterKeyword", opened, word)
            condition = self.hole_statement(opened, opened)
        self.skip_newlines()
        if self.peek(COMMAND) != ")":
            self.report("MissingEndParenthesisAfterStatement", condition.extent.end, word)
            return self._broken(start)
        extent = self.extent(start, self.take())
        if word == "until":
            return DoUntil(extent, label, condition, body)
        return DoWhile(extent, label, condition, body)

    def _for(self, label: str | None = None, start: int | None = None) -> Statement:
        keyword_start, _ = self._keyword()
        start = keyword_start if start is None else start
        keyword_end = self.pos
        self.skip_newlines()
        if self.peek(COMMAND) != "(":
            self.report("MissingOpenParenthesisAfterKeyword", keyword_end, "for")
            return self._broken(start)
        last = self.take()
        sections: list[Statement | None] = []
        for number in range(3):
            self.skip_newlines()
            section = self.pipeline()
            sections.append(section)
            last = section.extent.end if section else last
            if number < 2 and self.peek(COMMAND) == ";":
                last = self.take()
        self.skip_newlines()
        if self.peek(COMMAND) != ")":
            self.report("MissingEndParenthesisAfterStatement", last, "for")
            return self._broken(start)
        closed = self.take()
        body = self.statement_block()
        if body is None:
            self.report("MissingLoopStatement", closed, "for")
            return self._broken(start)
        return For(self.extent(start, body.extent.end), label, sections[0], sections[1], sections[2], body)

    def _foreach(self, label: str | None = None, start: int | None = None) -> Statement:
        keyword_start, _ = self._keyword()
        start = keyword_start if start is None else start
        keyword_end = self.pos
        flags, limit = self._foreach_flags()
        if self.peek(COMMAND) != "(":
            self.report("MissingOpenParenthesisAfterKeyword", keyword_end, "foreach")
            return self._broken(start)
        opened = self.take()
        self.skip_newlines()
        kind = self.peek(COMMAND)
        if kind != "var" and kind != "splat":
            self.report("MissingVariableNameAfterForeach", opened)
            return self._broken(start)
        variable = self._variable_node(kind == "splat")
        self.skip_newlines()
        if self.peek(COMMAND) != "kw" or self.value != "in":
            self.report("MissingInInForeach", variable.extent.end)
            return self._broken(start)
        in_end = self.take()
        self.skip_newlines()
        iterable = self.pipeline()
        if iterable is None:
            self.report("MissingForeachExpression", in_end)
            return self._broken(start)
        self.skip_newlines()
        if self.peek(COMMAND) != ")":
            self.report("MissingEndParenthesisAfterForeach", iterable.extent.end)
            return self._broken(start)
        closed = self.take()
        body = self.statement_block()
        if body is None:
            self.report("MissingForeachStatement", closed)
            return self._broken(start)
        extent = self.extent(start, body.extent.end)
        node = ForEach(extent, label, variable, iterable, body, flags, limit)
        return self.note(node) if flags or limit is not None else node

    def _foreach_flags(self) -> tuple[frozenset[str], Expression | None]:
        flags: set[str] = set()
        limit: Expression | None = None
        self.skip_newlines()
        while self.peek(COMMAND) == "param":
            start, name = self.start, self.value[0]
            self.take()
            match _expanded(name, ("parallel", "throttlelimit")):
                case "parallel":
                    flags.add("parallel")
                case "throttlelimit":
                    self.skip_newlines()
                    limit = self.single_argument()
                case _:
                    self.report("InvalidForeachFlag", start, name)
            self.skip_newlines()
        return frozenset(flags), limit

    def _switch(self, label: str | None = None, start: int | None = None) -> Statement:
        keyword_start, _ = self._keyword()
        start = keyword_start if start is None else start
        last = self.pos
        self.skip_newlines()
        flags, condition, last = self._switch_flags(last)
        incomplete = False
        if self.peek(COMMAND) == "(":
            opened = self.start
            last = self.take()
            if "file" in flags:
                self.report("PipelineValueRequired", opened)
            self.skip_newlines()
            condition = self.pipeline()
            if condition is None:
                incomplete = True
                self.report("PipelineValueRequired", last)
            else:
                last = condition.extent.end
            self.skip_newlines()
            if self.peek(COMMAND) == ")":
                last = self.take()
            elif not incomplete:
                incomplete = True
                self.report("MissingEndParenthesisInSwitchStatement", last)
        elif condition is None and "file" not in flags:
            incomplete = True
            self.report("PipelineValueRequired", last)
        self.skip_newlines()
        if self.peek(COMMAND) != "{":
            if not incomplete:
                self.report("MissingCurlyBraceInSwitchStatement", last)
            return self._broken(start)
        clauses, default = self._switch_clauses()
        condition = condition or self.hole_statement(last, last)
        extent = self.extent(start, self.pos)
        node = Switch(extent, label, flags, condition, tuple(clauses), default)
        return self.note(node) if "parallel" in flags else node

    def _switch_flags(self, last: int) -> tuple[frozenset[str], Statement | None, int]:
        """The options of a switch, the file it reads if any, and where they ended."""
        flags: set[str] = set()
        condition: Statement | None = None
        while self.peek(COMMAND) == "param":
            start, name = self.start, self.value[0]
            last = self.take()
            flag = _expanded(name, _SWITCH_FLAGS)
            if flag is None:
                self.report("InvalidSwitchFlag", start, name)
                continue
            if flag in ("regex", "wildcard", "exact"):
                flags -= {"regex", "wildcard", "exact"}
            flags.add(flag)
            if flag == "file":
                self.skip_newlines()
                path = self.single_argument()
                if path is None:
                    self.report("MissingFilenameOption", last)
                else:
                    last = path.extent.end
                    condition = Pipeline(path.extent, (CommandExpression(path.extent, path),))
        return frozenset(flags), condition, last

    def _switch_clauses(self) -> tuple[list[tuple[Expression, StatementBlock]], StatementBlock | None]:
        opened = self.start
        last = self.take()
        clauses: list[tuple[Expression, StatementBlock]] = []
        default: StatementBlock | None = None
        incomplete = False
        self.skip_newlines()
        while True:
            test = self.single_argument(_OTHER)
            if test is None:
                self.report("MissingSwitchConditionExpression", last)
                if self.peek(COMMAND) == "}":
                    self.take()
                break
            last = test.extent.end
            body = self.statement_block()
            if body is None:
                incomplete = True
                self.report("MissingSwitchStatementClause", last)
            else:
                last = body.extent.end
                if (
                    isinstance(test, StringConstant)
                    and test.kind == "bare"
                    and test.value.lower() == "default"
                ):
                    if default is not None:
                        self.report("MultipleSwitchDefaultClauses", test.extent.start)
                    default = body
                else:
                    clauses.append((test, body))
            self.skip_terminators()
            kind = self.peek(COMMAND)
            if kind == "}":
                self.take()
                break
            if kind == "eof":
                if not incomplete:
                    self.report("MissingEndCurlyBrace", opened)
                break
        return clauses, default

    def _function(self) -> Statement:
        word = self.value
        start, written = self._keyword()
        keyword_end = self.pos
        self.skip_newlines()
        kind = self.peek(COMMAND)
        if kind in _NO_FUNCTION_NAME:
            self.report("MissingNameAfterKeyword", keyword_end, written)
            return self._broken(start)
        name = self._word_value()
        name_end = self.take()
        self.skip_newlines()
        parameters: list[Parameter] | None = None
        complete = True
        last = name_end
        if self.peek(COMMAND) == "(":
            opened = self.take()
            parameters = self._parameter_list()
            complete, last = self._end_of_parameters(parameters, opened)
            self.skip_newlines()
        if self.peek(COMMAND) != "{":
            if complete:
                self.report("MissingFunctionBody", last)
            return self._broken(start)
        if not complete:
            # PowerShell has stepped over the brace here, and reads the body as statements.
            self.take()
            return self._broken(start)
        opened_at = self.start
        self.take()
        body = self.script_block(opened_at, word == "filter")
        if word == "workflow":
            self.report("WorkflowNotSupportedInPowerShellCore", start)
        extent = self.extent(start, body.extent.end)
        declared = None if parameters is None else tuple(parameters)
        return self.note(FunctionDefinition(extent, word, name, declared, body))

    def _word_value(self) -> str:
        """The token peeked at as a plain word."""
        if self.kind == "word":
            return str(self.value)
        if self.kind == "xword":
            return str(self.value[0])
        return self.token_text()

    def _trap(self) -> Statement:
        start, _ = self._keyword()
        keyword_end = self.pos
        self.skip_newlines()
        restore = self.pos
        constraint = self.attribute()
        if constraint is not None and not isinstance(constraint, TypeConstraint):
            self.pos = restore
            constraint = None
        body = self.statement_block()
        if body is None:
            self.report("MissingTrapStatement", constraint.extent.end if constraint else keyword_end)
            return self._broken(start)
        return Trap(self.extent(start, body.extent.end), constraint, body)

    def _try(self) -> Statement:
        start, _ = self._keyword()
        keyword_end = self.pos
        body = self.statement_block()
        if body is None:
            self.report("MissingTryStatementBlock", keyword_end)
            return self._broken(start)
        catches: list[CatchClause] = []
        before = len(self.errors)
        while True:
            clause = self._catch_clause()
            if clause is None:
                break
            catches.append(clause)
        broken = len(self.errors) > before
        finally_, finally_broken = self._finally()
        if not catches and finally_ is None and not broken and not finally_broken:
            self.report("MissingCatchOrFinally", body.extent.end)
        if finally_ is not None:
            end = finally_.extent.end
        else:
            end = catches[-1].extent.end if catches else self.pos
        return self.note(Try(self.extent(start, end), body, tuple(catches), finally_))

    def _finally(self) -> tuple[StatementBlock | None, bool]:
        """The finally block if there is one, and whether its braces are missing."""
        restore = self.pos
        self.skip_newlines()
        if self.peek(COMMAND) != "kw" or self.value != "finally":
            self.pos = restore
            return None, False
        keyword_end = self.take()
        block = self.statement_block()
        if block is None:
            self.report("MissingFinallyStatementBlock", keyword_end)
        return block, block is None

    def _catch_clause(self) -> CatchClause | None:
        restore = self.pos
        self.skip_newlines()
        if self.peek(COMMAND) != "kw" or self.value != "catch":
            self.pos = restore
            return None
        start, _ = self._keyword()
        last = self.pos
        types: list[TypeConstraint] = []
        comma_end: int | None = None
        complained = False
        while True:
            self.skip_newlines()
            before = self.pos
            constraint = self.attribute()
            if not isinstance(constraint, TypeConstraint):
                self.pos = before
                if constraint is None and comma_end is not None:
                    complained = True
                    self.report("MissingTypeLiteralToken", comma_end)
                break
            types.append(constraint)
            last = constraint.extent.end
            self.skip_newlines()
            if self.peek(COMMAND) != ",":
                break
            comma_end = self.take()
        body = self.statement_block()
        if body is None:
            if not complained:
                self.report("MissingCatchHandlerBlock", last)
            return None
        return CatchClause(self.extent(start, body.extent.end), tuple(types), body)

    def _data(self) -> Statement:
        start, _ = self._keyword()
        last = self.pos
        self.skip_newlines()
        name = self.simple_name()
        last = name[2] if name else last
        self.skip_newlines()
        commands: list[Expression] = []
        if self.peek(COMMAND) == "param":
            if not self._data_commands(commands):
                return self._broken(start)
            last = commands[-1].extent.end
        body = self.statement_block()
        if body is None:
            self.report("MissingStatementBlockForDataSection", last)
            return self._broken(start)
        extent = self.extent(start, body.extent.end)
        return self.note(Data(extent, name[0] if name else None, tuple(commands), body))

    def _data_commands(self, commands: list[Expression]) -> bool:
        """The commands a data section allows; False after a complaint."""
        start, name = self.start, self.value[0]
        last = self.take()
        fine = _expanded(name, ("supportedcommand",)) is not None
        if not fine:
            self.report("InvalidParameterForDataSectionStatement", start, name)
        while True:
            self.skip_newlines()
            command = self.single_argument(_NAME)
            if command is None:
                if fine:
                    self.report("MissingValueForSupportedCommandInDataSectionStatement", last)
                return False
            commands.append(command)
            if self.peek(COMMAND) != ",":
                return fine
            last = self.take()

    def _return(self) -> Statement:
        start, _ = self._keyword()
        end = self.pos
        value = self.pipeline()
        return Return(self.extent(start, value.extent.end if value else end), value)

    def _throw(self) -> Statement:
        start, _ = self._keyword()
        end = self.pos
        value = self.pipeline()
        return Throw(self.extent(start, value.extent.end if value else end), value)

    def _exit(self) -> Statement:
        start, _ = self._keyword()
        end = self.pos
        value = self.pipeline()
        return Exit(self.extent(start, value.extent.end if value else end), value)

    def _break(self) -> Statement:
        start, _ = self._keyword()
        end = self.pos
        label = self.label_or_key()
        return Break(self.extent(start, label.extent.end if label else end), label)

    def _continue(self) -> Statement:
        start, _ = self._keyword()
        end = self.pos
        label = self.label_or_key()
        return Continue(self.extent(start, label.extent.end if label else end), label)

    def _reserved(self) -> Statement:
        word = self.value
        start, _ = self._keyword()
        self.report("ReservedKeywordNotAllowed", start, word)
        return self._broken(start)

    def _late_using(self) -> Statement:
        start = self.start
        self._using_statement()
        self.report("UsingMustBeAtStartOfScript", start)
        return self._broken(start)

    def _type_definition(self) -> Statement | None:
        """class, enum and configuration: refused by name."""
        restore, start, word, end = self.pos, self.start, self.value, self.end
        self.take()
        if word == "configuration":
            # Only a name and braces make it one; otherwise it is a command.
            named = self.simple_name() is not None
            self.skip_newlines()
            if not named or self.peek(COMMAND) != "{":
                self.pos = restore
                return self.pipeline()
        self.skip_newlines()
        if word != "configuration" and self.simple_name() is None:
            self.report("MissingNameAfterKeyword", end, self.text[start:end])
            return self._broken(start)
        self.report("TypeDefinitionNotSupported", start, word)
        self.sync(False, "{")
        if self.peek(EXPRESSION) == "{":
            self.take()
            self.sync(True, "}")
        return self._broken(start)

    def _workflow_block(self) -> Statement | None:
        """parallel and sequence are blocks in workflows only; elsewhere commands may have these names."""
        restore, start, written = self.pos, self.start, self.token_text()
        self.take()
        self.skip_newlines()
        if self.peek(COMMAND) != "{":
            self.pos = restore
            return self.pipeline()
        self.report("UnexpectedKeyword", start, written)
        self.statement_block()
        return self._broken(start)

    # -- pipelines -------------------------------------------------------------------------------------

    def pipeline(self) -> Statement | None:
        """An assignment, an expression or commands joined with `|`; None when nothing is there."""
        self.nesting += 1
        if self.nesting > MOST_NESTING:
            raise RecursionError
        found = self._pipeline()
        self.nesting -= 1
        return found

    def _pipeline(self) -> Statement | None:
        elements: list[Command | CommandExpression] = []
        pipe_end: int | None = None
        while True:
            expression = self.expression()
            if expression is not None:
                if elements:
                    self.report("ExpressionsMustBeFirstInPipeline", expression.extent.start)
                if self.peek(EXPRESSION) == "assign":
                    return self._assignment(expression)
                elements.append(self._command_expression(expression))
            else:
                command = self._command()
                if command is not None:
                    elements.append(command)
                elif elements or self.peek(COMMAND) == "|":
                    self.report("EmptyPipeElement", self.start if pipe_end is None else pipe_end)
            kind = self.peek(COMMAND)
            if kind == "|":
                pipe_end = self.take()
                self.skip_newlines()
                if self.peek(COMMAND) == "eof":
                    self.report("EmptyPipeElement", pipe_end)
                    break
            elif kind in (";", "nl", ")", "}", "eof"):
                break
            elif kind in ("&&", "||"):
                self.report("InvalidEndOfLine", self.start, kind)
                pipe_end = self.take()
                self.skip_newlines()
                if self.peek(COMMAND) == "eof":
                    break
            else:
                error = "AmpersandNotAllowed" if kind == "&" else "UnexpectedToken"
                self.report(error, self.start, *(() if kind == "&" else (self.token_text(),)))
                break
        if not elements:
            return None
        return Pipeline(self.extent(elements[0].extent.start, elements[-1].extent.end), tuple(elements))

    def _assignment(self, target: Expression) -> Statement:
        operator = self.token_text()
        end = self.take()
        self.skip_newlines()
        value = self.statement()
        if value is None:
            self.report("ExpectedValueExpression", end, operator)
            value = self.hole_statement(end, end)
        # A dash of another form is the same operator.
        operator = operator if len(operator) == 1 or operator[0] in "+*/%" else "-="
        extent = self.extent(target.extent.start, value.extent.end)
        return self.note(Assignment(extent, target, operator, value))

    def _command_expression(self, expression: Expression) -> CommandExpression:
        kind = self.peek(COMMAND)
        if kind != "redir" and kind != "redirin":
            return CommandExpression(expression.extent, expression)
        redirections: dict[int, Redirection] = {}
        while self.peek(COMMAND) in ("redir", "redirin"):
            self._redirection(redirections)
        extent = self.extent(expression.extent.start, self.pos)
        return CommandExpression(extent, expression, tuple(redirections.values()))

    def _redirection(self, seen: dict[int, Redirection]) -> None:
        kind, start, written, value = self.kind, self.start, self.token_text(), self.value
        end = self.take()
        if kind == "redirin":
            if self.single_argument() is None:
                self.report("MissingFileSpecification", end)
            self.report("RedirectionNotSupported", start, written)
            return
        stream, append, into = value
        if into is None:
            target = self.single_argument()
            if target is None:
                self.report("MissingFileSpecification", end)
                target = self.hole(end)
            redirection = Redirection(self.extent(start, target.extent.end), stream, target, append)
        else:
            if into != 1 or stream == 1:
                self.report("RedirectionNotSupported", start, written)
            redirection = Redirection(self.extent(start, end), stream, None, False, 1)
        if stream in seen:
            name = _STREAMS[stream] if stream < len(_STREAMS) else "information stream"
            self.report("StreamAlreadyRedirected", start, name)
        else:
            seen[stream] = redirection

    # -- commands --------------------------------------------------------------------------------------

    def _command(self) -> Command | None:
        """A command with its arguments and redirections, or None when no command begins here."""
        kind = self.peek(COMMAND)
        start = self.start
        invocation: Literal["", "&", "."] = ""
        context = _NAME
        written = self.token_text()
        if kind == "." or kind == "&":
            invocation = "." if kind == "." else "&"
            context = _CALLED
            self.take()
        elements: list[Expression | CommandParameter] = []
        redirections: dict[int, Redirection] = {}
        end = self.pos
        dashes = False
        while True:
            kind = self.peek(COMMAND)
            if kind in _COMMAND_ENDS:
                break
            if kind == "&":
                self.report("AmpersandNotAllowed", self.start)
                self.take()
            elif kind == ",":
                self.report("MissingArgument", self.start)
                self.take()
                self.skip_newlines()
            elif kind == "--":
                elements.append(self._double_dash(dashes))
                dashes = True
            elif kind == "param" and context == _ARGUMENT and not dashes:
                elements.append(self._command_parameter())
            elif kind == "redir" or kind == "redirin":
                if context == _ARGUMENT:
                    self._redirection(redirections)
                else:
                    elements.append(StringConstant(self.extent(self.start, self.take()), written, "bare"))
            elif not self._argument_or_verbatim(context, elements):
                end = self.pos
                break
            end = self.pos
            context = _ARGUMENT
        if not elements:
            if invocation:
                self.report("MissingExpression", start, written)
            return None
        return Command(self.extent(start, end), invocation, tuple(elements), tuple(redirections.values()))

    def _double_dash(self, again: bool) -> Expression | CommandParameter:
        start, written = self.start, self.token_text()
        extent = self.extent(start, self.take())
        return StringConstant(extent, written, "bare") if again else CommandParameter(extent, "-", None)

    def _command_parameter(self) -> CommandParameter:
        start, (name, colon), written = self.start, self.value, self.token_text()
        end = self.take()
        argument: Expression | None = None
        if colon and self.peek(COMMAND) != ",":
            argument = self._argument(_ARGUMENT)
            if argument is None:
                self.report("ParameterRequiresArgument", end, written)
            else:
                end = argument.extent.end
        return CommandParameter(self.extent(start, end), name, argument)

    def _argument_or_verbatim(self, context: str, elements: list[Expression | CommandParameter]) -> bool:
        """Add the next argument; False when `--%` has taken the rest of the line."""
        if self.kind == "word" and self.value == "--%":
            extent = self.extent(self.start, self.take())
            elements.append(StringConstant(extent, "--%", "bare"))
            rest = self.take_verbatim()
            if rest is not None:
                elements.append(StringConstant(self.extent(rest[1], rest[2]), rest[0], "verbatim"))
                return False
            return True
        if context == _NAME and self.kind == "word" and NEWER_NUMBER.match(self.value):
            self.report("NewerNumberNotSupported", self.start, self.value)
        argument = self._argument(context)
        if argument is None:
            self.report("UnexpectedToken", self.start, self.token_text())
            self.take()
            return True
        if isinstance(argument, Variable) and argument.splatted:
            self.permitted.add(argument)
        elements.append(argument)
        return True

    def single_argument(self, context: str = _OTHER) -> Expression | None:
        """One argument as a command would take it: a file name, a condition; None when there is none."""
        if self.peek(COMMAND) in (",", "eof"):
            return None
        return self._argument(context)

    def _argument(self, context: str) -> Expression | None:
        """An argument; several joined with commas are one array. None when none begins here."""
        first = self._one_argument(context)
        if first is None or context != _ARGUMENT or self.peek(COMMAND) != ",":
            return first
        values = [first]
        while self.peek(COMMAND) == ",":
            comma_end = self.take()
            self.skip_newlines()
            value = self._one_argument(context)
            if value is None:
                self.report("MissingExpression", comma_end, ",")
                break
            values.append(value)
        extent = self.extent(first.extent.start, values[-1].extent.end)
        node = ArrayLiteral(extent, tuple(values))
        splatted = any(isinstance(value, Variable) and value.splatted for value in values)
        return self.note(node) if splatted else node

    def _one_argument(self, context: str) -> Expression | None:
        kind = self.peek(COMMAND)
        if kind in _NO_ARGUMENT:
            return None
        if kind in _VALUE_KINDS:
            return self.primary(COMMAND)
        start = self.start
        if kind == "xword":
            plain, pieces = self.value
            extent = self.extent(start, self.take())
            if context == _NAME:
                return StringConstant(extent, plain, "bare")
            return ExpandableString(extent, self.expand(pieces), "bare")
        value = self._word_value()
        return StringConstant(self.extent(start, self.take()), value, "bare")


def _expanded(name: str, names: tuple[str, ...]) -> str | None:
    """The option whose beginning was written, as PowerShell allows."""
    lower = name.lower()
    return next((full for full in names if full.startswith(lower)), None)


_REQUIRES_PARAMETER = re.compile(r"-(\w+):?(?:[ \t]+(?!-)(@\{[^}]*\}|[^\s]+(?:[ \t]*,[ \t]*[^\s,]+)*))?")


def _requires_parameters(text: str, start: int) -> list[tuple[str, str, int]]:
    """Name, value and place of each parameter of a #requires line."""
    found = []
    for match in _REQUIRES_PARAMETER.finditer(text):
        value = (match[2] or "").strip("'\"")
        at = start + (match.start(2) if match[2] else match.start())
        found.append((match[1], value, at))
    return found


_STATEMENTS: Final = {
    "if": Parser._if,
    "switch": Parser._switch,
    "foreach": Parser._foreach,
    "for": Parser._for,
    "while": Parser._while,
    "do": Parser._do,
    "function": Parser._function,
    "filter": Parser._function,
    "workflow": Parser._function,
    "return": Parser._return,
    "throw": Parser._throw,
    "exit": Parser._exit,
    "break": Parser._break,
    "continue": Parser._continue,
    "trap": Parser._trap,
    "try": Parser._try,
    "data": Parser._data,
    "parallel": Parser._workflow_block,
    "sequence": Parser._workflow_block,
    "configuration": Parser._type_definition,
    "class": Parser._type_definition,
    "enum": Parser._type_definition,
    "from": Parser._reserved,
    "define": Parser._reserved,
    "var": Parser._reserved,
    "using": Parser._late_using,
}
_LABELED: Final = {
    "switch": Parser._switch,
    "foreach": Parser._foreach,
    "for": Parser._for,
    "while": Parser._while,
    "do": Parser._do,
}
