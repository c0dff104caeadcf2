"""EC2's signed document as proof of which machine calls: each forged or strange one is refused by its own name."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.firstboot.documents import Signer, Words
from tests.join.fakes import FakeCluster, a_node
from tests.steps.builders import a_spec_of
from winboot.base.errors import InvalidInput
from winboot.config.node_spec import NodeSpec
from winboot.operations.firstboot.door import Door
from winboot.operations.firstboot.hello import Done, Hello, Refusal
from winboot.operations.firstboot.proof import OLDEST, AwsProof
from winboot.operations.firstboot.store import Store
from winboot.remote.cloud.aws_identity import _DATA, Certificates, Flaw, certificate, entries
from winboot.remote.cloud.base import CloudHost
from winboot.remote.cloud.signed import read_signed

STARTED = datetime(2026, 11, 24, 10, 0, 0, tzinfo=UTC)
HERE, OURS, ANOTHER = "10.224.0.11", "ec211111-0000-0000-0000-000000000001", "ec2another"
INSTANCE = CloudHost(
    provider="aws",
    id=Words().instanceId,
    name="",
    state="running",
    region="eu-west-1",
    zone="eu-west-1a",
    private_ip=HERE,
    windows=True,
    tags={"kubernetes.io/cluster/prod": "owned"},
    launched=STARTED + timedelta(seconds=2),
)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def a_member(provider_id: str = f"aws:///eu-west-1a/{INSTANCE.id}") -> NodeSpec:
    spec = a_spec_of("flannel-host-gw")
    return replace(spec, machine=replace(spec.machine, provider_id=provider_id, address=HERE))


class Scene:
    """One instance of the inventory, EC2's answer about it, and what is remembered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = STARTED + timedelta(minutes=3)
        self.signer = Signer()
        self.instances: dict[str, CloudHost] = {INSTANCE.id: INSTANCE}
        self.specs = [a_member()]
        self.cluster = FakeCluster()
        self.store = Store(folder / "first-boot.json", lambda: self.now.timestamp())  # noqa: PLW0108
        self.asked: list[str] = []

    regions = ("eu-west-1",)

    def account_id(self) -> str:
        return "123456789012"

    def host(self, id: str) -> CloudHost | None:
        self.asked.append(id)
        return self.instances.get(id)

    def ask(
        self,
        document: str | None = None,
        *,
        uuid: str = OURS,
        peer: str = HERE,
        voucher: str = "",
        **said: Any,
    ) -> str:
        """The refusal's name, "Ready" for a machine that is its node already, or the node's name."""
        # In the place of AWS' own: the shipped one of the region is held against what this signer makes, too.
        certificates = Certificates({"eu-west-1": (self.signer.pem,), "eu-west-3": (self.signer.pem,)})
        proof = AwsProof(
            self, lambda tags: "kubernetes.io/cluster/prod" in tags, certificates, now=lambda: self.now
        )
        door = Door(
            self.store, lambda: [(one, ("windows",)) for one in self.specs], lambda spec: self.cluster, proof
        )
        shown = document if document is not None else self.signer.sign(Words().text(**said))
        answer = door.ask(Hello(uuid, "EC2AMAZ-1", (HERE,), "", voucher, peer, shown))
        if isinstance(answer, Done):
            return "Ready"
        return answer.id if isinstance(answer, Refusal) else answer.node.name


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_an_instance_that_calls_from_its_own_address_is_let_in_again_and_again(scene: Scene) -> None:
    assert [scene.ask() for _ in range(2)] == [scene.specs[0].node.name] * 2


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ({"accountId": "999999999999"}, "AnotherAccount"),
        ({"region": "eu-west-3"}, "AnotherRegion"),
        ({"region": "eu-north-9"}, "UnknownRegion"),
        ({"privateIp": "10.224.0.12"}, "AnotherAddress"),
        ({"pendingTime": "2026-11-23T10:00:00Z"}, "OldProof"),
        ({"instanceId": "i-0fedcba9876543210"}, "UnknownInstance"),
        ({"instanceId": "not an instance"}, "UnreadableProof"),
        ({"pendingTime": "yesterday"}, "UnreadableProof"),
        ({"accountId": 123456789012}, "UnreadableProof"),
    ],
)
def test_a_document_of_another_place_or_time_is_refused(
    scene: Scene, said: dict[str, Any], refusal: str
) -> None:
    assert scene.ask(**said) == refusal


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"tags": {"kubernetes.io/cluster/other": "owned"}}, "AnotherCluster"),
        ({"state": "terminated"}, "InstanceEnded"),
        ({"state": "stopping"}, "InstanceEnded"),
        ({"private_ip": "10.224.0.99"}, "AnotherAddress"),
    ],
)
def test_what_ec2_says_otherwise_is_refused(scene: Scene, changed: dict[str, Any], refusal: str) -> None:
    scene.instances = {INSTANCE.id: replace(INSTANCE, **changed)}

    assert scene.ask() == refusal


