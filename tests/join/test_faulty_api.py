"""A fault of the API server changes nothing in the outcome of a whole join, at whichever of its requests it falls.

The story runs with a machine that answers at once and with the real client on a lab's API: bare machine, second run, and
a change that needs a drain.
"""

from __future__ import annotations

import base64
import itertools
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from winboot_lab.cluster import ClusterPlan, Credentials, LabCluster
from winboot_lab.cluster.authority import Subject, new_key, request_pem
from winboot_lab.cluster.controllers import CLIENT_SIGNER, SERVING_SIGNER
from winboot_lab.cluster.identity import ADMIN

from tests.cluster.conftest import Fault, LabTransport, Time, kubelet, write_unasked
from tests.cluster.test_calls import FAULTS, answers
from tests.join.fakes import QUICK, UUID, FakeMachine, Found, Scene, states
from winboot.node.run import Stop
from winboot.remote.cluster.lightkube import LightkubeCluster
from winboot.report.results import NodeReport

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
STRATEGIC = "application/strategic-merge-patch+json"
# A request by its words and how many of its kind were before it: threads do not change that.
Place = tuple[str, int]
# The approver lists the requests several times, and checks rights one by one: two places represent all.
LOOKS = f"GET {CSRS}"
REVIEWS = "accessreviews"


@dataclass
class FaultyTransport(LabTransport):
    """The lab's API, with a fault at one place."""

    place: Place | None = None
    fault: Fault = field(default=lambda request: httpx2.Response(500))
    done: bool = False
    counted: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        words = _words(request)
        with self.lock:
            place = (words, self.counted[words])
            self.counted[words] += 1
            if place != self.place:
                return self._answer(request)
            if self.done:
                self._answer(request)
        return self.fault(request)


def _words(request: httpx2.Request) -> str:
    """Without what chance has chosen: a token's name."""
    before, token, _ = request.url.path.partition("/bootstrap-token-")
    return f"{request.method} {before}{token}"


class Kubelet:
    """What a machine's kubelet does at the API while a change runs there: certificates, Node, Ready."""

    def __init__(self, lab: LabCluster, machine: FakeMachine) -> None:
        self._lab = lab
        self._machine = machine

    def __call__(self) -> None:
        token = self._machine.secrets[-1].get("bootstrap-token")
        if token is None:
            return
        me = Subject("system:node:win-1", ("system:nodes",))
        self._request("client", Credentials(token=token), me, CLIENT_SIGNER)
        self._lab.settle()
        assert "certificate" in self._status("client")
        info = {"systemUUID": UUID, "operatingSystem": "windows", "kubeletVersion": "v1.36.5"}
        taints = [{"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"}]
        node = {"metadata": {"name": "win-1"}, "spec": {"taints": taints}, "status": {"nodeInfo": info}}
        self._lab.request(kubelet("win-1"), "POST", "/api/v1/nodes", node)
        serving = Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.1.11",))
        self._request("serving", kubelet("win-1"), serving, SERVING_SIGNER)
        self._wait_for_certificate()
        body = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
        self._lab.request(
            kubelet("win-1"), "PATCH", "/api/v1/nodes/win-1/status", body, content_type=STRATEGIC
        )
        self._lab.settle()

    def _wait_for_certificate(self) -> None:
        """The approver looks from a thread of its own."""
        pause = threading.Event()
        for _ in range(2000):
            self._lab.settle()
            if "certificate" in self._status("serving"):
                return
            pause.wait(0.005)
        raise AssertionError("no serving certificate after ten seconds")

    def _request(self, name: str, who: Any, subject: Subject, signer: str) -> None:
        usage = "client auth" if signer == CLIENT_SIGNER else "server auth"
        wanted = {
            "request": base64.b64encode(request_pem(new_key(), subject).encode()).decode(),
            "signerName": signer,
            "usages": ["digital signature", usage],
        }
        self._lab.request(who, "POST", CSRS, {"metadata": {"name": name}, "spec": wanted})

    def _status(self, name: str) -> Any:
        return self._lab.request(ADMIN, "GET", f"{CSRS}/{name}").body["status"]


