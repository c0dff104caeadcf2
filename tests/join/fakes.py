"""A cluster and a machine that answer at once: the join's own decisions, without a lab."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.config.scene import a_spec
from winboot.base.errors import ClusterConflict, ClusterError
from winboot.base.secret import Secret
from winboot.config.compat.version import Version
from winboot.config.networks.cluster import ResourceKind
from winboot.config.node_spec import NodeSpec, Taint
from winboot.node.fleet import Options, RunContext
from winboot.node.run import Patience, Stop
from winboot.operations.join import join, survey
from winboot.remote.cluster.base import (
    ALL_PODS,
    Belonging,
    Drained,
    DrainRules,
    ExpectedNode,
    GmsaState,
    Judge,
    MissingRight,
    Need,
    NodeFacts,
    NodeWish,
    PodFacts,
    Request,
    Token,
    Verdict,
    Wait,
)
from winboot.remote.cluster.claims import Claim
from winboot.report.events import Difference, Event
from winboot.report.results import NodeReport
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS

UUID = "4c4c4544-0042-3510-8033-b5c04f4e4d32"
STARTING = Taint("winboot.io/starting", "", "NoSchedule")
FLANNEL = {"Network": "10.244.0.0/16", "Backend": {"Type": "host-gw"}}
READS = (
    "node",
    "version",
    "wait_ready",
    "nodes",
    "config map",
    "resources",
    "daemonsets",
    "own rights",
    "rights",
    "pods",
    "belongings",
)
QUICK = Patience(poll=0.0, reconnect=0.0, restart=5.0, detached_margin=5.0, held=5.0)


def a_node(**changes: Any) -> NodeFacts:
    """A live Node that is Ready, on the fake machine."""
    node = NodeFacts(
        name="win-1",
        version="1",
        ready=True,
        reason="KubeletReady",
        message="",
        system_uuid=UUID,
        pod_cidrs=("10.244.1.0/24",),
        labels={},
        annotations={},
        taints=(),
        addresses=(),
        kubelet_version="v1.36.5",
        operating_system="windows",
    )
    return replace(node, **changes)


NO_GMSA = GmsaState(None, {})


@dataclass
class FakeLeases:
    """Claims in memory."""

    kept: dict[str, Claim] = field(default_factory=dict)

    def read(self, node: str) -> Claim | None:
        return self.kept.get(node)

    def create(self, claim: Claim) -> Claim:
        if claim.node in self.kept:
            raise ClusterConflict(f"there is a claim on {claim.node}")
        return self._write(claim, "1")

    def renew(self, claim: Claim) -> Claim:
        if claim.node not in self.kept or self.kept[claim.node].version != claim.version:
            raise ClusterConflict(f"the claim on {claim.node} is another one by now")
        return self._write(claim, str(int(claim.version) + 1))

    def delete(self, node: str) -> None:
        self.kept.pop(node, None)

    def all(self) -> Sequence[Claim]:
        return tuple(self.kept.values())

    def _write(self, claim: Claim, version: str) -> Claim:
        self.kept[claim.node] = written = replace(claim, version=version, acquired=datetime.now(UTC))
        return written


@dataclass
class FakeCluster:
    """Answers from its fields, and records the requests in `calls`."""

    node_facts: NodeFacts | None = None
    server: str = "1.36.5"
    is_insecure: bool = False
    # How far its clock is ahead of the controller's.
    ahead: timedelta | None = None
    # What the Node is after so many seconds of waiting: it is Ready at once by default.
    becomes: NodeFacts | None = field(default_factory=a_node)
    pods_left: tuple[tuple[str, str], ...] = ()
    # Methods that fail, and with what.
    fails: Mapping[str, Exception] = field(default_factory=dict)
    # What preflight reads: by default a cluster that is as the profiles of the tests want it.
    all_nodes: tuple[NodeFacts, ...] = ()
    service_ips: tuple[str, ...] = ()
    net_conf: Mapping[str, Any] | None = field(default_factory=lambda: FLANNEL)
    # Further ConfigMaps of kube-system by name.
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The specs of the objects of each kind, by the kind's name.
    specs: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    unselective: tuple[str, ...] = ()
    proxies: tuple[tuple[str, str], ...] = ()
    gmsa_state: GmsaState = NO_GMSA
    gmsa_refusal: str = ""
    kube_proxies: tuple[str, ...] = ()
    privileged: bool = True
    proxy_configs: tuple[tuple[str, str], ...] = ()
    proxy_config: str = ""
    # The rights that the operator lacks, and those that others lack, as `verb resource`.
    own_lacks: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    pods: tuple[PodFacts, ...] = ()
    running_containers: bool = True
    pod_images: tuple[str, ...] = ()
    kept_things: tuple[Belonging, ...] = ()
    rules: list[DrainRules] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    claims: FakeLeases = field(default_factory=FakeLeases)
    expected: list[ExpectedNode] = field(default_factory=list)
    wishes: list[NodeWish] = field(default_factory=list)
    # How long each token that was minted is to live.
    lifetimes: list[timedelta] = field(default_factory=list)

    def _call(self, name: str, *details: Any) -> None:
        self.calls.append((name, *details))
        if name in self.fails:
            raise self.fails[name]

    @property
    def names(self) -> list[str]:
        """The calls that change something, in order."""
        return [call[0] for call in self.calls if call[0] not in READS]

    def leases(self, namespace: str) -> FakeLeases:
        return self.claims

    def version(self) -> Version:
        self._call("version")
        return Version.parse(self.server)

    def server_time(self) -> datetime:
        return datetime.now(UTC)

    def clock_ahead(self) -> timedelta | None:
        return self.ahead

    def node(self, name: str) -> NodeFacts | None:
        self._call("node", name)
        return self.node_facts

    def wait_ready(self, name: str, *, timeout: float, wait: Wait) -> NodeFacts | None:
        self._call("wait_ready", name)
        return self.becomes

    def mint_token(self, *, node: str, lifetime: timedelta, run: str = "") -> Token:
        self._call("mint_token", node)
        self.lifetimes.append(lifetime)
        return Token("abcdef", Secret("abcdef.0123456789abcdef"), datetime(2030, 1, 1, 12, 0, tzinfo=UTC))

    def forget_token(self, token: str) -> None:
        self._call("forget_token", token)

    def settle_requests(self, expected: ExpectedNode) -> tuple[Verdict, ...]:
        self.expected.append(expected)
        return ()

    def certificate_requests(self) -> tuple[Request, ...]:
        return ()

    def judge_requests(self, judge: Judge) -> tuple[Verdict, ...]:
        return ()

    def change_node(self, name: str, wish: NodeWish) -> tuple[Difference, ...]:
        self._call("change_node", name)
        self.wishes.append(wish)
        return (Difference("node label pool", None, "windows"),)

    def tell(self, name: str, reason: str, message: str, *, good: bool) -> None:
        self.calls.append(("tell", name, reason, message, good))

    def lift_taint(self, name: str, key: str) -> bool:
        self._call("lift_taint", key)
        return True

    def cordon(self, name: str, *, why: str = "true") -> bool:
        self._call("cordon")
        return True

    def uncordon(self, name: str) -> bool:
        self._call("uncordon")
        return True

    def drain(self, name: str, *, timeout: float, wait: Wait, rules: DrainRules = ALL_PODS) -> Drained:
        self._call("drain")
        self.rules.append(rules)
        return Drained((), self.pods_left)

    def pods_to_drain(self, name: str) -> Sequence[PodFacts]:
        self._call("pods")
        return self.pods

    def images(self, name: str) -> Sequence[str]:
        self._call("images")
        return self.pod_images

    def runs_containers(self, name: str) -> bool:
        self._call("containers")
        return self.running_containers

    def belongings(self, name: str) -> tuple[Belonging, ...]:
        self._call("belongings")
        return self.kept_things

    def delete_belonging(self, one: Belonging) -> None:
        self._call("delete_belonging", one)

    def delete_node(self, name: str) -> bool:
        self._call("delete_node", name)
        return True

    def nodes(self) -> tuple[NodeFacts, ...]:
        self._call("nodes")
        return self.all_nodes

    def windows_nodes(self) -> tuple[NodeFacts, ...]:
        self._call("windows_nodes")
        return self.all_nodes

    def config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        self._call("config map", namespace, name)
        if name == "kube-proxy":
            return {"config.conf": self.proxy_config, "kubeconfig.conf": "{kind: Config"}
        if name in ("cilium-config", "antrea-windows-config", *self.config_maps):
            return self.config_maps.get(name)
        return None if self.net_conf is None else {"net-conf.json": json.dumps(self.net_conf)}

    def service_addresses(self, namespace: str, name: str) -> tuple[str, ...]:
        self._call("service", namespace, name)
        return self.service_ips

    def resources(self, kind: ResourceKind) -> Sequence[Mapping[str, Any]] | None:
        self._call("resources", kind.kind)
        return self.specs.get(kind.kind)

    def csi_proxies(self) -> tuple[tuple[str, str], ...]:
        return self.proxies

    def gmsa(self) -> GmsaState:
        return self.gmsa_state

    def try_gmsa(self, namespace: str, account: str, spec: str) -> str:
        self._call("gmsa", f"{namespace}/{account} {spec}")
        return self.gmsa_refusal

    def unselective_daemon_sets(self) -> tuple[str, ...]:
        self._call("daemonsets")
        return self.unselective

    def has_privileged_daemon_sets(self) -> bool:
        return self.privileged

    def windows_kube_proxies(self) -> tuple[str, ...]:
        return self.kube_proxies

    def windows_kube_proxy_configs(self) -> tuple[tuple[str, str], ...]:
        return self.proxy_configs

    def own_missing_rights(self, needs: Sequence[Need]) -> tuple[Need, ...]:
        self._call("own rights")
        return tuple(need for need in needs if str(need) in self.own_lacks)

    def missing_rights(
        self, needs: Mapping[str, Sequence[Need]], user: str, groups: Sequence[str]
    ) -> tuple[MissingRight, ...]:
        self._call("rights", user)
        return tuple(
            MissingRight(program, user, need, f"winboot:{program}")
            for program, wanted in needs.items()
            for need in wanted
            if str(need) in self.lacks
        )


@dataclass
class Found:
    """What a look finds at one step."""

    step: str
    what: str = "thing"
    is_: str | None = None
    want: str | None = "there"
    flags: tuple[str, ...] = ()
    key: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """The data of its event."""
        said = {"what": self.what, "is": self.is_, "want": self.want, **dict.fromkeys(self.flags, True)}
        return {**said, "key": self.key} if self.key else said


class FakeMachine:
    """Runs winboot's script by its arguments alone: every step is `ok` but those that a look finds to differ.

    A change corrects them, unless `needs_drain` names the step and the node is not drained; `during` runs in mid-change.
    """

    def __init__(
        self,
        steps: Sequence[str],
        *found: Found,
        needs_drain: str = "",
        fails_at: str = "",
        during: Callable[[], None] = lambda: None,
        smbios_uuid: str = UUID,
        node_ip: str = "10.0.1.11",
        says: Mapping[str, Any] | None = None,
        then: Mapping[str, Any] | None = None,
    ) -> None:
        # What it says of itself instead of the truth: always, and from the change on.
        self.says = says or {}
        self.then = then or {}
        self.steps = list(steps)
        self.found = list(found)
        self.needs_drain = needs_drain
        self.fails_at = fails_at
        self.during = during
        self.smbios_uuid = smbios_uuid
        self.node_ip = node_ip
        self.closings = 0
        self.modes: list[str] = []
        self.facts: list[Mapping[str, Any]] = []
        self.secrets: list[dict[str, str]] = []

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Secret]) -> Iterator[str]:
        mode, facts = arguments["Mode"], arguments["Facts"]
        self.modes.append(mode)
        self.facts.append(facts)
        self.secrets.append({name: secret.reveal() for name, secret in secrets.items()})
        base = {"v": 1, "run": arguments["RunId"]}
        yield json.dumps(
            base
            | {"event": "run", "seq": 1, "boot_id": "b1", "smbios_uuid": self.smbios_uuid, "build": "20348.1"}
            | {"computer_name": "WIN-1", "fence": 1, "node_ip": self.node_ip}
            | {**self.says, **(self.then if mode == "Change" else {})}
        )
        if mode == "Change":
            self.during()
        chosen = [name for name in facts.get("Steps", "").split(",") if name] or self.steps
        for step in (one for one in self.steps if one in chosen):
            yield json.dumps(
                base | {"event": "step", "seq": 2, "step": step, "ms": 1} | self._state(step, mode, facts)
            )
        yield json.dumps(base | {"event": "done", "seq": 9, "reason": "complete", "message": ""})

    def _state(self, step: str, mode: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        found = [one for one in self.found if one.step == step]
        differences = [one.data for one in found]
        if not found:
            return {"state": "ok", "differences": [], "problem": None}
        if mode == "Look":
            # Get-LookResult: what is not winboot's to change leaves a step as it is wanted.
            state = "ok" if all("policy" in one.flags for one in found) else "would-change"
            return {"state": state, "differences": differences, "problem": None}
        if step == self.needs_drain and facts["NodeIsLive"] and not facts["Drained"]:
            problem = {"id": "NeedsDrain", "message": "this would disturb a live node"}
            return {"state": "blocked", "differences": differences, "problem": problem}
        if step == self.fails_at:
            problem = {"id": "ChangeFailed", "message": "no"}
            return {"state": "failed", "differences": differences, "problem": problem}
        self.found = [one for one in self.found if one.step != step]
        return {"state": "changed", "differences": differences, "problem": None}

    def close(self) -> None:
        """Count it."""
        self.closings += 1

    def interrupt(self) -> None:
        """A script of this machine ends by itself."""


class Silent:
    """A listener that keeps what the controller says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def event(self, node: str, event: Event) -> None:
        """Ignore the event: no test reads it."""

    def say(self, node: str, text: str) -> None:
        self.said.append(text)


