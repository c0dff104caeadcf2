"""A cmdlet of the machine at work: the one binder binds it, the machine does it, its answers become values and records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from winboot_lab.engine.binder import Argument
from winboot_lab.engine.bridge import to_door, to_value
from winboot_lab.engine.cmdlet import Call, CmdletStage
from winboot_lab.engine.commands import MachineCommand
from winboot_lab.engine.door import failure_of
from winboot_lab.engine.exceptions import ErrorRecord
from winboot_lab.engine.objects import Invocation
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.engine.signatures import CommandSpec
from winboot_lab.engine.stages import Line

Value = Any


class _Running:
    """A machine's command in the form a cmdlet has."""

    def __init__(self, command: MachineCommand) -> None:
        self.name = command.name
        self.spec: CommandSpec = command.spec
        self.suffix = command.spec.suffix
        self.module = command.module
        self.kind = command.kind

    def run(self, call: Call) -> None:
        """Once for each bound pipeline object."""
        spec = self.spec
        if spec.should_process and not _may_act(call, spec):
            return
        given = {
            parameter.name: to_door(call.bound[parameter.key])
            for parameter in spec.parameters
            if not parameter.common and parameter.key in call.bound
        }
        result = call.machine.invoke(self.name, given)
        for message in result.warnings:
            call.warn(message)
        for value in result.objects:
            call.write(to_value(value))
        for problem in result.errors:
            record = ErrorRecord(failure_of(problem), problem.id, problem.category, to_value(problem.target))
            if problem.terminating:
                raise call.failure(record)
            self._report(call, record)

    def _report(self, call: Call, record: ErrorRecord) -> None:
        """A function of a module does not see its caller's `$ErrorActionPreference`, only the global one."""
        if self.kind == "Function" and call.common.error_action is None:
            top = call.scope.top
            call.common.error_action = top.preference("erroractionpreference", "Continue")
        call.report(record)


def _may_act(call: Call, spec: CommandSpec) -> bool:
    """False under -WhatIf; a command that would ask a person is refused."""
    if not call.should_process():
        return False
    if call.common.confirm is None and spec.confirm_impact == "High":
        preference = call.text(call.scope.get("confirmpreference", "High")).lower()
        if preference != "none":
            raise Refusal(
                "parameter", f"{spec.name} without -Confirm:$false", "it would ask a person to confirm"
            )
    return True


class MachineStage(CmdletStage):
    """The stage of a machine's command."""

    def __init__(
        self,
        scope: Scope,
        command: MachineCommand,
        arguments: Sequence[Argument],
        out: Emit,
        line: Line,
        invocation: Invocation,
        *,
        expects_input: bool,
    ) -> None:
        running: Any = _Running(command)
        super().__init__(scope, running, arguments, out, line, invocation, expects_input=expects_input)
