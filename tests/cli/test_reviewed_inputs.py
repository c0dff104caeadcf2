"""Inputs of reviewers that winboot accepted, crashed on, or answered with a library's message.

Each gets a complaint with its file, line and column. `winboot check` ends with 64, or warns if commands can work without it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.cli.test_check import KUBECONFIG
from tests.config.scene import GOOD, an_inventory
from winboot.cli import run

GROUP: Final = 'groups:\n  pool:\n    profile: profile.yaml\n    os: "2022"\n'
PLACE: Final = re.compile(r"^(\S+?\.yaml):(\d+):(\d+): ", re.MULTILINE)
# Words of the libraries beneath, and of Python.
SECRET: Final = re.compile(r"PASS(?!WORD)|CANARY")
FOREIGN: Final = re.compile(
    r"Input should be|pydantic|Traceback|bug in winboot|Error:|ValueError|string_type"
)


def _kubelet(config: str) -> str:
    return f"kubelet: {{config: {{{config}}}}}\n"


def _cluster(key: str, value: str) -> str:
    """The good profile with another value for one key of its cluster section."""
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"  {key}:")]
    at = lines.index("cluster:") + 1
    return "\n".join([*lines[:at], f"  {key}: {value}", *lines[at:]]) + "\n"


# A profile that is good but for this, and a part of the expected message.
PROFILES: Final = [
    # newcomer D2 and part C: values with types
    (GOOD + _kubelet("maxPods: sixty"), "maxPods"),
    (GOOD + _kubelet("maxPods: -1"), "maxPods"),
    (GOOD + _kubelet("maxPods: yes"), "maxPods"),
    (GOOD + _kubelet("syncFrequency: 1 minute"), "duration"),
    (GOOD + _kubelet("systemReserved: {memory: 2 GB}"), "quantity"),
    (GOOD + _kubelet("evictionHard: {memory.available: 110%}"), "110%"),
    (GOOD + _kubelet("authentication: {anonymous: {enabled: true}}"), "anonymous"),
    (GOOD + "kubelet: {flags: {anonymous-auth: true}}\n", "anonymous-auth"),
    (GOOD + _kubelet("readOnlyPort: 10255"), "readOnlyPort"),
    (GOOD + "runtime: {pause_image: 'registry.k8s.io/pause:1.0'}\n", "pause"),
    (GOOD + "runtime: {pause_image: 'registry.k8s.io/pause:3.1'}\n", "pause"),
    (
        GOOD + "services: {environment: {kubelet: {AWS_SECRET_ACCESS_KEY: x}}}\n",
        "every user of the node can read",
    ),
    (GOOD + "node: {labels: {kubernetes.io/os: linux}}\n", "sets this label itself"),
    (GOOD + 'windows: {time_servers: ["a,0x8\' ; calc"]}\n', "time_servers"),
    (
        GOOD + f"artifacts: {{sha256: {{kubectl/1.36.5/kubectll.exe: {'a' * 64}}}}}\n",
        "did you mean 'kubectl/1.36.5/kubectl.exe'",
    ),
    (_cluster("kubeconfig", "{file: no-such}"), "there is no file"),
    (_cluster("kubeconfig", "{file: .}"), "is not a file"),
    (GOOD.replace("  pod_cidr", "  context: nowhere\n  pod_cidr"), "nowhere"),
    (_cluster("pod_cidr", "10.244.0.0/32"), "has only 1 addresses"),
    (_cluster("server", "https://10.0.0.10:0"), "no valid port"),
    (GOOD.replace("{cni: flannel}", "{cni: flannel, mode: vxlan, vxlan: {mac_prefix: 01-2A}}"), "multicast"),
    ('name: "a\\nb"\n' + GOOD, "line break"),
    ('name: "a\\eb"\n' + GOOD, "U+001B"),
    # newcomer D6, attack 5: crashes
    (GOOD.replace("{cni: flannel}", "{cni: flannel, mode: wireguard}"), "host-gw | vxlan"),
    (GOOD.replace("{cni: flannel}", "{cni: flannel, mode: hostgw}"), "did you mean 'host-gw'"),
    (GOOD.replace("{cni: flannel}", "{cni: flannel, managed_by: operator}"), "cannot be managed by operator"),
    (GOOD.replace("{cni: flannel}", "{cni: flannel, mode: host-gw, managed_by: operator}"), "operator"),
    (GOOD + f"windows: {{page_file_mib: {10**20}}}\n", "from 512 to 16777216"),
    (GOOD + f"runtime: {{log: {{max_size_mib: {10**20}}}}}\n", "a whole number from 1 to 1048576"),
    (GOOD + "x: " + "[" * 5000 + "]" * 5000 + "\n", "inside each other"),
    # newcomer D7: what `init` took for granted
    (GOOD.replace("{cni: flannel}", "{cni: cilium}"), "Cilium alone has no network for Windows nodes"),
    (GOOD.replace("{cni: flannel}", "{cni: none}"), "network_name"),
    (GOOD.replace("{cni: flannel}", "{cni: azure}"), "azure_cni"),
    (_cluster("server", "http://x"), "https://"),
    # newcomer C, "also odd"
    (GOOD.replace('kubernetes: {version: "1.36.5"}\n', ""), "kubernetes"),
    (GOOD.replace('"1.36.5"', "1.٣٦.4"), "a version such as"),
    (GOOD.replace('"1.36.5"', '"1.36.5\\n"'), "line break"),
    (GOOD + "node:\n\tlabels: {}\n", "a tab is used to indent"),
    (GOOD + "node: {labels: {a/b/c: x}}\n", "node.labels.a/b/c"),
    # attack 8: credentials, in every spelling
    (GOOD + "proxy: {http: 'user:PASS@proxy:3128'}\n", "proxy.http"),
    (GOOD + "proxy: {http: 'socks5://u:PASS@h:1'}\n", "proxy.http"),
    (GOOD + "proxy: {http: 'http://p:1', no_proxy: ['http://u:PASS@h']}\n", "proxy.no_proxy"),
    (GOOD + "runtime: {registries: {r: {mirrors: ['ftp://u:PASS@m']}}}\n", "mirrors"),
    (GOOD + "runtime: {registries: {r: {mirrors: ['u:PASS@m']}}}\n", "mirrors"),
    (GOOD + "runtime: {registries: {r: {mirrors: ['https://m?token=PASS']}}}\n", "mirrors"),
    (GOOD + "runtime: {registries: {'u:PASS@r': {}}}\n", "the key contains a user or a password"),
    (GOOD + "artifacts: {source: 'ftp://u:PASS@m'}\n", "artifacts.source"),
    (GOOD + "artifacts: {source: 'https://mirror/x?sig=PASS'}\n", "artifacts.source"),
    (GOOD + "artifacts: {source: '\\\\u:PASS@srv\\share'}\n", "artifacts.source"),
    (GOOD + "runtime: {pause_image: 'u:PASS@r/pause:3.10'}\n", "runtime.pause_image"),
    (_cluster("server", "u:PASS@h:6443"), "cluster.server"),
    (GOOD + _kubelet("staticPodURLHeader: {Authorization: [PASS]}"), "staticPodURLHeader"),
    (GOOD + "services: {environment: {kubelet: {DB_PASSWORD: CANARY}}}\n", "services.environment"),
    (GOOD + "windows: {features_source: '\\\\u:PASS@s\\sxs'}\n", "features_source"),
    # attack 11: characters and versions
    (_cluster("server", "\"https://A'; Evil; 'B:6443\""), "is not a host name"),
    (GOOD + 'proxy: {http: "http://p\\0:1"}\n', "U+0000"),
    (GOOD + 'proxy: {http: "http://p\\n:1"}\n', "line break"),
    (GOOD + 'runtime: {registries: {r: {mirrors: ["https://m\\0"]}}}\n', "U+0000"),
    (GOOD + 'runtime: {registries: {r: {ca: {file: "a\\0"}}}}\n', "U+0000"),
    (GOOD + 'artifacts: {source: "https://m\\n/x"}\n', "line break"),
    (GOOD + 'windows: {time_servers: ["a\\nb"]}\n', "line break"),
    (GOOD + 'windows: {dns_suffixes: ["a\\0b"]}\n', "U+0000"),
    (GOOD + 'windows: {features_source: "C:\\\\a\\nb"}\n', "line break"),
    (GOOD + 'steps: [{name: mine, why: "a\\0b", look: l.ps1, change: c.ps1}]\n', "U+0000"),
    (GOOD + 'services: {environment: {kubelet: {A: "b\\0C=d"}}}\n', "U+0000"),
    (GOOD + _kubelet('"a\\u2028b": 1'), "U+2028"),
    (GOOD + _kubelet('"a\\x85b": 1'), "U+0085"),
    (GOOD + "artifacts: {flannel_cni: '..\\..\\A'}\n", "a version such as"),
    (GOOD + "artifacts: {nssm: '..\\..\\A'}\n", "a version such as"),
]

# One host that is good but for this.
HOSTS: Final = [
    # newcomer D9
    ('win-1: {address: "http://1.2.3.4:5985/wsman"}', "is a URL"),
    ('win-1: {address: "127.0.0.1:5985"}', "did you mean '127.0.0.1'"),
    ('win-1: {address: "a b"}', "is not a host name"),
    ('win-1: {address: ""}', "the host is empty"),
    ("win-1: {address: 010.0.0.1}", "without leading zeros"),
    ("win-1: {address: ' 10.0.0.1'}", "is not an IP address"),
    ("win-1: {connection: {tls: {fingerprint: abc}}}", "64 hexadecimal digits"),
    ("win-1: {connection: {tls: {fingerprint: " + "ab" * 20 + "}}}", "SHA-1"),
    ("win-1: {connection: {tls: {ca: {file: no-such.pem}}}}", "there is no file"),
    ("win-1: {node_ip: 0.0.0.0}", "cannot be a node's address"),
    ("win-1: {connection: {transport: ssh}}", "ssh needs a user"),
    ('win-1: {connection: {user: "a\\0b"}}', "U+0000"),
    # attack 2, 8, 11
    ('win-1: {address: "http://u:PASS@h"}', "contains a user or a password"),
    ('win-1: {connection: {host: "https://u:PASS@h"}}', "contains a user or a password"),
    ('win-1: {address: "a\\0b"}', "U+0000"),
    ('win-1: {address: "a\\nb"}', "line break"),
    ('win-1: {address: "a\\eb"}', "U+001B"),
    # newcomer C: which key of a map
    ("win-1: {node: {labels: {'bad key': x}}}", "node.labels.bad key"),
    ("pool: {}", "a group and a host have the name"),
]

# Whole inventories.
FILES: Final = [
    (GROUP.replace("pool", '"a,b"') + "    hosts: {win-1: }\n", "the group name 'a,b'"),
    ("", "groups"),
    # Ansible's form
    ("all:\n  hosts:\n    win-1: {ansible_host: 10.0.0.1}\n", "all"),
    (GROUP.replace("profile.yaml", "none.yaml") + "    hosts: {win-1: }\n", "there is no file"),
    (GROUP.replace("profile.yaml", ".") + "    hosts: {win-1: }\n", "there is no file"),
]


def _complaints(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `winboot check` says of an inventory, which it must have something against."""
    code = run(["check", str(path)])
    told = capsys.readouterr()
    errors = [line for line in told.err.splitlines() if ": warning: " not in line]
    assert code == (64 if errors else 0), told.err
    assert PLACE.search(told.err), told.err
    assert all(PLACE.match(line) for line in told.err.splitlines()), told.err
    assert not FOREIGN.search(told.err), told.err
    assert not SECRET.search(told.err + told.out)
    return told.err


@pytest.mark.parametrize(("profile", "says"), PROFILES, ids=lambda text: text[-60:])
def test_an_odd_profile(profile: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = an_inventory(tmp_path, GROUP + "    hosts: {win-1: }\n", profile)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG, encoding="utf-8")

    assert says in _complaints(path, capsys)


@pytest.mark.parametrize(("host", "says"), HOSTS, ids=lambda text: text[-60:])
def test_an_odd_host(host: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = an_inventory(tmp_path, f"{GROUP}    hosts:\n      {host}\n")

    assert says in _complaints(path, capsys)


@pytest.mark.parametrize(("text", "says"), FILES, ids=lambda text: text[-60:])
def test_an_odd_file(text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert says in _complaints(an_inventory(tmp_path, text), capsys)
