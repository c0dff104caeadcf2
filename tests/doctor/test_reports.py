"""Log lines as public reports show them: doctor names the cause of each. docs/troubles.md has the reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.doctor.documents import documents
from tests.lab.site import Site
from winboot.operations.doctor import Document, judge
from winboot.operations.doctor.signatures import SIGNATURES, unwrapped

# Service, line in the form that its program writes, rule. `*` before the service: it does not run.
OTHER_OS: Final = "The container operating system does not match the host operating system."
LINES: Final = (
    ("containerd", f'error="hcs::CreateComputeSystem 5e1f: {OTHER_OS}: unknown"', "other-os"),
    ("kubelet", "no matching manifest for windows/amd64 10.0.17763 in the manifest list", "no-platform"),
    ("containerd", 'msg="hcsshim::ProcessBaseLayer: The system cannot find the path"', "no-platform"),
    ("containerd", r'error="Get \"https://r.example/v2/\": Proxy Authentication Required"', "proxy-refuses"),
    ("kubelet", r'"cannot create request: Post \"https://k:6443/apis\": Forbidden"', "proxy-refuses"),
    ("containerd", 'runtime "io.containerd.runhcs.v1" binary not installed "x.exe"', "cni-plugin"),
    ("*flanneld", "flag provided but not defined: -iface-name\r\nUsage: flannel", "unknown-flag"),
    ("*kubelet", 'err="cannot set feature gate WinDSR to false, feature is locked"', "unknown-gate"),
    ("*kubelet", r'err="failed to run Kubelet: protocol \"unix\" not supported"', "kubelet-config"),
    ("*kubelet", 'err="failed to validate kubelet configuration, error: [invalid: x]"', "kubelet-config"),
    (
        "*kubelet",
        r'"listen unix C:\\kubelet.sock: bind: Only one usage of each socket address"',
        "port-bound",
    ),
    ("*kube-proxy", ":1: bind: An attempt was made to access a socket in a way forbidden", "port-bound"),
    ("kube-proxy", r'failed in Win32: x (0x803b0013) {\"Success\":false}"', "port-taken"),
    ("kubelet", "[Event Detail: 页面文件太小 (0x800705AF) Provider: 17103e3f EventID: 12000]", "no-memory"),
    # The event viewer wraps lines of Docker.
    ("kubelet", OTHER_OS.replace("match ", "match\r\n          "), "other-os"),
)


def logged(document: Document, service: str, line: str, **machine: Any) -> Document:
    """The document of a node on which a service logged a line, with other facts of the machine."""
    name, stopped = service.lstrip("*"), service.startswith("*")
    counts = [
        {"id": mark.id, "service": name, "count": count}
        for mark in SIGNATURES
        if name in mark.services and (count := mark.count(unwrapped(line)))
    ]
    known = [
        {**one, "state": "Stopped"} if stopped and one["name"] == name else one
        for one in document.machine["known"]
    ]
    changed = {**document.machine, "signatures": counts, "known": known, **machine}
    return msgspec.structs.replace(document, machine=changed)


def first(document: Document) -> str:
    found = judge([document])[0].first
    return found.rule.id if found is not None else ""


def test_doctor_names_the_cause_of_the_lines_of_public_reports(joined_site: Callable[[str], Site]) -> None:
    (document,) = documents(joined_site("plain"))

    named = [(first(logged(document, service, line)), line) for service, line, _ in LINES]

    assert named == [(rule, line) for _, line, rule in LINES]


def test_other_facts_decide_what_a_line_means(joined_site: Callable[[str], Site]) -> None:
    (document,) = documents(joined_site("plain"))
    mirrors = 'msg="failed to load plugin" error="invalid cri image config: `mirrors` cannot be set when"'
    no_cri = "code = Unimplemented desc = unknown service runtime.v1.RuntimeService"
    in_use = "listen tcp :10250: bind: Only one usage of each socket address is normally permitted."
    twice = [{"name": "kubelet.exe", "count": 2}]
    exists = 'hcnCreateNetwork failed in Win32: The object already exists. (0x1392) {"Success":false}'
    incorrect = 'hcnCreateNetwork failed in Win32: The parameter is incorrect. (0x57) {"Success":false}'
    nat = {**document.machine["networks"][0], "name": "nat"}
    token = 'is forbidden: User "system:bootstrap:4dfd2f" cannot create certificatesigningrequests'
    lost = [{**document.machine["credentials"][0], "fault": "no client certificate"}]

    assert first(logged(document, "containerd", mirrors, runtime=[])) == "containerd-config"
    assert first(logged(document, "kubelet", no_cri, runtime=[])) == "runtime-silent"
    assert first(logged(document, "*kubelet", in_use, processes=twice)) != "port-bound"
    assert first(logged(document, "flanneld", exists, networks=[])) == "hns-object-exists"
    assert first(logged(document, "flanneld", incorrect, networks=[nat])) == "hns-object-exists"
    assert first(logged(document, "flanneld", incorrect, networks=[])) == "network-missing"
    assert first(logged(document, "kubelet", token, credentials=lost)) == "token-refused"
    assert first(logged(document, "kubelet", token)) == ""
