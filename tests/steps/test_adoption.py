"""A machine that another tool made a node is as it was before once a join with --adopt has been undone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from winboot_lab.cluster.authority import CLIENT_AUTH, Authority, Subject
from winboot_lab.programs import hcn
from winboot_lab.windows.acl import FULL, Rule
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.scm import AUTO
from winboot_lab.windows.snapshot import diff, without_chance
from winboot_lab.windows.tasks import Action, Task

from tests.steps.bench import Bench
from tests.steps.library import call
from winboot.config.node_spec.node import StorageSpec

TOKEN = "abcdef.0123456789abcdef"
STATE = r"C:\ProgramData\winboot"
CREDENTIALS = "kubelet-credentials"
ADOPTION = "adoption"
FLAGS = r"C:\var\lib\kubelet\kubeadm-flags.env"
POWERSHELL = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"
KUBELET = r"C:\k\kubelet.exe --windows-service"
THEIR_PAIR = r"C:\var\lib\kubelet\pki\kubelet-client-2026.pem"
THEIR_LINK = r"C:\var\lib\kubelet\pki\kubelet-client-current.pem"
THEIRS = {
    r"C:\k\kubeconfig": b"clusters:\n- cluster:\n    server: https://other.example:6443\nusers: [{user: {token: theirs}}]\n",
    THEIR_PAIR: b"their certificate and key",
    r"C:\var\lib\kubelet\pki\kubelet.key": b"their key",
    r"C:\etc\cni\net.d\10-theirs.conflist": b"{}",
    r"C:\opt\cni\bin\theirs.exe": b"theirs",
}


def somebodys_files(machine: Machine) -> None:
    """Files, owners, rules and audit entries of an administrator with unusual settings, and of an ordinary user."""
    machine.accounts.add("alice", administrator=False)
    alice = machine.accounts.token("alice")
    files = machine.files
    files.make_directory(r"C:\opt", alice)
    for path, content in THEIRS.items():
        files.make_directory(path.rpartition("\\")[0])
        files.write(path, content)
    files.link(THEIR_LINK, THEIR_PAIR, "SymbolicLink")
    kept = files.need(r"C:\k")[1].acl
    kept.protected, kept.audit = True, "(AU;OICISAFA;FA;;;WD)"
    kept.explicit = [
        Rule("S-1-5-18", FULL, inheritance=3),
        Rule("S-1-5-32-544", FULL, inheritance=3),
        Rule(alice.sid, FULL, inheritance=3),
        Rule("S-1-5-32-546", 0x1200A9, "Deny"),
    ]
    kept.inherited = []
    files.need(r"C:\k\kubeconfig")[1].acl.explicit.append(Rule(alice.sid, 0x1200A9))
    files.need(r"C:\etc\cni")[1].acl.owner = alice.sid
    files.need(r"C:\opt\cni\bin\theirs.exe")[1].acl.audit = "(AU;SA;FW;;;BU)"
    # What was set is handed down, as Windows does.
    for path in (r"C:\opt", r"C:\k", r"C:\etc\cni"):
        files.set_acl(path, files.need(path)[1].acl)
    files.write(r"C:\opt\cni\00-alice.conf", b"hers", alice)


@pytest.fixture
def foreign(bench: Bench) -> Bench:
    """A machine with files of an earlier installation."""
    somebodys_files(bench.machine)
    return bench


def rules(bench: Bench) -> dict[str, str]:
    """Owner, rules and audit entries of everything that is not Windows' own or winboot's, by path.

    .NET gives and sets those of a link's target, never the link's own.
    """
    return {
        path: node.acl.sddl()
        for path, node in bench.machine.files.walk("C:\\")
        if not path.startswith((r"C:\Windows", STATE)) and node.link is None
    }


def test_files_owners_rules_and_audit_entries_are_as_before(foreign: Bench):
    steps = ("directories", CREDENTIALS)
    before, tree = rules(foreign), foreign.machine.snapshot()

    told = foreign.run(*steps, secrets={"bootstrap-token": TOKEN})
    assert {told.states[step] for step in steps} == {"changed"}, told.events
    assert foreign.run(*steps, secrets={"bootstrap-token": TOKEN}).states["directories"] == "ok"
    assert rules(foreign) != before
    assert set(foreign.undo(*steps).states.values()) == {"changed"}

    assert rules(foreign) == before
    ours = ("files/C:\\ProgramData\\winboot", "events/")
    left = [
        line
        for line in diff(without_chance(tree), without_chance(foreign.machine.snapshot()))
        if not any(part in line for part in ours)
    ]
    assert left == []


def test_keys_and_kubeconfigs_of_others_are_kept_private(foreign: Bench):
    foreign.run("directories", CREDENTIALS, secrets={"bootstrap-token": TOKEN})

    assert foreign.file(r"C:\k\kubeconfig") is None
    assert foreign.file(r"C:\var\lib\kubelet\pki\kubelet-client-2026.pem") is None
    notes = [
        json.loads(line)
        for line in (foreign.file(rf"{STATE}\former\{CREDENTIALS}.jsonl") or b"").split(b"\n")
        if line
    ]
    assert {r"C:\k\kubeconfig", r"C:\var\lib\kubelet\pki\kubelet-client-2026.pem"} <= {
        note["key"] for note in notes
    }
    alice = foreign.machine.accounts.token("alice")
    for path, node in foreign.machine.files.walk(STATE):
        # The files set aside belonged to the user, and keep their rules for an undo.
        if not path.lower().startswith(rf"{STATE}\aside".lower()):
            assert not node.acl.allows(alice, 1), path


@pytest.mark.check
def test_a_certificate_that_was_a_link_is_a_link_again(foreign: Bench):
    """A kubelet never renews a plain file (client-go, util/certificate/certificate_store.go, updateSymlink)."""
    foreign.run("directories", CREDENTIALS, secrets={"bootstrap-token": TOKEN})
    assert foreign.machine.files.find(THEIR_LINK, follow=False) is None

    foreign.undo("directories", CREDENTIALS)
    foreign.undo("directories", CREDENTIALS)

    found = foreign.machine.files.find(THEIR_LINK, follow=False)
    assert found is not None
    assert found[1].link == ("SymbolicLink", THEIR_PAIR)
    assert foreign.file(THEIR_LINK) == THEIRS[THEIR_PAIR]


def test_keys_of_our_own_kubelet_are_not_noted(bench: Bench):
    bench.run("directories", CREDENTIALS, secrets={"bootstrap-token": TOKEN})
    bench.write(r"C:\k\kubeconfig", b"ours, expired")
    bench.write(r"C:\var\lib\kubelet\pki\kubelet-client-current.pem", b"ours, expired")
    bench.run("directories", CREDENTIALS, secrets={"bootstrap-token": TOKEN})
    bench.undo("directories", CREDENTIALS)

    assert bench.file(r"C:\k\kubeconfig") is None
    assert bench.file(r"C:\var\lib\kubelet\pki\kubelet-client-current.pem") is None


def test_keys_of_our_kubelet_go_also_where_their_folder_was_there_before(bench: Bench):
    """powercut.md: credentials of the cluster stayed on a machine that is no node any more."""
    theirs = r"C:\var\lib\kubelet\pki\kubelet-client-2026.pem"
    own = r"C:\var\lib\kubelet\pki\kubelet-server-current.pem"
    bench.write(theirs, b"of a node that was removed")
    bench.run("directories", CREDENTIALS, secrets={"bootstrap-token": TOKEN})
    assert bench.file(theirs) is None
    bench.write(own, b"ours")
    bench.run("directories", CREDENTIALS, secrets={"bootstrap-token": TOKEN})
    bench.undo("directories", CREDENTIALS)
    bench.undo("directories", CREDENTIALS)

    assert bench.file(own) is None
    assert bench.file(theirs) == b"of a node that was removed"


# What each tool leaves: the service kubelet (or None), what NSSM starts, other services, files, and its name in a report.
# Sources: those of Get-NodeMaker.
MAKERS: dict[str, tuple[str | None, str, tuple[str, ...], tuple[str, ...], str]] = {
    "PrepareNode.ps1": (
        r"C:\Program Files\nssm\nssm.exe",
        r"-NoProfile C:\k\StartKubelet.ps1",
        ("containerd",),
        (FLAGS, r"C:\k\StartKubelet.ps1"),
        "kubeadm with PrepareNode.ps1, StartKubelet.ps1 and NSSM, runs containerd",
    ),
    "PrepareNode.ps1 with Docker": (
        r"C:\Program Files\nssm\nssm.exe",
        r"-NoProfile C:\k\StartKubelet.ps1",
        ("docker", "rancher-wins"),
        (FLAGS, r"C:\k\StartKubelet.ps1"),
        "kubeadm with PrepareNode.ps1 and rancher_wins, StartKubelet.ps1 and NSSM, runs docker",
    ),
    "image-builder": (
        KUBELET,
        "",
        ("containerd",),
        (FLAGS, r"C:\image-builder-release.txt"),
        "kubeadm on an image of image-builder, with a Windows service, runs containerd",
    ),
    "image-builder with NSSM and Docker": (
        r"C:\k\nssm.exe",
        r"-NoProfile C:\k\StartKubelet.ps1",
        ("docker",),
        (FLAGS, r"C:\image-builder-release.txt", r"C:\k\StartKubelet.ps1"),
        "kubeadm on an image of image-builder, with NSSM, runs docker",
    ),
    "AKS Engine with Docker": (
        r"c:\k\nssm.exe",
        r"c:\k\kubeletstart.ps1",
        ("docker", "Kubeproxy"),
        (r"C:\k\kubeletstart.ps1", r"C:\AzureData\CustomDataSetupScript.ps1"),
        "AKS Engine, runs docker",
    ),
    "rancher_wins alone": (None, "", ("docker", "rancher-wins"), (), "rancher_wins, runs docker"),
    "by hand": (KUBELET, "", ("containerd",), (), "another tool, with a Windows service, runs containerd"),
}


def made_by(bench: Bench, maker: str) -> None:
    """The machine as this tool leaves it: what recognition reads."""
    kubelet, parameters, services, files, _ = MAKERS[maker]
    for name in services:
        bench.machine.services.create(name, rf"C:\theirs\{name}.exe", start=AUTO)
    for path in files:
        bench.write(path, b"theirs")
    if kubelet is None:
        return
    service = bench.machine.services.create("kubelet", kubelet, depends=list(services[:1]))
    if parameters:
        bench.machine.registry.set(rf"{service.key}\Parameters", "Application", "ExpandString", POWERSHELL)
        bench.machine.registry.set(rf"{service.key}\Parameters", "AppParameters", "ExpandString", parameters)


@pytest.mark.parametrize("maker", MAKERS)
def test_the_tool_that_made_a_node_is_recognised(maker: str, bench: Bench) -> None:
    made_by(bench, maker)

    found = bench.look(ADOPTION).differences(ADOPTION)

    assert found.pop("node") == (f"made by {MAKERS[maker][-1]}", "winboot's, with the same name and service")
    left = [
        one for one in ("docker", "Kubeproxy") if one in MAKERS[maker][2] and "docker" in MAKERS[maker][2]
    ]
    assert list(found) == [f"service {name}: use" for name in left]
    refused = bench.run(ADOPTION, mode="Look", facts={"Adopt": False}).problem("node-preflight")
    assert refused.id == "ForeignNode"
    assert MAKERS[maker][-1].partition(", runs")[0] in refused.message


def test_winboots_own_node_has_nothing_to_adopt(bench: Bench) -> None:
    bench.machine.services.create("kubelet", KUBELET, description="The kubelet. Managed by winboot.")

    assert bench.look(ADOPTION).differences(ADOPTION) == {}


def kubeadms_identity(bench: Bench, *, node: str = "", days: int = 30) -> None:
    """The kubelet's certificate and kubelet.conf, as `kubeadm join` leaves them."""
    authority, now = Authority("kubernetes"), bench.machine.now()
    subject = Subject(f"system:node:{node or bench.spec.node.name}", ("system:nodes",))
    pair = authority.issue(subject, (CLIENT_AUTH,), (now - timedelta(days=1), now + timedelta(days=days)))
    bench.write(THEIR_LINK, (pair.certificate + pair.key).encode())
    server = f"clusters:\n- cluster:\n    server: {bench.spec.cluster.server}\n"
    bench.write(r"C:\etc\kubernetes\kubelet.conf", server.encode())


