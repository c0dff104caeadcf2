"""Border parsers of machines, clusters, clouds and files: of any text only declared errors come out (`make fuzz`).

The endpoint of first boot, metadata services and queues: tests/firstboot/test_fuzz.py.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import example, given
from hypothesis import strategies as st

from tests.anything import DEEP, EXAMPLES, JSON, TEXTS, objects, texts_of
from tests.firstboot.documents import Signer, Words
from tests.join.fakes import a_node
from tests.steps.builders import a_spec_of
from winboot.base.errors import (
    ClusterError,
    ClusterRefused,
    InvalidInput,
    ProtocolError,
    UsageError,
    WinbootError,
)
from winboot.base.secret import Secret
from winboot.config.annotations import OWNED
from winboot.config.ansible import open_inventory, read_ansible
from winboot.config.compat import load
from winboot.config.compat.learned import Refused, flags_to_ask, gates_to_ask, gates_to_turn, overlay
from winboot.config.compat.learned import said as program_said
from winboot.config.host_list import read_hosts
from winboot.config.networks.flannel_settings import FlannelConf
from winboot.config.networks.flannel_settings import parse as net_conf
from winboot.node.knowledge import _answers
from winboot.node.preflight.checks import _modes
from winboot.node.probes import _other_router
from winboot.operations.fleet.view import number, ordered
from winboot.remote.cloud.aws_identity import Certificates, Document, Flaw
from winboot.remote.cloud.azure_names import ResourceId
from winboot.remote.cloud.settings import read_cloud_file
from winboot.remote.cluster.base import ExpectedNode, NodeWish, Request
from winboot.remote.cluster.claims import Claim
from winboot.remote.cluster.discovery import _authority
from winboot.remote.cluster.kubeconfig import Kubeconfig
from winboot.remote.cluster.labels import differences
from winboot.remote.cluster.lightkube_pods import _ended
from winboot.remote.cluster.plugin import VERSIONS, PluginAuth
from winboot.remote.cluster.requests import problems
from winboot.remote.transport.console import Conversation
from winboot.remote.transport.probe import _answer

pytestmark = pytest.mark.nightly
NOW = datetime(2026, 11, 28, tzinfo=UTC)
SIGNER = Signer()
AWS = Certificates({SIGNER.region: (SIGNER.pem,)})
COMPAT = load()


class Peer:
    """A machine that answers every script with these lines."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def run(self, script: str, arguments: Any, secrets: Any) -> Iterator[str]:
        yield from self.lines


# ---- machines ------------------------------------------------------------------------------------------------------

PROGRAMS = objects(
    "program", "version", "help", "flags", "gates", "problem", words=("kubelet", "kube-proxy", "x")
)
SPEC = a_spec_of("flannel-host-gw", address="10.0.0.1")


@EXAMPLES
@given(st.lists(texts_of(PROGRAMS), max_size=4))
def test_the_answers_of_programs_are_read_or_refused(lines: list[str]) -> None:
    with suppress(ProtocolError, UsageError):
        _answers(SPEC, Peer(lines), "", {})  # type: ignore[arg-type]


HELPS = st.lists(
    st.sampled_from(
        [
            "      --feature-gates mapStringBool   A set of key=value pairs",
            '      --config string   a file (default "x")',
            "  -v, --v Level   number",
            "                AllAlpha=true|false (ALPHA - default=false)",
            "                WinDSR=true|false (BETA - default=true)",
            "                X=true|false (BETA - default=maybe)",
        ]
    )
    | TEXTS,
    max_size=8,
).map("\n".join)
VERSIONS_TEXTS = st.from_regex(r"Kubernetes v\d{1,9}\.\d{1,9}\.\d{1,9}(-\w+)?", fullmatch=True) | TEXTS


