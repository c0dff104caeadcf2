"""$ExecutionContext: what scripts reach of the engine itself."""

from __future__ import annotations

from winboot_lab.engine.dotnet import dotnet
from winboot_lab.engine.values import Instance

_SMA = "System.Management.Automation."


class ExecutionContext(Instance):
    """System.Management.Automation.EngineIntrinsics."""


class SessionState(Instance):
    """System.Management.Automation.SessionState."""


CONTEXT = dotnet(_SMA + "EngineIntrinsics", ExecutionContext)
SESSION_STATE = dotnet(_SMA + "SessionState", SessionState)
CONTEXT.prop("SessionState", _SMA + "SessionState", lambda self: SessionState())
SESSION_STATE.prop("LanguageMode", "string", lambda self: "FullLanguage")