def test_the_identity_of_kubeadms_kubelet_is_kept_without_a_token(bench: Bench) -> None:
    made_by(bench, "PrepareNode.ps1")
    kubeadms_identity(bench)

    assert "kubelet client certificate" not in bench.look(CREDENTIALS).differences(CREDENTIALS)
    found = bench.look(ADOPTION).differences(ADOPTION)
    assert found["kubelet identity"] == (
        r"C:\etc\kubernetes\kubelet.conf",
        r"the same certificate, by C:\k\kubeconfig",
    )
    told = bench.run("directories", ADOPTION, CREDENTIALS)

    assert told.states[ADOPTION] == "changed"
    assert bench.file(r"C:\k\kubeconfig") == bench.file(r"C:\etc\kubernetes\kubelet.conf")
    assert bench.look(ADOPTION, CREDENTIALS).differences(CREDENTIALS).keys() == {
        rf"file {bench.spec.paths.cluster_ca}: content"
    }
    bench.undo(ADOPTION)
    assert bench.file(r"C:\k\kubeconfig") is None


@pytest.mark.parametrize("bad", [{"node": "another"}, {"days": 0}], ids=["another node", "expired"])
def test_an_identity_that_cannot_be_used_is_replaced(bad: dict[str, object], bench: Bench) -> None:
    made_by(bench, "PrepareNode.ps1")
    kubeadms_identity(bench, **bad)  # type: ignore[arg-type]  # keywords of a table

    told = bench.run("directories", ADOPTION, CREDENTIALS, secrets={"bootstrap-token": TOKEN})

    assert (told.states[ADOPTION], told.states[CREDENTIALS]) == ("changed", "changed")
    assert TOKEN.encode() in (bench.file(bench.spec.paths.bootstrap_kubeconfig) or b"")


