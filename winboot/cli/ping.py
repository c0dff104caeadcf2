"""`winboot ping`: can each machine be worked on, and if not, what would fix it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from winboot.base import exits
from winboot.base.clock import clock_level
from winboot.base.errors import InternalError, Interrupted
from winboot.cli.colour import say, tell
from winboot.cli.options import Lines, LinesForm, Machines, Passed, Workers, expanded
from winboot.report.line import json_line
from winboot.report.shape import Answer, Ping

if TYPE_CHECKING:
    from winboot.cli.targets import Clusters
    from winboot.config.node_spec import NodeSpec
    from winboot.remote.transport.base import Certificate, Probe
    from winboot.remote.transport.logins import Logins
    from winboot.report.results import NodeReport

# Whose it is, and how far it is ahead of this computer's.
Clock = tuple[str, timedelta]
OUR_CLOCK: Final[Clock] = ("ours", timedelta())


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth saying about a machine. `fix` is what to do; empty when there is nothing to fix."""

    level: Literal["ok", "warning", "error"]
    subject: str
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Pinged:
    """What became of one machine: its findings, or the error that kept us out and what the machine shows outside."""

    node: str
    address: str
    findings: tuple[Finding, ...]
    exit_code: int
    kept_out: bool = False


@expanded()
def ping(
    machines: Machines,
    output: LinesForm = Lines.table,
    workers: Workers = 32,
    passed: Passed = False,
    show_host_key: Annotated[
        bool,
        typer.Option(
            "--show-host-key", help="Only print the SSH host key of each machine, to compare and to pin."
        ),
    ] = False,
) -> None:
    """Log in to every machine, change nothing, and report each obstacle with its fix."""
    from winboot.cli.targets import Clusters, load_targets, stopping
    from winboot.node import fleet
    from winboot.remote.transport.logins import Logins

    specs = load_targets(machines.inventory, machines.chosen, trust=machines.trust)
    if show_host_key:
        raise typer.Exit(_host_keys(specs))
    logins = Logins()
    with stopping() as stop, closing(Clusters(stop.wait)) as clusters:
        clocks = _clocks(specs, clusters)
        results = fleet.each(
            specs,
            lambda spec: _ping(spec, clocks[_cluster_of(spec)], logins, lambda: _clock_of(spec, clusters)),
            stop=stop,
            workers=workers,
            late=_left,
        )
    if not stop.requested:
        results = _with_sources(specs, results, workers)
    if output is Lines.json:
        for result in results:
            _show_line(result)
    else:
        _show_all(results) if passed else show_wrong(results)
    raise typer.Exit(
        stop.exit_code if stop.requested else exits.of_nodes([result.exit_code for result in results])
    )


def _with_sources(specs: Sequence[NodeSpec], results: Sequence[Pinged], workers: int) -> list[Pinged]:
    """What each machine that can be worked on says of proxy, artifact source and registries, which it asks itself."""
    from winboot.cli.targets import run_context
    from winboot.node.run import Quiet
    from winboot.operations.join import Options, ask_sources

    well = {result.node for result in results if not result.exit_code}
    asked = [spec for spec in specs if spec.node.name in well]
    if not asked:
        return list(results)
    with run_context(asked, Quiet()) as (context, tuned):
        report = ask_sources(asked, context, tuned(Options(workers=workers)))
    found = {node.node: _source_finding(node) for node in report.nodes}
    return [_added(result, found.get(result.node)) for result in results]


def _added(result: Pinged, finding: Finding | None) -> Pinged:
    if finding is None:
        return result
    code = result.exit_code or int(finding.level == "error")
    return replace(result, findings=(*result.findings, finding), exit_code=code)


def _source_finding(node: NodeReport) -> Finding | None:
    step = next((one for one in node.steps if one.name == "download-sources"), None)
    if step is None or step.state == "blocked":
        return None
    if step.problem is None:
        return Finding(
            "ok", "downloads", "proxy, artifact source and registries answer, or all programs are here"
        )
    return Finding("error", step.problem.id, step.problem.message, step.problem.hint)


def _host_keys(specs: Sequence[NodeSpec]) -> int:
    """Print what each machine shows, without a login; the exit code."""
    from winboot.base.errors import WinbootError
    from winboot.remote.transport.connect import show_host_key

    codes = []
    for spec in specs:
        name = spec.node.name
        try:
            key = show_host_key(spec.machine.connection, name=name)
        except WinbootError as error:
            typer.echo(f"{error.problem}\n  next: {error.hint}", err=True)
            codes.append(error.exit_code)
        else:
            typer.echo(f"{name} {key}" if key else f"{name} is not reached over SSH")
            codes.append(0)
    return exits.of_nodes(codes)