def test_a_document_that_another_machine_shows_is_refused(scene: Scene) -> None:
    assert scene.ask(peer="10.224.0.77") == "AnotherAddress"
    assert scene.asked == [], "EC2 is not asked about it"


def test_a_changed_byte_and_a_wrong_signer_are_distinguished(scene: Scene) -> None:
    words = Words()
    swapped = scene.signer.sign(words.text(), says=words.text(privateIp="10.224.0.66"))
    forged = replace(scene.signer, key=OTHER_KEY).sign(words.text())

    assert scene.ask(swapped, peer="10.224.0.66") == "ChangedProof"
    assert scene.ask(forged) == "WrongSigner"


def test_no_byte_of_a_signed_document_can_be_changed_into_another_document(scene: Scene) -> None:
    raw = base64.b64decode(scene.signer.sign(Words().text()))
    certificates = Certificates({"eu-west-1": (scene.signer.pem,)})
    true = certificates.document(base64.b64encode(raw).decode(), scene.now)

    assert not isinstance(true, Flaw)
    for place in range(0, len(raw), 3):
        changed = bytes([*raw[:place], raw[place] ^ 1, *raw[place + 1 :]])
        told = certificates.document(base64.b64encode(changed).decode(), scene.now)
        assert isinstance(told, Flaw) or told == true, f"byte {place}"