def test_what_kubeadm_writes_after_an_adoption_is_a_conflict_until_it_is_adopted_again(bench: Bench) -> None:
    made_by(bench, "PrepareNode.ps1")
    bench.run("directories", ADOPTION)
    for name in ("kubelet", "containerd"):
        bench.machine.services.delete(bench.machine.services.need(name))
    bench.machine.files.delete(r"C:\k\StartKubelet.ps1")
    bench.machine.settle(5)
    bench.machine.files.delete(FLAGS)
    alone = {"Adopt": False}

    refused = bench.run(ADOPTION, mode="Look", facts=alone).problem("node-preflight")
    assert (refused.id, FLAGS in refused.message) == ("KubeadmConflict", True)
    found = bench.look(ADOPTION).differences(ADOPTION)
    assert found[f"file {FLAGS}: written"] == ("by kubeadm, since winboot took the node over", "noted")
    assert bench.run(ADOPTION).states == {ADOPTION: "changed"}
    assert bench.run(ADOPTION, mode="Look", facts=alone).states == {ADOPTION: "ok"}


IMAGES = r"C:\ProgramData\docker\windowsfilter\0123"


def test_dockers_services_networks_and_images_go_and_what_is_others_stays(bench: Bench) -> None:
    bench.machine.features.install_now("Containers")
    made_by(bench, "PrepareNode.ps1 with Docker")
    bench.write(rf"{IMAGES}\layerchain.json", b"[]")
    for name, kind in (("nat", "NAT"), ("theirs", "NAT")):
        subnet = {"AddressPrefix": "172.20.0.0/16", "GatewayAddress": "172.20.0.1"}
        hcn.call(bench.machine, "POST", "/networks/", {"Name": name, "Type": kind, "Subnets": [subnet]})

    assert bench.look(ADOPTION).differences(ADOPTION)["HNS network nat: Docker's"] == ("present", None)
    bench.run("directories", ADOPTION)
    for _ in range(10):
        bench.machine.tasks.wait_idle()
        bench.machine.settle(30)
    images = r"folder C:\ProgramData\docker: images"
    assert bench.look(ADOPTION).differences(ADOPTION) == {images: ("1 layers", "kept until --purge")}
    assert bench.look(ADOPTION).states == {ADOPTION: "ok"}
    assert [one["Name"] for one in hcn.networks(bench.machine)] == ["theirs"]
    purge = {"Purge": True}
    found = bench.run(ADOPTION, mode="Look", facts=purge).differences(ADOPTION)
    assert found == {images: ("1 layers", None)}
    assert bench.run(ADOPTION, facts=purge).states == {ADOPTION: "changed"}
    assert not bench.machine.files.is_directory(IMAGES)

    bench.undo(ADOPTION)
    assert bench.machine.services.need("docker").start == AUTO


