"""System.Environment, OperatingSystem, Console, GC: the surroundings of the script, through the door."""

from __future__ import annotations

import re
from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    NotSupportedException,
)
from winboot_lab.engine.types.streams import STREAM, Stream
from winboot_lab.engine.values import (
    EnumValue,
    Instance,
    Value,
    Version,
)


def _one(runtime: Runtime, primitive: str, **parameters: Any) -> Any:
    return ask_one(runtime, primitive, **parameters)


# -- Environment

ENVIRONMENT = dotnet("System.Environment", kind="static")


@ENVIRONMENT.static_method("GetEnvironmentVariable(string variable)", effect=True)
def _get(runtime: Runtime, name: str) -> Value:
    if name is None:
        raise ArgumentNullException("variable")
    return _one(runtime, "environment.get", name=name)


ENVIRONMENT.static_method(
    "GetEnvironmentVariable(string variable, EnvironmentVariableTarget target)", effect=True
)(lambda runtime, name, target: _one(runtime, "environment.get", name=name, target=str(target)))


@ENVIRONMENT.static_method("void SetEnvironmentVariable(string variable, string value)", effect=True)
@ENVIRONMENT.static_method(
    "void SetEnvironmentVariable(string variable, string value, EnvironmentVariableTarget target)",
    effect=True,
)
def _put(runtime: Runtime, name: str, value: str | None, target: EnumValue | None = None) -> None:
    if not name:
        raise ArgumentException("String cannot be of zero length.", "variable")
    if "=" in name:
        raise ArgumentException("Environment variable name cannot contain equal character.")
    ask(
        runtime,
        "environment.set",
        name=name,
        value=value or None,
        target="Process" if target is None else str(target),
    )


@ENVIRONMENT.static_method("ExpandEnvironmentVariables(string name)", effect=True)
def expand_variables(runtime: Runtime, text: str) -> str:
    """`%NAME%` filled in; unknown names stay."""

    def put(match: re.Match[str]) -> str:
        found = _one(runtime, "environment.get", name=match.group(1))
        return match.group() if found is None else str(found)

    return re.sub(r"%([^%]+)%", put, text)


def _info(runtime: Runtime, key: str) -> Any:
    return _one(runtime, "computer.info")[key]


def _os_version(runtime: Runtime) -> Value:
    facts = _one(runtime, "computer.info")
    numbers = [int(part) for part in re.findall(r"\d+", str(facts["os_version"]))[:3]]
    version = Version(*([*numbers, 0])) if len(numbers) == 3 else Version(10, 0, int(facts["build"]), 0)
    return OperatingSystem(version)


class OperatingSystem(Instance):
    """System.OperatingSystem."""

    def __init__(self, version: Version) -> None:
        self.version = version

    def __str__(self) -> str:
        return f"Microsoft Windows NT {self.version}"


OS = dotnet("System.OperatingSystem", OperatingSystem)
OS.prop("Version", "version", lambda self: self.version)
OS.method("ToString()")(str)


def _user(runtime: Runtime) -> str:
    return str(_one(runtime, "identity.current")["name"]).rpartition("\\")[2]


for _name, _type, _get_it in (
    ("MachineName", "string", lambda runtime: _info(runtime, "active_name")),
    ("OSVersion", "System.OperatingSystem", _os_version),
    ("SystemDirectory", "string", lambda runtime: _info(runtime, "system_directory")),
    ("UserName", "string", _user),
    ("TickCount", "int", lambda runtime: int(_one(runtime, "clock.ticks") * 1000) % 2**31),
):
    ENVIRONMENT.static_prop(_name, _type, _get_it, effect=True)
ENVIRONMENT.static_field("Is64BitProcess", "bool", True)


# -- Console: a remote session has no window

CONSOLE = dotnet("System.Console", kind="static")


# -- garbage collection: nothing to see


class ConsoleStream(Stream):
    """The stream behind OpenStandardInput and its siblings: it cannot seek, and closing it closes no handle."""

    def __init__(self, *, reads: bool = False) -> None:
        super().__init__()
        self.can_read, self.can_write = reads, not reads

    def length(self, runtime: Runtime) -> int:
        raise NotSupportedException("Stream does not support seeking.")

    def read(self, runtime: Runtime, count: int) -> bytes:
        if not self.can_read:
            raise NotSupportedException("Stream does not support reading.")
        piece: bytes = _one(runtime, "console.read", count=count)
        return piece

    def write(self, runtime: Runtime, data: bytes) -> None:
        if not self.can_write:
            raise NotSupportedException("Stream does not support writing.")
        ask(runtime, "console.write", content=data)

    def resize(self, runtime: Runtime, length: int) -> None:
        raise NotSupportedException("Stream does not support seeking.")


CONSOLE_STREAM = dotnet("System.IO.__ConsoleStream", ConsoleStream, base=STREAM)
CONSOLE.static_method("OpenStandardInput()")(lambda: ConsoleStream(reads=True))
CONSOLE.static_method("OpenStandardOutput()")(ConsoleStream)

GC = dotnet("System.GC", kind="static")
