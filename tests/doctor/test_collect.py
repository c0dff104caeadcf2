"""`winboot collect`: a task on the node, a file in parts, a bundle that gives the verdicts of a live look."""

from __future__ import annotations

import base64
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.doctor.damages import DAMAGES
from tests.doctor.documents import bundle, collection, documents
from tests.lab.scenes import Scenes
from tests.lab.site import Direct, Site
from winboot.base.errors import ConnectionLost, Interrupted, NodeFailed, UsageError
from winboot.base.secret import Secret
from winboot.cli import run
from winboot.operations.doctor import Document, gather, judge, load
from winboot.operations.doctor.gather import Reading
from winboot.operations.doctor.judge import Verdict


def found(verdicts: Sequence[Verdict]) -> list[tuple[str, tuple[str, ...], str]]:
    """Each finding: rule, evidence and cause."""
    return [(one.rule.id, one.evidence, one.cause) for verdict in verdicts for one in verdict.findings]


@pytest.mark.parametrize("rule", ["", "certificate-expired", "clock-off", "no-dns-server"])
def test_a_bundle_gives_the_verdicts_of_a_live_look(
    rule: str, joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    site = joined_site("plain")
    for one in DAMAGES:
        if one.rule == rule:
            one.do(site)
    live = judge(documents(site))

    bundled = judge(load(bundle(site, tmp_path / "x.zip")))

    assert [(one.node, one.unread) for one in bundled] == [(one.node, one.unread) for one in live]
    assert found(bundled) == found(live)
    assert not site.refusals


def manifest(file: Path) -> dict[str, Any]:
    """The bundle's manifest."""
    with zipfile.ZipFile(file) as archive:
        found: dict[str, Any] = json.loads(archive.read("manifest.json"))
        assert sorted(archive.namelist()) == sorted(
            ["manifest.json", *(one["file"] for one in found["items"])]
        )
    return found


@pytest.mark.parametrize("logs", [False, True])
def test_a_bundle_has_text_of_logs_on_request_only(
    logs: bool, joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    about = manifest(bundle(joined_site("plain"), tmp_path / "x.zip", logs=logs))

    names = {one["item"] for one in about["items"]}
    assert about["logs"] is logs
    texts = {name for name in names if name.startswith(("log-", "events-"))}
    assert {"log-kubelet", "events-System"} <= texts if logs else not texts
    assert [one["item"] for one in about["items"] if one["error"] or one["truncated"]] == []


def test_nothing_is_left_on_the_node(joined_site: Callable[[str], Site], tmp_path: Path) -> None:
    site = joined_site("plain")

    bundle(site, tmp_path / "x.zip")

    assert [one.name for one in site.machine.tasks.all() if "collect" in one.name] == []
    files = site.machine.files.list(r"C:\ProgramData\winboot\detached")
    assert [one.name for one in files if "collect" in one.name] == []


def test_nothing_is_left_on_a_node_that_winboot_did_not_make(scenes: Scenes) -> None:
    site = scenes.bare("plain")

    found = collection(site)
    found.look(site.specs()[0], site.machine.now)

    assert len(found.items) > 40
    assert not site.machine.files.exists(r"C:\ProgramData\winboot")
    assert not site.refusals


def test_an_item_that_hangs_costs_its_own_time_only(
    joined_site: Callable[[str], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = joined_site("plain")
    # The site's transport would wait for the task's end.
    monkeypatch.setattr(site.machine.tasks, "wait_idle", lambda timeout=10.0: None)
    hung = collection(
        site,
        change=lambda text: text.replace(
            "function Get-CniFact {", "function Get-CniFact {\n    for (;;) { Start-Sleep -Seconds 1 }\n"
        ),
    )

    hung.look(site.specs()[0], site.machine.now)

    errors = {one.name: one.error for one in hung.items if one.error}
    assert errors == {"cni": "it did not end within 2 seconds"}
    assert {"services", "files", "environment"} <= {one.name for one in hung.items}


class Cut:
    """A transport that loses its link in the middle of each third script that it runs."""

    runs = 0
    sent = 0

    def __init__(self, inner: Direct) -> None:
        self._inner = inner

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        lines = list(self._inner.run(script, arguments, secrets))
        Cut.runs += 1
        Cut.sent += sum(map(len, lines))
        if Cut.runs % 3 == 2:
            yield from lines[: len(lines) // 2]
            raise ConnectionLost("cut off")
        yield from lines

    def close(self) -> None:
        """There is nothing to give back."""


def test_a_lost_link_costs_nothing_that_came_before(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    whole = collection(site)
    whole.look(site.specs()[0], site.machine.now)

    cut = collection(site, through=Cut)
    cut.look(site.specs()[0], site.machine.now)

    assert Cut.runs > 3
    assert [one.name for one in cut.items] == [one.name for one in whole.items]
    tasks = [text for text in site.machine.tasks.all() if "collect" in text.name]
    assert tasks == []


class Tape:
    """A transport that keeps what the task wrote."""

    text = b""

    def __init__(self, inner: Direct) -> None:
        self._inner = inner

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        for line in list(self._inner.run(script, arguments, secrets)):
            Tape.text += base64.b64decode(json.loads(line).get("part", ""))
            yield line

    def close(self) -> None:
        """There is nothing to give back."""


def test_the_limits_of_doctors_facts_add_up_to_a_minute(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    run = collection(site, through=Tape)
    run.look(site.specs()[0], site.machine.now)
    rows = [json.loads(line) for line in Tape.text.splitlines()]
    limits = {one["begins"]: one["seconds"] for one in rows if "begins" in one}

    doctors = [name for name in limits if name in documents(site)[0].machine]
    assert len(doctors) == 25
    assert sum(limits[name] for name in doctors) <= 60
    assert all(0 < one <= 30 for one in limits.values())


def test_a_task_that_never_runs_is_named(
    joined_site: Callable[[str], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = joined_site("plain")
    monkeypatch.setattr(site.machine.tasks, "start", lambda task, on_demand=False: None)

    with pytest.raises(NodeFailed, match=r"win-1: the task \\winboot\\collect-\w+ does not run"):
        collection(site).look(site.specs()[0], site.machine.now)


def repacked(file: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """The bundle with other contents."""
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, change(name, content))
    return file


BROKEN: Mapping[str, Callable[[str, bytes], bytes]] = {
    "a changed document": lambda name, raw: raw + b"\n" if name.endswith("document.json") else raw,
    "no manifest": lambda name, raw: b"" if name == "manifest.json" else raw,
    "a version before the last two": lambda name, raw: re.sub(rb'"schema": \d+', b'"schema": 0', raw),
    "a newer version": lambda name, raw: re.sub(rb'"schema": \d+', b'"schema": 99', raw),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_another_bundle_is_refused(kind: str, joined_site: Callable[[str], Site], tmp_path: Path) -> None:
    file = repacked(bundle(joined_site("plain"), tmp_path / "x.zip"), BROKEN[kind])

    with pytest.raises(UsageError, match=r"x\.zip"):
        load(file)


def test_half_a_bundle_is_refused(joined_site: Callable[[str], Site], tmp_path: Path) -> None:
    file = bundle(joined_site("plain"), tmp_path / "x.zip")
    file.write_bytes(file.read_bytes()[:2000])

    with pytest.raises(UsageError, match="not a bundle"):
        load(file)


def test_the_command_writes_the_bundle_and_names_what_is_missing(
    joined_site: Callable[[str], Site],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site, file = joined_site("plain"), tmp_path / "x.zip"
    context = SimpleNamespace(
        connect=lambda spec: Direct(site.controller(), spec), stop=SimpleNamespace(wait=site.settle)
    )

    def gathered(machines: object, workers: int, reading: Callable[..., Reading]) -> list[Document]:
        (spec,) = site.specs()
        return [gather(spec, reading(context, spec), site.controller().context.cluster(spec))]

    monkeypatch.setattr("winboot.cli.collect.gathered", gathered)

    assert run(["collect", "win-1", "--since=2h", f"--out={file}"]) == 0
    about = manifest(file)
    assert capsys.readouterr().out.splitlines()[:1] == [f"win-1: {len(about['items']) - 1} items"]
    assert about["since_s"] == 7200
    assert run(["doctor", "--from", str(file)]) == 0
    assert capsys.readouterr().out == "win-1: healthy\n"


def test_an_interrupted_collection_leaves_nothing_on_the_node(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")

    with pytest.raises(Interrupted):
        collection(site, wait=lambda seconds: True).look(site.specs()[0], site.machine.now)

    assert [one.name for one in site.machine.tasks.all() if "collect" in one.name] == []


@pytest.mark.parametrize("since", ["yesterday", "0s", "-2h", "745h"])
def test_a_wrong_duration_is_refused(since: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collect", f"--since={since}"]) == 64
    assert "such as 2h or 90m" in capsys.readouterr().err
