"""A look at N lab nodes: winboot's one pipeline against Ansible's twenty tasks, and against the protocol's floor.

Ansible (ansible-core with its psrp plugin) lives in `.bench-venv`, which `make bench-peer` makes; without it that part
is skipped and says so. Each of its tasks is a `raw` line, the cheapest task that Ansible has.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import yaml
from winboot_lab.cli.staging import PASSWORD_VARIABLE, stage
from winboot_lab.up import Lab

from benchmarks import Ratio, interleaved
from winboot.cli.options import Output
from winboot.cli.output import progress
from winboot.cli.targets import load_targets, run_context
from winboot.operations.join import Options, survey

NODES, TASKS, ROUNDS = 4, 20, 2
ANSIBLE = Path(__file__).parents[1] / ".bench-venv" / "bin" / "ansible-playbook"
# Login, opening, one pipeline, end, sealed by NTLM: tests/transport/test_floor.py counts them.
FLOOR = 8


@dataclass(frozen=True, slots=True)
class Site:
    """A lab in another process: its files, its ports, and a line that tells the requests since the last call."""

    inventory: Path
    ports: tuple[int, ...]
    password: str
    line: Connection

    def requests(self) -> int:
        """Requests of all nodes since the last call."""
        self.line.send("count")
        answer: int = self.line.recv()
        return answer


def _serve(line: Connection, folder: Path) -> None:
    with Lab(nodes=NODES) as lab:
        staged = stage(lab, folder)
        ends = [node.endpoint for node in lab.nodes.values()]
        line.send((staged.inventory, tuple(end.http_port for end in ends), lab.password))
        while line.recv() == "count":
            line.send(sum(len(end.requests) for end in ends))
            for end in ends:
                end.recount()


@contextmanager
def _site() -> Iterator[Site]:
    here, there = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there, Path(folder)))
        process.start()
        inventory, ports, password = here.recv()
        os.environ[PASSWORD_VARIABLE] = password
        yield Site(inventory, ports, password, here)
        here.send("end")
        process.join()


def _look(site: Site) -> None:
    specs = load_targets(site.inventory, ())
    names = [spec.node.name for spec in specs]
    with progress(Output.json, names) as listener, run_context(specs, listener) as (world, tuned):
        report = survey(specs, world, tuned(Options()))
    assert len(report.nodes) == NODES
    assert all(node.failure is None for node in report.nodes)


def _playbook(folder: Path, site: Site, count: int) -> Callable[[], None]:
    common: dict[str, Any] = {
        "ansible_connection": "psrp",
        "ansible_host": "127.0.0.1",
        "ansible_user": "Administrator",
        "ansible_password": site.password,
        "ansible_psrp_protocol": "http",
        "ansible_psrp_auth": "ntlm",
        "ansible_shell_type": "powershell",
    }
    hosts = {f"bench-{port}": {"ansible_port": port} for port in site.ports}
    (folder / "hosts.json").write_text(json.dumps({"all": {"vars": common, "hosts": hosts}}))
    tasks = [{"raw": "[Environment]::OSVersion.Version.ToString()"}] * count
    play = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    book = folder / f"{count}-tasks.yaml"
    book.write_text(yaml.safe_dump(play))
    command = [str(ANSIBLE), "--inventory", str(folder / "hosts.json"), "--forks", str(NODES)]

    def run() -> None:
        subprocess.run(
            [*command, str(book)],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "ANSIBLE_HOME": str(folder / "home"), "LC_ALL": "C.UTF-8"},
        )

    return run


def measure() -> list[Ratio]:
    """Requests of a node against the floor; time and requests against Ansible where it is installed."""
    with _site() as site, tempfile.TemporaryDirectory() as folder:
        _look(site)
        site.requests()
        _look(site)
        ours = site.requests() / NODES
        found = [Ratio("look: requests of a node", ours, FLOOR, "", "the protocol's floor")]
        if not ANSIBLE.is_file():
            print("  skipped: Ansible is not in .bench-venv (`make bench-peer`)")
            return found
        theirs, single = (_playbook(Path(folder), site, count) for count in (TASKS, 1))
        costs = interleaved({"ours": lambda: _look(site), "peer": theirs, "single": single}, ROUNDS)
        site.requests()
        theirs()
        asked = site.requests() / NODES
    peer = f"Ansible, {TASKS} raw tasks"
    return [
        *found,
        Ratio(f"look at {NODES} nodes: time", costs["ours"].wall_ms, costs["peer"].wall_ms, "ms", peer),
        Ratio(
            f"look at {NODES} nodes: time",
            costs["ours"].wall_ms,
            costs["single"].wall_ms,
            "ms",
            "Ansible, 1 raw task",
        ),
        Ratio("look: requests of a node", ours, asked, "", peer),
    ]
