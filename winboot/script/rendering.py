"""Plan and spec become one PowerShell text: the node's part, rendered from templates, and behind it the library.

Every `{{ }}` of a template passes `literal`, so a value cannot leave its quotes; a Secret is refused there. The library
is plain PowerShell and the same for every node.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined, TemplateError

import winboot
from winboot.base.errors import ScriptError
from winboot.config.node_spec import NodeSpec
from winboot.script.library import Library, functions_for, library, names_for, templates_root
from winboot.script.literals import literal
from winboot.script.opening import opening, reason
from winboot.script.plan import Plan
from winboot.script.steps.containerd_config import hosts_path
from winboot.script.steps.services import started_by_the_task, with_identity
from winboot.script.steps.step import Step
from winboot.script.steps.texts import source


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file that the script will write on the node."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """What runs on the node, the same for a preview and for the run: the node's part, and the library of this release.

    `settings` is the digest of the plan: of this machine's values and steps.
    """

    node_part: str
    library: Library
    settings: str
    files: tuple[RenderedFile, ...]

    @property
    def text(self) -> str:
        """The whole script, as it travels."""
        return self.node_part + self.library.text

    @property
    def digest(self) -> str:
        """The SHA-256 of the whole script in hex. The node's part names the library's."""
        of_all = hashlib.sha256(self.node_part.encode())
        of_all.update(self.library.text.encode())
        return of_all.hexdigest()

    @property
    def kept(self) -> Kept:
        """The same script for a machine that keeps the library."""
        return Kept(
            kept_loader(self.library.sha256), {"NodePart": self.node_part, "Reader": library_reader()}
        )

    @property
    def size_bytes(self) -> int:
        """How many bytes travel, before the protocol's own form."""
        return len(self.text.encode())


@dataclass(frozen=True, slots=True)
class Kept:
    """A script in the form for a machine that keeps the library: a loader, and the texts that travel next to it."""

    loader: str
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Helpers:
    """Two short scripts next to the main one: restart the machine; name its boot, as the main script does."""

    restart: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class _Code:
    """Text that is PowerShell already: a piece that was rendered before, never a value."""

    text: str


@dataclass(frozen=True, slots=True)
class _Values:
    """All that a step's template is filled with; equal where it is written (`said`) in the same way."""

    said: str
    of: Mapping[str, object] = field(compare=False)


def render(plan: Plan, spec: NodeSpec, *, undo: bool = False) -> Script:
    """The script of one node: what `join` and `plan` run, or with `undo` what `remove` runs.

    Raises ScriptError where a template and its step do not fit each other.
    """
    present = frozenset(step.name for step in plan.node_side)
    # Made once: they are the dearest part of a script.
    files = {step.name: dict(step.files(spec)) for step in plan.node_side}
    steps = "\n".join(_step_text(step, spec, present, files[step.name], undo=undo) for step in plan.node_side)
    release = library()
    frame = _environment().get_template("_script.ps1.j2")
    head = opening(plan, spec, steps, files, library=release.sha256, undo=undo)
    text = head + frame.render(
        undoing=undo,
        winboot=winboot.__version__,
        node=spec.node.name,
        profile=spec.profile.name,
        digest=plan.digest,
        library=release.sha256,
        modes=UNDO_MODES if undo else MODES,
        source=_Code(_laid_out({**source(spec), **_held(spec)}, 0)),
        steps=_Code(steps),
    )
    written = tuple(RenderedFile(path, content) for of in files.values() for path, content in of.items())
    return Script(text, release, plan.digest, written)


def _held(spec: NodeSpec) -> dict[str, object]:
    held = started_by_the_task(spec)
    return {"held": list(held)} if held else {}


def helpers() -> Helpers:
    """The scripts that restart a machine and that name its boot."""
    return Helpers(restart=_helper("_restart.ps1.j2"), boot_id=_helper("_boot_id.ps1.j2"))


def probes(spec: NodeSpec) -> str:
    """The script that looks at how a node works (winboot.node.probes); it changes nothing."""
    return _facts_script(spec, {}, "")


def doctor(spec: NodeSpec, wanted: Mapping[str, object]) -> str:
    """The same script with the further facts of `winboot doctor`, whose subjects `wanted` names; it changes nothing."""
    return _facts_script(spec, wanted, _template_source("_doctor.ps1"))


def collect(spec: NodeSpec, wanted: Mapping[str, object]) -> str:
    """The script of `doctor` with the further items of `winboot collect`; it changes nothing."""
    parts = ("_doctor.ps1", "_collect.ps1", "_unsourced.ps1")
    return _facts_script(spec, wanted, "".join(map(_template_source, parts)))


def collecting() -> tuple[str, str]:
    """The script that starts, hurries and removes the task that collects, and the one that reads its answer."""
    return _helper("_collecting.ps1.j2"), _template_source("_collected.ps1")


