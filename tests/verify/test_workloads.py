"""The flows of accounts, shares and volumes: left out by name, passed, and failed with their cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from winboot_lab.programs.containers import Ended
from winboot_lab.programs.traffic import End

from tests.lab.site import Site
from winboot.base.errors import UsageError
from winboot.cli.verify import share_of
from winboot.config.node_spec.node import GmsaAccount, GmsaSpec
from winboot.operations.verify import Options, verify
from winboot.operations.verify.flows import WORKLOADS
from winboot.operations.verify.stage import Stage
from winboot.report.flows import FlowReport, FlowRow

DOMAIN = "corp.example"
SHARE = r"\\files.corp.example\public"
ACCOUNT = GmsaAccount("webapp", "WebApp", ("shop/web",), None)
GMSA = GmsaSpec(DOMAIN, "CORP", DOMAIN, "S-1-5-21-1-2-3", "g", (ACCOUNT,), None, "", "")


def verified(site: Site, *flows: str, gmsa: GmsaSpec | None = GMSA, **options: str) -> FlowReport:
    specs = [replace(spec, gmsa=gmsa) for spec in site.specs()]
    return verify(specs, site.controller().context, Options(workers=1, flows=frozenset(flows), **options))  # type: ignore[arg-type]


def rows(report: FlowReport) -> dict[str, set[str]]:
    """Each flow with the states of its rows."""
    found: dict[str, set[str]] = {}
    for row in report.rows:
        if row.state != "limitation":
            found.setdefault(row.flow, set()).add(row.state)
    return found


@pytest.fixture
def shop(pair: Site) -> Iterator[Site]:
    """A pair with a namespace whose service account may use an account, a domain that answers, and a share."""
    pair.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    pair.admin("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "web"}})
    containers = pair.outside.containers()
    for machine in pair.machines.values():
        machine.power.domain = DOMAIN
    containers.domains.add(DOMAIN)
    containers.shares.add(SHARE)
    yield pair
    for machine in pair.machines.values():
        machine.power.domain = ""
    containers.domains.clear()
    containers.shares.clear()
    containers.volumes.clear()
    pair.admin("DELETE", "/api/v1/namespaces/shop")
    pair.settle(30)


def test_a_flow_without_its_prerequisite_is_left_out_by_name(pair: Site) -> None:
    report = verified(pair, *WORKLOADS, gmsa=None)

    assert rows(report) == {"pod-start": {"passed"}, **{flow: {"left-out"} for flow in WORKLOADS}}
    seen = {row.flow: row.seen for row in report.rows}
    assert "gmsa.accounts" in seen["gmsa"]
    assert "--share" in seen["smb"]
    assert "--storage-class" in seen["volume"]
    assert report.exit_code == 0


def test_an_account_of_another_namespace_is_left_out_by_name(pair: Site) -> None:
    report = verified(pair, "gmsa")

    found = [one for one in report.rows if one.flow == "gmsa"]
    assert [(one.state, "--namespace" in one.seen) for one in found] == [("left-out", True)] * 2


def test_what_one_node_lacks_is_left_out_for_that_node_alone(shop: Site) -> None:
    first, second = shop.specs()
    specs = [replace(first, gmsa=GMSA), replace(second, gmsa=None)]
    options = Options(workers=1, flows=frozenset(["gmsa"]), namespace="shop")

    report = verify(specs, shop.controller().context, options)

    states = {one.node: one.state for one in report.rows if one.flow == "gmsa"}
    assert states == {"win-1": "passed", "win-2": "left-out"}


def test_all_three_pass_on_both_nodes_and_nothing_is_left(shop: Site) -> None:
    report = verified(shop, *WORKLOADS, namespace="shop", share=SHARE, storage_class="fast")

    assert rows(report) == {flow: {"passed"} for flow in ("pod-start", *WORKLOADS)}, report.rows
    assert {one.target for one in report.rows if one.flow == "volume"} == {"pod on win-1", "pod on win-2"}
    shop.settle(30)
    for plural in ("pods", "persistentvolumeclaims"):
        assert shop.admin("GET", f"/api/v1/namespaces/shop/{plural}")["items"] == []


def test_the_pods_of_an_account_run_as_its_service_account(shop: Site) -> None:
    report = verified(shop, "gmsa", namespace="shop", keep="yes")
    pods = shop.admin("GET", "/api/v1/namespaces/shop/pods")["items"]
    asked = [one["spec"] for one in pods if one["metadata"]["name"].startswith("account")]

    assert rows(report)["gmsa"] == {"passed"}
    assert len(asked) == 4, "two at once on each node"
    for spec in asked:
        assert spec["serviceAccountName"] == "web"
        assert spec["securityContext"] == {"windowsOptions": {"gmsaCredentialSpecName": "webapp"}}
    verified(shop, "gmsa", namespace="shop")


def failed(report: FlowReport, flow: str) -> list[FlowRow]:
    return [one for one in report.rows if one.flow == flow and one.state == "failed"]


def test_a_domain_that_does_not_answer_fails_with_its_words(shop: Site) -> None:
    shop.outside.containers().domains.clear()
    found = failed(verified(shop, "gmsa", namespace="shop"), "gmsa")

    assert [("ERROR_NO_SUCH_DOMAIN" in one.seen, "step gmsa" in one.next) for one in found] == [
        (True, True)
    ] * 2


def test_a_share_that_the_account_may_not_read_fails(shop: Site) -> None:
    shop.outside.containers().shares.clear()
    found = failed(verified(shop, "smb", namespace="shop", share=SHARE), "smb")

    assert {one.seen for one in found} == {"Access is denied."}


def test_a_volume_that_loses_its_text_fails(shop: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    containers = shop.outside.containers()

    class Forgetful(dict[tuple[str, str], dict[str, str]]):
        def setdefault(self, key: tuple[str, str], default: dict[str, str] | None = None) -> dict[str, str]:
            return {}

    monkeypatch.setattr(containers, "volumes", Forgetful())
    found = failed(verified(shop, "volume", namespace="shop", storage_class="fast"), "volume")

    assert {one.seen for one in found} == {"The system cannot find the file specified."}


def test_a_volume_that_is_read_at_the_second_try_passes(shop: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim is ReadWriteOnce: a pod of the first try that stays on one node keeps it from the other."""
    containers, names = shop.outside.containers(), iter("12")
    execute = containers._cmd

    def held(pod: dict[str, Any], start: End, line: str) -> Ended:
        on = pod["spec"]["nodeName"]
        pods = shop.admin("GET", "/api/v1/namespaces/shop/pods")["items"]
        elsewhere = [one for one in pods if one["spec"].get("volumes") and one["spec"]["nodeName"] != on]
        if elsewhere or (line.startswith("type") and next(names, "")):
            return Ended(1, "", "The device is not ready.\n")
        return execute(pod, start, line)

    monkeypatch.setattr(containers, "_cmd", held)
    report = verified(shop, "volume", namespace="shop", storage_class="fast")

    assert rows(report)["volume"] == {"passed"}, report.rows


def test_what_another_thread_makes_meanwhile_is_not_forgotten() -> None:
    class Bench:
        def remove(self, thing: object) -> None:
            """It has gone."""

        def listed(self, kind: str, space: str) -> list[Any]:
            return []

    bench: Any = Bench()
    one, other = ({"kind": "Pod", "metadata": {"name": name}} for name in ("one", "other"))
    stage = Stage(bench, bench, "r1", "me", lambda seconds: False, 1.0, made=[one])
    made = stage.made

    for _ in "12":
        stage.end(one)
    made.append(other)

    assert stage.made == [other]


@pytest.mark.parametrize("given", ["//host/share", r"\\host", r"\\host\a&calc", r"\\me:pw@host\a", r"C:\a"])
def test_what_is_no_share_is_refused(given: str) -> None:
    with pytest.raises(UsageError):
        share_of(given)


def test_a_share_is_taken_as_it_is() -> None:
    assert share_of(SHARE) == SHARE
