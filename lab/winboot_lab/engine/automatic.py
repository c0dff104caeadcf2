"""A fresh session as Windows PowerShell 5.1 opens it: automatic and preference variables, aliases, drives."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine import ps_types as _ps_types  # declares types
from winboot_lab.engine.attributes import keep_rules
from winboot_lab.engine.common import ACTION_TYPE
from winboot_lab.engine.context import ExecutionContext
from winboot_lab.engine.dotnet import lookup, named
from winboot_lab.engine.locations import Locations
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Session
from winboot_lab.engine.values import (
    NOTHING,
    Array,
    Hashtable,
    Structured,
    Version,
    enum_value,
)
from winboot_lab.engine.variables import ComputedVariable, Variable
from winboot_lab.language.commands import ALIASES

Value = Any
_LOADED = (_ps_types,)

POWERSHELL_HOME = r"C:\Windows\System32\WindowsPowerShell\v1.0"


_PREFERENCES = {
    "ErrorActionPreference": "Continue",
    "WarningPreference": "Continue",
    "InformationPreference": "SilentlyContinue",
    "VerbosePreference": "SilentlyContinue",
    "DebugPreference": "SilentlyContinue",
    "ProgressPreference": "Continue",
}


def opened(session: Session, location: str | None) -> Scope:
    """The global scope of a new session, filled with what a script finds when it begins."""
    top = Scope(session, None)
    profile = _environment(session, "USERPROFILE") or r"C:\Users\Administrator"
    session.locations = Locations(session.machine, profile, location or profile + r"\Documents")
    session.locations.process_directory = location
    _constants(top, profile)
    _computed(top)
    _preferences(top)
    top.aliases.update(ALIASES)
    return top


def _shared(top: Scope, variable: Variable) -> None:
    """Declare a global variable that is the same in every scope."""
    key = variable.name.lower()
    top.variables[key] = top.session.shared[key] = variable


def _environment(session: Session, name: str) -> str | None:
    found = session.machine.invoke("environment.get", {"name": name}).objects
    return str(found[0]) if found else None


def _constants(top: Scope, profile: str) -> None:
    session = top.session

    def constant(name: str, value: Value) -> None:
        _shared(top, Variable(name, value, frozenset(("Constant", "AllScope"))))

    constant("null", None)
    constant("true", True)
    constant("false", False)
    build = 20348
    info = session.machine.invoke("computer.info", {}).objects
    if info:
        build = int(info[0]["build"])  # type: ignore[index,call-overload,arg-type]
    constant("PSVersionTable", _version_table(build))
    constant("ShellId", "Microsoft.PowerShell")
    constant("HOME", profile)
    constant("PSHOME", POWERSHELL_HOME)
    constant("PSEdition", "Desktop")
    process = session.machine.invoke("process.current", {}).objects
    constant("PID", int(process[0]["pid"]) if process else 4242)  # type: ignore[index,call-overload,arg-type]
    constant("Host", _host())
    constant("ExecutionContext", ExecutionContext())
    constant("Error", session.errors)
    constant("PSCulture", "en-US")
    constant("PSUICulture", "en-US")
    top.put("MaximumErrorCount", 256)
    top.put("MaximumHistoryCount", 4096)
    top.put("NestedPromptLevel", 0)
    top.put("OutputEncoding", _ascii_encoding(top))
    top.put("PSDefaultParameterValues", Hashtable())
    top.put("PSEmailServer", "")
    top.put("PSScriptRoot", "")
    top.put("PSCommandPath", "")
    top.put("StackTrace", "")
    top.put("args", Array())
    top.put("input", NOTHING)


def _ascii_encoding(top: Scope) -> Value:
    from winboot_lab.engine.members import get_member

    kind = lookup("System.Text.Encoding")
    return None if kind is None else get_member(kind, "ASCII", top, static=True)


def _version_table(build: int) -> Hashtable:
    made = Hashtable()
    made.put("PSVersion", Version(5, 1, build, 2227))
    made.put("PSEdition", "Desktop")
    versions = [
        Version(1, 0),
        Version(2, 0),
        Version(3, 0),
        Version(4, 0),
        Version(5, 0),
        Version(5, 1, build, 2227),
    ]
    made.put("PSCompatibleVersions", Array(versions, named("System.Version")))
    made.put("BuildVersion", Version(10, 0, build, 2227))
    made.put("CLRVersion", Version(4, 0, 30319, 42000))
    made.put("WSManStackVersion", Version(3, 0))
    made.put("PSRemotingProtocolVersion", Version(2, 3))
    made.put("SerializationVersion", Version(1, 1, 0, 1))
    return made


def _host() -> Structured:
    return Structured(
        "System.Management.Automation.Internal.Host.InternalHost",
        {"Name": "ServerRemoteHost", "Version": Version(5, 1, 20348, 2227)},
    )


def _computed(top: Scope) -> None:
    session = top.session
    _shared(top, ComputedVariable("?", lambda: session.question))
    _shared(top, ComputedVariable("PWD", lambda: location_value(session)))


def location_value(session: Session) -> Value:
    """The current location as PathInfo."""
    from winboot_lab.engine.items import PathInfo

    return PathInfo(session.locations.current)


def _preferences(top: Scope) -> None:
    kind = named(ACTION_TYPE)
    for name, action in _PREFERENCES.items():
        variable = Variable(name, enum_value(ACTION_TYPE, action))
        variable.convert = keep_rules(top, name, [kind], [])
        top.variables[name.lower()] = variable
    top.put("ConfirmPreference", enum_value("System.Management.Automation.ConfirmImpact", "High"))
    top.put("WhatIfPreference", value=False)
    top.put("ErrorView", "NormalView")
