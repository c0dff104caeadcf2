"""Windows' own programs, as far as winboot or its users call them."""

from __future__ import annotations

from typing import Any

import pytest
from winboot_lab.engine.refusal import Refusal
from winboot_lab.mirror import Mirror, content_of
from winboot_lab.programs.containers import PLUGINS
from winboot_lab.programs.traffic import End
from winboot_lab.windows.programs_api import Image, read_image

from lab_programs.conftest import Node

SYSTEM = "C:\\Windows\\System32\\"
GMSA = {"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "webapp"}}}
CNI = "/x/cni-plugins-windows-amd64-v1.7.1.tgz"


def downloaded(node: Node, path: str) -> str:
    """An archive of the mirror on the machine."""
    name = "C:\\d\\" + path.rpartition("/")[2]
    node.file(name, content_of(path) or b"")
    return name


def test_tar_unpacks_the_members_asked_for(node: Node) -> None:
    archive = downloaded(node, CNI)
    node.machine.files.make_directory(r"C:\out")

    ended = node.run(
        SYSTEM + "tar.exe", "-x", "-f", archive, "-C", r"C:\out", "host-local.exe", "win-bridge.exe"
    )

    assert ended.code == 0
    assert [e.name for e in node.machine.files.list(r"C:\out")] == ["host-local.exe", "win-bridge.exe"]
    assert read_image(node.machine.files.read(r"C:\out\win-bridge.exe")) == Image("win-bridge", "1.7.1")


def test_tar_unpacks_a_zip_with_its_folders(node: Node) -> None:
    archive = downloaded(node, "/release/nssm-2.24.zip")
    node.machine.files.make_directory(r"C:\out")

    assert node.run(SYSTEM + "tar.exe", "-xf", archive, "-C", r"C:\out", "nssm-2.24/win64/nssm.exe").code == 0
    assert node.machine.files.exists(r"C:\out\nssm-2.24\win64\nssm.exe")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-xf", r"C:\d\missing.tgz"], b"Failed to open"),
        (["-xf", r"C:\d\no.tgz"], b"Unrecognized archive format"),
        (["-xf", r"C:\d\cni-plugins-windows-amd64-v1.7.1.tgz", "-C", r"C:\nowhere"], b"could not chdir"),
        (
            ["-xf", r"C:\d\cni-plugins-windows-amd64-v1.7.1.tgz", "calico.exe"],
            b"calico.exe: Not found in archive",
        ),
    ],
)
def test_tar_ends_with_1_and_says_why(node: Node, words: list[str], says: bytes) -> None:
    downloaded(node, CNI)
    node.file(r"C:\d\no.tgz", b"this is no archive")

    ended = node.run(SYSTEM + "tar.exe", *words)

    assert ended.code == 1 and says in ended.stderr


def test_netsh_sets_the_dynamic_ports_by_any_fitting_word(node: Node) -> None:
    netsh = SYSTEM + "netsh.exe"
    long = node.run(
        netsh, "int", "ipv4", "set", "dynamicportrange", "tcp", "startport=33000", "numberofports=32536"
    )
    short = node.run(netsh, "interface", "ipv4", "set", "dynamicport", "udp", "start=34000", "num=31536")

    assert (long.code, short.code) == (0, 0)
    assert node.machine.network.ports == {"tcp": (33000, 32536), "udp": (34000, 31536)}
    assert node.run(netsh, "int", "ipv4", "set", "dynamicport", "tcp", "start=100", "num=1").code == 1


def test_netsh_excludes_ports_once(node: Node) -> None:
    words = ["int", "ipv4", "add", "excludedportrange", "udp", "65330", "1", "persistent"]

    assert node.run(SYSTEM + "netsh.exe", *words).code == 0
    assert node.run(SYSTEM + "netsh.exe", *words).code == 1


