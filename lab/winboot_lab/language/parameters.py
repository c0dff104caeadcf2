"""The part of the parser that reads parameters: `param( … )` of a script block, `( … )` of a function."""

from __future__ import annotations

from winboot_lab.language.pipelines import PipelineParser
from winboot_lab.language.syntax import (
    Attribute,
    Expression,
    ParamBlock,
    Parameter,
)
from winboot_lab.language.tokens import COMMAND, EXPRESSION


class ParameterParser(PipelineParser):
    """Reads lists of parameters."""

    __slots__ = ()

    def _param_block(self) -> ParamBlock | None:
        """`[attributes] param(…)`, or None without one (the caller goes back)."""
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
