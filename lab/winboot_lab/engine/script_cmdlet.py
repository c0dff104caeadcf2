"""$PSCmdlet of an advanced function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from winboot_lab.engine import common
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
