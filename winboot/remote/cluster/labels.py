"""What differs between a Node's labels and taints and the profile's, and the patch that corrects it.

winboot notes on the Node which labels and taints are its own, so that one taken out of the profile goes and a
foreign one stays.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from winboot.base.foreign import Malformed, decoded
from winboot.config.annotations import CORDON, OWNED
from winboot.config.node_spec import Taint
from winboot.remote.cluster.base import NodeFacts, NodeWish
from winboot.report.events import Difference


@dataclass(frozen=True, slots=True)
class Owned:
    """The keys of labels and the identities (`key:effect`) of taints that winboot put on a node."""

    labels: frozenset[str] = frozenset()
    taints: frozenset[str] = frozenset()


_OWNED: Final = msgspec.json.Decoder(Owned)


def owned(facts: NodeFacts) -> Owned:
    """The labels and taints that the Node's annotation lists as ours; a damaged annotation counts as empty, so that winboot
    removes nothing foreign."""
    try:
        return decoded(_OWNED, facts.annotations.get(OWNED, "{}"))
    except Malformed:
        return Owned()


def cordoned_by_us(facts: NodeFacts) -> bool:
    """Whether the node is unschedulable because winboot made it so."""
    return facts.unschedulable and CORDON in facts.annotations


def differences(facts: NodeFacts, wish: NodeWish) -> tuple[Difference, ...]:
    """How labels and taints differ from the wish; empty when they do not. Keys: `label:<key>`, `taint:<key>:<effect>`
    and `annotation:<key>`.
    """
    mine = owned(facts)
    found = [
        Difference(f"node label {key}", facts.labels.get(key), value, key=f"label:{key}")
        for key, value in wish.labels.items()
        if facts.labels.get(key) != value
    ]
    found += [
        Difference(f"node label {key}", facts.labels[key], None, key=f"label:{key}")
        for key in sorted(mine.labels - wish.labels.keys())
        if key in facts.labels
    ]
    wanted = {identity(t): t for t in wish.taints}
    present = {identity(t): t for t in facts.taints}
    found += [
        _taint_difference(name, str(present[name]) if name in present else None, str(taint))
        for name, taint in wanted.items()
        if present.get(name) != taint
    ]
    found += [
        _taint_difference(name, str(present[name]), None)
        for name in sorted(mine.taints - wanted.keys())
        if name in present
    ]
    note = _note(wish)
    if facts.annotations.get(OWNED) != note:
        held = facts.annotations.get(OWNED)
        found.append(Difference(f"node annotation {OWNED}", held, note, key=f"annotation:{OWNED}"))
    return tuple(found)


def all_of(wish: NodeWish) -> tuple[Difference, ...]:
    """The differences of a Node that does not exist yet, with the keys they will have then."""
    labels = [
        Difference(f"node label {key}", None, value, key=f"label:{key}")
        for key, value in sorted(wish.labels.items())
    ]
    return (*labels, *(_taint_difference(identity(taint), None, str(taint)) for taint in wish.taints))


def _taint_difference(name: str, is_: str | None, want: str | None) -> Difference:
    return Difference(f"node taint {name}", is_, want, key=f"taint:{name}")


def patch(facts: NodeFacts, wish: NodeWish) -> dict[str, Any]:
    """A merge patch that takes all differences away and notes what is ours.

    It carries the resourceVersion: taints are replaced as a whole list, and it must not overwrite a change made in
    between.
    """
    mine = owned(facts)
    labels: dict[str, str | None] = {k: None for k in mine.labels - wish.labels.keys() if k in facts.labels}
    labels.update(wish.labels)
    wanted = {identity(t): t for t in wish.taints}
    kept = [t for t in facts.taints if identity(t) not in wanted and identity(t) not in mine.taints]
    return {
        "metadata": {"resourceVersion": facts.version, "labels": labels, "annotations": {OWNED: _note(wish)}},
        "spec": {"taints": [as_object(t) for t in (*kept, *wanted.values())] or None},
    }


def _note(wish: NodeWish) -> str:
    taints = sorted(identity(t) for t in wish.taints)
    return json.dumps({"labels": sorted(wish.labels), "taints": taints}, separators=(",", ":"))


def identity(taint: Taint) -> str:
    """A taint is the same one when key and effect agree."""
    return f"{taint.key}:{taint.effect}"


def as_object(taint: Taint) -> dict[str, str]:
    """The taint as the API writes it."""
    found = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {k: v for k, v in found.items() if v}
