"""A failure text is any text: it is shown escaped, kept, and costs neither the command nor the other nodes anything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests.cli.test_exit_codes import World
from tests.shape import lines_of
from winboot.base.errors import ScriptFailed
from winboot.cli import run

ODD: Final = {
    "lone surrogates": "before \ud800 and \udfff after",
    "nul": "before \x00 after",
    "escape sequences": "before \x1b[2J\x1b]0;title\x07 after",
    "carriage returns": "before \rafter",
    "backspaces": "before \x08\x08\x08after",
    "bidi": "before \u202egnp.exe\u2066 after",
    "no width": "before \u200b\ufeff after",
    "line separators": "before \u2028 after",
    "tags": "before \U000e0041 after",
    "c1": "before \x9b31m after",
    "markup of rich": "before [red]x[/] [/nosuch] [link=http://a]b[/link] after",
    "markup of the web": "before <script>alert(1)</script> ]]> &lt; after",
    "braces": "before {0} %s %(a)s {{ x }} {% y %} after",
    "quotes": "before ' \" ` $(x) after",
    "many lines": "before\n" + "line\n" * 500 + "after",
    "a megabyte": "before " + "x" * 1_000_000 + " after",
    "a megabyte without a blank": "before" + "\U0001f600" * 250_000,
    "nothing": "",
}
RAW: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_any_text_is_shown_kept_and_does_no_harm(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path, monkeypatch, capsys)
    world.fails("win-1", ScriptFailed(text))
    pages = [tmp_path / f"r.{form}" for form in ("html", "jsonl", "xml")]

    assert world.winboot("join", "--report", str(pages[0]), "--log-file", str(tmp_path / "log")) == 3
    shown = "".join(capsys.readouterr())
    for page, form in zip(pages[1:], ("jsonl", "xml"), strict=True):
        assert run(["report", "last", "--report", str(page)]) == 0, form
    assert run(["report", "last"]) == 0
    assert run(["log", "last"]) == 0
    told = [shown, "".join(capsys.readouterr())]

    told += [one.read_text(encoding="utf-8") for one in (*pages, tmp_path / "log")]
    told += [one.read_text(encoding="utf-8") for one in (tmp_path / "state").rglob("win-1.jsonl")]
    assert [RAW.findall(one)[:3] for one in told] == [[]] * len(told)
    assert all(len(one) < 400_000 for one in told)
    nodes = [one for one in lines_of(pages[1].read_text(encoding="utf-8")) if one["kind"] == "node"]
    assert [one["outcome"] for one in nodes] == ["failed", "changed"]
    assert len(ET.parse(pages[2]).getroot()) == 2
    assert all("before" in one for one in told) or not text
