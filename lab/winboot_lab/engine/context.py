"""$ExecutionContext: what scripts reach of the engine itself."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.compiler.core import expression
from winboot_lab.engine.dotnet import dotnet
from winboot_lab.engine.exceptions import ParseException
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import Instance
from winboot_lab.language import syntax
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import ParseErrors

_SMA = "System.Management.Automation."


class ExecutionContext(Instance):
    """System.Management.Automation.EngineIntrinsics."""


class InvokeCommand(Instance):
    """System.Management.Automation.CommandInvocationIntrinsics."""


class SessionState(Instance):
    """System.Management.Automation.SessionState."""


class PathIntrinsics(Instance):
    """System.Management.Automation.PathIntrinsics."""


CONTEXT = dotnet(_SMA + "EngineIntrinsics", ExecutionContext)
INVOKE_COMMAND = dotnet(_SMA + "CommandInvocationIntrinsics", InvokeCommand)
SESSION_STATE = dotnet(_SMA + "SessionState", SessionState)
PATHS = dotnet(_SMA + "PathIntrinsics", PathIntrinsics)

CONTEXT.prop("InvokeCommand", _SMA + "CommandInvocationIntrinsics", lambda self: InvokeCommand())
CONTEXT.prop("SessionState", _SMA + "SessionState", lambda self: SessionState())
CONTEXT.refuses("Events Host InvokeProvider")
SESSION_STATE.prop("Path", _SMA + "PathIntrinsics", lambda self: PathIntrinsics())
SESSION_STATE.prop("LanguageMode", "string", lambda self: "FullLanguage")
SESSION_STATE.refuses(
    "Drive Provider PSVariable UseFullLanguageModeInDebugger Scripts Applications Module InvokeProvider InvokeCommand"
)


@INVOKE_COMMAND.method("ExpandString(string source)", effect=True)
def _expand_string(scope: Any, _self: InvokeCommand, source: str) -> str:
    """The text as a double-quoted string would give it; quotes in it are plain characters."""
    try:
        tree = parse('@"\n' + source + '\n"@')
    except ParseErrors as problem:
        first = problem.first
        raise ParseException(first.message, first.id, "ParserError") from problem
    assert tree.end is not None
    statement = tree.end.statements[0]
    assert isinstance(statement, syntax.Pipeline)
    assert statement.expression is not None
    return to_text(expression(statement.expression)(scope), scope)


INVOKE_COMMAND.refuses(
    "CommandNotFoundAction GetCmdlet GetCmdletByTypeName GetCmdlets GetCommand GetCommandName GetCommands HasErrors "
    "InvokeScript LocationChangedAction NewScriptBlock PostCommandLookupAction PreCommandLookupAction"
)


@PATHS.method("GetUnresolvedProviderPathFromPSPath(string path)", effect=True)
def _unresolved(scope: Any, _self: PathIntrinsics, path: str) -> str:
    return str(scope.session.locations.place(path).path)


PATHS.refuses(
    "Combine CurrentFileSystemLocation CurrentLocation CurrentProviderLocation GetResolvedProviderPathFromPSPath "
    "GetResolvedPSPathFromPSPath IsProviderQualified IsPSAbsolute IsValid LocationStack NormalizeRelativePath ParseChildName "
    "ParseParent PopLocation PushCurrentLocation SetDefaultLocationStack SetLocation"
)
