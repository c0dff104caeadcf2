"""No secret appears where it does not belong, after any fault of a join; the search finds each secret that is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import yaml
from winboot_lab import node as lab_node
from winboot_lab.cli.staging import Staged, stage
from winboot_lab.cluster import LabCluster
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.kinds import SECRETS
from winboot_lab.engine.run import run_script
from winboot_lab.up import Lab, NodePlan
from winboot_lab.windows.accounts import USERS
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.registry import HKLM
from winboot_lab.windows.tasks import Action, Task
from winboot_lab.wsman.faults import Drop

from tests.lab.canaries import Canaries, compressed
from tests.lab.witness import Tap, Witness, files_of, on_machine
from winboot.base.errors import InvalidInput
from winboot.config.inventory import load_inventory

ROOT: Final = Path(__file__).parents[2]
HOSTS: Final = r"C:\ProgramData\containerd\certs.d\private.corp.example\hosts.toml"
PROXY: Final = r"C:\k\kube-proxy.kubeconfig"
PKI: Final = r"C:\var\lib\kubelet\pki"
# Characters that JSON, XML, URLs and PowerShell write in other ways; the letters between them are what is looked for.
REGISTRY: Final = "canary+of/the=registry-5d1f"
GIVEN: Final = "given0.canaryofthetoken"
# Files of winboot's that a plan shows as a diff.
SHOWN: Final = (r"C:\var\lib\kubelet\config.yaml", r"C:\Program Files\containerd\config.toml")
LATER: Final = (
    ("status",),
    ("preflight",),
    ("report", "last", "--report", "reports/last.html"),
    ("log", "last"),
    ("runs",),
    ("explain", "HashMismatch"),
)
# The commands that change existing nodes or give something away. Without a terminal they ask no question.
MORE = (
    ("userdata", "--for", "file", "--host", "win-1", "--inline", "given/win-1.ps1"),
    ("fleet", "render", "--image", "registry.lab/winboot:1", "--trust"),
    *(("manifests", name) for name in ("rbac", "operator", "remover", "verifier", "flannel")),
    ("verify", "--limit", "win-2"),
    ("upgrade", "--limit", "win-2", "--yes", "--output", "json", "--report", "reports/upgraded.html"),
    ("rollback", "win-2", "--yes", "--verbose", "--log-file", "reports/rollback.log"),
    ("remove", "--yes", "--output", "json", "--report", "reports/removed.html"),
)
OLD, NEW = "1.33.6", "1.34.2"
# The places where a secret may be: only SYSTEM and administrators can read them.
PLACES: Final = {
    "registry password": re.escape(HOSTS) + r"(\.winboot-new|\.winboot-old)?",
    "minted token": r"C:\\k\\bootstrap-kubeconfig(\.winboot-new)?",
    "given token": r"C:\\k\\bootstrap-kubeconfig(\.winboot-new)?",
    "token of kube-proxy": r"C:\\k\\kube-proxy\.kubeconfig(\.winboot-new)?",
    "key of the kubelet": re.escape(PKI) + r"\\kubelet-(client|server)-[\w-]+\.pem",
}


@dataclass
class Story:
    """Joins over the wire with all faults on the way, and all output meanwhile."""

    machines: list[Machine]
    witness: Witness
    folder: Path
    cluster: LabCluster
    run: Callable[..., int] = field(init=False)
    # The profiles want another version of Kubernetes.
    wants: Callable[[str], object] = field(init=False)
    secrets: Callable[[], dict[str, str]] = field(init=False)
    canaries: Canaries = field(init=False)
    wire: bytes = b""
    scripts: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)

    @property
    def reports(self) -> list[dict[str, Any]]:
        """The nodes' parts of the JSON reports."""
        lines = [json.loads(line) for text in self.console for line in text.splitlines() if line[:1] == "{"]
        return [line for line in lines if line["kind"] == "node"]


