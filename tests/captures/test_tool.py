"""`python -m tools.captures`: what two machines answered, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.captures import main
from winboot.operations.doctor.bundle import pack
from winboot.operations.doctor.collection import Item


def bundle(file: Path, **items: Any) -> str:
    """A bundle of one node with these items."""
    packed = [
        Item(name.replace("_", "-"), "", json.dumps(rows).encode(), truncated=False, error="")
        for name, rows in items.items()
    ]
    file.write_bytes(pack({"win-1": packed}, winboot="1", since_s=1, logs=False))
    return str(file)


def test_an_answer_that_differs_is_shown_with_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"TimeCreated": "1", "Id": 12}
    real = bundle(tmp_path / "a.zip", machine=[{}], unsourced_a=[1], unsourced_b=[event])
    lab = bundle(
        tmp_path / "b.zip", machine=[{}], unsourced_a=[2], unsourced_b=[event | {"TimeCreated": "2"}]
    )

    assert main([real, lab]) == 1
    assert capsys.readouterr().out == f"a\n  {real}: [1]\n  {lab}: [2]\n"
    assert main([real, real]) == 0


def test_a_capture_keeps_the_answers_of_a_machine(tmp_path: Path) -> None:
    real, file = bundle(tmp_path / "a.zip", machine=[{"build": 1}], unsourced_a=[1]), tmp_path / "x.json"

    assert main([real, "--keep", str(file)]) == 0
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept == {"made_by": "a machine", "machine": [{"build": 1}], "differs": {}, "answers": {"a": [1]}}


def test_a_bundle_without_a_machine_is_refused(tmp_path: Path) -> None:
    empty = bundle(tmp_path / "a.zip")

    with pytest.raises(SystemExit, match="has no facts of a machine"):
        main([empty, empty])
