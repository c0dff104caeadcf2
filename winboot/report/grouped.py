"""What a look found, for a person: equal differences once, with the nodes that share them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs
from rich.text import Text

from winboot.report.causes import named
from winboot.report.differences import FLAGS, difference_text, line_counts
from winboot.report.events import Difference
from winboot.report.results import NodeReport

_STYLES: Final = {"+": "green", "~": "yellow", "-": "red"}
# A file that is named by the hash of a node's own script.
_HASH: Final = re.compile(r"\b[0-9a-f]{16,64}\b")
# The script of the boot task is the node's own: its hash is in the file's name, and its text has a length of its own.
_BOOT: Final = re.compile(r"(?<=\\boot-)[0-9a-f]{16}(?=\.ps1)")
_TEXT: Final = re.compile(r"\d+ lines, sha256 [0-9a-f]{12}")
_COSTS: Final = re.compile("|".join(re.escape(text) for _, text in FLAGS))


@dataclass(frozen=True, slots=True)
class _Row:
    """One step as some nodes have it: its differences, or its one line where they are not nodes yet."""

    step: str
    differences: tuple[Difference, ...] = ()
    line: str = ""


def found_lines(nodes: Sequence[NodeReport], width: int, *, texts: bool) -> Iterator[Text]:
    """The differences of all steps without a problem, below the nodes that share them; what most nodes share comes first.

    A node that does not exist yet has one line for each step; with `texts` everything is written in full.
    """
    together: dict[tuple[str, ...], list[_Row]] = {}
    for row, sharing in _rows(nodes, width, texts=texts).items():
        together.setdefault(tuple(sharing), []).append(row)
    for names, rows in sorted(together.items(), key=lambda item: -len(item[0])):
        everyone = len(names) == len(nodes) > 1
        head = f"all {len(names)} nodes" if everyone else named(names)
        yield from (Text(line, "bold") for line in _wrapped(f"{head}:", width))
        for row in rows:
            yield from _row_lines(row, texts=texts)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _rows(nodes: Sequence[NodeReport], width: int, *, texts: bool) -> dict[_Row, list[str]]:
    """Each row with its nodes, in the order in which they are met."""
    found: dict[_Row, list[str]] = {}
    for node in nodes:
        for step in node.steps:
            if step.differences and step.problem is None:
                differences = step.differences
                if len(nodes) > 1:
                    differences = tuple(_without_script(_without_own(node, one)) for one in differences)
                brief = node.live is False and not texts
                row = (
                    _Row(step.name, line=_brief(step.name, differences, width))
                    if brief
                    else _Row(step.name, differences)
                )
                found.setdefault(row, []).append(node.node)
    return found


def _without_own(node: NodeReport, difference: Difference) -> Difference:
    """The difference with the node's name and address as `<node>` and `<address>`: the inventory says them."""

    def placed(text: str | None) -> str | None:
        return None if text is None else _placed(node, text)

    return structs.replace(
        difference,
        what=_placed(node, difference.what),
        is_=placed(difference.is_),
        want=placed(difference.want),
        was=placed(difference.was),
        will=placed(difference.will),
    )


def _without_script(difference: Difference) -> Difference:
    """The difference without the hash of the node's boot script, where it names one."""
    is_, want = difference.is_ or "", difference.want or ""
    if not any(_BOOT.search(text) for text in (difference.what, is_, want)):
        return difference
    differ = is_ and want and _BOOT.findall(is_) != _BOOT.findall(want)
    if _BOOT.search(difference.what):
        is_, want = (_TEXT.sub("the node's script", text) for text in (is_, want))
    return structs.replace(
        difference,
        what=_BOOT.sub("<hash>", difference.what),
        is_=_BOOT.sub("<old>" if differ else "<hash>", is_) or None,
        want=_BOOT.sub("<new>" if differ else "<hash>", want) or None,
    )


def _placed(node: NodeReport, text: str) -> str:
    for value, place in ((node.address, "<address>"), (node.node, "<node>")):
        if value:
            text = re.sub(rf"(?<![\w.-]){re.escape(value)}(?![\w-]|\.\d)", place, text, flags=re.IGNORECASE)
    return text


def _row_lines(row: _Row, *, texts: bool) -> Iterator[Text]:
    if row.line:
        yield _coloured(row.line)
        return
    yield Text(f"  {row.step}")
    for one in row.differences:
        for line in _difference(one, texts=texts):
            yield _coloured(f"    {line}")


def _difference(difference: Difference, *, texts: bool) -> list[str]:
    counts = line_counts(difference)
    if texts or counts is None:
        return difference_text(difference).splitlines()
    added, removed = counts
    first, *more = difference_text(structs.replace(difference, was=None, will=None)).splitlines()
    return [f"{first}  (+{added} -{removed} lines)", *more]


def _brief(step: str, differences: Sequence[Difference], width: int) -> str:
    """`  + kubelet-config: file C:\\… (+52 lines), file …`: what a new node gets, cut where the line ends."""
    costs = [text for flag, text in FLAGS if any(getattr(one, flag) for one in differences)]
    marks = {_mark(one) for one in differences}
    head = f"  {marks.pop() if len(marks) == 1 else '~'} {step}" + (f" ({', '.join(costs)})" if costs else "")
    line = f"{head}: {', '.join(map(_named, differences))}"
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _named(difference: Difference) -> str:
    counts = line_counts(difference)
    what = _HASH.sub("<hash>", difference.what)
    return what if counts is None else f"{what} (+{counts[0]} lines)"


def _mark(difference: Difference) -> str:
    return "+" if difference.is_ is None else "-" if difference.want is None else "~"


def _coloured(line: str) -> Text:
    """The line with the colour of its mark; what a change costs stands out. A console leaves colours out in pipes and with
    NO_COLOR."""
    mark = line.lstrip()[:1]
    text = Text(line, _STYLES.get(mark, ""))
    if mark in _STYLES:
        text.highlight_regex(_COSTS, "bold magenta")
    return text
