"""verify on lab machines: a healthy pair passes all flows; however it ends (refused, interrupted, killed), it says why, and
nothing of it remains in the cluster. In one file, for one pair of nodes."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import yaml
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.identity import ADMIN, Identity
from winboot_lab.cluster.kinds import NAMESPACES, PODS, kind_of
from winboot_lab.cluster.rbac import Action, rule_allows
from winboot_lab.programs.flanneld import Flanneld

from tests.lab.site import Killed, Site
from winboot.operations.verify import Options, verify, verify_changed
from winboot.operations.verify.flows import WORKLOADS
from winboot.remote.manifests import manifest
from winboot.report.flows import FlowReport
from winboot.report.results import NodeReport, Report, StepReport

PLACES = 20
Refuse = Callable[[Identity, str, str], ApiFailure | None]


@contextmanager
def refusing(site: Site, refuse: Refuse) -> Iterator[None]:
    """The API server answers some requests otherwise."""
    site.cluster.faults.refuse = refuse
    try:
        yield
    finally:
        site.cluster.faults.refuse = None


@contextmanager
def stamped(site: Site, kind: str, group: str, thing: dict[str, object]) -> Iterator[None]:
    """Another owner's controller puts an object into each new namespace."""
    site.cluster.stamps.append((kind_of(kind, group), thing))
    try:
        yield
    finally:
        site.cluster.stamps.clear()


def verified(site: Site, *flows: str, **options: object) -> FlowReport:
    chosen = Options(workers=1, **({"flows": frozenset(flows)} if flows else {}), **options)  # type: ignore[arg-type]
    return verify(site.specs(), site.controller().context, chosen)


def left(site: Site) -> list[str]:
    """Our namespaces, and pods in them."""
    site.settle(30)
    spaces = [one["metadata"]["name"] for one in site.cluster.objects(NAMESPACES)]
    pods = [one["metadata"]["namespace"] for one in site.cluster.objects(PODS)]
    return [name for name in (*spaces, *pods) if name.startswith("winboot-verify")]


def told(report: FlowReport) -> str:
    """All that a person reads of what failed."""
    rows = [f"{row.seen} {row.cause} {row.next}" for row in report.rows if row.state == "failed"]
    return "\n".join((*report.notes, *rows))


def spaces(site: Site) -> list[str]:
    return [one["metadata"]["name"] for one in site.admin("GET", "/api/v1/namespaces")["items"]]


@pytest.mark.check
def test_a_healthy_pair_passes_all_flows_and_nothing_is_left(pair: Site) -> None:
    report = verified(pair)

    others = [row for row in report.rows if row.state not in ("passed", "limitation")]
    assert [(row.flow, row.state) for row in others] == [
        (flow, "left-out") for flow in WORKLOADS for _ in pair.plans
    ]
    assert report.exit_code == 0
    assert not any(name.startswith("winboot-verify") for name in spaces(pair))
    assert pair.refusals == []


def asked_of(site: Site) -> list[Action]:
    """What the controller has asked the API for; paths that everybody may read left out."""
    assert site.cluster.audit is not None
    return [one for who, one in site.cluster.audit if who.name == ADMIN.name and not one.path]


def test_a_given_namespace_is_used_with_the_rights_of_its_role_alone_and_stays(pair: Site) -> None:
    """A second run finds nothing of the first one in its way."""
    specs = pair.specs()
    granted = [one for one in yaml.safe_load_all(manifest("verifier", specs)) if one["kind"].endswith("Role")]
    space = next(one["metadata"]["namespace"] for one in granted if one["kind"] == "Role")
    pair.cluster.request(ADMIN, "POST", "/api/v1/namespaces", {"metadata": {"name": space}})
    pair.cluster.audit = []

    reports = [verified(pair, namespace=space) for _ in "12"]

    assert [report.exit_code for report in reports] == [0, 0]
    for action in asked_of(pair):
        assert any(
            rule_allows(rule, action) and role["metadata"].get("namespace", "") in ("", action.namespace)
            for role in granted
            for rule in role["rules"]
        ), action
    assert space in spaces(pair)
    kinds = ("Pod", "Service", "Secret")
    assert [
        one["metadata"]["name"]
        for one in pair.cluster.store.everything()
        if one["kind"] in kinds and one["metadata"].get("namespace") == space
    ] == []
    pair.cluster.request(ADMIN, "DELETE", f"/api/v1/namespaces/{space}")


