"""What a script on the real engine asks of the lab, answered: members of stand-ins, commands, primitives."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from winboot_lab.engine import members, overloads
from winboot_lab.engine.binder import Argument
from winboot_lab.engine.bridge import to_door, to_value
from winboot_lab.engine.cmdlet import CmdletStage
from winboot_lab.engine.commands import all_cmdlets
from winboot_lab.engine.door import failure_of
from winboot_lab.engine.dotnet import DotNetType, Method, Reference, Slot, lookup
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord, RuntimeException
from winboot_lab.engine.objects import Invocation
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.stages import Line, run_stage
from winboot_lab.engine.types.files import decoded, read_bytes
from winboot_lab.engine.values import NULL_STRING_VALUE, ByteArray, type_of
from winboot_lab.pwsh.wire import DECLARED, Cabinet, failure_facts

Value = Any
Json = Any

_ADDED = ("LinkType", "Target")


class Answers:
    """One run's: its session, and the objects it has been given."""

    def __init__(self, top: Scope) -> None:
        self._session = top.session
        self._scope = top
        self.cabinet = Cabinet()
        self._buffers: dict[int, list[ByteArray]] = {}
        self._kinds: dict[str, Callable[[Json], Json]] = {
            "command": self._command,
            "primitive": self._primitive,
            "script": self._script,
            "text": self._text,
            "same": self._same,
            "object": self._object,
            "new": self._new,
            "static": self._static,
            "call": self._call,
            "invoke": self._invoke,
            "get": self._get,
            "set": self._set,
            "read": self._read,
            "write": self._write,
        }

    def answer(self, question: Json) -> Json:
        """The answer to one question. Raises Refusal, MachineStopped and Interrupted; other failures are the answer."""
        # The lab's own engine does this before each statement; a real one does not report statements.
        self._session.checkpoint()
        try:
            return self._kinds[question["ask"]](question)
        except DotNetException as failure:
            return {"throw": failure_facts(_cause(failure), self.cabinet)}

    # -- members

    def _new(self, question: Json) -> Json:
        kind = _type(question["on"])
        method = Method("new", [kind.constructors.overloads[question["overload"]]])
        given, references = self._given(question)
        made = overloads.call(method, (), given, self._scope, kind)
        return {
            "value": {"t": "System.Int64", "v": str(self.cabinet.number(made))},
            **self._changed(given, references),
        }

    def _static(self, question: Json) -> Json:
        kind = _type(question["on"])
        member = kind.statics[question["member"].lower()]
        return self._run(member, (), question, kind)

    def _call(self, question: Json) -> Json:
        value = self._target(question)
        member = type_of(value).find(question["member"])
        return self._run(member, (value,), question, type_of(value))

    def _run(self, member: Any, leading: tuple[Value, ...], question: Json, owner: DotNetType) -> Json:
        # A subclass may have other overloads than the class whose stand-in was called: then try all of them.
        number = question["overload"]
        found = member.overloads
        method = Method(member.name, [found[number]]) if number < len(found) and not leading else member
        given, references = self._given(question)
        result = overloads.call(method, leading, given, self._scope, owner)
        self._remember(result, given)
        return {"value": self.cabinet.to_json(result), **self._changed(given, references)}

    def _remember(self, result: Value, given: list[Value]) -> None:
        """Remember the buffer of a task that reads: the task fills it later, and its result carries it."""
        buffers = [value for value in given if isinstance(value, ByteArray)]
        if buffers and "Task" in type_of(result).name:
            self._buffers[self.cabinet.number(result)] = buffers

    def _filled(self, question: Json) -> Json:
        buffers = self._buffers.get(_number(question))
        return {"buffers": [base64.b64encode(one).decode() for one in buffers]} if buffers else {}

    def _invoke(self, question: Json) -> Json:
        given, references = self._given(question)
        result = members.invoke_member(self._target(question), question["member"], given, self._scope)
        return {
            "value": self.cabinet.to_json(result),
            **self._changed(given, references),
            **self._filled(question),
        }

    def _get(self, question: Json) -> Json:
        kind = _type(question["on"])
        return {
            "value": self.cabinet.to_json(
                members.get_member(kind, question["member"], self._scope, static=True)
            )
        }

    def _set(self, question: Json) -> Json:
        given, _ = self._given(question)
        members.set_member(_type(question["on"]), question["member"], given[0], self._scope, static=True)
        return {"value": None}

    def _read(self, question: Json) -> Json:
        value = members.get_member(self._target(question), question["member"], self._scope)
        return {"value": self.cabinet.to_json(value), **self._filled(question)}

    def _write(self, question: Json) -> Json:
        given, _ = self._given(question)
        members.set_member(self._target(question), question["member"], given[0], self._scope)
        return {"value": None}

    def _text(self, question: Json) -> Json:
        return {"value": str(members.invoke_member(self._target(question), "ToString", [], self._scope))}

    def _same(self, question: Json) -> Json:
        given, _ = self._given(question)
        return {"value": bool(members.invoke_member(self._target(question), "Equals", given, self._scope))}

    def _target(self, question: Json) -> Value:
        return self.cabinet[_number(question)]

    def _given(self, question: Json) -> tuple[list[Value], list[tuple[int, list[Value]]]]:
        """The arguments; those of `ref` parameters as references, with their cells as a second list."""
        values = [self.cabinet.from_json(argument) for argument in question["arguments"]]
        cells: list[tuple[int, list[Value]]] = []
        for place, slot in enumerate(self._slots(question)[: len(values)]):
            if slot.by_reference:
                cell = [values[place]]
                cells.append((place, cell))
                values[place] = _reference(cell)
            elif values[place] is None and slot.type_name in ("string", "System.String"):
                # The engine has converted already: what is null now was meant to be, and is no empty text.
                values[place] = NULL_STRING_VALUE
        return values, cells

    def _slots(self, question: Json) -> Sequence[Slot]:
        """The parameters of the overload that the engine has chosen."""
        on, kind = question["on"], question["ask"]
        if kind == "new":
            return tuple(_type(on).constructors.overloads[question["overload"]].slots)
        if kind not in ("static", "call"):
            return ()
        name = question["member"].lower()
        member = _type(on).statics[name] if kind == "static" else type_of(self._target(question)).find(name)
        if not isinstance(member, Method) or question["overload"] >= len(member.overloads):
            return ()
        return tuple(member.overloads[question["overload"]].slots)

    def _changed(self, given: list[Value], references: list[tuple[int, list[Value]]]) -> Json:
        """What the other side must take back: references, and buffers that may have been filled."""
        changed = {str(place): self.cabinet.to_json(cell[0]) for place, cell in references}
        changed.update(
            (str(place), self.cabinet.to_json(value))
            for place, value in enumerate(given)
            if isinstance(value, ByteArray)
        )
        return {"changed": changed} if changed else {}

    # -- the machine

    def _object(self, question: Json) -> Json:
        target = self.cabinet.from_json(question["on"])
        given, _ = self._given(question)
        result = target.call(self._scope, question["member"], given)
        return {
            "value": {"a": [self.cabinet.to_json(result), self.cabinet.to_json(target)], "t": "System.Object"}
        }

    def _primitive(self, question: Json) -> Json:
        given = self.cabinet.from_json(question["arguments"][0])
        result = self._session.machine.invoke(
            question["on"], {str(name): to_door(value) for name, value in given.items()}
        )
        if result.errors:
            raise failure_of(result.errors[0])
        return {
            "value": {
                "a": [self.cabinet.to_json(to_value(one)) for one in result.objects],
                "t": "System.Object",
            }
        }

    def _script(self, question: Json) -> Json:
        stat = self._session.machine.invoke("file.stat", {"path": question["on"]})
        return {"value": decoded(read_bytes(self._scope, question["on"]), None) if stat.objects else None}

    def _command(self, question: Json) -> Json:
        name = question["on"]
        bound = {str(key): value for key, value in self.cabinet.from_json(question["arguments"][0]).items()}
        signature = self._session.machine.commands.get(name.lower())
        if signature is None:
            return self._own(name, bound)
        if bound.pop("WhatIf", False):
            return {"objects": [], "errors": [], "warnings": []}
        known = {parameter.name.lower(): parameter.name for parameter in signature.parameters}
        given = {known[key.lower()]: to_door(value) for key, value in bound.items() if key.lower() in known}
        result = self._session.machine.invoke(signature.name, given)
        return {
            "objects": [self.cabinet.to_json(to_value(one)) for one in result.objects],
            "warnings": list(result.warnings),
            "errors": [
                {
                    "id": problem.id,
                    "category": problem.category,
                    "exception": failure_facts(failure_of(problem)),
                    "target": self.cabinet.to_json(to_value(problem.target)),
                    "terminating": problem.terminating,
                }
                for problem in result.errors
            ],
        }

    def _own(self, name: str, bound: dict[str, Value]) -> Json:
        """A cmdlet of the lab's engine, run there."""
        command = all_cmdlets()[name.lower()]
        known = {parameter.key for parameter in command.spec.parameters if not parameter.common}
        arguments = [
            Argument(key, value, f"-{key}", splatted=True)
            for key, value in bound.items()
            if key.lower() in known
        ]
        found: list[Value] = []
        problems: list[Json] = []
        streams = self._session.streams
        self._session.streams = streams.copy()
        self._session.streams.error = lambda record: problems.append(self._problem(record, terminating=False))
        try:
            run_stage(
                CmdletStage(
                    self._scope,
                    command,
                    arguments,
                    found.append,
                    Line(),
                    Invocation(None, command),
                    expects_input=False,
                )
            )
        except RuntimeException as failure:
            problems.append(self._problem(failure.error_record, terminating=True))
        finally:
            self._session.streams = streams
        return {"objects": [self._decorated(one) for one in found], "warnings": [], "errors": problems}

    def _decorated(self, value: Value) -> Json:
        """A kept object with what types.ps1xml adds to its type and the library reads."""
        made = self.cabinet.to_json(value)
        if isinstance(made, dict) and "i" in made:
            added = {name: members.find_property(value, name, self._scope) for name in _ADDED}
            made["more"] = [
                [name, self.cabinet.to_json(one[0])] for name, one in added.items() if one is not None
            ]
        return made

    def _problem(self, record: ErrorRecord, *, terminating: bool) -> Json:
        return {
            "id": record.id,
            "category": record.category,
            "exception": failure_facts(record.exception),
            "target": self.cabinet.to_json(record.target),
            "terminating": terminating,
        }


def _type(name: str) -> DotNetType:
    found = DECLARED.get(name) or lookup(name)
    if found is None:
        raise Refusal("type", name)
    return found


def _cause(failure: DotNetException) -> DotNetException:
    """What the real engine wraps itself: it makes its own MethodInvocationException."""
    while isinstance(failure, RuntimeException) and failure.inner is not None:
        failure = failure.inner
    return failure


def _reference(cell: list[Value]) -> Reference:
    return Reference(lambda: cell[0], lambda new: cell.__setitem__(0, new))


def _number(question: Json) -> int:
    """Which object a question is about."""
    on = question["on"]
    return int(on["i"] if "i" in on else on["v"])