@EXAMPLES
@given(VERSIONS_TEXTS, HELPS, st.booleans())
@example("v1.99999999999999999999.0", "      --feature-gates m\n  X=true|false (BETA - default=true)", True)
def test_the_help_of_a_program_is_read_or_refused(version: str, text: str, refuses: bool) -> None:
    """The program may refuse all requested flags; another refusal does not count (`_ask`)."""
    try:
        told = program_said("kubelet", version, text)
    except ValueError:
        return
    flags, gates = flags_to_ask(COMPAT, told), gates_to_ask(COMPAT, told)
    gates += gates_to_turn(COMPAT, told, gates[::2])
    overlay(COMPAT, {"kubelet": (told, Refused(set(flags), set(gates)) if refuses else Refused())})


PING = ("language", "policy", "ps", "computer", "administrator", "filtered", "domain", "build", "now")


@EXAMPLES
@given(st.lists(texts_of(objects(*PING, words=("FullLanguage", "2026-11-28T00:00:00Z"))), max_size=4))
def test_an_answer_of_a_ping_is_read_or_left(lines: list[str]) -> None:
    found = _answer(lines)
    assert found is None or (isinstance(found.computer, str) and isinstance(found.filtered, bool))


FRAMES = st.builds(
    lambda kind, text: (
        f"#winboot:{kind}:{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\n".encode()
    ),
    st.sampled_from(["start", "output", "end", "warning", "other"]),
    texts_of(objects("error", "id", "message", "position", "stack", words=("1234",))),
)


