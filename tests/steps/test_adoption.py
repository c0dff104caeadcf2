"""A machine that another tool made a node is as it was before once a join with --adopt has been undone."""

from __future__ import annotations

import json

import pytest
from winboot_lab.windows.acl import FULL, Rule
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.snapshot import diff, without_chance

from tests.steps.bench import Bench

TOKEN = "abcdef.0123456789abcdef"
STATE = r"C:\ProgramData\winboot"
CREDENTIALS = "kubelet-credentials"
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
    """Files, owners, rules and audit entries of an administrator with a mind of his own, and of an ordinary user."""
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
    """A machine with what somebody left on it."""
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


def test_keys_and_kubeconfigs_of_others_are_kept_where_nobody_else_reads_them(foreign: Bench):
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
        # What was set aside was hers, and keeps its rules for an undo.
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