def _ping(spec: NodeSpec, clock: Clock, logins: Logins, again: Callable[[], Clock]) -> Pinged:
    from winboot.base.errors import WinbootError
    from winboot.cli.targets import open_transport

    machine = spec.machine
    try:
        with open_transport(spec, logins) as transport:
            probe = transport.probe()
            found = list(judge(probe, spec, *held_against(probe, clock, again)))
    except WinbootError as error:
        finding = Finding("error", type(error).__name__, error.problem, error.hint)
        return Pinged(
            spec.node.name, machine.address, (finding, *_outside(spec)), error.exit_code, kept_out=True
        )
    except Exception as error:  # noqa: BLE001 - a bug at one machine must not cost the others their answers
        bug = InternalError.about(error)
        finding = Finding("error", InternalError.__name__, bug.problem, bug.hint)
        return Pinged(spec.node.name, machine.address, (finding,), InternalError.exit_code)
    return Pinged(spec.node.name, machine.address, tuple(found), int(any(f.level == "error" for f in found)))


def _left(spec: NodeSpec) -> Pinged:
    """What is known of a machine that had not answered when the command was stopped."""
    finding = Finding(
        "error", "Interrupted", "the machine had not answered when the command was stopped", "Run it again."
    )
    return Pinged(spec.node.name, spec.machine.address, (finding,), Interrupted.exit_code)


def _outside(spec: NodeSpec) -> Iterator[Finding]:
    """What a machine that kept us out shows to anyone: the certificate to pin, and which logins it would take."""
    from winboot.base.errors import WinbootError
    from winboot.remote.transport.connect import look_from_outside

    try:
        seen = look_from_outside(spec.machine.connection, name=spec.node.name)
    except WinbootError:
        return
    if seen is not None:
        yield from _shown(seen.certificate, seen.offered_auth, spec)


def _shown(certificate: Certificate | None, offered: tuple[str, ...], spec: NodeSpec) -> Iterator[Finding]:
    if certificate is not None:
        until = certificate.not_after.date().isoformat()
        shown = f"{certificate.protocol}, {certificate.subject}, issued by {certificate.issuer}, valid until {until}"
        yield Finding("ok", "TLS", f"{shown}, fingerprint sha256:{certificate.fingerprint}")
        if certificate.not_after < datetime.now(UTC):
            yield Finding(
                "warning",
                "TLS",
                f"the certificate expired on {until}; its pinned fingerprint makes winboot accept it",
                "Renew the certificate on the machine, and its fingerprint in the inventory.",
            )
    else:
        yield Finding("ok", "TLS", "not used: the connection is HTTP, and the login encrypts every message")
    names = ", ".join(offered) or "nothing"
    yield Finding("ok", "authentication", f"offered: {names}; used: {spec.machine.connection.auth}")


def _cluster_of(spec: NodeSpec) -> tuple[str, str | None]:
    return str(spec.cluster.kubeconfig), spec.cluster.context


def _clocks(specs: list[NodeSpec], clusters: Clusters) -> dict[tuple[str, str | None], Clock]:
    """winboot asks each cluster once."""
    return {key: _clock_of(spec, clusters) for key, spec in {_cluster_of(one): one for one in specs}.items()}


def _clock_of(spec: NodeSpec, clusters: Clusters) -> Clock:
    """Whose clock a machine's is held against, and how far that one is from ours: the cluster's, if it answers.

    Certificates and tokens are issued and judged by the cluster's clock; a cluster that does not answer is the
    business of other commands.
    """
    from winboot.base.errors import WinbootError

    try:
        cluster = clusters(spec)
        if cluster is None:
            return OUR_CLOCK
        return "the cluster's", cluster.server_time() - datetime.now(UTC)
    except WinbootError:
        return OUR_CLOCK


def held_against(probe: Probe, clock: Clock, again: Callable[[], Clock]) -> Clock:
    """The clock that a machine's is held against: `clock`, or what `again` gives where the two would disagree. Our own clock is
    between them, and may have been set since the cluster answered: a laptop woke up, or a lab's time leapt."""
    if clock_level(probe.clock_offset - clock[1]) == "ok":
        return clock
    fresh = again()
    return fresh if fresh[0] == clock[0] else clock


def judge(
    probe: Probe, spec: NodeSpec, whose: str = OUR_CLOCK[0], offset: timedelta = OUR_CLOCK[1]
) -> Iterator[Finding]:
    """What a probe means for winboot, subject by subject. `whose` clock is `offset` ahead of this computer's."""
    yield from _wire(probe, spec)
    yield from _session(probe)
    yield from _machine(probe, spec)
    yield _clock(probe.clock_offset - offset, whose)


