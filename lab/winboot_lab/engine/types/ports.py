"""System.IO.Ports.SerialPort, as far as a line to a console goes, and System.Diagnostics.EventLog, as far as its sources."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.door import ask
from winboot_lab.engine.dotnet import OBJECT, Runtime, dotnet
from winboot_lab.engine.values import IDISPOSABLE, Array, Instance


class SerialPort(Instance):
    """A port that is not open yet, or is."""

    def __init__(self, name: str, _rate: int = 9600) -> None:
        self.name = name
        self.open = False


PORT = dotnet("System.IO.Ports.SerialPort", SerialPort, base=OBJECT, interfaces=[IDISPOSABLE])
PORT.constructor("string portName, int baudRate")(SerialPort)


@PORT.static_method("GetPortNames()", effect=True)
def _names(runtime: Runtime) -> Array:
    return Array(list(ask(runtime, "serial.ports")))


class EventLog(Instance):
    """Its static members alone."""


LOG = dotnet("System.Diagnostics.EventLog", EventLog, base=OBJECT)


@LOG.static_method("SourceExists(string source)", effect=True)
def _exists(runtime: Runtime, source: str) -> Any:
    return bool(ask(runtime, "eventlog.source", source=source))