def _facts_script(spec: NodeSpec, more: Mapping[str, object], functions: str) -> str:
    wanted = {
        "services": [{"name": one.name, "display": one.display_name} for one in spec.services.all],
        # A second one is what is left of a start by hand next to the service.
        "programs": ["kubelet.exe", *(["kube-proxy.exe"] if spec.kube_proxy.wanted else [])],
        "pause_image": spec.runtime.pause_image,
        # The letter of the drive that holds images.
        "image_drive": spec.runtime.folders.root[0].upper(),
        "certificate": spec.paths.kubelet_client_certificate,
        "rules": [rule.id for rule in spec.firewall],
        **more,
    }
    name = "_probes.ps1.j2"
    library = _Code(functions_for(_plain_text(_template_source(name)) + functions))
    return (
        _environment()
        .get_template(name)
        .render(library=library, source=source(spec), wanted=wanted, more=_Code(functions))
    )


def knowledge(spec: NodeSpec) -> str:
    """The script that asks kubelet and kube-proxy what they know (winboot.node.knowledge); it changes nothing."""
    unpacked = r"C:\ProgramData\winboot\downloads\kubernetes-unpacked\kubernetes\node\bin"
    programs = {"kubelet": spec.paths.kubelet}
    if spec.kube_proxy.wanted:
        programs["kube-proxy"] = spec.paths.kube_proxy
    return _helper(
        "_knowledge.ps1.j2",
        source=source(spec),
        programs=[
            {"name": name, "paths": [rf"{unpacked}\{name}.exe", path]} for name, path in programs.items()
        ],
    )


def bake_script(spec: NodeSpec, *, note: Mapping[str, object]) -> str:
    """The script that finds traces of a node and seals an image (winboot.operations.bake); `note` is what the image holds."""
    paths = spec.paths
    return _helper(
        "_bake.ps1.j2",
        note=dict(note),
        files=[paths.bootstrap_kubeconfig, paths.kubeconfig],
        folders=[paths.kubelet_pki],
        services=list(with_identity(spec)),
        logins=[hosts_path(spec, one) for one in spec.runtime.registries if one.secret],
    )


def reach() -> str:
    """The script that tries TCP connections from a node."""
    return _helper("_reach.ps1.j2")


def small_script(name: str, **values: object) -> str:
    """A template on its own, without the library."""
    return _environment().get_template(name).render(values)


def _helper(name: str, **values: object) -> str:
    code = _Code(functions_for(_plain_text(_template_source(name))))
    return _environment().get_template(name).render(library=code, **values)


@functools.cache
def kept_loader(sha256: str) -> str:
    """The script that runs a node's part with the kept library of this SHA-256."""
    return small_script("_kept.ps1.j2", hash=sha256)


@functools.cache
def library_reader() -> str:
    """The functions that the loader calls."""
    return functions_for(kept_loader(""))


def _plain_text(template: str) -> str:
    """A template with something that can be parsed where its values come."""
    return _VALUE.sub("$null", template)


def _step_text(
    step: Step, spec: NodeSpec, present: frozenset[str], files: Mapping[str, str], *, undo: bool
) -> str:
    values = {
        **step.inputs(spec),
        "undoing": undo,
        "leavings": _leavings(step, spec, files),
        "files": files,
        "step": {
            "name": step.name,
            "needs": [name for name in step.needs if name in present],
            "secrets": list(step.secrets(spec)),
        },
    }
    template = step.template
    if step.source is not None:
        template = "_custom.ps1.j2"
        values |= {name: _Code(getattr(step.source, name)) for name in ("look", "change", "undo")}
    try:
        return reason(step) + _filled(template, _Values(repr(values), values))
    except (TemplateError, TypeError) as error:
        raise ScriptError(
            f"step {step.name}: {error}", hint=f"Compare {step.template} with the values of the step."
        ) from error


@functools.lru_cache(maxsize=256)
def _filled(template: str, values: _Values) -> str:
    """The text of a step. The nodes of a fleet have most of them in common."""
    return _environment().get_template(template).render(values.of)


def _leavings(step: Step, spec: NodeSpec, written: Iterable[str]) -> dict[str, list[str]]:
    """What a step leaves that is known to be winboot's without a note: by its mark, or by its place."""
    left = step.leaves(spec)
    files = [*written, *left.get("programs", ()), *left.get("files with secrets", ())]
    found = {
        "services": list(left.get("services", ())),
        "rules": [text.partition(" (")[0] for text in left.get("firewall rules", ())],
        "files": [path for path in files if "*" not in path],
    }
    return {kind: names for kind, names in found.items() if names}


def _finalize(value: object) -> str:
    return value.text if isinstance(value, _Code) else _laid_out(value, _INDENT)


def _laid_out(value: object, indent: int) -> str:
    """A literal that a person can read: a table or a list too long for a line is broken into lines that are full."""
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
    return literal(value)


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
        # PowerShell text is not markup: values are quoted by finalize, not escaped.
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # For text that passed this environment already: the contents of a block.
    environment.filters["code"] = _Code
    # For a script that the node makes of functions of the library: what a call of one needs.
    environment.globals["functions_of"] = names_for
    return environment


def _template_source(name: str) -> str:
    return (templates_root() / name).read_text(encoding="utf-8")


# The modes of the script of `join`, and of the script of `remove`, whose look reports what an undo would do.
MODES: Final = ("Look", "Change", "Boot", "Guard", "Detached", "Rescue")
UNDO_MODES: Final = ("Look", "Undo", "Detached", "Rescue")
_WIDTH: Final = 128
_INDENT: Final = 4
_VALUE: Final = re.compile(r"\{\{.*?\}\}")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