@pytest.mark.parametrize(
    "text",
    ["", "AAAA", "not base64 at all", "MIAGCSqGSIb3DQEHAqCA", base64.b64encode(b"0\x80" * 9000).decode()],
)
def test_what_is_no_signed_document_is_unreadable(scene: Scene, text: str) -> None:
    told = Certificates({"eu-west-1": (scene.signer.pem,)}).document(text, scene.now)

    assert isinstance(told, Flaw) and told.id == "UnreadableProof"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0",
        b"0\x80",
        b"\x1f\x81\x01",
        b"0\x84\xff\xff\xff\xff",
        b"0\x89" + b"\1" * 9,
        b"\4\x80\0\0",
        b"0\0\0",
    ],
)
def test_signed_data_that_is_cut_or_too_long_is_no_crash(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_signed(data)


def test_an_instance_that_started_long_ago_is_too_late_unless_it_was_let_in(scene: Scene) -> None:
    scene.now = STARTED + OLDEST + timedelta(hours=1)
    name = scene.specs[0].node.name

    assert scene.ask() == "TooLate"
    scene.store.note(name, "failed", "", uuid=OURS, address=HERE)
    assert scene.ask() == name


def test_another_machines_uuid_makes_no_late_instance_early(scene: Scene) -> None:
    scene.now = STARTED + OLDEST + timedelta(hours=1)
    scene.store.note("win-b7", "joining", "", uuid=OURS, address="10.224.0.12")

    assert scene.ask() == "TooLate"


@pytest.mark.parametrize("uuid", [OURS, ANOTHER])
@pytest.mark.parametrize("covered", [False, True])
def test_pods_of_a_node_that_is_not_ready_just_now_prove_nothing(
    scene: Scene, uuid: str, covered: bool
) -> None:
    """They have the instance's document, and by its translation of their addresses its own."""
    name = scene.specs[0].node.name
    scene.store.note(name, "Ready", "", uuid=OURS, address=HERE)
    scene.cluster.node_facts = replace(a_node(name=name, system_uuid=OURS), ready=False)
    if covered:
        scene.ask("")

    assert scene.ask(uuid=uuid) == ("WasReady" if uuid == OURS else "AnotherMachine")


@pytest.mark.parametrize("remembered", [True, False], ids=["with memory", "without memory"])
@pytest.mark.parametrize("ready", [True, False], ids=["Ready", "NotReady"])
@pytest.mark.parametrize("tainted", [True, False], ids=["startup taint", "no taint"])
@pytest.mark.parametrize("uuid", [OURS, ANOTHER])
@pytest.mark.parametrize("proof", ["document", "voucher"])
def test_a_node_that_was_admitted_is_not_proved_by_its_pods(
    scene: Scene, remembered: bool, ready: bool, tainted: bool, uuid: str, proof: str
) -> None:
    """Another endpoint joined it, or the volume is lost: what this one remembers decides nothing."""
    name = scene.specs[0].node.name
    voucher = scene.store.voucher("group", "windows").reveal() if proof == "voucher" else ""
    if remembered:
        scene.store.note(name, "failed", "", uuid=OURS, address=HERE)
    taints = (scene.specs[0].node.startup_taint,) if tainted else ()
    scene.cluster.node_facts = a_node(name=name, system_uuid=OURS, ready=ready, taints=taints)

    answer = scene.ask(uuid=uuid, voucher=voucher)

    if tainted:
        other = remembered and uuid == ANOTHER and proof == "document"
        assert answer == ("AnotherMachine" if other else name), "it has no pods yet"
    elif uuid == ANOTHER:
        assert answer == "AnotherMachine"
    else:
        assert answer == ("Ready" if ready else "WasReady")
        scene.cluster.node_facts = None
        assert scene.ask(uuid=uuid, voucher=voucher) == name, "the Node was deleted"


def test_an_instance_that_was_started_again_becomes_its_node_again(scene: Scene) -> None:
    name = scene.specs[0].node.name
    scene.store.note(name, "Ready", "", uuid=OURS, address=HERE)
    silent = replace(
        a_node(name=name, system_uuid=OURS), ready=False, silent_since=scene.now + timedelta(hours=1)
    )
    scene.now += timedelta(hours=2)
    scene.instances = {INSTANCE.id: replace(INSTANCE, launched=scene.now)}
    # Its kubelet speaks, or fell silent after the start: it may have pods.
    told = []
    for since in (None, scene.now + timedelta(minutes=1), silent.silent_since):
        scene.cluster.node_facts = replace(silent, silent_since=since)
        told.append(scene.ask(pendingTime=f"{scene.now:%Y-%m-%dT%H:%M:%SZ}"))

    assert told == ["WasReady", "WasReady", name]


def test_since_its_start_an_instance_that_failed_has_one_uuid(scene: Scene) -> None:
    name = scene.specs[0].node.name
    scene.store.note(name, "failed", "", uuid=OURS, address=HERE)

    assert scene.ask(uuid=ANOTHER) == "AnotherMachine"
    assert scene.ask() == name


def test_an_instance_that_the_inventory_leaves_out_is_not_meant(scene: Scene) -> None:
    scene.specs = [a_member("aws:///eu-west-1a/i-0fedcba9876543210")]

    assert scene.ask() == "NotMeant"


def test_a_second_machine_with_the_same_document_and_one_that_is_ready_are_refused(scene: Scene) -> None:
    name = scene.specs[0].node.name
    scene.store.note(name, "joining", "", uuid=OURS, address=HERE)

    assert scene.ask(uuid=ANOTHER) == "AnotherMachine"
    scene.store.note(name, "Ready", "", uuid=OURS, address=HERE)
    scene.cluster.node_facts = a_node(name=name, system_uuid=OURS)
    assert scene.ask() == "Ready", "pods of a node have its document, too, and get the same answer"
    assert scene.ask(uuid=ANOTHER) == "AnotherMachine"


def test_an_expired_certificate_signs_nothing(scene: Scene) -> None:
    scene.signer = replace(scene.signer, expires=STARTED - timedelta(days=1))

    assert scene.ask() == "UnknownRegion"


# ---- AWS' certificates ---------------------------------------------------------------------------------------------


def test_the_shipped_certificates_say_their_source_and_when_they_expire() -> None:
    text = _DATA.read_text(encoding="utf-8")
    found = entries(_DATA)

    assert "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/regions-certs.html" in text
    assert len({region for region, _, _ in found}) >= 39
    for region, expires, pem in found:
        read = certificate(pem)
        assert read.not_valid_after_utc.date().isoformat() == expires, region
        assert "Amazon Web Services LLC" in read.issuer.rfc4514_string(), region
        assert read.public_key().key_size == 2048, region  # type: ignore[union-attr]


def test_a_file_of_the_users_adds_a_region_and_a_second_certificate(tmp_path: Path) -> None:
    new, changed = Signer(region="xx-test-1"), Signer(region="eu-west-1")
    both = tmp_path / "both.pem"
    both.write_text("\n".join(one.file(tmp_path).read_text() for one in (new, changed)), encoding="utf-8")
    certificates = Certificates.read(both)
    words = Words().text(region="xx-test-1"), Words().text()

    for signer, text in zip((new, changed), words, strict=True):
        assert not isinstance(certificates.document(signer.sign(text), STARTED), Flaw)
    assert isinstance(Certificates.read().document(changed.sign(words[1]), STARTED), Flaw)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "region: eu-west-1\n",
        Signer().pem,
        f"region: ../etc\n{Signer().pem}",
        "region: eu-west-1\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ],
)
def test_a_file_without_certificates_of_regions_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "own.pem"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidInput):
        Certificates.read(path)