def test_a_service_of_others_in_the_given_namespace_is_named_and_stays(pair: Site) -> None:
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    pair.cluster.request(ADMIN, "POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    pair.cluster.request(ADMIN, "POST", "/api/v1/namespaces/shop/services", service)

    report = verified(pair, namespace="shop")

    assert report.exit_code == 1
    assert "a Service web that is not winboot's" in " ".join(report.notes)
    assert (
        pair.cluster.request(ADMIN, "GET", "/api/v1/namespaces/shop/services/web").body["metadata"]["name"]
        == "web"
    )
    # Other files use the pair, and this name.
    pair.admin("DELETE", "/api/v1/namespaces/shop")
    pair.settle(30)


def test_a_namespace_of_others_with_our_labels_is_not_deleted(pair: Site) -> None:
    labels = {"app.kubernetes.io/managed-by": "winboot", "winboot.io/verify": "r"}
    pair.cluster.request(
        ADMIN, "POST", "/api/v1/namespaces", {"metadata": {"name": "theirs", "labels": labels}}
    )

    verified(pair, "pod-start")

    assert "theirs" in spaces(pair)


def test_a_route_that_is_wrong_breaks_the_ways_that_need_it_and_names_the_node(
    pair: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """flanneld hangs: otherwise it would put the route right while verify looks."""
    monkeypatch.setattr(Flanneld, "_keep_up", lambda self: None)
    network = pair.machines["win-1"].network
    routes = [one for one in network.routes if one.next_hop == "10.0.1.12"]
    assert routes
    for one in routes:
        network.remove_route(one)
    try:
        report = verified(pair)
    finally:
        for one in routes:
            network.add_route(one)

    failed = [row for row in report.rows if row.state == "failed"]
    assert {row.flow for row in failed} == {
        "pod-pod-remote",
        "pod-pod-large",
        "node-pod-remote",
        "pod-service",
        "service-pod",
    }
    assert {row.cause.rpartition(".")[0] for row in failed} == {"win-1 has no route to 10.244.2"}


def changed(*names: str) -> Report:
    """The report of a join that has changed these nodes, and found win-1 and win-2 Ready."""
    return Report(
        "join",
        "run",
        "now",
        tuple(
            NodeReport(
                name, "", "", (StepReport("cni-config", "changed" if name in names else "ok"),), ready=True
            )
            for name in ("win-1", "win-2")
        ),
    )


def test_join_verify_tries_what_was_changed_with_another_node_as_the_other_end(pair: Site) -> None:
    """A service that ended before the change had ended does not count as the change's."""
    events = pair.machines["win-1"].events
    events.write("System", "Service Control Manager", 7034, "It ended", "Error", ("kubelet",))
    pair.settle(5)

    report = verify_changed(changed("win-1"), pair.specs(), pair.controller().context)

    assert report is not None
    assert {row.node for row in report.rows if row.state != "limitation"} == {"win-1"}
    assert [row for row in report.rows if row.state not in ("passed", "limitation")] == []
    assert "pod-pod-remote" in {row.flow for row in report.rows}
    assert "win-2 is unchanged, and is the other end of flows" in report.notes


def test_join_verify_tries_nothing_where_nothing_was_changed(pair: Site) -> None:
    context = pair.controller().context

    assert verify_changed(changed(), pair.specs(), context) is None


# ---- how it ends


@pytest.mark.check
def test_a_quota_of_no_pods_is_named(pair: Site) -> None:
    quota = {"metadata": {"name": "nothing"}, "spec": {"hard": {"pods": "0"}}}
    with stamped(pair, "resourcequotas", "", quota):
        report = verified(pair, "pod-start", "exec")

    assert report.exit_code == 1
    assert {row.flow for row in report.rows if row.state == "failed"} == {"pod-start"}
    assert "exceeded quota: nothing, requested: pods=1" in told(report)
    assert left(pair) == []


def denied(path: str, message: str, code: int = 403) -> Refuse:
    return lambda who, method, asked: (
        ApiFailure(code, message) if method == "POST" and asked.endswith(path) else None
    )


@pytest.mark.check
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/namespaces", 'admission webhook "tenants.corp.example" denied the request: no owner'),
        ("/services", 'services "web" is forbidden: exceeded quota: few, requested: services=1'),
        ("/pods", 'admission webhook "images.corp.example" denied the request: not signed'),
    ],
)
def test_what_an_admission_refuses_is_reported_in_its_words_and_cleaned_up(
    path: str, message: str, pair: Site
) -> None:
    with refusing(pair, denied(path, message)):
        report = verified(pair)

    assert report.exit_code == 1
    assert message in told(report)
    assert "winboot.io/verify" in told(report) or path == "/pods"
    assert left(pair) == []


