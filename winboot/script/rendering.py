"""Plan and spec become one PowerShell text.

Every `{{ }}` of a template passes `literal`, so a value cannot leave its quotes; a Secret is refused there. The library
is plain PowerShell: the script carries, byte for byte, the functions that its steps use, directly or through another.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined, TemplateError

import winboot
from winboot.base.errors import ScriptError
from winboot.config.node_spec import NodeSpec
from winboot.powershell.literals import literal
from winboot.powershell.parser import parse
from winboot.powershell.syntax import FunctionDefinition, Node, StringConstant, walk
from winboot.script.opening import opening
from winboot.script.plan import Plan
from winboot.script.steps.step import Step
from winboot.script.steps.texts import source


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file that the script will write on the node."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """The text that runs on the node: the same for a preview and for the run."""

    text: str
    digest: str
    size_bytes: int
    files: tuple[RenderedFile, ...]


@dataclass(frozen=True, slots=True)
class Helpers:
    """Two short scripts beside the main one: restart the machine; name its boot, as the main script does."""

    restart: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class _Code:
    """Text that is PowerShell already: a piece that was rendered before, never a value."""

    text: str


@dataclass(frozen=True, slots=True)
class _Function:
    """One library function: its text as it is in its file, and the functions that it names."""

    name: str
    file: str
    text: str
    names: frozenset[str]
    restores: bool


def render(plan: Plan, spec: NodeSpec, *, undo: bool = False) -> Script:
    """The script of one node: what `join` and `plan` run, or with `undo` what `remove` runs.

    Raises ScriptError where a template and its step do not fit each other.
    """
    present = frozenset(step.name for step in plan.node_side)
    texts = [_step_text(step, spec, present, undo=undo) for step in plan.node_side]
    steps = "\n".join(texts)
    frame = _environment().get_template("_script.ps1.j2")
    node = _laid_out(source(spec), 0)
    # Step by step: most of them are the same for the next node, and are not parsed again.
    used = frozenset[str]().union(*map(_closure, [node, *texts, frame.render(_FRAME_ONLY, undoing=undo)]))
    if undo:
        # Former values may come from an older profile with other steps: every kind can be put back.
        used = _with_all_they_name({*used, *_restorers()})
    text = opening(plan, spec, steps, undo=undo) + frame.render(
        undoing=undo,
        winboot=winboot.__version__,
        node=spec.node.name,
        profile=spec.profile.name,
        digest=plan.digest,
        source=_Code(node),
        library=_Code(_library_text(used)),
        steps=_Code(steps),
    )
    files = tuple(
        RenderedFile(path, content) for step in plan.node_side for path, content in step.files(spec).items()
    )
    return Script(text, hashlib.sha256(text.encode()).hexdigest(), len(text.encode()), files)


def helpers() -> Helpers:
    """The scripts that restart a machine and that name its boot."""
    return Helpers(restart=_helper("_restart.ps1.j2"), boot_id=_helper("_boot_id.ps1.j2"))


def templates_root() -> Path:
    """templates/powershell: inside an installed package, or beside the package in a checkout."""
    package = Path(winboot.__file__).parent
    inside = package / "_templates" / "powershell"
    return inside if inside.is_dir() else package.parent / "templates" / "powershell"


@functools.cache
def library_files() -> Mapping[str, str]:
    """The library's files: name → text."""
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted((templates_root() / "lib").glob("*.ps1"))
    }


def _helper(name: str) -> str:
    source = _template_source(name)
    return _environment().get_template(name).render(library=_Code(_library_text(_closure(source))))


def _step_text(step: Step, spec: NodeSpec, present: frozenset[str], *, undo: bool) -> str:
    values = {
        **step.inputs(spec),
        "undoing": undo,
        "files": dict(step.files(spec)),
        "step": {
            "name": step.name,
            "needs": [name for name in step.needs if name in present],
            "secrets": list(step.secrets(spec)),
        },
    }
    try:
        if step.source is not None:
            own = {
                "look": _Code(step.source.look),
                "change": _Code(step.source.change),
                "undo": _Code(step.source.undo),
            }
            return _environment().get_template("_custom.ps1.j2").render(values, **own)
        return _environment().get_template(step.template).render(values)
    except (TemplateError, TypeError) as error:
        raise ScriptError(
            f"step {step.name}: {error}", hint=f"Compare {step.template} with the inputs of the step."
        ) from error


def _finalize(value: object) -> str:
    return value.text if isinstance(value, _Code) else _laid_out(value, _INDENT)


def _laid_out(value: object, indent: int) -> str:
    """A literal that a person can read: a table or a list too long for a line is broken into lines that are full."""
    short = literal(value)
    newline = "\n" + " " * (indent + _INDENT)
    match value:
        case dict() if value:
            pairs = [f"{_key(key)} = {_laid_out(item, indent + _INDENT)}" for key, item in value.items()]
            line = f"@{{ {'; '.join(pairs)} }}"
            if _fits(line, indent):
                return line
            return f"@{{ {newline.join(_rows(pairs, '; ', indent + _INDENT))} }}"
        case list() | tuple() if value and not any(isinstance(item, list | tuple) for item in value):
            items = [_laid_out(item, indent + _INDENT) for item in value]
            line = f"@({', '.join(items)})"
            if _fits(line, indent):
                return line
            return f"@({f',{newline}'.join(_rows(items, ', ', indent + _INDENT))})"
    return short


