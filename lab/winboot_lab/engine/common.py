"""The common parameters at work: -ErrorAction, -ErrorVariable, -OutVariable, -Verbose and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from winboot_lab.engine.binder import Binding
from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.errors import stop_exception
from winboot_lab.engine.exceptions import ActionPreferenceStopException, ErrorRecord, RuntimeException
from winboot_lab.engine.objects import DebugRecord, InformationRecord, VerboseRecord, WarningRecord
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit, action_name
from winboot_lab.engine.values import ArrayList, enum_value

Value = Any

ACTION_TYPE = "System.Management.Automation.ActionPreference"


class CommonParameters:
    """What a call said about streams and variables."""

    def __init__(self, binding: Binding) -> None:
        bound = binding.bound
        self.error_action = _action(bound.get("erroraction"))
        self.warning_action = _action(bound.get("warningaction"))
        self.information_action = _action(bound.get("informationaction"))
        self.verbose = _flag(bound, "verbose")
        self.debug = _flag(bound, "debug")
        self.what_if = _flag(bound, "whatif")
        self.confirm = _flag(bound, "confirm")
        self.error_variable = _collector(binding.scope, bound.get("errorvariable"))
        self.warning_variable = _collector(binding.scope, bound.get("warningvariable"))
        self.information_variable = _collector(binding.scope, bound.get("informationvariable"))
        self.out_variable: str | None = bound.get("outvariable")
        self.pipeline_variable: str | None = bound.get("pipelinevariable")
        for action in (self.error_action, self.warning_action, self.information_action):
            if action in ("Inquire", "Suspend"):
                raise Refusal("value", f"-ErrorAction {action}")

    def set_preferences(self, scope: Scope) -> None:
        """In an advanced function the common parameters become preference variables of its scope."""
        for name, action in (
            ("ErrorActionPreference", self.error_action),
            ("WarningPreference", self.warning_action),
            ("InformationPreference", self.information_action),
            ("VerbosePreference", _as_action(self.verbose)),
            ("DebugPreference", _as_action(self.debug)),
        ):
            if action is not None:
                scope.put(name, enum_value(ACTION_TYPE, action))
        if self.what_if is not None:
            scope.put("WhatIfPreference", self.what_if)
        if self.confirm is not None:
            scope.put("ConfirmPreference", "Low" if self.confirm else "None")

    def wrap_output(self, scope: Scope, out: Emit) -> Emit:
        """Where the output goes when -OutVariable or -PipelineVariable wants to see it."""
        if self.out_variable is None and self.pipeline_variable is None:
            return out
        collect = _collector(scope, self.out_variable)
        name = self.pipeline_variable

        def write(value: Value) -> None:
            if collect is not None:
                collect.append(value)
            if name is not None:
                scope.put(name, value)
            out(value)

        return write

    def note_failure(self, scope: Scope, failure: RuntimeException) -> None:
        """A terminating error passes: -ErrorVariable sees it too."""
        if self.error_variable is not None:
            record = failure.error_record
            if not any(record is known or failure is known for known in self.error_variable):
                self.error_variable.append(record)

    @property
    def listens(self) -> bool:
        """Does it collect what is written inside the command?"""
        return not (
            self.error_variable is None
            and self.warning_variable is None
            and self.information_variable is None
        )

    def finish(self, scope: Scope) -> None:
        """The command has ended."""
        if self.pipeline_variable is not None:
            scope.variables.pop(self.pipeline_variable.lower(), None)


def _action(value: Value) -> str | None:
    return None if value is None else action_name(value, "Continue")


def _flag(bound: dict[str, Value], name: str) -> bool | None:
    return to_bool(bound[name]) if name in bound else None


def _as_action(flag: bool | None) -> str | None:
    if flag is None:
        return None
    return "Continue" if flag else "SilentlyContinue"


def _collector(scope: Scope, name: str | None) -> ArrayList | None:
    """The list behind -ErrorVariable or -OutVariable; `+name` appends to the existing list."""
    if name is None:
        return None
    if name.startswith("+"):
        name = name[1:]
        found = scope.find(name.lower())
        if found is not None and isinstance(found.value, ArrayList):
            return found.value
        made = ArrayList([] if found is None or found.value is None else [found.value])
    else:
        made = ArrayList()
    scope.assign(name.lower(), name, made)
    return made


# -- writing to the streams


def write_error(
    scope: Scope,
    record: ErrorRecord,
    action: str | None = None,
    common: CommonParameters | None = None,
) -> None:
    """Report a non-terminating error as -ErrorAction or `$ErrorActionPreference` says; raises under Stop."""
    session = scope.session
    if action is None:
        action = scope.preference("erroractionpreference", "Continue")
    if action == "Ignore":
        return
    if record.script_stack_trace is None:
        record.script_stack_trace = session.stack_trace()
    collected = common.error_variable if common is not None else None
    if action == "Stop":
        failure = stop_exception(record)
        if collected is not None:
            collected.append(failure)
        raise failure
    session.remember(record)
    if collected is not None:
        collected.append(record)
    for listener in session.listening:
        if listener is not common and listener.error_variable is not None:
            listener.error_variable.append(record)
    if action != "SilentlyContinue":
        session.streams.error(record)


def _act(
    scope: Scope,
    message: str,
    made: Value,
    action: str,
    sink: Emit,
    what: str,
    command: str,
    collected: Sequence[ArrayList] = (),
) -> None:
    if action == "Ignore":
        return
    for collector in collected:
        collector.append(made)
    if action in ("Continue", "Stop"):
        sink(made)
    if action == "Stop":
        failure = ActionPreferenceStopException(
            f'The running command stopped because the preference variable "{what}" or common parameter is set to Stop: '
            f"{message}",
            f"ActionPreferenceStop,{command}",
            "OperationStopped",
        )
        failure.settled = True
        raise failure


def _collectors(scope: Scope, common: CommonParameters | None, name: str) -> list[ArrayList]:
    """The lists of this call and of the functions around it that collect a stream."""
    calls = [common, *(listener for listener in scope.session.listening if listener is not common)]
    found = [getattr(call, name) for call in calls if call is not None]
    return [collector for collector in found if collector is not None]


def write_warning(scope: Scope, message: str, common: CommonParameters | None, command: str) -> None:
    """The warning stream."""
    action = common.warning_action if common is not None else None
    action = action or scope.preference("warningpreference", "Continue")
    collected = _collectors(scope, common, "warning_variable")
    made = WarningRecord(message)
    _act(scope, message, made, action, scope.session.streams.warning, "WarningPreference", command, collected)


def write_verbose(scope: Scope, message: str, common: CommonParameters | None, command: str) -> None:
    """The verbose stream, silent unless asked for."""
    flag = common.verbose if common is not None else None
    action = _as_action(flag) or scope.preference("verbosepreference", "SilentlyContinue")
    if action != "SilentlyContinue":
        made = VerboseRecord(message)
        _act(scope, message, made, action, scope.session.streams.verbose, "VerbosePreference", command)


def write_debug(scope: Scope, message: str, common: CommonParameters | None, command: str) -> None:
    """The debug stream. In 5.1 -Debug would ask the user at every line; without a user it is an error to refuse."""
    flag = common.debug if common is not None else None
    action = _as_action(flag) or scope.preference("debugpreference", "SilentlyContinue")
    if action != "SilentlyContinue":
        made = DebugRecord(message)
        _act(scope, message, made, action, scope.session.streams.debug, "DebugPreference", command)


def write_information(
    scope: Scope, record: InformationRecord, common: CommonParameters | None, command: str
) -> None:
    """The information stream, silent by default for Write-Information (Write-Host always speaks)."""
    action = common.information_action if common is not None else None
    action = action or scope.preference("informationpreference", "SilentlyContinue")
    collected = _collectors(scope, common, "information_variable")
    if action == "SilentlyContinue" and "PSHOST" in record.tags:
        action = "Continue"
    # The record always enters a redirection; the preference only decides whether the host shows it.
    if action == "SilentlyContinue":
        for collector in collected:
            collector.append(record)
        scope.session.streams.information(record)
        return
    sink = scope.session.streams.information
    _act(scope, str(record), record, action, sink, "InformationPreference", command, collected)


Check = Callable[[str, str], bool]