def own_kubeconfig(cluster: LabCluster) -> str:
    """A kubeconfig that an administrator made for kube-proxy alone, with a token of its service account."""
    token, _ = cluster.authenticator.issue_token(
        "kube-system", "kube-proxy", timedelta(days=30), cluster.now()
    )
    named = {"name": "kube-proxy", "user": {"token": token}}
    context = {"name": "c", "context": {"cluster": "c", "user": "kube-proxy"}}
    return yaml.safe_dump({"users": [named], "contexts": [context], "current-context": "c"})


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Two bare machines, one with a minted token and one with a given one, joined by the command itself."""
    folder = tmp_path_factory.mktemp("canary")
    plans = [NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2019", "10.0.1.12")]
    with pytest.MonkeyPatch.context() as patch, Lab(nodes=plans) as lab:
        witness = Witness(patch)
        taps = {name: Tap(node.endpoint.http_port or 0) for name, node in lab.nodes.items()}
        wishes = _wishes(folder, lab.cluster)

        def wants(version: str) -> Staged:
            staged = stage(lab, folder, wishes={**wishes, "kubernetes": {"version": version}})
            _two_profiles(folder, {name: tap.port for name, tap in taps.items()})
            return staged

        staged = wants(OLD)
        for name, node in lab.nodes.items():
            node.machine.manage_at(*node.machine.power.management_ports, taps[name].port)
        lab.world.proxy("proxy.lab", 3128)
        lab.outside.serve_registry("private.corp.example")
        _give_token(lab.cluster)
        told = Story([node.machine for node in lab.nodes.values()], witness, folder, lab.cluster)
        _listen(patch, told, _cutting(lab))
        run = _Command(folder, told, {staged.password_variable: lab.password})
        told.run, told.wants = run, wants
        told.secrets = lambda: _secrets(lab, folder)
        _play(lab, run)
        told.wire = b"".join(tap.heard for tap in taps.values())
        told.canaries = Canaries(told.secrets())
        yield told
        for tap in taps.values():
            tap.close()


def _wishes(folder: Path, cluster: LabCluster) -> dict[str, Any]:
    """Every place of a profile where a secret may be named."""
    (folder / "kube-proxy.kubeconfig").write_text(own_kubeconfig(cluster), encoding="utf-8")
    login = {"mirrors": ["https://mirror.lab"], "user": "me", "password": {"env": "REGISTRY_CANARY"}}
    return {
        "kube_proxy": {"kubeconfig": {"file": "./kube-proxy.kubeconfig"}},
        "runtime": {"registries": {"private.corp.example": login}},
        # Proves that the environment of a service is looked at, too.
        "proxy": {"http": "http://proxy.lab:3128", "no_proxy": [".lab"]},
    }


def _two_profiles(folder: Path, ports: dict[str, int]) -> None:
    """win-2 gets its token from the environment; both are reached over the taps."""
    profile = yaml.safe_load((folder / "profile.yaml").read_text(encoding="utf-8"))
    program = "import pathlib, sys; print(pathlib.Path(sys.argv[1]).read_text())"
    profile["cluster"]["kubeconfig"] = {
        "command": [sys.executable, "-c", program, str(folder / "kubeconfig")]
    }
    (folder / "profile.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    profile["cluster"]["bootstrap_token"] = {"env": "TOKEN_CANARY"}
    (folder / "given.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    inventory = yaml.safe_load((folder / "inventory.yaml").read_text(encoding="utf-8"))
    for group in inventory["groups"].values():
        for name, host in group["hosts"].items():
            host["connection"]["port"] = ports[name]
            if name == "win-2":
                group["profile"] = "./given.yaml"
    (folder / "inventory.yaml").write_text(yaml.safe_dump(inventory), encoding="utf-8")


def _give_token(cluster: LabCluster) -> None:
    name, _, secret = GIVEN.partition(".")
    data = {
        "token-id": name,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }
    body = {
        "metadata": {"name": f"bootstrap-token-{name}"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": data,
    }
    cluster.request(ADMIN, "POST", "/api/v1/namespaces/kube-system/secrets", body)


def _listen(patch: pytest.MonkeyPatch, story: Story, hear: Callable[[Machine, str], None]) -> None:
    """Keep each script that a machine is sent, and each line it says, before anybody has hidden something in it."""
    run = lab_node.Runner.run

    def listening(runner: lab_node.Runner, script: str, parameters: Any, emit: Any, cancelled: Any) -> Any:
        story.scripts.append(f"{parameters.get('NodePart', '')}{script}")

        def tell(stream: Any, value: Any) -> None:
            story.said.append(f"{stream}: {value}")
            emit(stream, value)
            hear(runner._machine, str(value))

        return run(runner, script, parameters, tell, cancelled)

    patch.setattr(lab_node.Runner, "run", listening)


def _cutting(lab: Lab) -> Callable[[Machine, str], None]:
    """When the first of the credentials is written, win-1 loses all its shells and is back at once."""
    node = lab.nodes["win-1"]
    left = [node.endpoint]

    def hear(machine: Machine, line: str) -> None:
        if (
            left
            and machine is node.machine
            and '"step":"kubelet-credentials"' in line
            and '"state":"changed"' in line
        ):
            endpoint = left.pop()
            # Waited for: the rest of the script takes less time than the news would.
            lab.farm.down(endpoint)
            lab.farm.up(endpoint)

    return hear


class _Command:
    """winboot as a process of its own, with folders of its own for all that it leaves behind."""

    def __init__(self, folder: Path, story: Story, secrets: dict[str, str]) -> None:
        self._folder = folder
        self.story = story
        for name in ("state", "temp", "reports"):
            (folder / name).mkdir()
        self._environment = {
            **os.environ,
            **secrets,
            "REGISTRY_CANARY": REGISTRY,
            "TOKEN_CANARY": GIVEN,
            "WINBOOT_STATE": str(folder / "state"),
            "TMPDIR": str(folder / "temp"),
        }

    def __call__(self, *words: str) -> int:
        done = subprocess.run(
            [sys.executable, "-m", "winboot", *words],
            cwd=self._folder,
            env={**self._environment, "PYTHONPATH": str(ROOT)},
            check=False,
            capture_output=True,
            text=True,
        )
        self.story.console += [done.stdout, done.stderr]
        self.story.codes.append(done.returncode)
        return done.returncode


def _play(lab: Lab, run: _Command) -> None:
    """A join with a failing step and lost connections, one that finishes it, and what people look at afterwards."""
    for node in lab.nodes.values():
        # The secret is in the script's hands when this fails, and a half-done file is left behind.
        node.machine.files.make_directory(HOSTS)
    for skip in (3, 9, 14):
        lab.nodes["win-1"].endpoint.faults.on("Receive", Drop(handled=bool(skip % 2)), skip=skip)
    run("render", "--limit", "win-1")
    run("join", "--output", "json", "--report", "reports/failed.html")
    for node in lab.nodes.values():
        node.machine.files.delete_directory(HOSTS, recurse=True)
    kept = ("--verbose", "--log-file", "reports/join.log")
    run("join", "--output", "json", "--report", "reports/joined.html", *kept)
    run("join", "--output", "junit", "--report", "reports/again.json")
    run("plan", "--report", "reports/plan.xml")
    written = list(run.story.witness.written)
    for node in lab.nodes.values():
        _damage(node.machine)
    # What these hands write where it does not belong is not winboot's.
    run.story.witness.written[:] = written
    run("plan", "--out", "reports/approved.json", "--report", "reports/damaged.html")
    run("show", "reports/approved.json")
    # What people look at later, and the commands that look at a node that is there: they see the damaged files, too.
    for words in LATER:
        run(*words)


def _damage(machine: Machine) -> None:
    """Add a secret to a file of its own, to another secret's file, and to files where no secret belongs."""
    kept = machine.files.read(HOSTS)
    for path in (HOSTS, PROXY):
        machine.files.write(path, machine.files.read(path) + kept)
    for path in SHOWN:
        machine.files.write(path, machine.files.read(path) + b"\n# kept from hosts.toml\n" + kept)


