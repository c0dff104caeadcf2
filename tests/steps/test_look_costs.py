"""What a look of a healthy node costs: no DISM, no hash of an unchanged file, at most two programs, and nothing written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from winboot_lab.windows.session import Session

from tests.lab.actions import append, patch_node
from tests.lab.state import changes, state
from tests.steps.bench import Bench
from tests.steps.library import call
from tests.steps.nodes import Node
from tests.steps.test_artifacts import Site
from winboot.script.steps import STEPS

# The stored script is that of the whole plan, which these tests do not render.
EVERY = tuple(step.name for step in STEPS if step.side == "node" and step.name != "postboot-task")
KUBELET = r"C:\k\versions\kubernetes-1.36.5\kubelet.exe"


@contextmanager
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """What scripts ask their machine for meanwhile: commands with their parameters."""
    asked: list[tuple[str, dict[str, Any]]] = []
    invoke = Session.invoke

    def invoked(self: Session, command: str, parameters: dict[str, Any], input: Sequence[Any] = ()) -> Any:
        asked.append((command, dict(parameters)))
        return invoke(self, command, parameters, input)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "invoke", invoked)
        yield asked


def programs_read(asked: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """Programs whose bytes were read."""
    paths = [str(given.get("path", "")) for command, given in asked if command in ("file.read", "file.open")]
    return {path for path in paths if path.endswith(".exe")}


def test_a_look_of_a_healthy_node_is_cheap(node: Node, monkeypatch: pytest.MonkeyPatch):
    before = state(node.site)
    with listening(monkeypatch) as asked:
        assert set(node.look(*EVERY).states.values()) == {"ok"}

    started = [given for command, given in asked if command in ("program.run", "program.start")]
    assert not [command for command, _ in asked if command.endswith("-WindowsOptionalFeature")]
    assert not programs_read(asked)
    assert len(started) <= 2, started
    assert [command for command, _ in asked].count("socket.connect") <= 1
    assert not changes(before, state(node.site))
    assert not node.machine.files.exists(r"C:\Users\Administrator\.kube")


def slow_questions(asked: list[tuple[str, dict[str, Any]]]) -> Counter[str]:
    """How often a look reads each slow fact: commands that read Windows, each CIM class and filter, and HNS's lists."""
    named = [
        " ".join([command, *(str(given[name]) for name in ("ClassName", "Filter", "path") if name in given)])
        for command, given in asked
        if command.startswith("Get-") or command == "hns.call"
    ]
    return Counter(named)


def test_a_look_asks_for_each_slow_fact_once(node: Node, monkeypatch: pytest.MonkeyPatch):
    with listening(monkeypatch) as asked:
        assert set(node.look(*EVERY).states.values()) == {"ok"}

    questions = slow_questions(asked)
    assert len(questions) <= 19, sorted(questions)
    assert set(questions.values()) == {1}, questions


@pytest.mark.parametrize(("mode", "then"), [("Change", "Running"), ("Look", "Stopped")])
def test_only_a_look_remembers_what_it_asked(bench: Bench, mode: str, then: str):
    text = f"""
$script:Run.Mode = '{mode}'
Get-ServiceState -Name 'w32time'
Start-Service -Name 'w32time'
Get-ServiceState -Name 'w32time'
"""
    assert call(bench, text).objects == ["Stopped", then]


def test_only_the_program_that_changed_is_hashed(node: Node, monkeypatch: pytest.MonkeyPatch):
    node.after(append(KUBELET, "x"))
    with listening(monkeypatch) as asked:
        assert set(node.look("artifacts").differences("artifacts")) == {f"file {KUBELET}: sha256"}

    assert programs_read(asked) == {KUBELET}


def test_labels_that_differ_by_case_alone_are_harmless(node: Node):
    """ConvertFrom-Json of 5.1 refuses them; a label, too, may look like what is searched for."""
    odd = {"Team": "1", "team": "2", "note": '{"podCIDRs":["9.9.9.0/24"],"systemUUID":"x"}'}
    node.after(patch_node({"metadata": {"annotations": odd, "labels": {"Team": "1", "team": "2"}}}))

    assert set(node.look(*EVERY).states.values()) == {"ok"}


def test_an_api_server_that_hangs_is_asked_once(node: Node, monkeypatch: pytest.MonkeyPatch):
    text = node.text(*EVERY, mode="Look")
    hang = "function Read-NodeObject {\n  [void](Get-Process -Id 4)\n  Stop-Step 'ProgramHangs' 'kubectl did not end'\n}\n"
    begin = text.index("switch ($Mode)")
    with listening(monkeypatch) as asked:
        told = node.run_text(text[:begin] + hang + text[begin:], mode="Look")

    problems = [event["problem"]["id"] for event in told.events if event.get("problem")]
    assert "ProgramHangs" in problems
    assert [command for command, _ in asked].count("Get-Process") == 1


def test_a_feature_that_this_windows_does_not_know_has_a_name(bench: Bench):
    text = bench.text("windows-features").replace("$features = @('Containers')", "$features = @('Contaners')")
    assert text != bench.text("windows-features")

    assert bench.run_text(text).problem("windows-features").id == "NoFeature"


def test_dism_is_asked_again_once_servicing_waits_for_a_restart(node: Node, monkeypatch: pytest.MonkeyPatch):
    features = node.machine.features
    containers = features.find("Containers")
    assert containers is not None
    features.remove(containers)

    told = node.look("windows-features")

    assert told.differences("windows-features") == {"feature Containers": ("DisablePending", "Enabled")}


@pytest.fixture
def site() -> Site:
    """A machine that downloads its programs."""
    return Site()


def test_no_remembered_hash_outlives_a_boot(site: Site):
    """A power cut may empty a file and keep its length and both times (NTFS, data that was never flushed)."""
    path = r"C:\k\versions\kubectl-1.36.5\kubectl.exe"
    assert site.run("artifacts").states == {"artifacts": "changed"}
    _, node = site.machine.files.need(path)
    node.content = bytes(len(node.content))
    assert not site.look("artifacts").differences("artifacts"), "in the same boot nothing is read again"

    site.reboot()

    assert set(site.look("artifacts").differences("artifacts")) == {f"file {path}: sha256"}


def test_the_start_of_the_machine_reads_what_was_remembered_again(site: Site):
    """So that the looks of a boot in which nothing is changed stay cheap, and find what the start found."""
    site.run("artifacts")
    before = {one["path"]: one for one in site.state("hashes.json")["files"]}
    site.reboot()

    assert call(site, "$script:Run.Mode = 'Boot'; Update-HashMemory").id == ""

    after = {one["path"]: one for one in site.state("hashes.json")["files"]}
    assert {path: (one["sha256"], one["says"]) for path, one in after.items()} == {
        path: (one["sha256"], one["says"]) for path, one in before.items()
    }
    assert all(after[path]["mark"] != before[path]["mark"] for path in before)