ROOTS = {
    r"C:\dockerd.exe --run-service": r"C:\ProgramData\docker",
    r"C:\dockerd.exe --run-service --data-root=C:\d -D": r"C:\d",
    r"C:\dockerd.exe --data-root C:\d --run-service": r"C:\d",
    r'"C:\dockerd.exe" "--data-root=C:\my d" --run-service': r"C:\my d",
    r'"C:\dockerd.exe" --data-root="C:\my d" --run-service': r"C:\my d",
    r'"C:\dockerd.exe" --data-root "C:\my d" --run-service': r"C:\my d",
}


@pytest.mark.parametrize("line", ROOTS)
def test_dockers_folder_is_that_of_its_services_flag(line: str, bench: Bench) -> None:
    bench.machine.services.create("docker", line)

    assert call(bench, "Get-DockerRoot").objects == [ROOTS[line]]


LAYERS = r"C:\ProgramData\docker\image\windowsfilter\layerdb\sha256"
GIB = 1 << 30


@pytest.mark.parametrize(
    ("free", "facts", "refused"),
    [
        (40, {}, False),
        (29, {}, True),
        (29, {"Purge": True}, False),
        (29, {"Adopt": False}, False),
    ],
    ids=["room for both stores", "no room", "Docker's images go first", "no adoption"],
)
def test_a_move_needs_room_for_the_same_images_beside_dockers(
    free: int, facts: dict[str, object], refused: bool, bench: Bench
) -> None:
    made_by(bench, "PrepareNode.ps1 with Docker")
    for number, size in enumerate((25 * GIB, 4 * GIB + 1)):
        bench.write(rf"{LAYERS}\{number}\size", str(size).encode())
    bench.write(rf"{LAYERS}\9\size", b"torn")
    bench.machine.faults.disk_full(free=free * GIB)

    told = bench.run(ADOPTION, mode="Look", facts=facts)

    problem = told.step("node-preflight").get("problem")
    message = rf"C:\ has {free} GiB free, and Docker's images need 30 GiB there a second time"
    found = (problem["id"], problem["message"]) if problem else None
    assert (found == ("MoveSpace", message)) is refused, told.events