def _wire(probe: Probe, spec: NodeSpec) -> Iterator[Finding]:
    match spec.machine.connection.transport:
        case "ssh":
            offered = ", ".join(probe.offered_auth) or "nothing"
            yield Finding("ok", "SSH", f"host key {probe.host_key}")
            yield Finding("ok", "authentication", f"offered: {offered}")
            return
        case "local":
            yield Finding("ok", "transport", "local: powershell.exe on this machine")
            return
    yield from _shown(probe.certificate, probe.offered_auth, spec)
    if "basic" in (scheme.lower() for scheme in probe.offered_auth):
        yield Finding(
            "warning",
            "authentication",
            "the machine offers Basic, which sends unencrypted passwords over HTTP",
            r"Set-Item WSMan:\localhost\Service\Auth\Basic -Value $false",
        )


def _session(probe: Probe) -> Iterator[Finding]:
    if probe.language_mode != "FullLanguage":
        yield Finding(
            "error",
            "language mode",
            f"{probe.language_mode}: a JEA endpoint or an application control policy restricts the session",
            "Use an account that gets the full Microsoft.PowerShell endpoint, or allow winboot's script in the policy.",
        )
    else:
        yield Finding("ok", "language mode", probe.language_mode)
    if probe.filtered_token:
        yield Finding(
            "error",
            "token",
            "the account is an administrator, but remote logons of local accounts get a filtered token",
            r"Use the built-in Administrator or a domain account, or set HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion"
            r"\Policies\System LocalAccountTokenFilterPolicy = 1",
        )
    elif not probe.administrator:
        yield Finding(
            "error", "token", "not an administrator", "Add the account to the local group Administrators."
        )
    else:
        yield Finding("ok", "token", "administrator")
    yield Finding("ok", "execution policy", f"{probe.execution_policy} (does not apply to winboot's scripts)")


def _machine(probe: Probe, spec: NodeSpec) -> Iterator[Finding]:
    where = f"domain {probe.domain}" if probe.domain else "workgroup"
    yield Finding(
        "ok",
        "machine",
        f"{probe.computer_name}, {where}, build {probe.os_build}, PowerShell {probe.ps_version}",
    )
    build = probe.os_build.split(".")
    if str(spec.machine.build) not in build:
        yield Finding(
            "error",
            "build",
            f"the inventory has Windows Server {spec.machine.os} ({spec.machine.build}), but the machine has {probe.os_build}",
            "Correct `os` of the host or its group in the inventory.",
        )
    if not probe.ps_version.startswith("5.1"):
        yield Finding(
            "error",
            "PowerShell",
            f"the endpoint runs {probe.ps_version}; winboot's scripts are for Windows PowerShell 5.1",
            "Connect to the endpoint Microsoft.PowerShell.",
        )


def _clock(offset: timedelta, whose: str) -> Finding:
    level, seconds = clock_level(offset), offset.total_seconds()
    if level == "ok":
        return Finding(level, "clock", f"{seconds:+.1f} s from {whose}")
    return Finding(
        level,
        "clock",
        f"{seconds:+.0f} s from {whose}; with a wrong clock, certificates and tokens are not valid",
        "Run `w32tm /resync` on the machine, or set windows.time_servers in the profile.",
    )


def _show_line(result: Pinged) -> None:
    findings = tuple(Answer(one.subject, one.level, one.text, one.fix) for one in result.findings)
    line = Ping(node=result.node, address=result.address, exit_code=result.exit_code, findings=findings)
    typer.echo(json_line(line), nl=False)


_COLOURS: Final = {"ok": "green", "warning": "yellow", "error": "red"}


def show_wrong(results: Sequence[Pinged]) -> None:
    """What needs attention, once with the machines that share it, and how many machines passed. Of a machine that kept us out
    all is shown: the certificate to pin is among it."""
    from winboot.report.causes import named

    sharing: dict[Finding, list[str]] = {}
    passed = 0
    for result in results:
        for finding in result.findings:
            if finding.level == "ok" and not result.kept_out:
                passed += 1
            else:
                shared = replace(finding, text=finding.text.removeprefix(f"{result.node}: "))
                sharing.setdefault(shared, []).append(result.node)
    for finding, nodes in sharing.items():
        say(f"{named(nodes)}: {finding.level}: {finding.subject}: {finding.text}", _COLOURS[finding.level])
        if finding.fix:
            tell(f"  fix: {finding.fix}")
    well = sum(result.exit_code == 0 for result in results)
    tell(f"ping: {well} of {len(results)} machines ok; {passed} checks passed (-v shows them)")


def _show_all(results: Sequence[Pinged]) -> None:
    for result in results:
        say(f"{result.node} ({result.address})", _COLOURS["error" if result.exit_code else "ok"], bold=True)
        for finding in result.findings:
            tell(f"  {finding.level:<8}{finding.subject}: {finding.text}")
            if finding.fix:
                tell(f"          fix: {finding.fix}")