@pytest.mark.check
def test_an_image_that_cannot_be_pulled_is_named_and_the_other_node_is_tried(pair: Site) -> None:
    report = verified(pair, "pod-start", "exec", images={"2022": "mcr.microsoft.com/windows/nothing:1"})

    assert report.exit_code == 1
    assert "mcr.microsoft.com/windows/nothing:1 cannot be pulled" in told(report)
    assert {(row.flow, row.node) for row in report.rows if row.state == "passed"} == {
        ("pod-start", "win-2"),
        ("exec", "win-2"),
    }
    assert left(pair) == []


@pytest.mark.check
def test_a_network_policy_that_another_user_puts_into_the_namespace_is_named(pair: Site) -> None:
    policy = {"metadata": {"name": "deny-all"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}
    with stamped(pair, "networkpolicies", "networking.k8s.io", policy):
        report = verified(pair, "pod-start")

    assert any("NetworkPolicies into the namespace: deny-all" in note for note in report.notes)
    assert report.exit_code == 0


class Places:
    """Counts the requests of a verification, and does something at one of them."""

    def __init__(self, number: int, act: Callable[[], None]) -> None:
        self._number = number
        self._act = act
        self._count = itertools.count(1)
        self.seen = 0

    def __call__(self, who: Identity, method: str, path: str) -> None:
        if who.name == "kubernetes-admin":
            self.seen = next(self._count)
            if self.seen >= self._number:
                self._act()


@pytest.fixture(scope="module")
def requests(pair: Site) -> int:
    """How many requests a verification makes."""
    places = Places(1_000_000, lambda: None)
    with refusing(pair, places):
        verified(pair)
    assert places.seen > PLACES
    return places.seen


def die() -> None:
    raise Killed


@pytest.mark.matrix
@pytest.mark.parametrize("place", range(PLACES))
def test_what_a_run_that_was_killed_left_goes_with_the_next(place: int, pair: Site, requests: int) -> None:
    """From that request on nothing more reaches the cluster: no clean-up either."""
    number = 2 + place * (requests - 2) // PLACES
    with refusing(pair, Places(number, die)), pytest.raises(Killed):
        verified(pair)
    before = left(pair)

    report = verified(pair, "pod-start")

    named = [note for note in report.notes if "of a run that was killed" in note]
    assert bool(named) == any(before)
    assert report.exit_code == 0
    assert left(pair) == []


@pytest.mark.matrix
@pytest.mark.parametrize("place", range(0, PLACES, 4))
def test_an_interrupted_run_cleans_up_behind_itself(place: int, pair: Site, requests: int) -> None:
    controller = pair.controller()
    number = 2 + place * (requests - 2) // PLACES

    def interrupt() -> None:
        if not controller.stop.requested:
            controller.stop.request(signal.SIGINT)

    with refusing(pair, Places(number, interrupt)):
        report = verify(pair.specs(), controller.context, Options(workers=1))

    assert report.exit_code == 130
    assert left(pair) == []
