"""Preflight against the lab's API: what is wrong with the cluster is named before any machine is changed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.cli.staging import Staged, stage
from winboot_lab.cluster.kinds import kind_of
from winboot_lab.up import Lab

from tests.shape import lines_of
from winboot import cli

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lab, Staged]]:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with Lab(nodes=1) as lab:
        yield lab, stage(lab, tmp_path)


def told(
    staged: Staged, command: str, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, list[dict]]:
    """The exit code of a command, and what its JSON lines say."""
    capsys.readouterr()
    code = cli.run([command, "-i", str(staged.inventory), "-o", "json", *more])
    return code, lines_of(capsys.readouterr().out)


def findings(rows: list[dict]) -> list[str]:
    return [row["id"] for row in rows if row["kind"] == "preflight"]


def test_a_lab_as_it_comes_up_is_ready_for_a_join(lab, capsys) -> None:
    code, rows = told(lab[1], "preflight", capsys)

    assert findings(rows) == []
    assert code == 0
    [node] = [row for row in rows if row["kind"] == "node"]
    assert [step["step"] for step in node["steps"]] == ["node-preflight", "download-sources"]


BROKEN = {
    "flannel-config": (kind_of("configmaps"), "kube-flannel", "kube-flannel-cfg"),
    "node-rbac": (kind_of("clusterrolebindings", RBAC), "", "winboot:flannel"),
    "bootstrap-bindings": (kind_of("clusterrolebindings", RBAC), "", "kubeadm:node-autoapprove-bootstrap"),
}


@pytest.mark.parametrize("id", BROKEN)
def test_what_is_missing_stops_a_join_before_any_change(lab, capsys, id: str) -> None:
    here, staged = lab
    kind, namespace, name = BROKEN[id]
    here.cluster.store.delete(kind, namespace, name)
    code, rows = told(staged, "preflight", capsys)
    assert id in findings(rows)
    assert code == 1
    code, rows = told(staged, "join", capsys)
    [node] = [row for row in rows if row["kind"] == "node"]
    assert code == 1
    assert node["failure"]["name"] == "PreflightFailed"
    assert id in node["failure"]["message"]
    assert {step["state"] for step in node["steps"]} <= {"ok", "would-change"}
    assert here.nodes["win-1"].machine.services.find("kubelet") is None


def test_a_proxy_that_does_not_resolve_is_found_out_before_any_change(lab, capsys) -> None:
    """Nothing is renamed, enabled or restarted; ping and preflight say it, too."""
    here, _ = lab
    wishes = {"proxy": {"http": "http://proxy.corp.example:3128", "no_proxy": ["mirror.corp.example"]}}
    staged = stage(here, lab[1].inventory.parent, wishes=wishes)
    machine = here.nodes["win-1"].machine
    before = (machine.name, machine.boot_count)

    code, rows = told(staged, "ping", capsys)
    assert code == 1
    assert [one["id"] for one in rows[0]["findings"] if one["level"] == "error"] == ["proxy"]
    assert told(staged, "preflight", capsys)[0] == 1

    code, rows = told(staged, "join", capsys)
    [node] = [row for row in rows if row["kind"] == "node"]
    states = {step["step"]: step["state"] for step in node["steps"]}
    assert code == 1
    assert states.pop("download-sources") == "failed"
    assert states.pop("node-preflight") == "ok"
    assert set(states.values()) == {"blocked"}
    assert (machine.name, machine.boot_count) == before


@pytest.mark.check
def test_several_machines_behind_it_are_left_as_they_are_and_the_cause_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve servers were renamed and restarted first, and each said it in 146 lines. Four show it."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with Lab(nodes=4) as lab:
        staged = stage(lab, tmp_path, wishes={"proxy": {"http": "http://proxy.corp.example:3128"}})
        machines = [node.machine for node in lab.nodes.values()]
        before = [(one.name, one.boot_count) for one in machines]
        capsys.readouterr()

        assert cli.run(["join", "-i", str(staged.inventory)]) == 1

        said = capsys.readouterr().out
        assert [(one.name, one.boot_count) for one in machines] == before
    assert said.count("The proxy name could not be resolved") == 1
    assert said.count("steps wait") == 1
    assert len(said.splitlines()) < 25


FORMS = ("table", "json", "junit")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_id_level_reason_and_next_step_and_says_what_was_skipped(
    lab, capsys, form: str
) -> None:
    here, staged = lab
    for kind, namespace, name in BROKEN.values():
        here.cluster.store.delete(kind, namespace, name)
    report = staged.inventory.with_name("report.html")
    words = (
        "-i",
        str(staged.inventory),
        "-o",
        form,
        "--report",
        str(report),
        "--skip-preflight",
        "node-rbac",
    )
    capsys.readouterr()

    assert cli.run(["preflight", *words]) == 1

    for text in map(_plain, (capsys.readouterr().out, report.read_text(encoding="utf-8"))):
        for id in BROKEN:
            assert id in text
        assert "error" in text or "<failure" in text
        assert "no ConfigMap" in text and "winboot manifests flannel" in text
        assert "skipped" in text


def _plain(text: str) -> str:
    """Without what a form does to a text: marks, line breaks, columns."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text) if "<html" in text else text).split())
