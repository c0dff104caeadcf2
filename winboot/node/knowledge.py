"""Ask a node's own kubelet and kube-proxy what they know: an overlay for versions and builds that no table has.

The script is `templates/powershell/_knowledge.ps1.j2`; it changes nothing, and neither program starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from winboot.base.clean import clean
from winboot.base.errors import ProtocolError, UsageError
from winboot.base.foreign import Malformed, decoded
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
    """The sections of an overlay (empty where the programs know what the data knows), and the questions."""

    sections: Mapping[str, Any]
    programs: tuple[Said, ...]


class _Answer(msgspec.Struct, frozen=True):
    """One line of the script: about one program, either what it prints or what it refuses."""

    program: Component
    problem: str = ""
    version: str = ""
    help: str = ""
    flags: frozenset[str] = frozenset()
    gates: frozenset[str] = frozenset()


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_PROGRAMS: Final[tuple[Component, ...]] = ("kubelet", "kube-proxy")


def learn(spec: NodeSpec, transport: Transport, compat: Compat) -> Learned:
    """What the programs of a node know otherwise than the data. Raises TransportError, ScriptFailed; UsageError where a program
    is not there or answers in another way."""
    script = knowledge_script(spec)
    programs: dict[Component, tuple[Said, Refused]] = {}
    for component, answer in _answers(spec, transport, script, {}).items():
        try:
            programs[component] = (said(component, answer.version, answer.help), Refused())
        except ValueError as error:
            raise UsageError(f"{spec.node.name}: {clean(str(error))}") from None
    asked = {one: _first_question(compat, programs[one][0]) for one in programs}
    _ask(spec, transport, script, programs, asked)
    turned = {
        one: {"flags": [], "gates": gates_to_turn(compat, told, refused.gates)}
        for one, (told, refused) in programs.items()
    }
    _ask(spec, transport, script, programs, turned)
    return Learned(overlay(compat, programs), tuple(told for told, _ in programs.values()))


def _first_question(compat: Compat, one: Said) -> dict[str, list[str]]:
    return {"flags": list(flags_to_ask(compat, one).values()), "gates": gates_to_ask(compat, one)}


def _ask(
    spec: NodeSpec,
    transport: Transport,
    script: str,
    programs: Mapping[Component, tuple[Said, Refused]],
    asked: Mapping[Component, Mapping[str, list[str]]],
) -> None:
    """Ask by name, and note what is refused. A refusal of something else counts for nothing."""
    ask: dict[str, object] = {name: dict(one) for name, one in asked.items()}
    for component, answer in _answers(spec, transport, script, ask).items():
        refused = programs[component][1]
        # pflag's words (its flag.go); another refusal is one of the value in the question.
        unknown = {_flag_of(one) for one in answer.flags if "unknown flag" in one}
        refused.flags |= unknown & {_flag_of(one) for one in asked[component]["flags"]}
        refused.gates |= answer.gates & set(asked[component]["gates"])


def _flag_of(argument: str) -> str:
    """`config` of `--config=x`, and of pflag's message `--config=x: unknown flag: --config`."""
    return argument.partition("=")[0].removeprefix("--")


def _answers(
    spec: NodeSpec, transport: Transport, script: str, ask: Mapping[str, object]
) -> dict[Component, _Answer]:
    """One answer for each program; lines of another form are warnings of the machine."""
    found: dict[Component, _Answer] = {}
    for line in transport.run(script, {"Ask": dict(ask)}, {}):
        try:
            answer = decoded(_ANSWER, line)
        except Malformed:
            continue
        if answer.problem:
            raise UsageError(clean(answer.problem))
        found[answer.program] = answer
    missing = [one for one in _PROGRAMS if one not in found]
    if missing:
        raise ProtocolError(
            f"{spec.node.name}: the machine sent no answer about {' and '.join(missing)}",
            hint="Check for other programs in the sessions of winboot's account, such as a profile script.",
            node=spec.node.name,
        )
    return found
