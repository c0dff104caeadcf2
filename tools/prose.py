"""`python -m tools.prose [PATH…]` lists the sentences of the repository that break the style of its prose.

Each rule is a construction that readers had to read twice. Python strings and Markdown are read by their syntax;
templates and scripts by their comments and quoted texts. `--ratchet` lowers the counts in tests/prose.json.
`--sample SEED` prints 50 sentences of the docs and 50 messages of the tool for a reader (tests/reading.md).
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import random
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
# How many findings a file may still have; a file that is not listed may have none.
RATCHET: Final = ROOT / "tests/prose.json"
LONGEST_SENTENCE: Final = 30  # words
_SHORTEST_SAMPLE: Final = 6  # words; shorter texts are keys and titles
_CODE: Final = re.compile(r"[{}$;\\]|\bparam\(|^#|https?:")

_PERSONS: Final = (
    "anyone",
    "user",
    "users",
    "people",
    "administrator",
    "administrators",
    "person",
    "operator",
)
_UNNAMED: Final = "".join(f"(?<!{person} )" for person in _PERSONS)
# A construction, and what to write in its place.
RULES: Final = {
    _UNNAMED
    + r"\b[Ww]ho(?:m|ever)?(?:'s)?\b(?!\?)": "name the actor: you, the user, another run, an administrator",
    r"(?i:\b(?:some|no)body\b)": "name the actor, or negate the verb",
    r"(?i:\b(?:he|him|himself|his|she|hers?)\b)": "you, the user, the administrator",
    r"\b(?:is|are|was|were) (?:none|nobody's)\b": "negate the verb",
    r"\bof (?!'s)[A-Za-z]+'s\b(?! [a-z])": "the ordinary genitive: winboot's service",
    r"\bof (?:ours|theirs|his)\b": "the ordinary genitive",
    r"\bbeside\b": "next to, with, in addition to",
    r"\b(?:tells?|told|telling|hears?|heard)\b": "reports, receives, shows",
    r"\b(?:is|are|was|were|be|been) (?:said|asked)\b": "a machine reports; winboot asks for",
    r"\bstands? (?:here|twice|there|where|in|beside|for)\b": "is in, appears",
    r"\bshall\b": "must, is to",
    r"\banew\b": "again",
    r"\bmend(?:s|ed)?\b": "fix, correct",
    r"\bturned over\b": "rotated",
    r"\bfor ever\b": "without end",
    r"\bno map\b": "not a mapping",
    r"\bgoes on\b": "continues",
    r"\b(?:takes|taken|take) (?:it )?away\b": "removes, deletes",
    r"\b(?:is|are) borne\b": "may fail",
    r"\bin the place of\b": "instead of",
    r"\bof it that\b": "split the sentence",
}
# Rendered scripts and recordings; the rules and the test of them quote what they forbid.
_QUOTED: Final = (
    "tests/golden",
    "lab/conformance",
    "tools/prose.py",
    "tools/doctor_page.py",
    "tests/test_english.py",
)
# A clause as the subject of a statement; a question may start like this.
_CLAUSE: Final = re.compile(r"(?:What|Whatever|Whichever|Which)\b(?!.*\?$)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[)\"']*\s+(?=[\"'(`*]?(?:[A-Z`*]|winboot))")
# An item of a list, a row of a table, `key: value`, a line of TOML or INI, and two columns with a gap between them.
_ROW: Final = re.compile(r"^\s*(?:[-*|]|\d+\.|[\w.]+(?::| =)) |^\[|^(?:\w+ )?\w+=|\S {2,}\S")
_LOWER_CASE_WORD: Final = re.compile(r"\s[a-z]")  # a list of names has none
# Messages of PowerShell and the kubelet, which the lab gives as they are.
VERBATIM: Final = ("The input object cannot be bound to any parameters", "failed to validate kubelet flags:")
_WORD: Final = re.compile(r"[\w'’-]*[A-Za-z][\w'’/.-]*")


class Finding(NamedTuple):
    """One sentence that breaks a rule."""

    file: str
    line: int
    rule: str
    sentence: str


def findings(file: Path) -> Iterator[Finding]:
    """What the rules find in one file of the repository."""
    name = file.relative_to(ROOT).as_posix()
    for line, kind, text in passages(file):
        for sentence in _SENTENCE_END.split(" ".join(text.split())):
            for rule in broken(sentence, kind):
                yield Finding(name, line, rule, sentence)


def broken(sentence: str, kind: str) -> Iterator[str]:
    """The names of the rules that a sentence breaks."""
    yield from (
        f"{found[0]}: {advice}" for rule, advice in RULES.items() for found in re.finditer(rule, sentence)
    )
    if kind == "prose" and (found := _CLAUSE.match(sentence)) and len(sentence.split()) > 4:
        yield f"clause as subject: {found[0]}"
    if (count := len(_WORD.findall(sentence))) > LONGEST_SENTENCE and _LOWER_CASE_WORD.search(sentence):
        yield f"{count} words"


def passages(file: Path) -> Iterator[tuple[int, str, str]]:
    """Line, kind (prose, message, comment) and text of each passage that a person reads."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        yield from _of_markdown(text)
    elif file.suffix == ".py":
        yield from _of_python(text)
    else:
        yield from _of_script(text)


def _of_markdown(text: str) -> Iterator[tuple[int, str, str]]:
    """Paragraphs, list items and table cells, without code; inline code counts as one word."""
    paragraph: list[str] = []
    start, fenced = 1, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        body = line.strip()
        own = body.startswith(("|", "#")) or not body
        if paragraph and (own or fenced or re.match(r"([-*>]|\d+\.) ", body)):
            yield start, "prose", _plain(" ".join(paragraph))
            paragraph = []
        if fenced or not body or body.startswith("#") or (line.startswith("    ") and not paragraph):
            continue
        if body.startswith("|"):
            yield from (
                (number, "cell", _plain(cell)) for cell in body.strip("|").split(" | ") if cell.strip(" -:")
            )
            continue
        if not paragraph:
            start = number
        paragraph.append(re.sub(r"^([-*>]|\d+\.) ", "", body))


