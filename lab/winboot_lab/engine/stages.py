"""One running command and the pipeline it is part of."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.binder import Binding
from winboot_lab.engine.exceptions import ParameterBindingException, RuntimeException
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit

Value = Any


class Line:
    """One running pipeline: whether a command in it reported an error (the value of `$?`)."""

    __slots__ = ("failed", "length")

    def __init__(self, length: int = 1) -> None:
        self.failed = False
        self.length = length


class Stage:
    """One running command."""

    redirects_errors = False

    def __init__(self, scope: Scope, out: Emit, line: Line, *, expects_input: bool) -> None:
        self.scope = scope
        self.session = scope.session
        self.out = out
        self.line = line
        self.expects_input = expects_input
        self.begun = False

    def start(self) -> None:
        """Run `begin`, once."""
        if not self.begun:
            self.begun = True
            self.begin()

    def accept(self, item: Value) -> None:
        """Take one object from upstream."""
        if not self.begun:
            self.start()
        try:
            self.process(item)
        except RuntimeException as failure:
            failure.crossing = failure.crossing or self.line
            raise

    def begin(self) -> None:
        """Before the first object."""

    def process(self, item: Value) -> None:
        """One object."""
        raise NotImplementedError

    def once(self) -> None:
        """The only turn of a command that has no input."""
        raise NotImplementedError

    def end(self) -> None:
        """After the last object."""

    def leave(self) -> None:
        """It is over, well or not. Whatever points back at it is let go: its memory is free at once, and the collector, which
        took a seventh of a join, has nothing to look for."""


def input_not_bound(binding: Binding, item: Value) -> RuntimeException:
    """The error of a pipeline object that fits no parameter."""
    return ParameterBindingException(
        "The input object cannot be bound to any parameters for the command either because the command does not take "
        "pipeline input or the input and its properties do not match any of the parameters that take pipeline input.",
        f"InputObjectNotBound,{binding.spec.suffix}",
        target=item,
    )


def run_stage(stage: Stage) -> None:
    """Run a stage that has no input."""
    try:
        stage.start()
        stage.once()
        stage.end()
    finally:
        stage.leave()