def _secrets(lab: Lab, folder: Path) -> dict[str, str]:
    """The secrets by name: those we gave away, those that were made on the way."""
    minted = [
        b64decode(change.object["data"]["token-secret"]).decode()
        for change in lab.cluster.store._log
        if change.type == "ADDED"
        and change.key[1] == SECRETS.plural
        and "token-secret" in change.object.get("data", {})
        and "labels" in change.object["metadata"]
    ]
    keys = [
        _inside(one.content.decode())
        for node in lab.nodes.values()
        for one in files_of(node.machine)
        if one.path.startswith(PKI) and b"PRIVATE KEY" in one.content
    ]
    own = yaml.safe_load((folder / "kube-proxy.kubeconfig").read_text(encoding="utf-8"))
    admin = yaml.safe_load((folder / "kubeconfig").read_text(encoding="utf-8"))
    return {
        "password of the login": lab.password,
        "registry password": REGISTRY,
        "given token": GIVEN.partition(".")[2],
        # Header and claims are no secret: without the signature they open nothing.
        "token of kube-proxy": own["users"][0]["user"]["token"].rpartition(".")[2],
        "key of the administrator": _inside(b64decode(admin["users"][0]["user"]["client-key-data"]).decode()),
        **{f"minted token {n}": token for n, token in enumerate(minted)},
        **{f"key of the kubelet {n}": key for n, key in enumerate(keys)},
    }


def _inside(pem: str) -> str:
    """A line out of the middle of a private key."""
    return pem.partition("PRIVATE KEY-----")[2].split()[1]