def _key(key: str) -> str:
    """A key that is a plain word needs no quotes."""
    return key if _PLAIN_KEY.fullmatch(key) else literal(key)


def _fits(text: str, indent: int) -> bool:
    return len(text) + indent <= _WIDTH and "\n" not in text


def _rows(parts: Sequence[str], between: str, indent: int) -> Iterator[str]:
    """The parts joined to lines, as many to a line as fit; one of several lines comes alone."""
    row = ""
    for part in parts:
        if row and _fits(row + between + part, indent):
            row += between + part
        else:
            if row:
                yield row
            row = part
    yield row


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template_source),
        undefined=StrictUndefined,
        finalize=_finalize,
        # PowerShell text is no markup: values are quoted by finalize, not escaped.
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # For text that passed this environment already: the contents of a block.
    environment.filters["code"] = _Code
    return environment


def _template_source(name: str) -> str:
    return (templates_root() / name).read_text(encoding="utf-8")


# The frame without its contents, to see which functions it calls itself.
_FRAME_ONLY: Final[Mapping[str, object]] = {
    "winboot": "",
    "node": "",
    "profile": "",
    "digest": "",
    "source": {},
    "library": _Code(""),
    "steps": _Code(""),
}

_WIDTH: Final = 128
_INDENT: Final = 4
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@functools.cache
def _library() -> Mapping[str, _Function]:
    """All functions by name, in the order of the files and of the functions in them."""
    found: dict[str, _Function] = {}
    for file, text in library_files().items():
        for node in walk(parse(text)):
            if not isinstance(node, FunctionDefinition):
                continue
            if node.name in found:
                raise ScriptError(f"{file}: the function {node.name} is defined twice in the library")
            found[node.name] = _Function(
                node.name, file, node.extent.text + "\n", frozenset(_words(node.body)), _restores(node)
            )
    return found


def _restores(function: FunctionDefinition) -> bool:
    """Whether Restore-FormerValue may call it: by a name it puts together, and with a former value as `-Former`."""
    parameters = function.body.params.parameters if function.body.params else ()
    return function.name.startswith("Restore-") and any(one.variable.name == "Former" for one in parameters)


@functools.cache
def _heading(file: str) -> str:
    """The comment at the head of a library file, as a line or more."""
    text = library_files()[file]
    return text[: text.index("\n\n")] + "\n" if text.startswith("#") else ""


@functools.lru_cache(maxsize=2048)
def _closure(text: str) -> frozenset[str]:
    """The library functions that `text` names, and those that these name."""
    return _with_all_they_name(set(_names(text)))


def _with_all_they_name(names: set[str]) -> frozenset[str]:
    used: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        used.add(name)
        waiting |= (_library()[name].names & _library().keys()) - used
    return frozenset(used)


def _names(text: str) -> Iterator[str]:
    """Library functions that `text` calls, or contains the name of as a string to call them by."""
    return (word for word in _words(parse(text)) if word in _library())


def _words(node: Node) -> Iterator[str]:
    return (one.value for one in walk(node) if isinstance(one, StringConstant))


def _restorers() -> Iterator[str]:
    """The functions that put a former value back."""
    return (function.name for function in _library().values() if function.restores)


def _library_text(used: Iterable[str]) -> str:
    """The functions `used`, those of one file below its name; what the file says of itself stands where it first comes."""
    wanted = frozenset(used)
    parts: list[str] = []
    told: set[str] = set()
    file = ""
    for function in (one for one in _in_reading_order() if one.name in wanted):
        if function.file != file:
            file = function.file
            parts.append(f"# {'-' * 4} {file}\n" + ("" if file in told else _heading(file)))
            told.add(file)
        parts.append(function.text)
    return "\n".join(parts)


@functools.cache
def _in_reading_order() -> tuple[_Function, ...]:
    return tuple(reading_order(tuple(_library().values())))


def reading_order(functions: Sequence[_Function]) -> Iterator[_Function]:
    """Each function behind those that it names; those of one file stay together as far as that allows.

    So whoever reads a script from top to bottom has met what a function calls. Of functions that name each other, one has
    to come first.
    """
    every = {one.name for one in functions}
    calls = {one.name: (one.names & every) - {one.name} for one in functions}
    left: dict[str, list[_Function]] = {}
    for one in functions:
        left.setdefault(one.file, []).append(one)
    placed: set[str] = set()
    while left:
        rows = {file: _placeable(some, calls, placed) for file, some in left.items()}
        # A file that can be finished, or else the longest piece of one: the fewest pieces.
        file = max(rows, key=lambda one: (len(rows[one]) == len(left[one]), len(rows[one])))
        row = rows[file] or left[file][:1]
        yield from row
        placed |= {one.name for one in row}
        left[file] = [one for one in left[file] if one.name not in placed]
        left = {file: some for file, some in left.items() if some}


def _placeable(
    functions: Sequence[_Function], calls: Mapping[str, Set[str]], placed: Set[str]
) -> list[_Function]:
    """Those of one file's functions that can come next, in an order in which they can."""
    missing = {one.name: set(calls[one.name] - placed) for one in functions}
    found: list[_Function] = []
    waiting = list(functions)
    while ready := next((one for one in waiting if not missing[one.name]), None):
        waiting.remove(ready)
        found.append(ready)
        for names in missing.values():
            names.discard(ready.name)
    return found
