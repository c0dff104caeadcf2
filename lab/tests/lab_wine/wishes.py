"""What winboot's own PowerShell does for a service, done on a machine of the lab and written down."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from winboot_lab.engine.run import run_script
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.registry import SERVICES, Key

from lab_wine.prefix import Data
from tests.steps.builders import a_spec_of
from winboot.config.node_spec import NodeSpec
from winboot.script.library import functions_for
from winboot.script.literals import literal
from winboot.script.steps.services import service_table
from winboot.script.steps.texts import text

Table = dict[str, Any]
ADDRESS = "10.224.0.11"
SERVICE_NAMES = ("containerd", "kubelet", "kube-proxy", "flanneld")
PROFILES = ("flannel-host-gw", "flannel-host-gw under nssm")
CASES = [(profile, name) for profile in PROFILES for name in SERVICE_NAMES]

# Former values are of no interest here, and what would be started is only written down.
_INSTEAD = """
$script:started = @()
function Save-FormerValue { param($Kind, $Key, $Value) }
function Invoke-Program {
    param([string]$Path, [string[]]$Arguments)
    $script:started += , @(@($Path) + $Arguments)
    [pscustomobject]@{ ExitCode = 0; Output = ''; ErrorOutput = '' }
}
"""


def _spec(profile: str) -> NodeSpec:
    """A node of a shipped profile; `under nssm`: its services run under NSSM."""
    name, _, manager = profile.partition(" under ")
    return a_spec_of(name, manager=manager or None)


def a_table(profile: str, service: str) -> Table:
    """The wanted definition, with the places of its texts filled as on a node."""
    written = json.dumps(service_table(_spec(profile), service))
    table: Table = json.loads(written.replace("<<node_ip>>", ADDRESS))
    return table


def arguments(profile: str, service: str) -> list[str]:
    """The arguments that the profile sets, for any service manager."""
    spec = _spec(profile).services[service]
    return [text(word).replace("<<node_ip>>", ADDRESS) for word in spec.arguments]


@dataclass(frozen=True)
class Defined:
    """What `Set-ServiceDefinition` did: programs with their arguments, and values it wrote itself."""

    started: list[list[str]]
    parameters: dict[str, Data]

    def words(self, verb: str) -> list[str]:
        """Program and arguments of the call of sc.exe with this verb."""
        return next(words for words in self.started if words[1] == verb)


def define(table: Table) -> Defined:
    """Run `Set-ServiceDefinition` for this service."""
    machine = Machine()
    said = _run(
        machine,
        f"Set-ServiceDefinition -Service (Complete-Service -Service {literal(table)})\n"
        "$script:started | ForEach-Object { ConvertTo-Json -InputObject $_ -Compress }",
        _INSTEAD,
    )
    key = machine.registry.find(rf"{SERVICES}\{table['name']}\Parameters")
    return Defined([json.loads(line) for line in said], dict(_values(key)) if key else {})


def joined(words: list[str]) -> str:
    """The command line that `Invoke-Program` makes of these words: the program as .NET quotes it, then ours."""
    (arguments,) = _run(Machine(), f"Join-Argument {literal(words[1:])}")
    return f'"{words[0]}" {arguments}'


# As much of a run as these functions ask for.
_RUN = "$script:Run = @{ Mode = 'Change'; Step = 'kubelet'; Plan = @{}; Facts = @{}; Cache = @{} }; $script:Node = @{}"


def _run(machine: Machine, expression: str, instead: str = "") -> list[str]:
    library = functions_for(expression)
    whole = f"Set-StrictMode -Version 2.0\n$ErrorActionPreference = 'Stop'\n{library}\n{_RUN}\n{instead}\n{expression}\n"
    said: list[str] = []
    session = machine.session()
    try:
        with machine.acting():
            ended = run_script(session, whole, {}, emit=lambda stream, value: said.append(str(value)))
    finally:
        session.close()
    assert ended.state == "completed", getattr(ended.error, "message", "")
    return said


def _values(key: Key, below: str = "") -> Iterable[tuple[str, Data]]:
    for value in key.values.values():
        assert not isinstance(value.data, bytes), value.name
        yield below + value.name, value.data
    for inner in key.keys.values():
        yield from _values(inner, f"{below}{inner.name}\\")
