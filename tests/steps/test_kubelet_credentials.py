"""The kubelet's way into the cluster: the CA, and a token where it has no certificate that holds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from winboot_lab.cluster.authority import Authority

from tests.lab.actions import CLIENT, KUBECONFIG, PKI, Hand, certificate, delete, kubeconfig, write
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "kubelet-credentials"
CA = r"C:\etc\kubernetes\pki\ca.crt"
BOOTSTRAP = r"C:\k\bootstrap-kubeconfig"
ABOVE = ("kubelet", "registration", "flanneld", "kube-proxy")
TOKEN = "abcdef.0123456789abcdef"
WHAT = "kubelet client certificate"
# Cut off in the middle, no base64, nothing at all.
PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
STATE = r"C:\ProgramData\winboot"
FILE = f"file {CA}: content"


def test_a_bare_machine_has_no_way_into_the_cluster(bench: Bench):
    found = bench.look(STEP).differences(STEP)

    assert set(found) == {WHAT, FILE}
    assert found[WHAT] == ("no kubeconfig", "system:node:win-a1, for https://10.0.0.10:6443")


def test_a_token_is_written_once_for_a_kubelet_that_will_make_more_of_it(bench: Bench):
    told = bench.run(STEP, secrets={"bootstrap-token": TOKEN})

    assert told.states == {STEP: "changed"}
    assert TOKEN.encode() in (bench.file(BOOTSTRAP) or b"")
    assert TOKEN not in str(told.events)
    assert (bench.file(CA) or b"").decode() == bench.spec.cluster.ca_pem


def test_only_system_and_administrators_read_the_token(bench: Bench):
    bench.run(STEP, secrets={"bootstrap-token": TOKEN})
    rules = bench.machine.console.invoke("acl.get", {"path": BOOTSTRAP}).objects[0]["rules"]

    assert {rule["identity"] for rule in rules} == {"S-1-5-18", "S-1-5-32-544"}


def test_the_token_is_kept_nowhere_when_the_file_is_taken_back(bench: Bench):
    bench.run(STEP, secrets={"bootstrap-token": TOKEN})
    assert not any(TOKEN.encode() in node.content for _, node in bench.machine.files.walk(STATE))
    assert bench.undo(STEP).states == {STEP: "changed"}
    assert (bench.file(BOOTSTRAP), bench.file(CA)) == (None, None)


def test_without_a_token_the_change_says_so(bench: Bench):
    problem = bench.run(STEP).problem(STEP)

    assert problem.id == "SecretMissing"
    assert problem.message.endswith("bootstrap-token")
    assert "profile" in problem.hint


def test_a_former_ca_comes_back(bench: Bench):
    bench.write(CA, b"another CA")
    bench.run(STEP, secrets={"bootstrap-token": TOKEN})
    bench.undo(STEP)

    assert bench.file(CA) == b"another CA"


def _server(data: dict) -> None:
    data["clusters"][0]["cluster"]["server"] = "https://10.9.9.9:6443"


@pytest.mark.parametrize(
    ("hand", "fault"),
    [
        (delete(KUBECONFIG), "no kubeconfig"),
        pytest.param(kubeconfig(_server), "kubeconfig of another cluster", marks=pytest.mark.check),
        (delete(CLIENT), "no client certificate"),
        pytest.param(write(CLIENT, PEM.format("AAAA")), "no client certificate", marks=pytest.mark.check),
        pytest.param(write(CLIENT, PEM.format("AAAAA")), "no client certificate", marks=pytest.mark.check),
        pytest.param(write(CLIENT, PEM.format(" ")), "no client certificate", marks=pytest.mark.check),
        pytest.param(
            certificate(name="system:node:other"),
            "client certificate of system:node:other",
            marks=pytest.mark.check,
        ),
        (certificate(age=timedelta(days=30), days=7), "client certificate has expired"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_certificate_that_does_not_hold_is_reported_with_its_fault_and_asked_for_again(
    node: Node, hand: Hand, fault: str
):
    node.after(hand)
    told = node.look(STEP)

    assert told.differences(STEP)[WHAT][0] == fault
    assert node.change(STEP, *ABOVE).states == dict.fromkeys((STEP, *ABOVE), "changed")
    assert node.look(STEP).states == {STEP: "ok"}
    node.site.settle(60)
    assert node.differs == []


def test_below_another_ca_nothing_of_before_is_worth_anything(node: Node):
    node.after(lambda site: site.machine.files.write(CA, Authority("new").pem.encode()))

    assert node.look(STEP).differences(STEP)[WHAT][0] == "issued below another CA"


def test_files_of_others_beside_the_kubelets_stay(node: Node):
    node.after(write(rf"{PKI}\mine.pem", "kept"), delete(KUBECONFIG))
    node.change(STEP)

    assert node.file(rf"{PKI}\mine.pem") == b"kept"
