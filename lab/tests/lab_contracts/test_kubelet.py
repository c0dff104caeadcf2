"""The lab's kubelet does what kubelet.exe did, row by row of its contract."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
import yaml
from cryptography.x509 import load_pem_x509_csr
from lab_programs.conftest import IP, KUBELET, KUBELET_CONFIG, TOKEN, Node
from winboot_lab.cluster import ApiFailure, LabCluster
from winboot_lab.cluster.authority import CLIENT_AUTH, SERVER_AUTH, Subject, subject_of
from winboot_lab.cluster.kubeconfig import kubeconfig

from lab_contracts.contract import Row, compared

CONFIG: Final = r"C:\var\lib\kubelet\config.yaml"
BOOTSTRAP: Final = r"C:\k\bootstrap-kubeconfig"
PKI: Final = r"C:\var\lib\kubelet\pki"
CURRENT: Final = rf"{PKI}\kubelet-client-current.pem"
CSRS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
UNKNOWN: Final = "abcdef.ffffffffffffffff"


def prepared(when: dict[str, Any] | None = None, *, runtime: bool = True) -> Node:
    """A machine with all files: `config` is laid over the kubelet's, `files` come instead, `token` and `authority` are those
    of its bootstrap file."""
    when = when or {}
    node = Node(version="1.36.2")
    node.binaries()
    node.configuration()
    if runtime:
        node.containerd()
    changed = {**KUBELET_CONFIG, **when.get("config", {})}
    node.file(CONFIG, {key: value for key, value in changed.items() if value is not None})
    issuer = LabCluster().authority if "authority" in when else node.cluster.authority
    node.file(
        BOOTSTRAP, kubeconfig(node.cluster.plan.server, issuer.pem, {"token": when.get("token", TOKEN)})
    )
    for path, content in when.get("files", {}).items():
        if content is None:
            node.machine.files.delete(path)
        else:
            node.file(path, content)
    return node


def start(node: Node, when: dict[str, Any] | None = None, seconds: float = 20) -> Node:
    """Start the kubelet: `flags` are more flags, `without` are those it does not have."""
    when = when or {}
    dropped = tuple(when.get("without", ()))
    words = [word for word in KUBELET if not dropped or not word.startswith(dropped)]
    node.service("kubelet", *words, *when.get("flags", ()))
    node.settle(seconds)
    return node


def code(node: Node) -> int | None:
    """How the newest kubelet ended; None while it runs."""
    (*_, newest) = (one for one in node.machine.processes._known.values() if one.name == "kubelet")
    return newest.exit_code


def requests(node: Node) -> list[Any]:
    found: list[Any] = node.admin("GET", CSRS)["items"]
    return found


def said(node: Node, words: str) -> list[float]:
    """The seconds since the first line at which these words were logged."""
    lines = [line for line in node.log("kubelet").splitlines() if line[:1] in "IWEF"]
    first = _second(lines[0])
    return [_second(line) - first for line in lines if words in line]


def _second(line: str) -> float:
    hours, minutes, seconds = line.split()[1].split(":")
    return round(int(hours) * 3600 + int(minutes) * 60 + float(seconds))


# ---- by kind -----------------------------------------------------------------------------------------


def _message(row: Row) -> None:
    """It ends with this code, or runs on where the row has none, and its log has these words."""
    node = start(prepared(row.when), row.when)

    assert row.expect.get("says", row.source.quote) in node.log("kubelet")
    assert code(node) == row.expect["code"]


# ---- credentials ---------------------------------------------------------------------------------------


def _kubeconfig_first(row: Row) -> None:
    node = prepared({"token": UNKNOWN})
    data = json.loads(node.read(BOOTSTRAP))
    del data["clusters"][0]["cluster"]["certificate-authority-data"]
    data["clusters"][0]["cluster"] |= row.expect
    node.file(BOOTSTRAP, data)
    start(node)

    (cluster,) = yaml.safe_load(node.read(r"C:\k\kubeconfig"))["clusters"]
    assert cluster["cluster"] == {"server": node.cluster.plan.server, **row.expect}
    assert not node.read(r"C:\k\kubeconfig").startswith("{")
    assert not node.machine.files.exists(CURRENT)


def _before_runtime(row: Row) -> None:
    node = start(prepared(runtime=False), seconds=2)

    assert (len(requests(node)), code(node)) == (row.expect["requests"], row.expect["code"])


def _request_name(row: Row) -> None:
    node = start(prepared())

    assert {one["metadata"]["generateName"] for one in requests(node)} == {row.expect["generateName"]}
    assert all(re.fullmatch(row.expect["name"], one["metadata"]["name"]) for one in requests(node))


def _client_link(_: Row) -> None:
    node = start(prepared())
    entry = node.machine.files.find(CURRENT, follow=False)

    assert entry is not None and entry[1].link is not None
    kind, target = entry[1].link
    assert (kind, target.startswith(rf"{PKI}\kubelet-client-20")) == ("SymbolicLink", True)


def _plain_file(row: Row) -> None:
    node = prepared()
    past = node.time.datetime() - timedelta(days=2)
    subject = Subject("system:node:win-1", ("system:nodes",))
    pair = node.cluster.authority.issue(subject, (CLIENT_AUTH,), (past, past + timedelta(days=1)))
    node.file(CURRENT, pair.certificate + pair.key)
    start(node)

    assert row.expect in node.log("kubelet")
    assert node.read(CURRENT) == pair.certificate + pair.key
    assert len(requests(node)) > 1


def _no_certificate(row: Row) -> None:
    node = start(prepared({"token": UNKNOWN}), seconds=row.expect["after"] - 1)
    assert code(node) is None
    node.settle(row.expect["at"] - row.expect["after"] + 1)

    assert row.expect["says"] in node.log("kubelet")
    assert code(node) == row.expect["code"]


def _no_answer(row: Row) -> None:
    node = prepared()
    node.cluster.faults.unreachable = True
    start(node, seconds=row.expect["after"])

    assert code(node) == row.expect["code"]


def _request_timeout(row: Row) -> None:
    node = prepared()
    node.cluster.controllers.paused.add("csrapproving")
    start(node, seconds=row.expect["after"] - 5)
    (first,) = requests(node)
    node.settle(15)

    assert len({one["spec"]["request"] for one in requests(node)}) == row.expect["requests"], first


def _pauses(row: Row) -> None:
    node = start(prepared({"token": UNKNOWN}), seconds=row.expect[-1] + 5)

    assert said(node, "Unauthorized") == row.expect


def _more_names(_: Row) -> None:
    node = start(prepared())
    now = node.time.datetime()
    subject = Subject("system:node:win-1", ("system:nodes",), ("win-1", "another"), (IP,))
    pair = node.cluster.authority.issue(subject, (SERVER_AUTH,), (now, now + timedelta(days=9)))
    node.sc("stop", "kubelet")
    node.settle(5)
    before = len(requests(node))
    node.file(rf"{PKI}\kubelet-server-current.pem", pair.certificate + pair.key)
    node.sc("start", "kubelet")
    node.settle(30)

    assert len(requests(node)) == before


# ---- objects -------------------------------------------------------------------------------------------


def _start_order(row: Row) -> None:
    """The kubelet creates these objects in this order; the Lease and the CSINode have rows of their own."""
    node = prepared()
    made: list[str] = []
    inner = node.cluster.request

    def request(who: Any, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        answer = inner(who, method, path, body, **rest)
        plural = path.rpartition("/")[2]
        if method == "POST" and plural in ("nodes", "certificatesigningrequests"):
            user = node.cluster.identify(who).name.rpartition(":")[0]
            made.append(f"POST {plural} {user}")
        return answer

    node.cluster.request = request  # type: ignore[method-assign]
    start(node)

    assert made == row.expect


def _annotation(row: Row) -> None:
    assert start(prepared()).node()["metadata"]["annotations"] == row.expect


def _wrong_ip(_: Row) -> None:
    node = start(prepared(), {"flags": ["--node-ip=10.9.9.9"], "without": ["--node-ip"]}, seconds=60)

    assert "addresses" not in node.node()["status"]
    assert [subject(one).dns_names for one in requests(node)] == [()]


def subject(request: Any) -> Subject:
    return subject_of(load_pem_x509_csr(base64.b64decode(request["spec"]["request"])))


def _old_ip(_: Row) -> None:
    node = start(prepared())
    node.sc("stop", "kubelet")
    node.settle(5)
    old = node.node()["status"]["addresses"]
    adapter = node.machine.network.holder(IP)
    assert adapter is not None
    for address in [one for one in adapter.ipv4 if one.ip == IP]:
        address.ip = "10.0.0.77"
    node.sc("start", "kubelet")
    node.settle(30)

    assert node.machine.network.holder(IP) is None
    assert node.node()["status"]["addresses"] == old
    assert "failed to validate nodeIP" in node.log("kubelet")


def _owner(path: str) -> Callable[[Row], None]:
    def compare(row: Row) -> None:
        node = start(prepared(), seconds=30)
        (owner,) = node.admin("GET", path)["metadata"]["ownerReferences"]

        assert owner == {**row.expect, "uid": node.node()["metadata"]["uid"]}
        node.sc("stop", "kubelet")
        node.settle(5)
        node.admin("DELETE", "/api/v1/nodes/win-1")
        node.settle(2)
        with pytest.raises(ApiFailure, match="not found"):
            node.admin("GET", path)

    return compare


def _pod_dns(row: Row) -> None:
    node = Node(version="1.36.2")
    node.join()
    asked: list[Any] = []
    _, _, pods = node.outside.kubelets["win-1"]
    runtime = pods.runtime()
    inner = runtime.run_sandbox
    runtime.run_sandbox = lambda *words, **rest: asked.append(words[3]) or inner(*words, **rest)  # type: ignore[method-assign, func-returns-value]
    node.pod("one")
    node.settle(10)

    assert [dns["options"] for dns in asked] == [row.expect["options"]]


def _folders(row: Row) -> None:
    node = start(prepared())

    for name in row.expect:
        assert node.machine.files.is_directory(rf"C:\var\lib\kubelet\{name}"), name


def _plugin_folder(row: Row) -> None:
    node = start(prepared())

    assert node.machine.files.is_directory(row.expect)


def _health_port(_: Row) -> None:
    node = prepared()
    node.machine.sockets.listen(node.machine.processes.all()[0], 10248, address="127.0.0.1")
    start(node)

    assert code(node) is None
    assert "Failed to start healthz server" in node.log("kubelet")


COMPARE: Final[dict[str, Callable[[Row], None]]] = {
    "message": _message,
    "kubeconfig-before-certificate": _kubeconfig_first,
    "certificate-before-runtime": _before_runtime,
    "certificate-request-name": _request_name,
    "client-certificate-link": _client_link,
    "client-certificate-plain-file": _plain_file,
    "no-certificate-exit": _no_certificate,
    "no-certificate-no-answer": _no_answer,
    "request-timeout": _request_timeout,
    "request-pauses": _pauses,
    "serving-certificate-more-names": _more_names,
    "start-order": _start_order,
    "node-annotation": _annotation,
    "node-wrong-ip": _wrong_ip,
    "node-old-ip": _old_ip,
    "lease-owner": _owner("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/win-1"),
    "csinode-owner": _owner("/apis/storage.k8s.io/v1/csinodes/win-1"),
    "pod-dns": _pod_dns,
    "folders": _folders,
    "folder-of-volume-plugins": _plugin_folder,
    "health-port-taken": _health_port,
}


@pytest.mark.parametrize("row", compared("kubelet"), ids=lambda row: row.id)
def test_the_kubelet_of_the_lab_follows(row: Row) -> None:
    """A KeyError is a row without a comparison."""
    COMPARE[row.id if row.id in COMPARE else row.kind](row)
