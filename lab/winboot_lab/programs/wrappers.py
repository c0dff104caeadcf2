"""Programs that keep others running: kube-log-runner.exe, which gives them a log file, cmd.exe with a `&&`, and the script that
other tools start the kubelet by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from winboot_lab.programs.base import Daemon, GoError, Run, go_text, log_file, start
from winboot_lab.programs.goflags import Flags, goflags
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer

_FLAGS: Final = {
    "log-file": "text",
    "also-stdout": "bool",
    "redirect-stderr": "bool",
    "log-file-size": "text",
    "log-file-age": "text",
    "flush-interval": "text",
}
_SERVICE_FLAGS: Final = frozenset({"--windows-service", "--windows-service=true", "--run-service"})


class LogRunnerProgram:
    """kube-log-runner: its child talks to the control manager, it only carries the output."""

    def is_service(self, argv: list[str]) -> bool:
        """As far as its child is one."""
        return any(a in _SERVICE_FLAGS for a in argv)

    def serve(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]
    ) -> LogRunner:
        """A running one."""
        return LogRunner(Run(machine, process, argv, env))

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Without a command it says so."""
        run = Run(machine, process, argv, env, stdin)
        try:
            flags = goflags(argv[1:], _FLAGS)
        except GoError as e:
            return Exit(2, b"", go_text(str(e)))
        if not flags.words:
            return Exit(1, b"", go_text("not enough arguments to run"))
        raise run.refuse("in the foreground")


class LogRunner(Daemon):
    """One wrapped program; it ends when its child ends, with 1 where that failed (log.Fatal in kube-log-runner.go)."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._child: Process | None = None
        self._died: Died | None = None

    def on_start(self) -> Died | None:
        """Open the log, start the child."""
        try:
            flags = goflags(self.run.argv[1:], _FLAGS)
        except GoError as e:
            self.sink(str(e))
            return Died(2)
        if not flags.words:
            return Died(1)
        if "log-file" in flags:
            self.sink = log_file(self.machine, self.run.path(flags.text("log-file")))
        try:
            self._start(flags)
        except Failure as e:
            self.sink(f"error: starting {flags.words[0]}: {e.problem.message}")
            return Died(1)
        return self._died

    def _start(self, flags: Flags) -> None:
        self._child = start(
            self.machine,
            join(flags.words),
            parent=self.process,
            env=self.run.env,
            directory=self.process.directory,
            sink=self.sink,
            ended=self._ended,
            priority=self.process.priority,
        )

    def _ended(self, died: Died) -> None:
        self._died = replace(died, code=1 if died.code else 0)

    def on_tick(self) -> Died | None:
        """It lives as long as its child; the child's priority counts."""
        return self._died

    def on_stop(self) -> None:
        """Stop the child first."""
        if self._child is not None and self._child.running:
            self._child.ended.clear()
            self.machine.processes.stop(self._child)


class CmdProgram:
    """cmd.exe /c with two commands and `&&` between them; whatever else it can do is refused."""

    def is_service(self, argv: list[str]) -> bool:
        """It answers no control manager."""
        return False

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Cmd:
        """A running one."""
        return Cmd(Run(machine, process, argv, env))

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """In the foreground it does nothing here."""
        raise Run(machine, process, argv, env, stdin).refuse("in the foreground")


class Cmd(Daemon):
    """The second command starts when the first has ended well; cmd ends with whatever ends first badly."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._child: Process | None = None
        self._died: Died | None = None
        self._second = ""

    def on_start(self) -> Died | None:
        """Take the line apart; the first command runs at the next tick, as it would in parallel with its starter."""
        words = self.run.argv[1:]
        parts = words[1].split(" && ") if len(words) == 2 and words[0].lower() == "/c" else []
        if len(parts) != 2:
            raise self.run.refuse(" ".join(words))
        self._first, self._second = parts
        return None

    def on_tick(self) -> Died | None:
        """The first command, then the life of the second."""
        if self._child is not None or self._died is not None:
            return self._died
        directory = self.process.directory
        try:
            first = self.machine.processes.spawn(
                self._first,
                token=self.process.token,
                environment=dict(self.run.env),
                directory=directory,
                parent=self.process.pid,
            )
            ended = self.machine.processes.run(first)
            for line in (ended.stdout + ended.stderr).decode("utf-8").splitlines():
                self.sink(line)
            if ended.code != 0:
                return Died(ended.code)
            self._child = start(
                self.machine,
                self._second,
                parent=self.process,
                env=self.run.env,
                directory=directory,
                sink=self.sink,
                ended=self._ended,
                priority=self.process.priority,
            )
        except Failure as e:
            self.sink(e.problem.message)
            return Died(1)
        return self._died

    def _ended(self, died: Died) -> None:
        self._died = died

    def on_stop(self) -> None:
        """A stop ends the whole tree."""
        if self._child is not None and self._child.running:
            self._child.ended.clear()
            self.machine.processes.stop(self._child)


class StartScript(Daemon):
    """powershell.exe with StartKubelet.ps1 or kubeletstart.ps1: its last line starts the kubelet and waits for its end.

    Sources: kubernetes-sigs/sig-windows-tools hostprocess/PrepareNode.ps1 and kubeadm/scripts/PrepareNode.ps1 ($cmd),
    image-builder roles/kubernetes/templates/StartKubelet.ps1, aks-engine parts/k8s/windowskubeletfunc.ps1. They read
    kubeadm's flags with TrimStart('KUBELET_KUBEADM_ARGS=').Trim('"').
    """

    def __init__(self, run: Run, script: str) -> None:
        super().__init__(run)
        self._script = script
        self._child: Process | None = None
        self._died: Died | None = None

    def on_start(self) -> Died | None:
        """Put the flags together and start the kubelet."""
        try:
            line = self._line()
        except GoError as e:
            self.sink(str(e))
            return Died(1)
        self._child = start(
            self.machine,
            line,
            parent=self.process,
            env=self.run.env,
            directory=self.process.directory,
            sink=self.sink,
            ended=self._ended,
        )
        return self._died

    def _line(self) -> str:
        """The kubelet's command line. Raises GoError where a file is missing."""
        last = self.run.read(self._script).decode("utf-8").strip().splitlines()[-1]
        if "$KubeletArgs" not in last:
            return last
        given = self.run.read("/var/lib/kubelet/kubeadm-flags.env").decode("utf-8").strip()
        # TrimStart removes each of these characters, too.
        flags = given.lstrip("KUBELET_KUBEADM_ARGS=").strip('"')  # noqa: B005
        return last.replace("$KubeletArgs", flags).replace("$(hostname)", self.machine.name)

    def _ended(self, died: Died) -> None:
        self._died = died

    def on_tick(self) -> Died | None:
        """It ends with the kubelet."""
        return self._died

    def on_stop(self) -> None:
        """NSSM's Ctrl-C reaches the kubelet, too."""
        if self._child is not None and self._child.running:
            self._child.ended.clear()
            self.machine.processes.stop(self._child)


def join(words: list[str]) -> str:
    """Words as one command line that splits into the same words (CommandLineToArgvW's rules, backwards)."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word and not any(c in word for c in ' \t"'):
        return word
    out, slashes = '"', 0
    for char in word:
        if char == "\\":
            slashes += 1
            continue
        out += "\\" * (2 * slashes + 1 if char == '"' else slashes) + char
        slashes = 0
    return out + "\\" * (2 * slashes) + '"'
