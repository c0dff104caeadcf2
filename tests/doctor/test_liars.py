"""A machine that lies to `winboot collect`, and files that lie to `winboot doctor --from`, end nothing but their own part."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.steps.builders import a_spec_of
from winboot.base.errors import ExcessiveOutput, Interrupted, LoginRefused, NodeFailed, UsageError
from winboot.base.limits import DEEPEST, LONGEST_ITEM, MOST_ITEMS, MOST_NOISE
from winboot.node.facts import said
from winboot.node.probes import Look
from winboot.operations.bake import _ask
from winboot.operations.doctor import bundle as bundles
from winboot.operations.doctor.bundle import facts, load, pack
from winboot.operations.doctor.collection import Collection, Item

SPEC = a_spec_of("flannel-vxlan")
NOW = datetime(2026, 11, 28, tzinfo=UTC)
CLOCK = {"subject": "clock", "facts": [{"now": NOW.isoformat(), "end": ""}]}
Story = Callable[[], Iterator[str]]


class Liar:
    """A machine whose task writes these rows; `noise` comes before each answer, `refused` instead of it."""

    def __init__(
        self, *rows: object, now: str = "", noise: Story = lambda: iter(()), refused: bool = False
    ) -> None:
        self.text = b"".join(
            row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows
        )
        self.now = now or NOW.isoformat()
        self.noise = noise
        self.refused = refused
        self.modes: list[object] = []

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Any]) -> Iterator[str]:
        self.modes.append(arguments.get("Mode"))
        if self.refused:
            raise LoginRefused("no")
        if "Mode" in arguments:
            yield json.dumps({"done": arguments["Mode"]})
            return
        yield from self.noise()
        yield json.dumps({"now": self.now})
        start = arguments["From"]
        yield json.dumps({"at": start, "part": base64.b64encode(self.text[start:]).decode()})

    def close(self) -> None:
        """There is nothing to give back."""


def told(machine: Liar, wait: Callable[[float], object] = lambda seconds: False) -> tuple[Collection, Look]:
    """The collection of this machine, and what rules read of it. Its clock moves by a minute at each look."""
    ticks = iter(range(0, 10**9, 60))
    run = Collection(lambda: machine, "script", 60, wait, lambda: float(next(ticks)))  # type: ignore[arg-type, return-value]
    return run, run.look(SPEC, lambda: NOW)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("seconds", ["9" * 400, str(LONGEST_ITEM + 1), "-1", "0", "true", "1.5", '"x"'])
def test_a_limit_that_no_item_has_is_ignored(seconds: str) -> None:
    begins = f'{{"begins": "x", "seconds": {seconds}}}\n'.encode()

    run, found = told(Liar(begins, CLOCK, {"ended": True}))

    assert [one.name for one in run.items] == ["clock"]
    assert found.at == NOW


@pytest.mark.parametrize(
    ("first", "later"),
    [("0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z"), ("9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z")],
)
def test_a_clock_that_jumps_by_ages_ends_the_node_by_name(first: str, later: str) -> None:
    clock = {"subject": "clock", "facts": [{"now": later, "end": ""}]}

    with pytest.raises(NodeFailed, match="machine's clock jumped") as failed:
        told(Liar(clock, {"ended": True}, now=first))

    assert failed.value.node == SPEC.node.name


@pytest.mark.parametrize("now", [deep(20), "9" * 4000, "{}", "null"])
def test_a_time_in_another_form_ends_the_node_by_name(now: str) -> None:
    machine = Liar({"ended": True})
    machine.noise = lambda: iter([f'{{"now": {now}}}'])

    with pytest.raises(NodeFailed, match="cannot read the time"):
        told(machine)


@pytest.mark.parametrize("levels", [DEEPEST, 320, 600, 100_000])
def test_a_deep_fact_costs_its_item_only(levels: int) -> None:
    row = f'{{"subject": "rules", "facts": [{deep(levels)}]}}\n'.encode()

    run, found = told(Liar(row, CLOCK, {"ended": True}))

    assert "clock" in [one.name for one in run.items]
    assert not found.facts.get("rules")
    assert "rules" not in {one.name for one in run.items} or "nested" in found.problems["rules"]


def test_deep_lines_and_documents_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text(f'{{"schema": 1, "machine": {deep(600)}}}')

    with pytest.raises(UsageError, match=r"facts\.jsonl:1: this line is not a document"):
        load(file)
    assert list(said([f'{{"subject": {deep(600)}}}', '{"subject": "x"}'], "subject")) == [{"subject": "x"}]


@pytest.mark.parametrize("name", ["document", "Document"])
def test_an_item_is_never_the_document(name: str) -> None:
    run, _ = told(Liar({"subject": name}, CLOCK, {"ended": True}))

    assert [one.name for one in run.items] == ["clock"]


def test_each_file_is_written_once() -> None:
    rows = [{"subject": name} for name in ("a/b", "a-b", "A-B", "c", "c")]

    run, _ = told(Liar(*rows, {"ended": True}))

    assert [one.file for one in run.items] == ["a-b.json", "c.json"]


def test_items_are_bounded() -> None:
    run, _ = told(Liar(*({"subject": f"x{number}"} for number in range(MOST_ITEMS + 50)), {"ended": True}))

    assert len(run.items) == MOST_ITEMS


def test_the_name_of_an_item_cannot_move_the_cursor() -> None:
    run, _ = told(Liar({"subject": "\x1b]0;owned\x07\nx", "problem": "no"}, {"ended": True}))

    assert [one.name for one in run.items] == [r"\x1b]0;owned\x07 x"]


@pytest.mark.parametrize(
    "line", ["warning: x", "{}", '{"at": 0, "part": ""}', json.dumps({"at": 1, "part": "eA=="})]
)
def test_an_answer_without_parts_ends_the_node(line: str) -> None:
    taken = []

    def noise() -> Iterator[str]:
        while len(taken) < 10 * MOST_NOISE:
            taken.append(line)
            yield line

    with pytest.raises(ExcessiveOutput):
        told(Liar(noise=noise))

    assert len(taken) <= MOST_NOISE + 2


def test_an_interrupt_ends_an_answer_without_parts_and_the_task() -> None:
    taken = []

    def noise() -> Iterator[str]:
        for number in range(100):
            taken.append(number)
            yield "warning: x"

    machine = Liar(noise=noise)

    with pytest.raises(Interrupted):
        told(machine, wait=lambda seconds: len(taken) > 5)

    assert len(taken) < 10
    assert machine.modes == ["Start", None, "End"]


def test_a_machine_that_begins_items_without_an_end_is_named() -> None:
    begins = json.dumps({"begins": "x", "seconds": LONGEST_ITEM}).encode() + b"\n"
    machine = Liar()

    def more() -> Iterator[str]:
        machine.text += begins
        return iter(())

    machine.noise = more

    with pytest.raises(NodeFailed, match="does not end"):
        told(machine)


def test_a_refused_login_is_not_tried_again() -> None:
    machine = Liar(refused=True)

    with pytest.raises(LoginRefused):
        told(machine)

    assert machine.modes == ["Start"]


def test_a_login_that_is_refused_later_is_not_tried_again() -> None:
    machine = Liar()

    def refuse() -> Iterator[str]:
        raise LoginRefused("no")

    machine.noise = refuse

    with pytest.raises(LoginRefused):
        told(machine)

    assert machine.modes == ["Start", None]


def test_a_template_machine_that_does_not_end_is_named() -> None:
    answers = (f"warning: {number}" for number in range(10 * MOST_NOISE))
    link = nullcontext(SimpleNamespace(run=lambda *given: answers))
    run = SimpleNamespace(name="n", spec=SPEC, context=SimpleNamespace(connect=lambda spec: link))

    with pytest.raises(ExcessiveOutput):
        _ask(run, seal=False)  # type: ignore[arg-type]

    assert next(answers, "").startswith("warning")


def an_entry(content: bytes, **fields: object) -> dict[str, object]:
    plain = {"node": "n", "item": "document", "file": "n/document.json", "command": "", "error": ""}
    digest = hashlib.sha256(content).hexdigest()
    return {**plain, "size": len(content), "truncated": False, "sha256": digest, **fields}


def a_bundle(
    file: Path, contents: Mapping[str, bytes], *entries: object, kind: int = zipfile.ZIP_DEFLATED
) -> Path:
    about = {"schema": 1, "winboot": "1", "since_s": 1, "logs": False, "items": entries}
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, content in {"manifest.json": json.dumps(about).encode(), **contents}.items():
            archive.writestr(name, content)
    return file


BOTH = pytest.mark.parametrize("read", [load, facts])


@BOTH
@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_another_compression_is_refused(kind: int, read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="compression"):
        read(a_bundle(tmp_path / "x.zip", {}, kind=kind))


@BOTH
def test_a_size_that_is_a_lie_is_not_believed(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory of the file promises ten bytes; a reader gets no more than the limit and one byte."""
    monkeypatch.setattr(bundles, "LARGEST", 100_000)
    real, most = zipfile.ZipExtFile.read, []

    def read_some(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        most.append(n)
        return real(self, n)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", read_some)
    content = b"[" + b" " * 1_000_000 + b"]"
    files = {"n/document.json": content, "n/x.json": content}
    entries = [an_entry(content), an_entry(content, item="x", file="n/x.json")]

    with pytest.raises(UsageError, match="more than 100000 bytes"):
        read(a_bundle(tmp_path / "x.zip", files, *entries))

    assert most and all(one is not None and 0 <= one <= 100_001 for one in most)


@BOTH
def test_all_entries_share_one_limit(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "LARGEST", 100_000)
    content = b"[" + b" " * 40_000 + b"]"
    names = {f"n/{number}.json": content for number in range(3)}
    item = "document" if read is load else "x"

    with pytest.raises(UsageError, match="more than 100000 bytes"):
        read(
            a_bundle(tmp_path / "x.zip", names, *(an_entry(content, item=item, file=name) for name in names))
        )


@BOTH
def test_a_file_that_is_named_twice_is_refused(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="twice"):
        read(a_bundle(tmp_path / "x.zip", {"n/document.json": b"[]"}, an_entry(b"[]"), an_entry(b"[]")))


@pytest.mark.parametrize("content", [b"no json", deep(600).encode(), deep(100_000).encode()])
def test_facts_in_another_form_are_refused(content: bytes, tmp_path: Path) -> None:
    file = a_bundle(tmp_path / "x.zip", {"n/x.json": content}, an_entry(content, item="x", file="n/x.json"))

    with pytest.raises(UsageError, match="not a bundle"):
        facts(file)


@BOTH
def test_a_file_that_is_not_there_or_too_large_is_refused(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "LARGEST", 1000)
    large = tmp_path / "large.zip"
    large.write_bytes(b"PK\x03\x04" + bytes(1000))

    for file in (tmp_path / "none.zip", tmp_path, large):
        with pytest.raises(UsageError, match=str(file)):
            read(file)


def test_no_changed_byte_of_a_bundle_ends_anything(tmp_path: Path) -> None:
    whole = a_bundle(
        tmp_path / "x.zip", {"n/x.json": b"[]"}, an_entry(b"[]", item="x", file="n/x.json")
    ).read_bytes()
    file = tmp_path / "y.zip"
    for place in range(len(whole)):
        for value in (0x00, 0x7F, 0xFF):
            file.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                facts(file)
            except UsageError as error:
                assert str(file) in str(error)


@pytest.mark.parametrize("name", ["document", "log-x"])
def test_no_bundle_is_written_that_cannot_be_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "LARGEST", 100_000)
    content = bytes(200_000) if name == "document" else hashlib.shake_128(b"x").digest(200_000)

    with pytest.raises(UsageError, match="100000"):
        pack({"n": [Item(name, "", content, truncated=False, error="")]}, winboot="1", since_s=1, logs=True)


def test_text_of_logs_may_be_larger_than_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "LARGEST", 100_000)

    log = Item("log-x", "", bytes(200_000), truncated=False, error="")
    assert len(pack({"n": [log]}, winboot="1", since_s=1, logs=True)) < 100_000
