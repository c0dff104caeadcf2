"""Ask a node's own kubelet and kube-proxy what they know: an overlay for versions and builds that no table has.

The script is `templates/powershell/_knowledge.ps1.j2`; it changes nothing, and neither program starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from winboot.base.clean import clean
from winboot.base.errors import UsageError
from winboot.config.compat.facts import Compat
from winboot.config.compat.flags import Component
from winboot.config.compat.learned import (
    Refused,
    Said,
    flags_to_ask,
    gates_to_ask,
    gates_to_turn,
    overlay,
    said,
)
from winboot.config.node_spec import NodeSpec
from winboot.remote.transport.base import Transport
from winboot.script.rendering import knowledge as knowledge_script


@dataclass(frozen=True, slots=True)
class Learned:
    """The sections of an overlay (empty where the programs know what the data knows), and what was asked."""

    sections: Mapping[str, Any]
    programs: tuple[Said, ...]


def learn(spec: NodeSpec, transport: Transport, compat: Compat) -> Learned:
    """What the programs of a node know otherwise than the data. Raises TransportError, ScriptFailed; UsageError where a program
    is not there or answers in another way."""
    script = knowledge_script(spec)
    programs: dict[Component, tuple[Said, Refused]] = {}
    for line in _answers(transport, script, {}):
        component: Component = "kubelet" if line["program"] == "kubelet" else "kube-proxy"
        try:
            programs[component] = (said(component, str(line["version"]), str(line["help"])), Refused())
        except ValueError as error:
            raise UsageError(f"{spec.node.name}: {clean(str(error))}") from None
    asked = {one: _first_question(compat, programs[one][0]) for one in programs}
    _ask(transport, script, programs, asked)
    turned = {
        one: {"flags": [], "gates": gates_to_turn(compat, told, refused.gates)}
        for one, (told, refused) in programs.items()
    }
    _ask(transport, script, programs, turned)
    return Learned(overlay(compat, programs), tuple(told for told, _ in programs.values()))


def _first_question(compat: Compat, one: Said) -> dict[str, list[str]]:
    return {"flags": list(flags_to_ask(compat, one).values()), "gates": gates_to_ask(compat, one)}


def _ask(
    transport: Transport,
    script: str,
    programs: Mapping[Component, tuple[Said, Refused]],
    asked: Mapping[Component, Mapping[str, list[str]]],
) -> None:
    """Ask by name, and note what is refused."""
    for line in _answers(transport, script, {name: dict(one) for name, one in asked.items()}):
        refused = programs["kubelet" if line["program"] == "kubelet" else "kube-proxy"][1]
        # pflag's words (its flag.go); another refusal is one of the value that was asked with.
        refused.flags |= {
            str(one).partition("=")[0].removeprefix("--")
            for one in line["flags"]
            if "unknown flag" in str(one)
        }
        refused.gates |= {str(one) for one in line["gates"]}


def _answers(transport: Transport, script: str, ask: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    for text in transport.run(script, {"Ask": dict(ask)}, {}):
        try:
            line = json.loads(text)
        except ValueError:
            continue  # a warning of the machine
        if line.get("problem"):
            raise UsageError(clean(str(line["problem"])))
        yield line
