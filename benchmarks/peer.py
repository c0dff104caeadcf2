"""A first look at N nodes against Ansible's twenty tasks, and how much of the distance a bare pipeline has.

Ansible (ansible-core with its psrp plugin) lives in `.bench-venv`, which `make bench-peer` makes; without it this benchmark
is skipped and says so. Its answers are canned, like winboot's, so the figure is its own work, not a machine's. Its tasks are
the cheapest that it has: one small module without arguments, and `raw` lines. Its settings are its best: as many forks as
winboot has threads, no facts, the free strategy. Its psrp always has pipelining.
BENCH_NODES says how many nodes (50).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks import Figure, interleaved, quotients
from benchmarks.bare import WORKERS, fleet
from benchmarks.canned import PASSWORD, USER, endpoints
from benchmarks.look import ours, site

NODES: Final = int(os.environ.get("BENCH_NODES", "50"))
TASKS, ROUNDS = 20, 1
ANSIBLE: Final = Path(__file__).parents[1] / ".bench-venv" / "bin" / "ansible-playbook"
_MODULE: Final = """#!powershell
#AnsibleRequires -CSharpUtil Ansible.Basic
$module = [Ansible.Basic.AnsibleModule]::Create($args, @{})
$module.ExitJson()
"""


def measure() -> Iterator[Figure]:
    """How many times Ansible's time ours is, as a part of how many times it is the bare pipeline's."""
    if not ANSIBLE.is_file():
        print("skipped: Ansible is not in .bench-venv (`make bench-peer`)")
        return
    with site(NODES) as place:
        for latency in (False, True):
            with (
                endpoints(NODES, place.steps, latency=latency) as peers,
                tempfile.TemporaryDirectory() as name,
            ):
                folder = Path(name)
                costs = interleaved(
                    {
                        "ours": ours(place, peers.ports),
                        "floor": lambda ports=peers.ports: fleet(ports, place.script.text),  # type: ignore[misc]
                        "raw": _playbook(
                            folder, peers.ports, "raw", "[Environment]::OSVersion.Version.ToString()"
                        ),
                        "modules": _playbook(folder, peers.ports, "bench_ping", {}),
                    },
                    ROUNDS,
                )
            label = "latency" if latency else "fast host"
            for kind in ("raw", "modules"):
                yield _figure(f"first look at {NODES} nodes, {label}, {TASKS} {kind}", costs, kind)


def _figure(name: str, costs: Any, kind: str) -> Figure:
    ahead = quotients(costs[kind].wall_ms, costs["ours"].wall_ms)
    floor = quotients(costs[kind].wall_ms, costs["floor"].wall_ms)
    note = f"Ansible takes {ahead[0]:.1f} times ours, and {floor[0]:.1f} times a bare pipeline's"
    return Figure(name, quotients(ahead, floor), 0.8, note, "at least")


def _playbook(folder: Path, ports: Sequence[int], task: str, arguments: object) -> Callable[[], None]:
    common: dict[str, Any] = {
        "ansible_connection": "psrp",
        "ansible_host": "127.0.0.1",
        "ansible_user": USER,
        "ansible_password": PASSWORD,
        "ansible_psrp_protocol": "http",
        "ansible_psrp_auth": "ntlm",
        "ansible_shell_type": "powershell",
    }
    hosts = {f"bench-{port}": {"ansible_port": port} for port in ports}
    (folder / "hosts.json").write_text(
        json.dumps({"all": {"vars": common, "hosts": hosts}}), encoding="utf-8"
    )
    (folder / "library").mkdir(exist_ok=True)
    (folder / "library" / "bench_ping.ps1").write_text(_MODULE, encoding="utf-8")
    play = [{"hosts": "all", "gather_facts": False, "strategy": "free", "tasks": [{task: arguments}] * TASKS}]
    book = folder / f"{task}.yaml"
    book.write_text(yaml.safe_dump(play), encoding="utf-8")
    forks = str(min(WORKERS, len(ports)))
    command = [str(ANSIBLE), "--inventory", str(folder / "hosts.json"), "--forks", forks, str(book)]
    surroundings = {
        **os.environ,
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LIBRARY": str(folder / "library"),
        "LC_ALL": "C.UTF-8",
    }

    def run() -> None:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=surroundings
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]

    return run
