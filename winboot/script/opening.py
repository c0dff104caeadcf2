"""How a rendered script begins, for an administrator that reads it before it may run: its steps, what stays, what
`<<…>>` means.

All of it is read from the plan and the spec. It is a comment: nothing in it can become code, whatever a profile holds.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, get_args

import winboot
from winboot.config.networks.base import KnownName
from winboot.config.node_spec import NodeSpec, unresolved
from winboot.script.plan import Plan
from winboot.script.steps.step import Step

_WIDTH: Final = 120

# What each place <<name>> of a text means.
PLACES: Final[Mapping[KnownName, str]] = {
    "node_ip": "this machine's address on the adapter that leads to the API server",
    "node_subnet": "the network of the address <<node_ip>>",
    "pod_cidr": "the IPv4 network of this node's pods, from the Node object",
    "pod_cidr_v6": "the IPv6 network of this node's pods, from the Node object",
    "pod_gateway": "the pods' gateway: the first address of <<pod_cidr>>",
    "pod_endpoint": "this machine's own endpoint: the second address of <<pod_cidr>>",
    "pod_first": "the first address for a pod: the third address of <<pod_cidr>>",
    "pod_gateway_v6": "the pods' gateway in <<pod_cidr_v6>>",
    "pod_endpoint_v6": "this machine's own endpoint in <<pod_cidr_v6>>",
    "source_vip": "the source address that kube-proxy gives to service traffic on an overlay",
}
STATE: Final = r"C:\ProgramData\winboot (journal, former values, this script for the tasks)"


def opening(
    plan: Plan,
    spec: NodeSpec,
    steps: str,
    files: Mapping[str, Iterable[str]],
    *,
    library: str,
    undo: bool = False,
) -> str:
    """The comment at the head of the script of a plan. `steps` is their text, `undo` is the script of `remove`,
    `files` has the paths that each step writes, by its name.

    `library` is the SHA-256 of the library that the script ends with.
    """
    order = tuple(reversed(plan.node_side)) if undo else plan.node_side
    lines = [
        f"winboot {winboot.__version__}: makes the machine {spec.machine.name} the Kubernetes node {spec.node.name}."
        if not undo
        else f"winboot {winboot.__version__}: undoes what winboot did on the machine {spec.machine.name}.",
        *_missing(spec),
        "",
        f"Settings  {plan.digest}",
        f"Library   {library}",
        'The settings are this machine\'s values and steps, down to "#region Library". The library after that line is the same',
        "text for every node of this winboot version. If you have reviewed a library with this SHA-256, skip it here.",
        "",
        *_steps(order, undo=undo),
        "",
        *_leftovers(order, spec, files, undo=undo),
    ]
    if places := [name for name in get_args(KnownName) if f"<<{name}>>" in steps]:
        lines += ["", *_places(places)]
    return "".join(f"# {_plain(line)}".rstrip() + "\n" for line in lines) + "#\n"


def _missing(spec: NodeSpec) -> Iterator[str]:
    """What no look has found out yet: a text without the CA or a hash is for reading alone."""
    if missing := unresolved(spec):
        yield ""
        yield "This script CANNOT RUN YET: run `winboot init` to find the missing values; until then join refuses."
        yield from _table(("missing", one) for one in missing)


def reason(step: Step) -> str:
    """The comment above a step in the script: its name, and why it is there."""
    lines = _wrapped(f"---- {step.name}: {step.why}", _WIDTH - 2)
    return "".join(f"# {line}\n" for line in lines)


def _steps(steps: Sequence[Step], *, undo: bool) -> Iterator[str]:
    if undo:
        yield "winboot undoes the steps in this order. The reason of each step was:"
    else:
        yield "The steps in running order, each with its reason:"
    yield from _table((step.name, step.why) for step in steps)


def _leftovers(
    steps: Sequence[Step], spec: NodeSpec, files: Mapping[str, Iterable[str]], *, undo: bool
) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for step in steps:
        for kind, names in step.leaves(spec).items():
            found.setdefault(kind, []).extend(name for name in names if name not in found.get(kind, []))
        for path in files.get(step.name, ()):
            found.setdefault("files", []).append(path)
    if undo:
        yield "winboot removes the objects that it made, and restores the objects that it found and recorded:"
    else:
        yield "These objects stay on this machine. winboot records the former state, so that an undo can restore it:"
    yield from _table([*((kind, names) for kind, names in sorted(found.items()) if names), ("state", STATE)])


def _places(names: Sequence[KnownName]) -> Iterator[str]:
    yield "<<name>> is a value that the script reads from this machine or its Node object (function Expand-Known):"
    yield from _table((f"<<{name}>>", PLACES[name]) for name in names)


def _table(rows: Iterable[tuple[str, str | Sequence[str]]]) -> Iterator[str]:
    rows = list(rows)
    wide = max((len(name) for name, _ in rows), default=0)
    for name, what in rows:
        lines = (
            _wrapped(what, _WIDTH - wide - 6) if isinstance(what, str) else _listed(what, _WIDTH - wide - 6)
        )
        first, *more = lines or ("",)
        yield f"  {name:{wide}}  {first}"
        yield from (f"  {'':{wide}}  {line}" for line in more)


@functools.lru_cache(maxsize=1024)
def _wrapped(text: str, width: int) -> tuple[str, ...]:
    """Lines of whole words: a path may be longer than a line, and is looked for by its text. The nodes of a fleet have
    nearly all of them in common."""
    return tuple(textwrap.wrap(_plain(text), width, break_on_hyphens=False, break_long_words=False))


def _listed(names: Sequence[str], width: int) -> list[str]:
    """Lines of whole names with commas between them: only one that is longer than a line is broken at its blanks."""
    lines: list[str] = []
    for at, name in enumerate(names, 1):
        text = _plain(name) + ("," if at < len(names) else "")
        if lines and len(lines[-1]) + 1 + len(text) <= width:
            lines[-1] += f" {text}"
        else:
            lines += _wrapped(text, width)
    return lines


def _plain(text: str) -> str:
    """One line: whatever could end a comment, or hide in it, is a blank."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