class Scene:
    """One host, its machine and its cluster, and the commands on them."""

    def __init__(
        self,
        folder: Path,
        *found: Found,
        cluster: FakeCluster | None = None,
        host: str = "{address: 10.0.1.11}",
        profile: str = "",
        **machine: Any,
    ) -> None:
        self.folder = folder
        self.spec = completed(a_spec(folder, profile=profile, host=host))
        self.cluster = cluster or FakeCluster()
        steps = [step.name for step in make_plan(self.spec, STEPS, only=(), skip=()).node_side]
        self.machine = FakeMachine(steps, *found, **machine)
        self.listener = Silent()
        self.stop = Stop()
        self.patience = QUICK

    def join(self, **options: Any) -> NodeReport:
        """`winboot join`."""
        (report,) = join(
            [self.spec], self._context(), Options(patience=self.patience, workers=1, **options)
        ).nodes
        return report

    def plan(self) -> NodeReport:
        """`winboot plan`."""
        (report,) = survey([self.spec], self._context(), Options(patience=self.patience, workers=1)).nodes
        return report

    def _context(self) -> RunContext:
        return RunContext(
            connect=lambda spec: self.machine,  # type: ignore[arg-type, return-value]  # as much as a join asks of it
            cluster=lambda spec: self.cluster,  # type: ignore[arg-type, return-value]
            listener=self.listener,
            journals=self.folder / "journals",
            run="r1",
            holder="me@laptop",
            stop=self.stop,
        )


def completed(spec: NodeSpec) -> NodeSpec:
    """The spec with every hash: nothing of it is downloaded here."""
    return replace(
        spec,
        artifacts=tuple(
            replace(one, sha256="0" * 64, members=tuple(replace(m, sha256="0" * 64) for m in one.members))
            for one in spec.artifacts
        ),
    )


def states(report: NodeReport) -> dict[str, str]:
    """Each step that is not `ok`, and how it ended."""
    return {step.name: step.state for step in report.steps if step.state != "ok"}


CUT = ClusterError("the API server is away", hint="")
