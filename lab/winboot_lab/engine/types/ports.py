"""System.IO.Ports.SerialPort, as far as a line to a console goes, and System.Diagnostics.EventLog, as far as its sources."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.door import ask
from winboot_lab.engine.dotnet import OBJECT, Runtime, dotnet
from winboot_lab.engine.exceptions import InvalidOperationException, IOException
from winboot_lab.engine.values import IDISPOSABLE, Array, Instance


class SerialPort(Instance):
    """A port that is not open yet, or is."""

    def __init__(self, name: str, _rate: int = 9600) -> None:
        self.name = name
        self.open = False


PORT = dotnet("System.IO.Ports.SerialPort", SerialPort, base=OBJECT, interfaces=[IDISPOSABLE])
PORT.constructor("string portName")(SerialPort)
PORT.constructor("string portName, int baudRate")(SerialPort)


@PORT.static_method("GetPortNames()", effect=True)
def _names(runtime: Runtime) -> Array:
    return Array(list(ask(runtime, "serial.ports")))


@PORT.method("void Open()", effect=True)
def _open(runtime: Runtime, self: SerialPort) -> None:
    if self.name not in ask(runtime, "serial.ports"):
        raise IOException(f"The port '{self.name}' does not exist.")
    self.open = True


@PORT.method("void WriteLine(string text)", effect=True)
def _write_line(runtime: Runtime, self: SerialPort, text: str) -> None:
    if not self.open:
        raise InvalidOperationException("The port is closed.")
    ask(runtime, "serial.write", line=text)


@PORT.method("void Close()", "void Dispose()")
def _close(self: SerialPort) -> None:
    self.open = False


class EventLog(Instance):
    """Its static members alone."""


LOG = dotnet("System.Diagnostics.EventLog", EventLog, base=OBJECT)


@LOG.static_method("SourceExists(string source)", effect=True)
def _exists(runtime: Runtime, source: str) -> Any:
    return bool(ask(runtime, "eventlog.source", source=source))
