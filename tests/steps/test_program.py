"""winboot waits for programs with a bound, also while a child keeps their output open, and decodes Windows' own programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from winboot_lab.engine.exceptions import Win32Exception
from winboot_lab.engine.types import process
from winboot_lab.engines import run_script
from winboot_lab.windows.programs_api import Exit

from tests.steps.bench import Bench
from tests.steps.library import call
from winboot.script.library import library_files
from winboot.script.rendering import reach

HOSTS = r"C:\Windows\System32\drivers\etc\hosts"
PATH = r"C:\Windows\System32\w32tm.exe"
WAITS = re.compile(r"\.(?:Wait|WaitForExit|WaitOne|Join)\(([^()]*)\)")
# In the declarations for both versions of HNS: a request of the network is not left half done; its thread has 60 seconds.
UNCUT = {("hns.ps1", "seconds * 1000"), ("hcn.ps1", "seconds * 1000")}


@dataclass
class Canned:
    """A program that always ends like this."""

    ended: Exit

    def run(self, machine: Any, process: Any, argv: list[str], env: Mapping[str, str], stdin: bytes) -> Exit:
        """Its end."""
        return self.ended


def test_output_that_a_child_keeps_open_is_waited_for_with_a_bound(bench: Bench):
    bench.machine.programs.add("w32tm", Canned(Exit(0, b"ok", lingers=600)))

    answer = call(bench, f"Invoke-Program '{PATH}' -Seconds 20")

    assert answer.id == "winboot.ProgramHangs"
    assert PATH in answer.message
    assert bench.machine.uptime() < 300
    assert [one for one in bench.machine.processes.all() if one.path == PATH] == [], "it is ended"


@dataclass
class Slow:
    """A program that takes as long as this, in seconds."""

    seconds: float

    def run(self, machine: Any, process: Any, argv: list[str], env: Mapping[str, str], stdin: bytes) -> Exit:
        """Its end."""
        machine.settle(self.seconds)
        return Exit(0, b"ok")


@pytest.mark.parametrize(("seconds", "id_"), [(15, ""), (600, "winboot.ProgramHangs")])
def test_a_program_that_does_not_end_in_time_is_named(bench: Bench, seconds: float, id_: str):
    bench.machine.programs.add("w32tm", Slow(seconds))

    assert call(bench, f"Invoke-Program '{PATH}' -Seconds 20").id == id_


def test_output_that_a_child_keeps_open_for_a_moment_costs_nothing(bench: Bench):
    bench.machine.programs.add("w32tm", Canned(Exit(0, b"ok", lingers=5)))

    (ended,) = call(bench, f"Invoke-Program '{PATH}' -Seconds 20").objects

    assert ended.get("Output") == "ok"


def test_what_a_program_of_windows_writes_is_in_the_code_page_of_its_consoles(bench: Bench):
    said = "Zugriff verweigert: \u00e4\u00f6\u00fc"
    key = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Nls\CodePage"
    bench.machine.registry.set(key, "OEMCP", "String", "437")
    bench.machine.programs.add("w32tm", Canned(Exit(0, said.encode("cp437"))))

    (ended,) = call(bench, f"Invoke-Program '{PATH}'").objects

    assert ended.get("Output") == said


def test_the_tree_of_a_service_is_ended_and_the_shims_of_pods_are_not(bench: Bench):
    """A log runner's child keeps port 10250 and its file; a shim holds a pod, and outlives the program that started it."""
    processes = bench.machine.processes
    runner = processes.add("kube-log-runner", r"C:\k\kube-log-runner.exe", "kube-log-runner")
    kubelet = processes.add("kubelet", r"C:\k\kubelet.exe", "kubelet", parent=runner.pid)
    grandchild = processes.add("plugin", r"C:\k\plugin.exe", "plugin", parent=kubelet.pid)
    shim = processes.add(
        "containerd-shim-runhcs-v1", r"C:\k\containerd-shim-runhcs-v1.exe", "shim", parent=runner.pid
    )
    other = processes.add("other", r"C:\k\other.exe", "other")

    assert call(bench, f"Stop-ProcessTree -Tree @(Get-ProcessTree -Id {runner.pid})").id == ""

    running = {process.pid for process in processes.all()}
    assert running.isdisjoint({runner.pid, kubelet.pid, grandchild.pid})
    assert {shim.pid, other.pid} <= running