class AtOnce(Stop):
    """Waiting costs nothing: the story's time passes instead."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time

    def wait(self, seconds: float) -> bool:
        self._time.wait(seconds)
        return self.requested


class Story:
    """Three joins of one machine, and what became of them."""

    def __init__(self, folder: Path, kubeconfig: Path, **fault: Any) -> None:
        self.time = Time()
        start = datetime.now(UTC)
        self.lab = LabCluster(
            ClusterPlan(version="1.36.5"), now=lambda: start + timedelta(seconds=self.time.now)
        )
        self.transport = FaultyTransport(self.lab, **fault)
        folder.mkdir(exist_ok=True)
        self.scene = Scene(folder, Found("kubelet-credentials"))
        self.scene.stop = AtOnce(self.time)
        self.scene.patience = replace(QUICK, poll=0.01)
        self.machine = self.scene.machine
        self.machine.during = Kubelet(self.lab, self.machine)
        self._kubeconfig = kubeconfig

    def run(self) -> dict[str, Any]:
        """What is reported, and what stays in the cluster."""
        with LightkubeCluster(
            self._kubeconfig, transport=self.transport, wait=self.time.wait, clock=self.time.clock
        ) as cluster:
            self.scene.cluster = cluster  # type: ignore[assignment]  # the real one
            told = [_told(self.scene.join()), _told(self.scene.join())]
            self._work_on_the_node()
            told += [_told(self.scene.join(drain=True))]
        node = self._admin("/api/v1/nodes/win-1")
        return {
            "told": told,
            "modes": self.machine.modes,
            "labels": node["metadata"]["labels"],
            "spec": node["spec"],
            "pods": self._names("/api/v1/pods"),
            "secrets": self._names("/api/v1/namespaces/kube-system/secrets"),
            "requests": {name: [c["type"] for c in self._conditions(name)] for name in self._names(CSRS)},
        }

    def _work_on_the_node(self) -> None:
        """A pod runs there, and something on the machine is to change that disturbs it."""
        pod = {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": []}}
        self.lab.request(ADMIN, "POST", "/api/v1/namespaces/default/pods", pod)
        self.machine.found = [Found("directories", flags=("disturbs",))]
        self.machine.needs_drain = "directories"

    def _admin(self, path: str) -> Any:
        return self.lab.request(ADMIN, "GET", path).body

    def _names(self, path: str) -> list[str]:
        return [one["metadata"]["name"] for one in self._admin(path)["items"]]

    def _conditions(self, name: str) -> list[Any]:
        return self._admin(f"{CSRS}/{name}")["status"].get("conditions") or []


def _told(report: NodeReport) -> dict[str, Any]:
    failure = None if report.failure is None else report.failure.message
    return {
        "outcome": report.outcome,
        "ready": report.ready,
        "states": states(report),
        "notes": report.notes,
        "failure": failure,
    }


@dataclass(frozen=True)
class Plain:
    """The story without a fault: its outcome, and the places of its requests."""

    outcome: dict[str, Any]
    places: tuple[Place, ...]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    return write_unasked(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    folder = tmp_path_factory.mktemp("plain")
    story = Story(folder / "scene", write_unasked(folder))
    outcome = story.run()
    counted = story.transport.counted
    places = []
    for words, count in counted.items():
        seen = min(count, 2) if words == LOOKS or words.endswith(REVIEWS) else count
        places += [(words, n) for n in range(seen)]
    return Plain(outcome, tuple(places))


def test_without_a_fault_it_is_a_whole_story(plain: Plain) -> None:
    first, second, third = plain.outcome["told"]
    assert (first["outcome"], first["ready"], first["failure"], first["notes"]) == ("changed", True, None, ())
    assert (second["outcome"], second["states"]) == ("ok", {})
    assert third["states"] == {"directories": "changed", "startup-taint": "changed"}
    assert plain.outcome["pods"] == []
    assert plain.outcome["requests"] == {"client": ["Approved"], "serving": ["Approved"]}
    assert (plain.outcome["secrets"], plain.outcome["spec"].get("unschedulable")) == ([], None)
    assert len(plain.places) > 30


def test_a_fault_at_any_request_of_a_join_changes_nothing(
    plain: Plain, tmp_path: Path, kubeconfig: Path
) -> None:
    """Each request has one of the faults; the next test gives it every one."""
    kinds = itertools.cycle(FAULTS)
    for number, (place, name) in enumerate(zip(plain.places, kinds, strict=False)):
        outcome = Story(tmp_path / str(number), kubeconfig, place=place, fault=FAULTS[name]).run()
        assert outcome == plain.outcome, f"{name} at {place}"


@pytest.mark.matrix
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_at_every_request_of_a_join_changes_nothing(
    plain: Plain, tmp_path: Path, kubeconfig: Path, name: str
) -> None:
    for number, place in enumerate(plain.places):
        outcome = Story(tmp_path / str(number), kubeconfig, place=place, fault=FAULTS[name]).run()
        assert outcome == plain.outcome, f"{name} at {place}"


def test_a_lost_answer_to_any_write_of_a_join_changes_nothing(
    plain: Plain, tmp_path: Path, kubeconfig: Path
) -> None:
    """The server carried out the request, but its answer was lost."""
    writes = [place for place in plain.places if not place[0].startswith("GET")]
    for number, place in enumerate(writes):
        outcome = Story(
            tmp_path / str(number), kubeconfig, place=place, fault=FAULTS["connection reset"], done=True
        ).run()
        assert outcome == plain.outcome, f"lost at {place}"


def test_a_conflict_at_any_write_of_a_join_changes_nothing(
    plain: Plain, tmp_path: Path, kubeconfig: Path
) -> None:
    # An eviction and a review have no version to conflict with.
    writes = [
        place
        for place in plain.places
        if place[0].split()[0] in ("PATCH", "PUT", "POST") and not place[0].endswith(("/eviction", "reviews"))
    ]
    assert len(writes) >= 4
    for number, place in enumerate(writes):
        outcome = Story(tmp_path / str(number), kubeconfig, place=place, fault=answers(409)).run()
        assert outcome == plain.outcome, f"409 at {place}"


def test_a_list_that_grew_too_old_between_two_pages_is_begun_again(
    plain: Plain, tmp_path: Path, kubeconfig: Path
) -> None:
    """410 is an answer to lists (winboot opens no watch)."""
    lists = [place for place in plain.places if place[0] in ("GET /api/v1/nodes", LOOKS, "GET /api/v1/pods")]
    assert lists
    for number, place in enumerate(lists):
        outcome = Story(tmp_path / str(number), kubeconfig, place=place, fault=answers(410, "too old")).run()
        assert outcome == plain.outcome, f"410 at {place}"
