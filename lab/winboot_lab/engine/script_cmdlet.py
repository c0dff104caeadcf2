"""$PSCmdlet of an advanced function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from winboot_lab.engine import common
from winboot_lab.engine.compiler.core import emit
from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.dotnet import dotnet
from winboot_lab.engine.errors import cmdlet_failure, copy_record
from winboot_lab.engine.exceptions import ErrorRecord, RuntimeException
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import Instance

if TYPE_CHECKING:
    from winboot_lab.engine.invoke import BlockStage

Value = Any
_SMA = "System.Management.Automation."


class ScriptCmdlet(Instance):
    """$PSCmdlet of an advanced function."""

    def __init__(self, stage: BlockStage) -> None:
        self.stage = stage

    def write_error(self, record: ErrorRecord) -> None:
        stage = self.stage
        stage.line.failed = True
        assert stage.common is not None
        try:
            common.write_error(stage.scope, self._signed(record), stage.common.error_action, stage.common)
        except RuntimeException as failure:
            failure.unwrapped = True
            raise

    def throw(self, record: ErrorRecord) -> None:
        failure = cmdlet_failure(self._signed(record))
        failure.unwrapped = True
        raise failure

    def _signed(self, record: ErrorRecord) -> ErrorRecord:
        made = copy_record(record)
        made.id = f"{record.id},{self.stage.code.name}"
        made.activity = self.stage.code.name
        made.invocation = self.stage.invocation
        return made

    def should_process(self, target: str, action: str) -> bool:
        stage = self.stage
        assert stage.common is not None
        assert stage.binding is not None
        if stage.common.confirm:
            raise Refusal("parameter", f"{stage.code.name} -Confirm")
        what_if = stage.common.what_if
        if what_if is None:
            what_if = to_bool(stage.own.get("whatifpreference", False))
        if what_if:
            return False
        preference = str(stage.own.get("confirmpreference", "High"))
        ranks = {"none": 9, "low": 1, "medium": 2, "high": 3}
        asks = ranks.get(stage.binding.spec.confirm_impact.lower(), 2) >= ranks.get(preference.lower(), 3)
        if asks and preference.lower() != "none":
            raise Refusal("member", "$PSCmdlet.ShouldProcess", "it would ask a person to confirm")
        return True


PS_CMDLET = dotnet(_SMA + "PSCmdlet")
PS_SCRIPT_CMDLET = dotnet(_SMA + "PSScriptCmdlet", ScriptCmdlet, base=PS_CMDLET)
PS_SCRIPT_CMDLET.prop("ParameterSetName", "string", lambda self: self.stage.binding.set_name)
PS_SCRIPT_CMDLET.prop("MyInvocation", _SMA + "InvocationInfo", lambda self: self.stage.invocation)


@PS_SCRIPT_CMDLET.method("void WriteError(System.Management.Automation.ErrorRecord errorRecord)")
def _write_error(self: ScriptCmdlet, record: ErrorRecord) -> None:
    self.write_error(record)


@PS_SCRIPT_CMDLET.method("void ThrowTerminatingError(System.Management.Automation.ErrorRecord errorRecord)")
def _throw(self: ScriptCmdlet, record: ErrorRecord) -> None:
    self.throw(record)


@PS_SCRIPT_CMDLET.method("void WriteObject(object sendToPipeline)")
def _write_object(self: ScriptCmdlet, value: Value) -> None:
    self.stage.out(value)


@PS_SCRIPT_CMDLET.method("void WriteObject(object sendToPipeline, bool enumerateCollection)")
def _write_objects(self: ScriptCmdlet, value: Value, enumerate_it: bool) -> None:
    if enumerate_it:
        emit(self.stage.out, value)
    else:
        self.stage.out(value)


@PS_SCRIPT_CMDLET.method("void WriteWarning(string text)")
def _write_warning(self: ScriptCmdlet, text: str) -> None:
    common.write_warning(self.stage.own, text, self.stage.common, self.stage.code.name)


@PS_SCRIPT_CMDLET.method("void WriteVerbose(string text)")
def _write_verbose(self: ScriptCmdlet, text: str) -> None:
    common.write_verbose(self.stage.own, text, self.stage.common, self.stage.code.name)


@PS_SCRIPT_CMDLET.method("void WriteDebug(string text)")
def _write_debug(self: ScriptCmdlet, text: str) -> None:
    common.write_debug(self.stage.own, text, self.stage.common, self.stage.code.name)


@PS_SCRIPT_CMDLET.method("ShouldProcess(string target)", "ShouldProcess(string target, string action)")
def _should_process(self: ScriptCmdlet, target: str, action: str = "") -> bool:
    return self.should_process(target, action)


@PS_SCRIPT_CMDLET.method("GetVariableValue(string name)")
def _variable_value(self: ScriptCmdlet, name: str) -> Value:
    return self.stage.own.get(name.lower())


PS_SCRIPT_CMDLET.refuses(
    "CommandOrigin CommandRuntime CurrentPSTransaction Events Host InvokeCommand InvokeProvider JobManager JobRepository "
    "PagingParameters SessionState Stopping CurrentProviderLocation GetResolvedProviderPathFromPSPath GetResourceString "
    "GetUnresolvedProviderPathFromPSPath ShouldContinue TransactionAvailable WriteCommandDetail WriteInformation "
    "WriteProgress"
)
