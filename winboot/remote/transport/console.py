"""Scripts over the standard streams of powershell.exe, for transports that can only start a program: SSH and local.

The command line is always the same short loader. The script, its arguments and its secrets go to standard input, so
that nothing of them is in a command line, a process list or an event of process creation. Standard input is

    {"arguments": {…}, "secrets": {…}}      one line of ASCII JSON
    <the script, UTF-8, to the end of the input>

and every record comes back as a line `#winboot:<kind>:<base64 of UTF-8>`, whatever the console's code page and width
are. Any other line is noise: a banner, a profile's greeting.

Why not `-Command -`: it runs its input line by line, as a person would type it. Why `-InputFormat None`: with any other
format powershell.exe reads standard input itself and feeds it to the pipeline while the loader reads it too.
(PowerShell, ConsoleHost/host/msh/Executor.cs ExecuteCommandAsyncHelper; Serialization.cs `AtEnd` is true for None).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from winboot.base.errors import ConnectionLost, ProtocolError, RestrictedEndpoint, ScriptFailed, WinbootError
from winboot.base.limits import LONGEST_LINE
from winboot.base.secret import Secret

AGAIN: Final = "Run the command again: it continues where it stopped."
_LOADER: Final = r"""
$ProgressPreference = 'SilentlyContinue'
$utf8 = [Text.UTF8Encoding]::new($false)
$console = [Console]::OpenStandardOutput()
function Write-Frame {
    param([string]$Kind, [string]$Text)
    $line = "#winboot:${Kind}:" + [Convert]::ToBase64String($utf8.GetBytes($Text)) + "`n"
    $bytes = $utf8.GetBytes($line)
    $console.Write($bytes, 0, $bytes.Length)
    $console.Flush()
}
function ConvertTo-Argument {
    param([object]$Value)
    if ($Value -is [Management.Automation.PSCustomObject]) {
        $table = @{}
        foreach ($member in $Value.PSObject.Properties) {
            if ($member.Name -eq '#bytes') { return , [Convert]::FromBase64String($member.Value) }
            $table[$member.Name] = ConvertTo-Argument -Value $member.Value
        }
        return $table
    }
    if ($Value -is [array]) { return , @(foreach ($item in $Value) { ConvertTo-Argument -Value $item }) }
    if ($Value -is [decimal]) { return [double]$Value }
    return $Value
}
try {
    $reader = [IO.StreamReader]::new([Console]::OpenStandardInput(), $utf8)
    $head = ConvertFrom-Json -InputObject $reader.ReadLine()
    $text = $reader.ReadToEnd()
    $named = ConvertTo-Argument -Value $head.arguments
    if ($null -ne $head.secrets) {
        $named['Secrets'] = @{}
        foreach ($member in $head.secrets.PSObject.Properties) {
            $secure = [Security.SecureString]::new()
            foreach ($letter in $member.Value.ToCharArray()) { $secure.AppendChar($letter) }
            $named['Secrets'][$member.Name] = $secure
        }
    }
    Write-Frame -Kind 'start' -Text "$PID"
    & ([scriptblock]::Create($text)) @named *>&1 | ForEach-Object {
        if ($_ -is [Management.Automation.ErrorRecord]) {
            Write-Frame -Kind 'error' -Text "$_ [$($_.FullyQualifiedErrorId)]"
        }
        elseif ($_ -is [Management.Automation.WarningRecord]) { Write-Frame -Kind 'warning' -Text $_.Message }
        elseif ($_ -is [Management.Automation.VerboseRecord]) { Write-Frame -Kind 'verbose' -Text $_.Message }
        elseif ($_ -is [Management.Automation.DebugRecord]) { Write-Frame -Kind 'debug' -Text $_.Message }
        elseif ($_ -is [Management.Automation.InformationRecord]) {
            Write-Frame -Kind 'information' -Text "$($_.MessageData)"
        }
        else { Write-Frame -Kind 'output' -Text "$_" }
    }
    Write-Frame -Kind 'end' -Text '{}'
}
catch {
    $problem = @{
        message = $_.Exception.Message
        id = $_.FullyQualifiedErrorId
        position = "$($_.InvocationInfo.PositionMessage)"
        stack = "$($_.ScriptStackTrace)"
    }
    Write-Frame -Kind 'end' -Text (ConvertTo-Json -InputObject @{ error = $problem } -Compress)
}
"""
_LABELLED: Final = frozenset({"error", "warning", "verbose", "debug", "information"})
_NOISE: Final = 500
# Words that PowerShell puts into an error where .NET or scripts are not allowed; ids, so the same in every language.
_RESTRICTED: Final = ("InConstrainedLanguage", "ConversionSupportedOnlyToCoreTypes", "ScriptsNotAllowed")


def command_line(program: str = "powershell.exe") -> str:
    """The command that starts the loader.

    It has letters, digits, blanks and `-.+/=` only, which mean the same to cmd.exe, to powershell.exe and to a POSIX shell
    as the account's default shell.
    """
    return " ".join((program, *ARGUMENTS))


def _compact(script: str) -> str:
    # cmd.exe takes 8,191 characters, and each character of the script makes 2.7 of them.
    return "\n".join(line.strip() for line in script.strip().splitlines())


ARGUMENTS: Final = (
    "-NoLogo",
    "-NoProfile",
    "-NonInteractive",
    "-InputFormat",
    "None",
    "-OutputFormat",
    "Text",
    "-EncodedCommand",
    base64.b64encode(_compact(_LOADER).encode("utf-16-le")).decode("ascii"),
)


def standard_input(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> bytes:
    """What the loader reads. Raises TypeError for an argument without a plain form."""
    head: dict[str, object] = {
        "arguments": {name: _plain(value) for name, value in arguments.items()},
        "secrets": {name: secret.reveal() for name, secret in secrets.items()} if secrets else None,
    }
    return json.dumps(head).encode("ascii") + b"\n" + script.encode("utf-8", errors="surrogatepass")


def _plain(value: object) -> object:
    match value:
        case None | bool() | str() | int() | float():
            return value
        case bytes():
            return {"#bytes": base64.b64encode(value).decode("ascii")}
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            raise TypeError(f"an argument of type {type(value).__name__}")


class Process(Protocol):
    """A program that runs on the machine, seen through its standard streams."""

    def receive(self) -> bytes:
        """More of its standard output, the moment there is some; empty at the end. Raises TransportError."""
        ...

    def finish(self) -> tuple[int | None, str]:
        """The exit code (None when none came) and the last of standard error, after the end."""
        ...


@dataclass(slots=True)
class Conversation:
    """One run of the loader: reads its frames. `pid` is known from its first frame on; `greeting` is the last line before
    it: a login shell that refuses gives its reason there."""

    name: str
    process: Process
    pid: int | None = None
    ended: bool = False
    greeting: str = ""

    def lines(self) -> Iterator[str]:
        """The output of the script as `Transport.run` promises it. Raises ScriptFailed, or why the process died."""
        for line in self._raw_lines():
            kind, text = _frame(line)
            match kind:
                case "start":
                    self.pid = self._pid(text)
                case "output":
                    yield text
                case "end":
                    self.ended = True
                    self._judge(text)
                    return
                case _ if kind in _LABELLED:
                    yield f"{kind}: {text}"
                case _ if line:
                    self.greeting = self.greeting if self.pid else line[:_NOISE]
                    yield f"noise: {line[:_NOISE]}"
        raise self._died()

    def _pid(self, text: str) -> int:
        """The id of the process on the machine, which winboot may end."""
        if not re.fullmatch("[0-9]{1,10}", text):
            raise ProtocolError(f"{self.name}: the script's first record is not readable", node=self.name)
        return int(text)

    def _raw_lines(self) -> Iterator[str]:
        # Not one growing `bytes`: a line of many pieces would be copied with each of them.
        rest = bytearray()
        while piece := self.process.receive():
            first, *others = piece.split(b"\n")
            rest += first
            for line in others:
                yield rest.rstrip(b"\r").decode("utf-8", errors="replace")
                rest = bytearray(line)
            if len(rest) > LONGEST_LINE:
                raise ProtocolError(
                    f"{self.name}: a line of output is longer than {LONGEST_LINE >> 20} MiB", node=self.name
                )

    def _judge(self, text: str) -> None:
        try:
            error: Any = json.loads(text).get("error")
            if not isinstance(error, dict | None):
                raise TypeError("an error in another form")
        except (ValueError, TypeError, AttributeError, RecursionError) as problem:
            raise ProtocolError(
                f"{self.name}: the script's last record is not readable", node=self.name
            ) from problem
        if error is None:
            return
        error_id = str(error.get("id") or "")
        if any(word in error_id for word in _RESTRICTED):
            raise self._restricted(str(error.get("message")))
        raise ScriptFailed(
            f"{self.name}: {error.get('message')}",
            node=self.name,
            error_id=error_id,
            position=str(error.get("position") or ""),
            stack=str(error.get("stack") or ""),
        )

    def _died(self) -> WinbootError:
        """Output ended without the loader's last frame."""
        code, said = self.process.finish()
        if any(word in said for word in _RESTRICTED):
            return self._restricted(said.strip()[:_NOISE])
        if code is None:
            return ConnectionLost(
                f"{self.name}: the connection ended in the middle of the script", hint=AGAIN, node=self.name
            )
        if self.pid is not None:
            return ConnectionLost(
                f"{self.name}: powershell.exe ended in the middle of the script (exit code {code})",
                hint=AGAIN,
                node=self.name,
            )
        reason = said.strip()[:_NOISE] or self.greeting
        about = f": {reason}" if reason else ""
        return ProtocolError(
            f"{self.name}: powershell.exe could not be started (exit code {code}){about}",
            hint="The machine needs Windows PowerShell 5.1 on its PATH, and an account that may run it.",
            node=self.name,
        )

    def _restricted(self, message: str) -> RestrictedEndpoint:
        return RestrictedEndpoint(
            f"{self.name}: the session is restricted (JEA or Constrained Language): {message}",
            hint="winboot needs a full PowerShell session; use an account that gets one.",
            node=self.name,
        )


def _frame(line: str) -> tuple[str, str]:
    """The kind and the text of a frame; an empty kind for any other line."""
    mark, _, rest = line.partition(":")
    kind, separator, data = rest.partition(":")
    if mark != "#winboot" or not separator:
        return "", ""
    try:
        return kind, base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return "", ""
