"""A `ServiceSpec` as the table that `lib/service.ps1` compares and writes, for both managers."""

from __future__ import annotations

from collections.abc import Iterable

from winboot.config.node_spec import NodeSpec, ServiceSpec
from winboot.config.profile.sections import Log
from winboot.script.steps.texts import text

MIB = 1024 * 1024

# The numbers behind the names: PROCESS_CREATION_FLAGS of CreateProcess; NSSM keeps the number.
_PRIORITIES = {
    "IDLE_PRIORITY_CLASS": 0x40,
    "BELOW_NORMAL_PRIORITY_CLASS": 0x4000,
    "NORMAL_PRIORITY_CLASS": 0x20,
    "ABOVE_NORMAL_PRIORITY_CLASS": 0x8000,
    "HIGH_PRIORITY_CLASS": 0x80,
    "REALTIME_PRIORITY_CLASS": 0x100,
}


def service_table(spec: NodeSpec, name: str) -> dict[str, object]:
    """The wanted definition of the service `name`; texts may hold `<<name>>` parts."""
    service = spec.services[name]
    common: dict[str, object] = {
        "name": service.name,
        "display": service.display_name,
        "description": service.description,
        "restart_ms": list(service.restart_ms),
        "reset_s": service.reset_s,
    }
    # What Complete-Service knows as a default need not travel.
    if service.depends_on:
        common["depends"] = list(service.depends_on)
    if name in started_on_demand(spec):
        common["start"] = "demand"
    if service.manager == "nssm":
        return common | _nssm(spec, service)
    environment = [f"{key}={value}" for key, value in sorted(service.environment.items())]
    if environment:
        common["environment"] = environment
    return common | {"command_line": _native(spec, service)}


def started_by_the_guard(spec: NodeSpec) -> tuple[str, ...]:
    """The agent that makes a network on the adapter, and what depends on it, in the order they start. They do not
    start with the machine by themselves, because an unwatched switch can cost a static address. An agent above a
    first switch has nothing to lose."""
    agent = spec.network.agent
    if agent is None or spec.network.solution.makes_own:
        return ()
    return (agent.service, *(one.name for one in spec.services.all if agent.service in one.depends_on))


def started_by_the_task(spec: NodeSpec) -> tuple[str, ...]:
    """The services that the startup task starts once it knows the machine: the kubelet, and what uses its certificate. The
    guard starts the others. Without `boot.check_machine` they start with the machine."""
    if not spec.boot.check_machine:
        return ()
    guarded = started_by_the_guard(spec)
    return tuple(name for name in with_identity(spec) if name not in guarded)


def with_identity(spec: NodeSpec) -> tuple[str, ...]:
    """The kubelet and the services after it, which use its certificate. The runtime and csi-proxy come before it."""
    names = [one.name for one in spec.services.all]
    return tuple(names[names.index("kubelet") :])


def started_on_demand(spec: NodeSpec) -> tuple[str, ...]:
    """The services that the control manager does not start with the machine."""
    return (*started_by_the_guard(spec), *started_by_the_task(spec))


def _native(spec: NodeSpec, service: ServiceSpec) -> str:
    """The command line of the service itself. kube-log-runner, where used, keeps and rotates what it prints."""
    words = [service.program, *map(text, service.arguments)]
    if service.log_runner:
        log = spec.runtime.log
        words = [
            spec.paths.kube_log_runner,
            f"-log-file={service.log_file}",
            *_log_runner_rotation(log, spec),
            "-redirect-stderr=true",
            *words,
        ]
    return command_line(words)


def _log_runner_rotation(log: Log, spec: NodeSpec) -> tuple[str, ...]:
    return (f"-log-file-size={log.max_size_mib}Mi",) if _runner_rotates(spec) else ()


def _runner_rotates(spec: NodeSpec) -> bool:
    # -log-file-size came with 1.33.
    return spec.kubernetes.version.at_least("1.33")


def turns_itself_over(spec: NodeSpec, service: ServiceSpec) -> bool:
    """Whether what writes this service's log begins a new file when the old one is large."""
    return service.manager == "nssm" or (service.log_runner and _runner_rotates(spec))


def _nssm(spec: NodeSpec, service: ServiceSpec) -> dict[str, object]:
    """NSSM reads its parameters from the registry when the service starts; the service itself is nssm.exe."""
    log = spec.runtime.log
    parameters: dict[str, object] = {
        "Application": service.program,
        "AppParameters": _joined(map(text, service.arguments)),
        # Programs that think in /run and /etc mean the current drive.
        "AppDirectory": "C:\\",
        "AppStdout": service.log_file,
        "AppStderr": service.log_file,
        "AppRotateFiles": 1,
        "AppRotateOnline": 1,
        "AppRotateBytes": log.max_size_mib * MIB,
        "AppRestartDelay": service.restart_ms[0],
        # NSSM 2.24 shows no start on Windows 10 1703 and later without this one.
        "AppNoConsole": 1,
        "AppExit": "Restart",
        # None removes a value that an earlier profile, or another program, has set.
        "AppPriority": None if service.priority_class is None else _PRIORITIES[service.priority_class],
        "AppEnvironment": None,
        "AppEnvironmentExtra": [f"{key}={value}" for key, value in sorted(service.environment.items())]
        or None,
    }
    if service.name == "containerd":
        # The shims hold the pods and live on while containerd is restarted. Containerd starts them without a process
        # group or console of their own (getSysProcAttr of its pkg/shim/util_windows.go). So the Ctrl-C that NSSM
        # begins with (kill_console of its process.cpp) would end them. Without it NSSM ends containerd alone, which
        # is as safe as a crash of it.
        parameters["AppStopMethodSkip"] = 1
        parameters["AppKillProcessTree"] = 0
    return {"command_line": spec.paths.nssm, "parameters": parameters}


def command_line(words: Iterable[str]) -> str:
    """One command line that CommandLineToArgvW takes apart into these words. The program is always quoted: an
    unquoted path with spaces can be hijacked."""
    program, *arguments = words
    return " ".join([f'"{program}"', *map(_quoted, arguments)])


def _joined(words: Iterable[str]) -> str:
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """One argument; backslashes are doubled only where a quotation mark follows."""
    if word and not any(character in word for character in ' \t"'):
        return word
    result, backslashes = "", 0
    for character in word:
        if character == "\\":
            backslashes += 1
            continue
        if character == '"':
            result += "\\" * (2 * backslashes + 1) + '"'
        else:
            result += "\\" * backslashes + character
        backslashes = 0
    return '"' + result + "\\" * (2 * backslashes) + '"'