# ---- what was looked at --------------------------------------------------------------------------------


@pytest.mark.check
def test_the_story_has_a_restart_a_detached_run_a_failure_and_a_lost_connection(story: Story) -> None:
    """Otherwise the rest would prove little."""
    failed = {step["step"] for node in story.reports for step in node["steps"] if step["state"] == "failed"}

    assert story.codes[:7] == [0, 1, 0, 0, 0, 2, 0], "\n".join(story.console)
    assert "containerd-config" in failed
    for name in ("win-1", "win-2"):
        mine = [node for node in story.reports if node["node"] == name]
        assert sum(node["reboots"] for node in mine) and sum(node["detached"] for node in mine)
        assert mine[-1]["ready"]
    assert sum(node["reconnects"] for node in story.reports)
    later = dict(zip((words[0] for words in LATER), story.codes[7:], strict=True))
    assert {later[name] for name in ("report", "log", "runs", "explain")} == {0}, later
    assert set(later.values()) <= {0, 2}, (later, story.console[14:])
    assert not [refusal for machine in story.machines for refusal in machine.refusals]


@pytest.mark.check
def test_every_secret_was_where_it_belongs(story: Story) -> None:
    """Without secrets in their places, the search could not find one anywhere."""
    stored = {
        hit.partition(" as ")[0]
        for one in story.witness.written
        for hit in story.canaries.found_in(one.content)
    }

    assert {_kind(name) for name in stored} == set(PLACES)
    assert len([name for name in story.canaries.names if name.startswith("key of the kubelet")]) == 4


# ---- where no secret may be ----------------------------------------------------------------------------


@pytest.mark.check
def test_no_script_holds_a_secret(story: Story) -> None:
    rendered = story.console[0]

    assert "$steps = @(" in rendered and any("$steps = @(" in script for script in story.scripts)
    assert story.canaries.leaks([("a rendered script", rendered)]) == []
    assert story.canaries.leaks([("a script that was sent", script) for script in story.scripts]) == []


@pytest.mark.check
def test_no_event_holds_a_secret(story: Story) -> None:
    """Before the journal hides anything."""
    assert any('"event":"detached"' in line for line in story.said)
    assert story.canaries.leaks([("a line of a script", line) for line in story.said]) == []


@pytest.mark.check
def test_nothing_that_the_command_leaves_or_says_holds_a_secret(story: Story) -> None:
    """Journals, reports in all forms, both streams; and no file is left behind where temporary ones go."""
    files = _left(story)

    names = {name for name, _ in files}
    assert {Path(name).suffix for name in names} == {"", ".html", ".json", ".jsonl", ".log", ".xml"}
    assert not [name for name in names if name.startswith("temp")]
    assert story.canaries.leaks(files) == []
    assert story.canaries.leaks([("stdout or stderr", text) for text in story.console]) == []


def _left(story: Story) -> list[tuple[str, bytes]]:
    """The files that the commands have left behind, by their path in the story's folder."""
    kept = [path for name in ("state", "reports", "temp") for path in (story.folder / name).rglob("*")]
    return [(str(path.relative_to(story.folder)), path.read_bytes()) for path in kept if path.is_file()]


@pytest.mark.check
def test_a_plan_of_damaged_files_says_that_they_differ_and_shows_no_secret(story: Story) -> None:
    """The plan file, what `show` makes of it, the plan on the screen, and the page."""
    plan = (story.folder / "reports" / "approved.json").read_text(encoding="utf-8")
    page = (story.folder / "reports" / "damaged.html").read_text(encoding="utf-8")
    # Two streams of each command: the sixth and the seventh.
    screen, shown = story.console[10], story.console[12]

    found = json.loads(plan)["nodes"]
    for name in ("win-1", "win-2"):
        keys = {one["key"] for step in found[name]["steps"].values() for one in step["differences"]}
        assert {f"logins:{HOSTS}", f"form:{PROXY}", *(f"file:{path}" for path in SHOWN)} <= keys
    places = {"the plan file": plan, "show": shown, "the screen": screen, "the page": page}
    assert all(HOSTS in text for text in (shown, page))
    assert story.canaries.leaks(places.items()) == []