class Piped:
    """A process on the machine that writes these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def receive(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def finish(self) -> tuple[int | None, str]:
        return 1, ""


@EXAMPLES
@given(st.lists(FRAMES | st.binary(max_size=50), max_size=5))
def test_the_frames_of_a_console_are_lines_or_a_named_error(pieces: list[bytes]) -> None:
    with suppress(WinbootError):
        assert all(isinstance(one, str) for one in Conversation("n1", Piped(pieces)).lines())  # type: ignore[arg-type]


CONTENT = Words().text()


@EXAMPLES
@given(st.binary(max_size=300) | st.just(b""), st.integers(0, 4000), st.integers(0, 50), st.booleans())
def test_an_identity_document_is_read_or_flawed(junk: bytes, at: int, cut: int, signed: bool) -> None:
    """A document of which a part was replaced; whole or inside of its signature."""
    if signed:
        text = SIGNER.sign(CONTENT[: at % len(CONTENT)] + junk + CONTENT[at % len(CONTENT) + cut :])
    else:
        whole = base64.b64decode(DOCUMENT)
        text = base64.b64encode(whole[: at % len(whole)] + junk + whole[at % len(whole) + cut :]).decode()
    assert isinstance(AWS.document(text, NOW), Document | Flaw)


DOCUMENT = "".join(SIGNER.sign(CONTENT).split())


@EXAMPLES
@given(texts_of(objects("instanceId", "accountId", "region", "privateIp", "imageId", "pendingTime")))
def test_an_identity_document_of_any_words_is_read_or_flawed(text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")[:20_000]
    assert isinstance(AWS.document(SIGNER.sign(content), NOW), Flaw)
    assert isinstance(AWS.document(text, NOW), Flaw)


# ---- clusters ------------------------------------------------------------------------------------------------------

ANNOTATIONS = objects("labels", "taints", "VtepMAC", words=("00:15:5d:00:00:01",))


@EXAMPLES
@given(texts_of(ANNOTATIONS), texts_of(ANNOTATIONS))
def test_annotations_of_a_node_are_read_or_count_as_empty(owned: str, backend: str) -> None:
    node = a_node(annotations={OWNED: owned, "flannel.alpha.coreos.com/backend-data": backend})
    differences(node, NodeWish({"pool": "windows"}, ()))
    assert all(isinstance(one, str) for one in _other_router({"router": "00-15-5D-00-00-02"}, node))


@EXAMPLES
@given(
    texts_of(objects("", words=("0",)) | st.permutations([0, 1, 2])),
    TEXTS | st.integers().map(str) | st.sampled_from(DEEP),
)
@example('["0", "1", "2"]', "")
def test_notes_of_a_claim_are_read_or_left(order: str, count: str) -> None:
    claim = Claim("fleet/r1", "", 60, notes={"winboot.io/order": order, "winboot.io/wave": count})
    assert sorted(ordered(claim, ["a", "b", "c"])) == ["a", "b", "c"]
    assert number(claim, "winboot.io/wave") >= 0


CONF = objects("Network", "Backend", "Type", "VNI", "Port", "DirectRouting", words=("vxlan", "10.244.0.0/16"))


@EXAMPLES
@given(texts_of(CONF))
def test_flannels_configuration_is_read_or_refused(text: str) -> None:
    with suppress(ClusterError):
        assert isinstance(net_conf("kube-flannel/kube-flannel-cfg", text), FlannelConf)


YAML_TEXTS = (
    texts_of(JSON)
    | objects("kind", "mode", "a").map(lambda value: yaml.safe_dump(value, allow_unicode=True))
    | st.sampled_from(
        ["!!bool x", "!!int ''", "!!timestamp x", "2026-99-99", "? [a]\n: b", "&a [*a]", "a: *b", "="]
    )
)


@EXAMPLES
@given(YAML_TEXTS)
@example("kind: KubeProxyConfiguration\nmode: !!bool x")
@example("a: 2026-99-99")
def test_kube_proxys_configuration_has_modes_or_none(text: str) -> None:
    assert all(isinstance(one, str) for one in _modes({"config.conf": text}))


KUBECONFIG = objects(
    *(
        "current-context",
        "contexts",
        "context",
        "name",
        "clusters",
        "cluster",
        "users",
        "user",
        "server",
        "token",
    ),
    *(
        "exec",
        "proxy-url",
        "extensions",
        "as",
        "as-groups",
        "as-user-extra",
        "certificate-authority-data",
        "tls-server-name",
    ),
    words=("a", "https://[::1", "https://10.0.0.1:6443", "http://x:y", "socks5://a"),
)
READS = (
    "server",
    "proxy",
    "server_name",
    "is_insecure",
    "impersonation",
    "judge",
    "cluster_info",
    "plugin",
    "ca_pem",
)
NAMED = st.fixed_dictionaries(
    {
        "current-context": st.just("a"),
        "contexts": st.just([{"name": "a", "context": {"cluster": "a", "user": "a"}}]),
        "clusters": KUBECONFIG.map(lambda one: [{"name": "a", "cluster": one}]),
        "users": KUBECONFIG.map(lambda one: [{"name": "a", "user": one}]),
    }
)


@EXAMPLES
@given(YAML_TEXTS | (NAMED | KUBECONFIG).map(lambda one: yaml.safe_dump(one, allow_unicode=True)))
@example("!!bool x")
@example("!!timestamp x")
@example(
    r"""{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {}}],
    users: [{name: a, user: {as: "\ud800"}}]}"""
)
def test_a_kubeconfig_is_read_or_refused(text: str) -> None:
    try:
        found = Kubeconfig.from_text(Secret(text), "the file")
    except InvalidInput:
        return
    for name in READS:
        with suppress(InvalidInput, ClusterError):
            getattr(found, name)(None)
    with suppress(InvalidInput, ClusterError):
        found.first_ca_pem()


@EXAMPLES
@given(texts_of(objects("data", "kubeconfig", words=("clusters: []", "!!bool x"))))
@example('{"data": {"kubeconfig": "!!bool x"}}')
def test_a_cluster_info_has_a_ca_or_is_refused(text: str) -> None:
    with suppress(ClusterError):
        _authority(text.encode("utf-8", "surrogatepass"), "https://10.0.0.1:6443")


CREDENTIALS = objects(
    *("status", "token", "clientCertificateData", "clientKeyData", "expirationTimestamp"),
    words=("2026-11-28T00:00:00Z", "2026-11-28T00:00:00", "x"),
)
PLUGIN = PluginAuth(
    {"command": "get-token", "apiVersion": VERSIONS[0]},
    "the file",
    None,
    cluster=dict,
    present=lambda pair: None,
)


@EXAMPLES
@given(texts_of(CREDENTIALS | CREDENTIALS.map(lambda one: {"status": one})))
def test_the_credential_of_a_plug_in_is_read_or_refused(text: str) -> None:
    with suppress(ClusterRefused):
        found = PLUGIN._read(text)
        assert found.token or found.certificate
        assert found.expires is None or found.expires.tzinfo is not None


STATUS = objects(
    *("status", "message", "details", "causes", "reason"),
    words=("Success", "Failure", "ExitCode", "7", "--7"),
)


@EXAMPLES
@given(texts_of(STATUS))
@example('{"details": {"causes": [{"reason": "ExitCode", "message": "--7"}]}}')
def test_the_end_of_a_command_in_a_pod_is_read_or_refused(text: str) -> None:
    with suppress(ClusterError):
        assert isinstance(
            _ended("exec", text.encode("utf-8", "surrogatepass"), {1: b"", 2: b"\xff"}).code, int
        )


NODE = ExpectedNode("win-1", frozenset({"win-1"}), frozenset({"10.0.0.1"}))
BUILDER = x509.CertificateSigningRequestBuilder(
    x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, "system:node:win-1"),
        ]
    )
).add_extension(x509.SubjectAlternativeName([x509.DNSName("win-1")]), critical=False)
SIGNED = BUILDER.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
GOOD, PEM = SIGNED.public_bytes(Encoding.DER), SIGNED.public_bytes(Encoding.PEM)


def armored(der: bytes) -> bytes:
    name = b"CERTIFICATE REQUEST"
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (name, base64.encodebytes(der), name)


@EXAMPLES
@given(
    st.integers(0, 2000),
    st.binary(max_size=20),
    st.integers(0, 20),
    st.sampled_from(["der", "pem", "text"]),
    TEXTS,
)
def test_a_certificate_request_has_problems(at: int, junk: bytes, cut: int, where: str, text: str) -> None:
    """A request of which a part was replaced: its signature no longer fits."""
    body = GOOD if where == "der" else PEM
    changed = body[: at % len(body)] + junk + body[at % len(body) + cut :]
    pem = changed if where == "pem" else armored(changed)
    stored = text if where == "text" else base64.b64encode(pem).decode()
    request = Request("r", "kubernetes.io/kubelet-serving", "system:node:win-1", (), frozenset(), stored)
    assert problems(request, NODE)


# ---- clouds and files ----------------------------------------------------------------------------------------------


@EXAMPLES
@given(
    TEXTS
    | st.lists(
        st.sampled_from(["azure://", "/subscriptions/", "/resourceGroups/", "/virtualMachines/", "a", "\n"])
    ).map("".join)
)
def test_a_provider_id_of_azure_is_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert ResourceId.parse(ResourceId.parse(text).provider_id)


@EXAMPLES
@given(texts_of(objects("name", "ip", "address", "os", "Reservations", "value", "items")))
def test_a_list_of_hosts_is_read_or_refused(text: str) -> None:
    with suppress(InvalidInput, UsageError):
        assert read_hosts(text, "hosts")


INI = st.lists(
    st.sampled_from(
        [
            "[",
            "]",
            "windows",
            ":vars",
            ":children",
            "=",
            "\n",
            " ",
            "ansible_host",
            "#",
            "[0:9]",
            "'",
            '"',
            "a",
        ]
    )
    | TEXTS,
    max_size=20,
).map("".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@EXAMPLES
@given(INI | YAML_TEXTS, st.sampled_from(["hosts", "hosts.ini", "hosts.yaml"]))
@example("/\n", "hosts")
def test_an_inventory_of_ansible_is_read_or_refused(folder: Path, text: str, name: str) -> None:
    path = folder / name
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with suppress(InvalidInput, UsageError):
        read_ansible(path, open_inventory(path))


CLOUD = objects(
    *("plugin", "regions", "cluster", "filters", "groups", "profile", "os", "connection", "subscription"),
    words=("amazon.aws.aws_ec2", "azure.azcollection.azure_rm", "prod", "2022"),
)


@EXAMPLES
@given(
    YAML_TEXTS | CLOUD.map(lambda one: yaml.safe_dump(one, allow_unicode=True)),
    st.sampled_from(["aws", "azure"]),
)
def test_an_inventory_of_a_cloud_is_read_or_refused(folder: Path, text: str, cloud: str) -> None:
    path = folder / f"pool.{cloud}.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with suppress(InvalidInput, UsageError):
        read_cloud_file(path)
