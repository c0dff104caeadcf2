"""The part of the parser that reads pipelines, commands with their arguments, and redirections."""

from __future__ import annotations

from typing import Final, Literal

from winboot_lab.language.expressions import ExpressionParser
from winboot_lab.language.syntax import (
    ArrayLiteral,
    Assignment,
    Command,
    CommandExpression,
    CommandParameter,
    ExpandableString,
    Expression,
    Pipeline,
    Redirection,
    Source,
    Statement,
    StringConstant,
    Variable,
)
from winboot_lab.language.tokens import COMMAND, EXPRESSION, NEWER_NUMBER

# The position of an argument decides what a word may be.
NAME: Final = "name"
_CALLED: Final = "called"  # after & or .
_ARGUMENT: Final = "argument"
OTHER: Final = "other"  # a file name, a switch condition
VALUE_KINDS: Final = frozenset(
    ["var", "splat", "num", "str", "here", "xstr", "xhere", "(", "$(", "@(", "@{", "{"]
)
NO_ARGUMENT: Final = frozenset(
    ["|", "}", ")", "eof", "nl", ";", "redir", "redirin", "&&", "||", "&", "--", ","]
)
_COMMAND_ENDS: Final = frozenset(["|", "}", ")", "eof", "nl", ";", "&&", "||"])
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


class PipelineParser(ExpressionParser):
    """Reads what is joined with `|`; the statements inside are read by the parser built on it."""

    __slots__ = ("nesting",)

    def __init__(self, source: Source, text: str | None = None) -> None:
        super().__init__(source, text)
        self.nesting = 0

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

    def _command(self) -> Command | None:
        """A command with its arguments and redirections, or None when no command begins here."""
        kind = self.peek(COMMAND)
        start = self.start
        invocation: Literal["", "&", "."] = ""
        context = NAME
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
        if context == NAME and self.kind == "word" and NEWER_NUMBER.match(self.value):
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

    def single_argument(self, context: str = OTHER) -> Expression | None:
        """One argument as a command would take it: a file name, a condition; or None."""
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
        if kind in NO_ARGUMENT:
            return None
        if kind in VALUE_KINDS:
            return self.primary(COMMAND)
        start = self.start
        if kind == "xword":
            plain, pieces = self.value
            extent = self.extent(start, self.take())
            if context == NAME:
                return StringConstant(extent, plain, "bare")
            return ExpandableString(extent, self.expand(pieces), "bare")
        value = self._word_value()
        return StringConstant(self.extent(start, self.take()), value, "bare")

    def _word_value(self) -> str:
        """The token peeked at as a plain word."""
        if self.kind == "word":
            return str(self.value)
        if self.kind == "xword":
            return str(self.value[0])
        return self.token_text()