@pytest.mark.check
def test_nothing_on_the_machines_shows_a_secret_but_its_own_file(story: Story) -> None:
    """Command lines and environments of all processes there ever were, tasks, event logs, registry, names of files; and
    what module logging would have written of every cmdlet."""
    seen = [*story.witness.things(), *(thing for machine in story.machines for thing in on_machine(machine))]
    places = {place.split(" ")[0] for place, _ in seen}

    assert {"command", "environment", "task", "event", "module", "registry", "name"} <= places
    assert any("http://proxy.lab" in str(data) for place, data in seen if "containerd: Environment" in place)
    assert story.canaries.leaks(seen) == []


@pytest.mark.check
def test_files_with_a_secret_are_private_at_any_moment(story: Story) -> None:
    wrong = []
    for one in story.witness.written:
        for name in {hit.partition(" as ")[0] for hit in story.canaries.found_in(one.content)}:
            if not re.fullmatch(PLACES[_kind(name)], one.path, re.IGNORECASE):
                wrong.append(f"{name} in {one.path}")
            elif one.strangers:
                wrong.append(f"{name} in {one.path} is read by {sorted(one.strangers)}")

    assert wrong == []


@pytest.mark.check
def test_the_token_is_gone_once_the_kubelet_has_its_certificate(story: Story) -> None:
    left = [one for machine in story.machines for one in files_of(machine)]
    tokens = {
        hit
        for one in left
        for hit in story.canaries.found_in(one.content)
        if hit.startswith(("minted token", "given token"))
    }
    secrets = [one["metadata"]["name"] for one in story.cluster.store.all(SECRETS)]

    assert tokens == set()
    assert [name for name in secrets if name.startswith("bootstrap-token")] == ["bootstrap-token-given0"]


@pytest.mark.check
def test_the_cluster_gets_no_secret_but_its_own_tokens(story: Story) -> None:
    objects = [
        (f"{change.type} {change.key}", json.dumps(change.object))
        for change in story.cluster.store._log
        if change.key[1] != SECRETS.plural
    ]

    assert any("nodes" in place for place, _ in objects)
    assert story.canaries.leaks(objects) == []


@pytest.mark.check
def test_no_secret_is_readable_on_the_wire(story: Story) -> None:
    assert b"multipart/encrypted" in story.wire and b"Negotiate" in story.wire
    assert story.canaries.leaks([("the wire", story.wire)]) == []


@pytest.mark.matrix
def test_no_command_that_changes_nodes_or_gives_something_away_shows_a_secret(story: Story) -> None:
    """It comes last: the machines are bare afterwards. Only the file next to a first-boot script holds a token, and only its
    owner can read it."""
    (story.folder / "given").mkdir()
    said, sent = len(story.said), len(story.scripts)
    # Keys of the kubelets go with them.
    before = {f"{name} of before": secret for name, secret in story.secrets().items()}
    codes: list[tuple[str, int]] = []
    for words in MORE:
        story.wants(NEW if words[0] == "upgrade" else OLD)
        codes.append((words[0], story.run(*words)))

    # What these prove of a node counts seconds of its clock: a busy computer is enough for a failure.
    proving = ("verify", "upgrade", "rollback")
    wrong = [one for one in codes if one[1] and not (one[0] in proving and one[1] in (1, 2, 3))]
    assert wrong == [], "\n".join(story.console[-40:])
    canaries = Canaries(before | story.secrets())
    given = story.folder / "given" / "win-1.secrets.json"
    assert given.stat().st_mode & 0o077 == 0
    assert any("minted token" in hit for hit in canaries.found_in(given.read_bytes()))
    assert len(story.said) > said and len(story.scripts) > sent
    places: list[tuple[str, bytes | str]] = [
        ("the script of first boot", (story.folder / "given" / "win-1.ps1").read_bytes()),
        *_left(story),
        *(("stdout or stderr", text) for text in story.console),
        *(("a line of a script", line) for line in story.said),
        *(("a script that was sent", text) for text in story.scripts),
        *story.witness.things(),
        *(thing for machine in story.machines for thing in on_machine(machine)),
    ]
    assert canaries.leaks(places) == []


def test_a_proxy_with_a_password_is_refused(tmp_path: Path) -> None:
    (tmp_path / "profile.yaml").write_text(
        "kubernetes: {version: '1.34.2'}\nproxy: {http: 'http://me:canary@proxy:3128'}\n"
    )
    inventory = "groups: {g: {profile: ./profile.yaml, os: '2022', hosts: {win-1: {address: 10.0.0.1}}}}\n"
    (tmp_path / "inventory.yaml").write_text(inventory)

    with pytest.raises(InvalidInput) as refused:
        load_inventory(tmp_path / "inventory.yaml")

    told = "\n".join(map(str, refused.value.problems))
    assert "contains a user or a password" in told


