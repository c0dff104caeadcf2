"""csi-proxy.exe of version 1: a service with named pipes for CSI drivers (kubernetes-csi/csi-proxy, cmd/csi-proxy/main.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.config.compat.version import Version
from winboot_lab.programs.base import Daemon, GoError, Run, go_text, log_file
from winboot_lab.programs.goflags import Flags, goflags
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer

# `csi-proxy-<group>-<version>`: client/pipe.go, PipePath. The v1 groups, and the two that never left alpha (client/groups).
PIPES: Final = (
    *(f"csi-proxy-{group}-v1" for group in ("disk", "filesystem", "smb", "volume")),
    "csi-proxy-iscsi-v1alpha2",
    "csi-proxy-system-v1alpha1",
)
# Its own flags with the version that brought them, and klog's.
_FLAGS: Final = {
    "kubelet-path": ("text", "1.0"),
    "windows-service": ("bool", "1.0"),
    "require-privacy": ("bool", "1.2"),
    "metrics-bind-address": ("text", "1.3"),
    "v": ("text", "1.0"),
    "log_file": ("text", "1.0"),
    "logtostderr": ("bool", "1.0"),
    "alsologtostderr": ("bool", "1.0"),
}


class CsiProxyProgram:
    """The program: a service with its flag, else a process that stays."""

    def is_service(self, argv: list[str]) -> bool:
        """Only with its flag it answers the control manager (initService)."""
        return any(a.lstrip("-") in ("windows-service", "windows-service=true") for a in argv)

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> CsiProxy:
        """A running one."""
        return CsiProxy(Run(machine, process, argv, env))

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """A flag that it lacks ends it; else it stays."""
        run = Run(machine, process, argv, env, stdin)
        try:
            _flags(run)
        except GoError as e:
            return Exit(2, b"", go_text(str(e)))
        raise run.refuse("in the foreground")


def _flags(run: Run) -> Flags:
    version = Version.parse(run.version)
    return goflags(
        run.argv[1:], {name: kind for name, (kind, since) in _FLAGS.items() if version.at_least(since)}
    )


class CsiProxy(Daemon):
    """A running csi-proxy."""

    def on_start(self) -> Died | None:
        """Open its pipes, each as the first to do so (Microsoft/go-winio pipe.go, makeServerPipeHandle); a panic ends it."""
        try:
            flags = _flags(self.run)
        except GoError as e:
            self.sink(str(e))
            return Died(2)
        if flags.text("log_file") and not flags.flag("logtostderr", default=True):
            self.sink = log_file(self.machine, self.run.path(flags.text("log_file")))
        self.klog("Starting CSI-Proxy Server ...", source="main.go:1")
        pipes = self.machine.files.pipes
        taken = next((pipe for pipe in PIPES if pipe in pipes), None)
        if taken is not None:
            self.sink(f"panic: open \\\\.\\pipe\\{taken}: Access is denied.")
            return Died(2)
        pipes.update(dict.fromkeys(PIPES, self.process.pid))
        return None
