"""Every key of a profile and of an inventory with every kind of value that it cannot have: none is taken, each complaint has
its line and column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.config.scene import GOOD, an_inventory, complaints
from winboot.config.inventory import check_inventory

BOOLEAN: Final = ("maybe", "7", "[true]", "{a: b}", "'-1'", "''")
NUMBER: Final = (
    "-1",
    "1.5",
    "ten",
    "1e3",
    "[1]",
    "{a: 1}",
    "99999999999999999999",
    "''",
    "0x10",
    "١٢",
    "true",
)
CIDR: Final = (
    *(
        "10.0.0.0",
        "10.0.0.1/16",
        "10.0.0.0/33",
        "300.0.0.0/8",
        "x",
        "10.0.0.0/16/1",
        "{a: b}",
        "''",
        "010.0.0.0/8",
    ),
    *(
        "10.0.0.0/-1",
        "10.0.0.0/255.255.0.0",
        "'fd00::/129'",
        "[10.0.0.0/16, x]",
        "'10.0.0.0/16 '",
        "0.0.0.0/0",
    ),
)
ADDRESS: Final = (
    "x",
    "10.0.0",
    "10.0.0.256",
    "10.0.0.1/24",
    "010.0.0.1",
    "{a: b}",
    "''",
    "'10.0.0.1 '",
    "true",
)
VERSION: Final = (
    "latest",
    "1",
    "1.36",
    "1.36.x",
    "1.36.5-",
    "'1.36.5;calc'",
    "[1.36.5]",
    "{a: b}",
    "''",
    "-1.36.5",
    "1.36.5.6.7",
)
URL: Final = (
    *(
        "ftp://h",
        "h",
        "'http://'",
        "'http://h:99999'",
        "'http://h:x'",
        '"http://a b"',
        "{a: b}",
        "'http://u:CANARY@h'",
    ),
    *("''", "'https://h?a=b'", "'https://h#x'", "'http://h\\x'", "'javascript:x'", "true"),
)
CHOICE: Final = ("nope", "''", "7", "[a]", "{a: b}", "true")
REFERENCE: Final = (
    *(
        "plain",
        "{}",
        "{envs: A}",
        "{env: A, file: b}",
        "{env: ''}",
        "{env: 'A B'}",
        "{env: '1A'}",
        "{command: x}",
    ),
    *("{command: []}", "{file: ''}", "{file: [a]}", "{env: {a: b}}", "7", "[a]", "{command: [{a: b}]}", "''"),
)
TEXTS: Final = ("{a: b}", "[{a: b}]", "[[a]]", "['']")
MAP: Final = ("[a]", "7", "x", "{a: [b]}", "{a: {b: {c: d}}}")

# Of a profile: the key, and what it cannot be.
PROFILE: Final[dict[str, tuple[str, ...]]] = {
    "kubernetes.version": (*VERSION, "1.19.0", "0.0.0", "2.0.0", "99.1.1"),
    "kubernetes.keep_versions": (*NUMBER, "0", "11"),
    "kubernetes.overlay": ("no-such.yaml", "[a]", "{a: b}", "''"),
    "cluster.server": (*URL, "http://h:6443", "https://h:6443/path"),
    "cluster.ca": REFERENCE,
    "cluster.ca_hash": ("abc", "sha256:12", "[a]", "''", "md5:00000000000000000000000000000000"),
    "cluster.kubeconfig": REFERENCE,
    "cluster.pod_cidr": (*CIDR, "10.96.0.0/16", "10.0.0.10/32", "127.0.0.0/8", "224.0.0.0/8"),
    "cluster.service_cidr": (*CIDR, "10.244.0.0/20"),
    "cluster.node_cidr": (*CIDR[:13], "10.244.0.0/16"),
    "cluster.dns_service_ip": (*ADDRESS, "192.0.2.1"),
    "cluster.dns_domain": ("a b", "[a]", "{a: b}", "''", "a..b", "-a", "'*.a'"),
    "cluster.bootstrap_token": ("abcdef.0123456789abcdef", *REFERENCE[1:10]),
    "network.cni": (*CHOICE, "weave", "flannel-hostgw", "cilium"),
    "network.mode": (*CHOICE, "overlay"),
    "network.routes": CHOICE,
    "runtime.containerd": (*VERSION, "1.5.0"),
    "runtime.pause_image": ("'a b'", "[a]", "{a: b}", "''", "'pause:'", "'http://r/pause:1'"),
    "runtime.images": ("'r.example/a'", "{a: b}", "[7]", "['pause:3.9']", "['http://r.example/a:1']"),
    "runtime.registries": (
        "[a]",
        "7",
        "{'a b': {}}",
        "{r.example: {mirrors: [ftp://x]}}",
        "{r.example: {miror: [http://x]}}",
    ),
    "runtime.isolation": ("[vm]", "{a: b}", "7"),
    "runtime.log.max_size_mib": (*NUMBER, "0"),
    "runtime.log.max_files": (*NUMBER, "0"),
    "services.manager": CHOICE,
    "services.overrides": ("[a]", "7", "{kubelett: sc}", "{kubelet: systemd}"),
    "services.priority": ("[a]", "7", "{kubelett: HIGH_PRIORITY_CLASS}", "{containerd: HIGH}"),
    "services.environment": (
        "[a]",
        "7",
        "{kubelett: {A: b}}",
        "{kubelet: {'A B': c}}",
        "{kubelet: {A: [b]}}",
        "{kubelet: a}",
    ),
    "kubelet.config": (
        "[a]",
        "7",
        "{maxPod: 5}",
        "{maxPods: x}",
        "{maxPods: [5]}",
        "{syncFrequency: 5}",
        "{featureGates: x}",
        "{featureGates: {NoSuch: true}}",
        "{featureGates: {WinDSR: maybe}}",
    ),
    "kubelet.flags": ("[a]", "7", "{no-such-flag: x}", "{max-pods: x}", "{v: [1]}", "{--v: 1}"),
    "kube_proxy.config": ("[a]", "7", "{mod: x}", "{mode: ipvs}", "{clusterCIDR: x}"),
    "kube_proxy.flags": ("[a]", "7", "{no-such: x}"),
    "kube_proxy.dsr": CHOICE[:5],
    "kube_proxy.managed_by": CHOICE,
    "node.labels": ("[a]", "7", "{'a b': c}", "{a: 'b c'}", "{a: [b]}", "{'-a': b}", "{a/b/c: d}"),
    "node.taints": ("{a: b}", "[a]", "['a=b:Never']", "['=b:NoSchedule']", "['a b=c:NoSchedule']", "7"),
    "proxy.http": URL,
    "proxy.https": URL,
    "proxy.no_proxy": ("[http://x]", "{a: b}", "['a b']"),
    "windows.rename": BOOLEAN,
    "windows.page_file_mib": (*(one for one in NUMBER if one != "true"), "511", "8GB"),
    "windows.features": (*TEXTS, "7"),
    "windows.firewall.node_ports": BOOLEAN,
    "windows.firewall.sources": CIDR[:13],
    "windows.defender_exclusions": BOOLEAN,
    "windows.update_hold": BOOLEAN,
    "windows.long_paths": BOOLEAN,
    "windows.power_plan": CHOICE,
    "windows.crash_dump": CHOICE,
    "windows.time_servers": (*TEXTS, "['a b']", "['http://x']"),
    "windows.dns_suffixes": (*TEXTS, "['a b']", "['a_b c']"),
    "windows.trust_roots": ("[plain]", "{a: b}", "[{envs: A}]"),
    "windows.known_fixes": ("[nope]", "{a: b}"),
    "windows.dynamic_ports": (
        "{start: 80}",
        "{count: 1}",
        "7",
        "[1]",
        "{start: 65000, count: 5000}",
        "{begin: 40000}",
    ),
    "windows.keepalive": ("{time_ms: 1}", "{time_ms: x}", "7", "{after: 1}"),
    "artifacts.source": ("ftp://x", "''", "[a]", "{a: b}", "relative", "'http://u:CANARY@h'"),
    "artifacts.cni_plugins": ("latest", "[1.6.0]", "{a: b}", "''", "'../x'"),
    "artifacts.flannel": ("latest", "[0.26.0]", "{a: b}", "''"),
    "artifacts.sha256": ("[a]", "7", "{a: 12}", "{a: [b]}"),
}
# Of a host of an inventory.
HOST: Final[dict[str, tuple[str, ...]]] = {
    "address": (
        "'a b'",
        "''",
        "http://h",
        "'h:5985'",
        "010.0.0.1",
        "10.0.0.256",
        "[10.0.0.1]",
        "{a: b}",
        "10.0.0.1/24",
        "'h@x'",
    ),
    "node_ip": (*ADDRESS, "0.0.0.0", "127.0.0.1"),
    "os": (*CHOICE, "2016", "20H2", "windows"),
    "computer_name": ("'a b'", "abcdefghijklmnop", "'12345'", "a_b.c", "[a]"),
    "connection.port": (*NUMBER, "0", "65536"),
    "connection.user": ("[a]", "{a: b}"),
    "connection.password": REFERENCE,
    "connection.transport": (*CHOICE, "winrms", "rdp"),
    "connection.tls.fingerprint": ("abc", "''", "[a]", "zz"),
    "connection.tls.ca": REFERENCE[:9],
}


def _nested(path: str, value: str) -> str:
    """`a.b` and a value as YAML, the value as it is written."""
    *above, last = path.split(".")
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(above)]
    return "\n".join([*lines, f"{'  ' * len(above)}{last}: {value}", ""])


# The other keys that a section needs.
BESIDE: Final = {"cluster": yaml.safe_load(GOOD)["cluster"], "network": {"cni": "flannel"}}


def _profile(path: str, value: str) -> str:
    """A section with the value, and the other keys that it must have."""
    section, _, key = path.partition(".")
    beside = {name: said for name, said in BESIDE.get(section, {}).items() if name != key.partition(".")[0]}
    rest = "".join(
        f"  {name}: {yaml.safe_dump(said, default_flow_style=True).partition(chr(10))[0]}\n"
        for name, said in beside.items()
    )
    return _nested(path, value) + rest


PROFILES: Final = [(path, value) for path, values in PROFILE.items() for value in values]
HOSTS: Final = [(path, value) for path, values in HOST.items() for value in values]


def test_the_tables_have_the_promised_size() -> None:
    assert len(PROFILES) + len(HOSTS) >= 300
    assert len(set(PROFILES)) + len(set(HOSTS)) == len(PROFILES) + len(HOSTS)


@pytest.mark.parametrize("path", PROFILE)
def test_a_value_that_a_key_cannot_have_is_refused_at_its_place(path: str) -> None:
    """One test a key: its values are many and each is cheap."""
    assert list(_taken_in_profile(path)) == []


def _taken_in_profile(path: str) -> Iterator[str]:
    for value in PROFILE[path]:
        text = _profile(path, value)
        errors = [one for one in complaints(text) if one.level == "error"]
        if not errors:
            yield f"{path}: {value} was taken"
        yield from (
            f"{path}: {value}: no place: {one}" for one in errors if one.place is None or not one.place.line
        )
        if any("CANARY" in str(one) for one in errors):
            yield f"{path}: {value}: the secret is shown"


@pytest.mark.parametrize("path", HOST)
def test_a_value_that_a_host_cannot_have_is_refused_at_its_place(path: str, tmp_path: Path) -> None:
    assert list(_taken_in_inventory(path, tmp_path)) == []


def _taken_in_inventory(path: str, folder: Path) -> Iterator[str]:
    for value in HOST[path]:
        beside = "" if path == "address" else "      address: 10.0.1.11\n"
        os = "" if path == "os" else "      os: '2022'\n"
        host = "".join(f"      {line}\n" for line in _nested(path, value).splitlines())
        text = f"groups:\n  pool:\n    profile: profile.yaml\n    hosts:\n     win-1:\n{beside}{os}{host}"
        errors = [one for one in check_inventory(an_inventory(folder, text)) if one.level == "error"]
        if not errors:
            yield f"{path}: {value} was taken"
        yield from (
            f"{path}: {value}: no place: {one}" for one in errors if one.place is None or not one.place.line
        )


def test_this_computer_is_one_node(tmp_path: Path) -> None:
    """operator N12: two hosts with the transport local are the same machine twice."""
    local = "{connection: {transport: local}}"
    text = f"groups: {{p: {{profile: profile.yaml, os: '2022', hosts: {{a: {local}, b: {local}}}}}}}\n"

    errors = [one for one in check_inventory(an_inventory(tmp_path, text)) if one.level == "error"]

    (said,) = [one for one in errors if "both this computer" in one.wrong]
    assert said.place is not None
    assert "b and a" in said.wrong