def _plain(text: str) -> str:
    """Markdown without its marks: code and a list of it become one word, a link its text."""
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"CODE(?:,? CODE)+", "CODE", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("**", "")


def _of_python(text: str) -> Iterator[tuple[int, str, str]]:
    """Docstrings and comments, then texts of more than two words; a placeholder is one word."""
    tree = ast.parse(text)
    docstrings = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings[id(first.value)] = first.value.lineno
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in docstrings and isinstance(node, ast.Constant):
            yield from ((node.lineno, "comment", row) for row in _rows(str(node.value)))
        elif id(node) not in inner and (message := _message(node)) is not None and len(message.split()) > 2:
            yield from _of_message(getattr(node, "lineno", 0), message)
    yield from _comments(text)


def _of_message(line: int, message: str) -> Iterator[tuple[int, str, str]]:
    """A string of the code; of PowerShell its comments and texts, of XML what is between the tags."""
    if re.search(r"\$(?:_|\w*[a-z])\w*|^param\(", message) and "\n" in message:
        yield from ((line, kind, text) for _, kind, text in _of_script(message))
    elif not message.startswith(VERBATIM):
        yield from ((line, "message", row) for row in _rows(re.sub(r"<[^<>]*>", "\n\n", message)))


def _rows(text: str) -> Iterator[str]:
    """The passages of a text of several lines; an item, a row of a table and an indented line begin one."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        rows: list[str] = []
        indent = 0
        for line in paragraph.splitlines():
            own = len(line) - len(line.lstrip())
            if not rows or _ROW.search(line) or own < indent or 0 < own == indent:
                rows.append("")
                indent = own
            rows[-1] += line + "\n"
        yield from (_plain(re.sub(r"\{[^{}]*\}", "CODE", row)) for row in rows)


def _message(node: ast.AST) -> str | None:
    """The text of a string in the code."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
    return None


def _comments(text: str) -> Iterator[tuple[int, str, str]]:
    """Comments of Python; lines that follow each other are one passage."""
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("#!", "# noqa", "# type:")):
            continue
        follows_code = bool(token.line[: token.start[1]].strip())
        if block and (follows_code or token.start[0] != last + 1):
            yield from ((start, "comment", row) for row in _rows("\n".join(block)))
            block = []
        start, last = (start if block else token.start[0]), token.start[0]
        block.append(token.string.lstrip("#").removeprefix(" "))
    yield from ((start, "comment", row) for row in _rows("\n".join(block)))


def _of_script(text: str) -> Iterator[tuple[int, str, str]]:
    """Comments and quoted texts of a template or a library file."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*(?:#|\{#)\s?(.*)", line):
            yield number, "comment", re.sub(r"`[^`]*`", "CODE", found[1])
        else:
            for quoted in re.findall(r"'([^']*)'|\"([^\"]*)\"", line):
                if len((message := "".join(quoted)).split()) > 2:
                    yield number, "message", message


def files() -> list[Path]:
    """Every tracked file that holds prose, but licences and recordings."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    wanted = (".md", ".py", ".ps1", ".j2")
    return [ROOT / name for name in listed if name.endswith(wanted) and not name.startswith(_QUOTED)]


def allowed() -> dict[str, int]:
    """The ratchet: findings that each file may still have."""
    counts: dict[str, int] = json.loads(RATCHET.read_text(encoding="utf-8"))
    return counts


def counted() -> dict[str, int]:
    """The findings of each file that has any."""
    return dict(sorted(Counter(one.file for file in files() for one in findings(file)).items()))


def lower() -> None:
    """Write the counts that fell; a count never rises."""
    now = counted()
    kept = {file: min(count, now[file]) for file, count in allowed().items() if file in now}
    RATCHET.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def sample(seed: int, size: int = 50) -> Iterator[tuple[str, int, str]]:
    """File, line and text: sentences of the pages, then messages of the tool, as many of each."""
    draw = random.Random(seed)
    for kind, below in (("prose", "docs/"), ("message", "winboot/")):
        found = sorted(
            {
                (name, line, sentence)
                for file in files()
                if (name := file.relative_to(ROOT).as_posix()).startswith(below) or name == "README.md"
                for line, of, text in passages(file)
                if of == kind
                for sentence in _SENTENCE_END.split(" ".join(text.split()))
                if len(_WORD.findall(sentence)) >= _SHORTEST_SAMPLE and not _CODE.search(sentence)
            }
        )
        yield from draw.sample(found, size)


def main() -> None:
    """Print the findings below the given paths, or in all files."""
    if sys.argv[1:] == ["--ratchet"]:
        lower()
        return
    if sys.argv[1:2] == ["--sample"]:
        for number, (file_name, line, sentence) in enumerate(sample(int(sys.argv[2])), 1):
            sys.stdout.write(f"{number}. {file_name}:{line}: {sentence}\n")
        return
    below = [Path(argument).resolve() for argument in sys.argv[1:]] or [ROOT]
    found = [
        one
        for file in files()
        if any(file == path or path in file.parents for path in below)
        for one in findings(file)
    ]
    for one in found:
        sys.stdout.write(f"{one.file}:{one.line}: {one.rule}: {one.sentence}\n")
    for file, count in Counter(one.file for one in found).most_common():
        sys.stderr.write(f"{count:5} {file}\n")


if __name__ == "__main__":
    main()
