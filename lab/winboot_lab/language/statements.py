"""The part of the parser that reads statements: from `if` to `function`."""

from __future__ import annotations

from typing import Final

from winboot_lab.language.parameters import ParameterParser
from winboot_lab.language.pipelines import NAME, NO_ARGUMENT, OTHER, VALUE_KINDS
from winboot_lab.language.syntax import (
    Break,
    CatchClause,
    CommandExpression,
    Continue,
    Data,
    DoUntil,
    DoWhile,
    Exit,
    Expression,
    For,
    ForEach,
    FunctionDefinition,
    If,
    Parameter,
    Pipeline,
    Return,
    Statement,
    StatementBlock,
    StringConstant,
    Switch,
    Throw,
    Trap,
    Try,
    TypeConstraint,
    Using,
    While,
)
from winboot_lab.language.tokens import COMMAND, EXPRESSION

_NO_FUNCTION_NAME: Final = VALUE_KINDS - {"$(", "num"} | NO_ARGUMENT - {"nl", "--", ","}
_SWITCH_FLAGS: Final = ("regex", "wildcard", "exact", "casesensitive", "parallel", "file")


class StatementParser(ParameterParser):
    """Reads statements; the script blocks of functions are read by the parser built on it."""

    __slots__ = ()

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
        """One statement, or None."""
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
            match expanded(name, ("parallel", "throttlelimit")):
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
            flag = expanded(name, _SWITCH_FLAGS)
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
            test = self.single_argument(OTHER)
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
        fine = expanded(name, ("supportedcommand",)) is not None
        if not fine:
            self.report("InvalidParameterForDataSectionStatement", start, name)
        while True:
            self.skip_newlines()
            command = self.single_argument(NAME)
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


def expanded(name: str, names: tuple[str, ...]) -> str | None:
    """The option whose beginning was written, as PowerShell allows."""
    lower = name.lower()
    return next((full for full in names if full.startswith(lower)), None)


_STATEMENTS: Final = {
    "if": StatementParser._if,
    "switch": StatementParser._switch,
    "foreach": StatementParser._foreach,
    "for": StatementParser._for,
    "while": StatementParser._while,
    "do": StatementParser._do,
    "function": StatementParser._function,
    "filter": StatementParser._function,
    "workflow": StatementParser._function,
    "return": StatementParser._return,
    "throw": StatementParser._throw,
    "exit": StatementParser._exit,
    "break": StatementParser._break,
    "continue": StatementParser._continue,
    "trap": StatementParser._trap,
    "try": StatementParser._try,
    "data": StatementParser._data,
    "parallel": StatementParser._workflow_block,
    "sequence": StatementParser._workflow_block,
    "configuration": StatementParser._type_definition,
    "class": StatementParser._type_definition,
    "enum": StatementParser._type_definition,
    "from": StatementParser._reserved,
    "define": StatementParser._reserved,
    "var": StatementParser._reserved,
    "using": StatementParser._late_using,
}
_LABELED: Final = {
    "switch": StatementParser._switch,
    "foreach": StatementParser._foreach,
    "for": StatementParser._for,
    "while": StatementParser._while,
    "do": StatementParser._do,
}