def test_powercfg_knows_the_plans(node: Node) -> None:
    high = "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"

    assert node.run(SYSTEM + "powercfg.exe", "/setactive", high).code == 0
    assert high.encode() in node.run(SYSTEM + "powercfg.exe", "/getactivescheme").stdout
    assert node.run(SYSTEM + "powercfg.exe", "/setactive", "00000000-0000-0000-0000-000000000000").code == 1


def test_curl_continues_where_a_download_broke(node: Node) -> None:
    mirror = Mirror()
    mirror.faults.breaks["kubectl.exe"] = 100
    node.world.serve("dl.k8s.io", 443, mirror.handle)
    words = [
        "-fsSL",
        "-C",
        "-",
        "-o",
        r"C:\k\kubectl.exe",
        "https://dl.k8s.io/v1.34.2/bin/windows/amd64/kubectl.exe",
    ]
    node.machine.files.make_directory("C:\\k")

    broken, rest = node.run(SYSTEM + "curl.exe", *words).code, node.run(SYSTEM + "curl.exe", *words).code

    assert (broken, rest) == (18, 0)
    assert read_image(node.machine.files.read(r"C:\k\kubectl.exe")) == Image("kubectl", "1.34.2")


def test_shutdown_restarts_the_machine_after_its_delay(node: Node) -> None:
    boots = node.machine.boot_count

    node.run(SYSTEM + "shutdown.exe", "/r", "/t", "5", "/f")
    node.settle(200)

    assert node.machine.boot_count == boots + 1


# What a container runs, the pod's specification, and what the lab names.
ALONE: list[tuple[list[str], dict[str, Any], str]] = [
    (["nltest", "/sc_verify:corp.example"], GMSA, "no domain"),
    (["cmd", "/c", r"dir \\files\share"], GMSA, "no domain"),
    (["cmd", "/c", "echo text>C:\\data\\file"], {}, "without a claim"),
    (["cmd", "/c", "type C:\\data\\file"], {}, "without a claim"),
]


@pytest.mark.parametrize(("command", "spec", "named"), ALONE)
def test_what_a_pod_could_not_do_on_its_node_is_refused(
    node: Node, command: list[str], spec: dict[str, Any], named: str
) -> None:
    pod = {"metadata": {"namespace": "shop", "name": "web", "uid": "1"}, "spec": spec}

    with pytest.raises(Refusal, match=named):
        node.outside.containers().execute(pod, End("pod", "10.244.3.2", node.machine), command)


@pytest.mark.parametrize("by", ["domain", "plug-in"])
def test_a_member_of_a_domain_or_a_plug_in_asks_for_an_account(node: Node, by: str) -> None:
    pod = {"metadata": {"namespace": "shop", "name": "web", "uid": "1"}, "spec": GMSA}
    node.outside.containers().domains.add("corp.example")
    if by == "domain":
        node.machine.power.domain = "corp.example"
    else:
        node.machine.registry.set(rf"{PLUGINS}\{{0d7a6a54}}", "", "String", "")

    ended = node.outside.containers().execute(
        pod, End("pod", "10.244.3.2", node.machine), ["nltest", "/sc_verify:corp.example"]
    )

    assert ended.code == 0


def test_with_secure_boot_test_signing_is_refused(node: Node) -> None:
    path = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\SecureBoot\State"
    node.machine.registry.set(path, "UEFISecureBootEnabled", "DWord", 1)

    with pytest.raises(Refusal, match="Secure Boot"):
        node.run(SYSTEM + "bcdedit.exe", "/set", "TESTSIGNING", "ON")


@pytest.mark.parametrize(
    "words", [["icacls.exe", "C:\\k"], ["netsh.exe", "wlan", "show"], ["cmd.exe", "/c", "dir"]]
)
def test_what_the_lab_does_not_know_is_refused_by_name(node: Node, words: list[str]) -> None:
    with pytest.raises(Refusal, match=words[0].removesuffix(".exe")):
        node.run(SYSTEM + words[0], *words[1:])