@pytest.mark.parametrize(
    ("address", "seconds"),
    [("10.0.0.10", (0.0, 1.0)), ("127.0.0.1", (2.0, 2.6)), ("10.0.0.77", (3.0, 3.6))],
    ids=["answers", "refuses", "is silent"],
)
def test_a_probe_continues_over_the_slices_it_is_waited_for_in(
    bench: Bench, address: str, seconds: tuple[float, float]
):
    bench.machine.world.listen("10.0.0.10", 6443)
    before = bench.machine.time.seconds

    assert call(bench, f"Test-Listener -Ip '{address}' -Port 6443").objects == [address == "10.0.0.10"]

    assert seconds[0] <= bench.machine.time.seconds - before <= seconds[1]


def listen(bench: Bench, address: str, port: int) -> None:
    """A process of the machine itself listens at one address."""
    bench.machine.sockets.listen(bench.machine.processes.all()[0], port, address=address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_listener_is_found_at_an_address_of_either_family(bench: Bench, address: str):
    listen(bench, address, 6443)

    assert call(bench, f"Test-Listener -Ip '{address}' -Port 6443").objects == [True]


def test_a_server_is_reached_at_an_ipv6_address(bench: Bench):
    listen(bench, "::1", 6443)
    expression = "$script:Node = @{ server_host = '::1'; server_port = 6443 }; (Connect-Server).server"

    assert call(bench, expression).objects == ["::1"]


def test_a_client_without_a_family_speaks_ipv4_alone(bench: Bench):
    listen(bench, "::1", 6443)

    answer = call(bench, "[Net.Sockets.TcpClient]::new().ConnectAsync('::1', 6443).Wait(3000)")

    assert answer.message.startswith("None of the discovered or specified addresses match")


def test_a_target_without_an_address_of_the_clients_family_does_not_end_the_others(bench: Bench):
    """A name with an IPv6 address alone ends in an exception without an error code."""
    listen(bench, "::1", 80)
    bench.machine.world.listen("10.0.0.10", 80)
    bench.machine.files.write(HOSTS, b"::1 six.test\r\n")
    found: list[Any] = []
    targets = "six.test:80,::1:80,10.0.0.10:80,127.0.0.1:80"
    with bench.machine.session("Administrator") as session, bench.machine.acting():
        run_script(session, reach(), {"Targets": targets}, emit=lambda _, value: found.append(value))

    assert [json.loads(one)["state"] for one in found] == ["silent", "open", "open", "refused"]


def test_no_call_into_dotnet_waits_for_longer_than_a_stop_may_take():
    """PowerShell notices a stop between statements, not within a call: winboot waits for programs and downloads in slices."""
    found = {(name, wait) for name, text in library_files().items() for wait in WAITS.findall(text)}

    assert {name for name, _ in found} >= {"program.ps1", "artifacts.ps1", "state.ps1"}
    assert {one for one in found - UNCUT if not one[1].isdigit() or int(one[1]) > 1000} == set()


@pytest.mark.parametrize(
    ("code", "times", "id_", "tries"),
    [
        pytest.param(32, 3, "", 4, id="held by a scanner for a moment"),
        pytest.param(32, 100, "ProgramNotStarted", 9, id="held for good"),
        pytest.param(193, 100, "ProgramNotStarted", 1, id="no program of this machine"),
    ],
)
def test_a_program_that_does_not_start_is_named_and_a_held_one_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, code: int, times: int, id_: str, tries: int
):
    """On Windows PowerShell 5.1 the text of the exception does not name the program."""
    bench.machine.programs.add("w32tm", Canned(Exit(0, b"ok")))
    tried: list[str] = []

    def is_program(runtime: Any, name: str) -> bool:
        tried.append(name)
        if len(tried) <= times:
            raise Win32Exception("as Windows says it", code)
        return True

    monkeypatch.setattr(process, "_is_program", is_program)

    answer = call(bench, f"Invoke-Program '{PATH}'")

    assert answer.id == (f"winboot.{id_}" if id_ else "")
    if id_:
        assert f"{PATH} cannot be started: as Windows says it (Windows error {code})" in answer.message
    assert len(tried) == tries