# ---- the search itself ---------------------------------------------------------------------------------

PLANTED: Final = "planted/secret+of=the-test"
DISGUISES: Final[dict[str, Callable[[str], bytes | str]]] = {
    "in clear": lambda s: f"token: {s}!",
    "as UTF-16": lambda s: s.encode("utf-16"),
    "in a URL": lambda s: f"http://u:{quote(s, safe='')}@host",
    "in JSON": lambda s: json.dumps({"a": json.dumps({"b": s})}),
    "as Base64": lambda s: b64encode(s.encode()),
    "as Base64, one byte in": lambda s: b64encode(f"u:{s}".encode()),
    "as Base64, two bytes in": lambda s: b64encode(f"x{s}y".encode()),
    "as Base64 of UTF-16": lambda s: b64encode(f"'{s}'".encode("utf-16-le")),
    "as hex": lambda s: s.encode().hex().upper(),
    "as BitConverter writes it": lambda s: s.encode().hex("-").upper(),
    "as hex of UTF-16": lambda s: s.encode("utf-16-le").hex(),
    "compressed": lambda s: b"head" + compressed(s.encode()),
    "deflated": lambda s: zlib.compress(f"<{s}>".encode()),
    "in a compressed log of an encoded command": lambda s: compressed(
        b"powershell -EncodedCommand "
        + b64encode(f"$x = '{b64encode(s.encode()).decode()}'".encode("utf-16-le"))
    ),
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_secret_is_found_in_every_disguise(disguise: str) -> None:
    canaries = Canaries({"it": PLANTED, "another": "canary-that-is-elsewhere"})

    found = canaries.found_in(DISGUISES[disguise](PLANTED))

    assert {hit.partition(" as ")[0] for hit in found} == {"it"}
    assert canaries.found_in(DISGUISES[disguise]("something quite harmless here")) == ()


def _run(machine: Machine, script: str) -> None:
    with machine.session("Administrator") as session, machine.acting():
        run_script(session, script, {}, emit=lambda stream, value: None)


def _task_for_a_moment(machine: Machine) -> None:
    task = Task("t", "\\", [Action("a.exe", PLANTED)], [])
    machine.tasks.register(task)
    machine.tasks.unregister(task)


TRACES: Final[dict[str, Callable[[Machine], object]]] = {
    "command line": lambda m: m.processes.spawn(rf"C:\Windows\System32\sc.exe query '{PLANTED}'"),
    "environment": lambda m: m.processes.spawn(
        r"C:\Windows\System32\sc.exe query", environment={"TOKEN": PLANTED}
    ),
    "event log": lambda m: m.events.write("Application", "me", 1, f"hello {PLANTED}"),
    "registry": lambda m: m.registry.set(
        rf"{HKLM}\SOFTWARE\Mine", "Blob", "Binary", PLANTED.encode("utf-16-le")
    ),
    "registry, for a moment": lambda m: (
        m.registry.set(rf"{HKLM}\SOFTWARE\Mine", "It", "String", PLANTED),
        m.registry.set(rf"{HKLM}\SOFTWARE\Mine", "It", "String", ""),
    ),
    "service": lambda m: m.services.create("mine", rf"C:\a.exe --token={PLANTED}"),
    "task": _task_for_a_moment,
    "name of a file": lambda m: m.files.write(rf"C:\{quote(PLANTED, safe='')}", b""),
    "module logging": lambda m: _run(
        m, f'ConvertFrom-Json -InputObject \'{{"a": "{PLANTED}"}}\' | Select-Object -First 1'
    ),
}


@pytest.mark.parametrize("trace", TRACES)
def test_a_secret_is_found_wherever_a_machine_shows_it(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Witness(monkeypatch)
    machine = Machine()
    TRACES[trace](machine)

    leaks = Canaries({"it": PLANTED}).leaks([*witness.things(), *on_machine(machine)])

    assert leaks
    assert any(trace.partition(",")[0].split(" ")[0] in place or trace == "service" for place in leaks), leaks


def test_a_file_that_others_could_read_for_a_moment_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Witness(monkeypatch)
    machine = Machine()

    machine.files.write(r"C:\it", PLANTED.encode())
    machine.files.write(r"C:\it", b"")

    (one,) = [w for w in witness.written if Canaries({"it": PLANTED}).found_in(w.content)]
    assert (one.path, USERS in one.strangers) == (r"C:\it", True)


def _kind(name: str) -> str:
    return name.rstrip(" 0123456789")