def test_a_plan_shows_the_room_for_both_image_stores_until_the_move(bench: Bench) -> None:
    made_by(bench, "PrepareNode.ps1 with Docker")
    bench.write(rf"{LAYERS}\1\size", str(GIB).encode())
    bench.machine.faults.disk_full(free=40 * GIB)
    room = r"drive C:\ room for both image stores"

    assert bench.look(ADOPTION).differences(ADOPTION)[room] == ("40 GiB free", "1 GiB or more")
    bench.run("directories", ADOPTION)
    assert room not in bench.look(ADOPTION).differences(ADOPTION)


def test_images_of_a_moved_nodes_pods_are_noted_before_a_drain_until_they_are_pulled(bench: Bench) -> None:
    made_by(bench, "PrepareNode.ps1 with Docker")
    image = "mcr.microsoft.com/web:1"
    shown = {f"image {image} of this node's pods": (None, "pulled again")}

    found = bench.run("pause-image", mode="Look", facts={"PodImages": [image]}).differences("pause-image")
    assert shown.items() <= found.items()
    bench.run("directories", ADOPTION, facts={"PodImages": [image]})
    # A run after the drain, which finds no pods any more.
    bench.run("directories", ADOPTION, facts={"PodImages": []})

    assert shown.items() <= bench.look("pause-image").differences("pause-image").items()


def test_aks_engines_task_that_deletes_networks_is_disabled_until_an_undo(bench: Bench) -> None:
    made_by(bench, "AKS Engine with Docker")
    reset = Task(
        "k8s-restart-job", "\\", [Action("powershell.exe", r'-File "c:\k\windowsnodereset.ps1"')], []
    )
    bench.machine.tasks.register(reset)
    state = r"scheduled task \k8s-restart-job: state"

    assert bench.look(ADOPTION).differences(ADOPTION)[state] == ("Ready", "Disabled")
    for _ in range(2):
        bench.run("directories", ADOPTION)
        assert not reset.enabled
    assert state not in bench.look(ADOPTION).differences(ADOPTION)
    bench.undo(ADOPTION)
    assert reset.enabled


def test_a_task_of_that_name_stays_on_a_node_that_winboot_made(bench: Bench) -> None:
    reset = Task("k8s-restart-job", "\\", [Action("powershell.exe", "")], [])
    bench.machine.tasks.register(reset)

    bench.run("directories", ADOPTION)

    assert reset.enabled


def test_an_undo_starts_services_that_are_no_part_of_the_node(bench: Bench) -> None:
    made_by(bench, "AKS Engine with Docker")
    bench.spec = replace(bench.spec, storage=StorageSpec(smb=True, iscsi=True))
    bench.machine.services.need("MSiSCSI").status = "Running"
    names = ("directories", ADOPTION, "storage-services")
    bench.run(*names)

    bench.undo(*names)

    assert bench.machine.services.need("MSiSCSI").status == "Running"
