"""Hold the lab against what the real PowerShell answered: `python -m winboot_lab.conformance FOLDER`.

FOLDER holds recordings, one JSON object a line in `<area>.jsonl`. Each case's script runs whole, on a machine of its own.
A case ends in one of three ways: `agreed`, `refused` (the lab said by name what it does not know), or `wrong`. Only the
last is a fault: the lab answered, and PowerShell answers otherwise.

A comparison covers the type and value of every output object, and the id, category and exception of every error. It covers
an error's message where the script wrote that text. It covers warnings, verbose and information messages. For a script
that does not parse, it covers the line of the first complaint.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from winboot_lab.engine.convert import to_string
from winboot_lab.engine.dotnet import Property
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord
from winboot_lab.engine.formatting import dotnet_text
from winboot_lab.engine.moments import DateTime, TimeSpan
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.run import Ended, run_script
from winboot_lab.engine.values import (
    NOTHING,
    NUMBER_CLASSES,
    EnumValue,
    Instance,
    PSCustomObject,
    Structured,
    _Mapping,
    enumerate_value,
    plain,
    type_of,
)
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import ParseErrors

Verdict = Literal["agreed", "refused", "wrong", "uncounted"]

CASE_SECONDS = 20
UNCOUNTED_AREAS = frozenset(("native",))
_LINUX_PROGRAM = re.compile(r"(?<![\w/.])/(?:usr/)?bin/")

# How Windows PowerShell says itself that something of PowerShell 7 does not exist.
NOT_THERE = frozenset(
    (
        "CommandNotFoundException",
        "NamedParameterNotFound",
        "PositionalParameterNotFound",
        "TypeNotFound",
        "MethodNotFound",
        "MethodCountCouldNotFindBest",
        "PropertyNotFoundForType",
        "PropertyNotFoundStrict",
        "CannotFindAppropriateCtor",
        "CannotConvertArgumentNoMessage",
        "CannotConvertArgument",
        "ParameterBindingException",
        "AmbiguousParameterSet",
        "AmbiguousParameter",
        "MissingArgument",
    )
)


@dataclass(frozen=True, slots=True)
class Case:
    """One recording."""

    area: str
    name: str
    data: Mapping[str, Any]

    @property
    def script(self) -> str:
        return str(self.data["script"])

    @property
    def meta(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.data.get("meta") or {}
        return found

    @property
    def on_windows(self) -> bool:
        return self.area.startswith("win-")

    @property
    def is_counted(self) -> bool:
        """Does the recording say what Windows PowerShell 5.1 answers?"""
        if self.area in UNCOUNTED_AREAS or _LINUX_PROGRAM.search(self.script):
            return False
        return not ({"differs-5.1", "wine-differs"} & set(self.meta))

    @property
    def seven_only(self) -> bool:
        return "ps7-only" in self.meta


@dataclass(slots=True)
class Answer:
    """What the lab made of a case."""

    output: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    verbose: list[str] = field(default_factory=list)
    information: list[str] = field(default_factory=list)
    parse_error: tuple[int, str] | None = None
    refusal: str | None = None
    crash: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A case's verdict, with the reason for one that is not `agreed`."""

    area: str
    name: str
    verdict: Verdict
    why: str = ""
    seconds: float = 0.0


# -- reading


OWN = Path(__file__).parents[1] / "conformance"
"""The project's recordings, with its notes; only in a checkout."""


def load(folder: Path, areas: Sequence[str] = (), *, noted: Path | None = None) -> list[Case]:
    """All recordings of a folder, or those of some areas.

    A case without a note takes the note of the same case (area, name and script) in `noted`: facts about 5.1 also hold for
    a copy of the recordings.
    """
    found = _read(folder, areas)
    if noted is None or noted.resolve() == folder.resolve():
        return found
    notes = {(case.area, case.name, case.script): case.meta for case in _read(noted, areas) if case.meta}
    return [_with_note(case, notes.get((case.area, case.name, case.script))) for case in found]


def _with_note(case: Case, note: Mapping[str, str] | None) -> Case:
    return case if note is None or case.meta else replace(case, data={**case.data, "meta": note})


def _read(folder: Path, areas: Sequence[str]) -> list[Case]:
    found: list[Case] = []
    for path in sorted(folder.glob("*.jsonl")):
        if areas and path.stem not in areas:
            continue
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    data = json.loads(line)
                    found.append(Case(data.get("area", path.stem), data["name"], data))
    return found


# -- running


def answer(case: Case, machine: Any) -> Answer:
    """Run a case on a machine."""
    made = Answer()
    try:
        parse(case.script)
    except ParseErrors as problem:
        made.parse_error = (problem.first.line, problem.first.id)
        return made

    # Objects are looked at when the script has ended, as the recorder did: it may change them after writing them.
    written: list[object] = []

    def emit(stream: str, value: object) -> None:
        if stream == "output":
            written.append(value)
        elif stream == "error":
            made.errors.append(error_shown(value))
        elif stream in ("warning", "verbose", "information"):
            getattr(made, "warnings" if stream == "warning" else stream).append(str(value))

    location = str(case.data.get("cwd") or r"C:\case")
    machine.invoke("file.make-directory", {"path": location})
    try:
        ended: Ended = run_script(machine, case.script, {}, emit=emit, location=location)
    except Refusal as refusal:
        made.refusal = str(refusal)
    except Exception:  # noqa: BLE001 - a crash of the lab is a finding about this case, not the end of the run
        made.crash = traceback.format_exc(limit=-6)
    else:
        if ended.error is not None:
            made.errors.append(error_shown(ended.error))
    try:
        made.output.extend(shown(value) for value in written)
    except Refusal as refusal:  # a property of what came out is not known
        made.refusal = str(refusal)
    return made


def shown(value: Any) -> dict[str, Any]:
    """An output object as the recordings write it."""
    if value is None or value is NOTHING:
        return {"type": None, "value": None}
    return {"type": type_of(value).name, "value": _value(plain(value))}


def _value(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, str):
        return str(value)
    if kind is bool:
        return "True" if value else "False"
    if kind is float and math.isfinite(value):
        return repr(value)
    if kind in NUMBER_CLASSES:
        return dotnet_text(value)
    if isinstance(value, DateTime):
        from winboot_lab.engine.formatting import format_date

        return format_date(value, "o")
    if isinstance(value, (EnumValue, TimeSpan)):
        return dotnet_text(value)
    if isinstance(value, (PSCustomObject, _Mapping, Structured)) or enumerate_value(value) is not None:
        return json.dumps(_as_json(value, 6), separators=(",", ":"))
    if isinstance(value, DotNetException):
        return value.message
    properties = _plain_properties(value)
    if properties and dotnet_text(value) == type_of(value).name:
        return json.dumps(_as_json(value, 6), separators=(",", ":"))
    return dotnet_text(value)


def _plain_properties(value: Any) -> dict[str, Property]:
    """The properties of a .NET object that can be read without a machine."""
    if not isinstance(value, Instance):
        return {}
    members = type_of(value).all_members()
    return {member.name: member for member in members if type(member) is Property and not member.effect}


def _as_json(value: Any, depth: int) -> Any:
    value = plain(value)
    if value is None or value is NOTHING:
        return None
    if type(value) is bool:
        return value
    if isinstance(value, str):
        return str(value)
    if type(value) in NUMBER_CLASSES:
        return float(value) if isinstance(value, float) or not isinstance(value, int) else int(value)
    if isinstance(value, EnumValue):
        return value.number
    if depth == 0:
        return to_string(value)
    if isinstance(value, _Mapping):
        return {to_string(key): _as_json(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (PSCustomObject, Structured)):
        return {name: _as_json(item, depth - 1) for name, item in value.items()}
    items = enumerate_value(value)
    if items is not None:
        return [_as_json(item, depth - 1) for item in items]
    properties = _plain_properties(value)
    if properties:
        return {name: _as_json(member.get(value), depth - 1) for name, member in properties.items()}
    return dotnet_text(value)


def error_shown(value: Any) -> dict[str, Any]:
    """An error record as the recordings write it."""
    if not isinstance(value, ErrorRecord):
        return {"id": None, "category": None, "exception": None, "message": str(value)}
    return {
        "id": value.id,
        "category": value.category,
        "exception": type_of(value.exception).name,
        "message": value.message,
    }


# -- comparing


def judge(case: Case, made: Answer) -> tuple[Verdict, str]:
    """The verdict on an answer, and why."""
    if case.seven_only and case.area not in UNCOUNTED_AREAS:
        return _judge_seven(case, made)
    verdict, why = _judge(case, made)
    if not case.is_counted:
        return "uncounted", f"{verdict}: {why}" if why else verdict
    return verdict, why


def _judge_seven(case: Case, made: Answer) -> tuple[Verdict, str]:
    """What only PowerShell 7 has must be refused, or be missing in PowerShell's own words."""
    if made.crash is not None:
        return "wrong", made.crash
    if made.refusal is not None or made.parse_error is not None:
        return "agreed", ""
    if any(str(error["id"]).partition(",")[0] in NOT_THERE for error in made.errors):
        return "agreed", ""
    if any(str(item["value"]).partition(",")[0] in NOT_THERE for item in made.output):
        return "agreed", ""
    wanted = case.data.get("output") or ()
    if any(
        got["type"] is None and want["type"] is not None
        for want, got in zip(wanted, made.output, strict=False)
    ):
        return "agreed", ""  # a variable or property that is not there is $null
    if "differs-5.1" in case.meta:
        return "uncounted", "answered as 5.1 would, in words only"
    return "wrong", "PowerShell 7 only, but the lab answered"


def _judge(case: Case, made: Answer) -> tuple[Verdict, str]:
    if made.crash is not None:
        return "wrong", made.crash
    expected_parse = case.data.get("parse_errors")
    if expected_parse:
        if made.parse_error is None:
            return (
                "wrong",
                f"accepted; expected {expected_parse[0]['id']} on line {expected_parse[0]['line']}",
            )
        if made.parse_error[0] != expected_parse[0]["line"]:
            return (
                "wrong",
                f"first parse error on line {made.parse_error[0]}, not {expected_parse[0]['line']}",
            )
        return "agreed", ""
    if made.parse_error is not None:
        return "wrong", f"does not parse: {made.parse_error[1]} on line {made.parse_error[0]}"
    if made.refusal is not None:
        return "refused", made.refusal
    for why in _differences(case, made):
        return "wrong", why
    return "agreed", ""


def _differences(case: Case, made: Answer) -> Iterator[str]:
    wanted = list(case.data.get("output") or ())
    for number, (want, got) in enumerate(zip(wanted, made.output, strict=False)):
        if not _same_object(case, want, got):
            yield f"output {number}: {_brief(got)}, expected {_brief(want)}{_errors_note(made)}"
    if len(wanted) != len(made.output):
        extra = made.output[len(wanted)] if len(made.output) > len(wanted) else None
        lost = wanted[len(made.output)] if len(made.output) < len(wanted) else None
        detail = f"; first extra {_brief(extra)}" if extra else f"; first missing {_brief(lost)}"
        yield f"{len(made.output)} output objects, expected {len(wanted)}{detail}{_errors_note(made)}"
    yield from _error_differences(case, made)
    for name in ("warnings", "verbose", "information"):
        told = list(case.data.get(name) or ())
        mine = getattr(made, name)
        if name == "information" and case.data.get("meta", {}).get("host"):
            continue
        if [_neutral(case, text) for text in told] != [_neutral(case, text) for text in mine]:
            yield f"{name}: {mine}, expected {told}"


def _errors_note(made: Answer) -> str:
    return (
        f" (errors: {[error['id'] + ': ' + error['message'][:100] for error in made.errors if error['id']]})"
        if made.errors
        else ""
    )


def _brief(item: Mapping[str, Any] | None) -> str:
    return "nothing" if item is None else f"{item['type']} {str(item['value'])[:300]!r}"


def _error_differences(case: Case, made: Answer) -> Iterator[str]:
    wanted = list(case.data.get("errors") or ())
    if case.data.get("terminated"):
        wanted.append(case.data["terminated"])
    for number, (want, got) in enumerate(zip(wanted, made.errors, strict=False)):
        for key in ("id", "category", "exception"):
            if _neutral(case, str(want[key])) != _neutral(case, str(got[key])):
                yield f"error {number}: {key} {got[key]!r}, expected {want[key]!r} ({got['message'][:120]!r})"
        if _own_text(want) and _neutral(case, want["message"]) != _neutral(case, got["message"]):
            yield f"error {number}: message {got['message']!r}, expected {want['message']!r}"
    if len(wanted) != len(made.errors):
        yield (
            f"{len(made.errors)} errors {[e['id'] for e in made.errors]}, expected {len(wanted)}"
            f" {[e['id'] for e in wanted]}"
        )


def _own_text(error: Mapping[str, Any]) -> bool:
    """Is the message the script's own (throw, Write-Error)?"""
    return error["category"] == "OperationStopped" or "WriteErrorException" in str(error["exception"])


def _same_object(case: Case, want: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    if want["type"] != got["type"]:
        return _same_json_number(case, want, got)
    mine, theirs = got["value"], want["value"]
    if mine == theirs:
        return True
    if want["type"] == "System.String":
        return _neutral(case, str(mine)) == _neutral(case, str(theirs))
    if want["type"] == "System.Double":
        return float(mine) == float(theirs)
    try:
        return _same_json(
            json.loads(mine), json.loads(theirs), ordered=want["type"] != "System.Collections.Hashtable"
        )
    except (TypeError, ValueError):
        return _neutral(case, str(mine)) == _neutral(case, str(theirs))


def _same_json_number(case: Case, want: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    """Whole numbers in JSON are Int64 in PowerShell 7 and Int32 in 5.1 (json/from-integer-types says so)."""
    return (
        "ConvertFrom-Json" in case.script
        and want["type"] == "System.Int64"
        and got["type"] == "System.Int32"
        and want["value"] == got["value"]
    )


def _same_json(mine: Any, theirs: Any, *, ordered: bool) -> bool:
    if isinstance(mine, dict) and isinstance(theirs, dict):
        if ordered and list(mine) != list(theirs):
            return False
        return mine.keys() == theirs.keys() and all(
            _same_json(mine[key], theirs[key], ordered=ordered) for key in mine
        )
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(
            _same_json(a, b, ordered=ordered) for a, b in zip(mine, theirs, strict=True)
        )
    return bool(mine == theirs)


def _neutral(case: Case, text: str) -> str:
    """Text without what only the recorder's platform made: line ends, and path separators off Windows."""
    text = text.replace("\r\n", "\n")
    return text if case.on_windows else text.replace("\\", "/")


# -- the suite


_machine: Any = None


def _prepare_worker() -> None:
    from winboot_lab.windows.machine import Machine

    global _machine  # noqa: PLW0603 - one machine for each worker process, copied by every fork
    _machine = Machine().session()
    run_script(_machine, '1 | ForEach-Object { "$_" }', {}, emit=lambda _stream, _value: None)
    # A fork's collector would touch, and so copy, every page of the worker.
    gc.freeze()


def check(case: Case) -> Result:
    """One case in a process of its own: a fork of the worker, so that the machine and all caches are fresh."""
    begun = time.perf_counter()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(case, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    seconds = time.perf_counter() - begun
    if not data:
        verdict: Verdict = "wrong" if case.is_counted else "uncounted"
        return Result(case.area, case.name, verdict, "the lab took too long, or its process died", seconds)
    found, why = json.loads(data)
    return Result(case.area, case.name, found, why, seconds)


def _child(case: Case, writer: int) -> None:
    """Run in the fork; never returns."""
    signal.alarm(CASE_SECONDS)
    code = 1
    try:
        verdict = judge(case, answer(case, _machine))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(json.dumps(verdict).encode())
        code = 0
    finally:
        os._exit(code)


def run_all(cases: Sequence[Case], *, processes: int = 2) -> list[Result]:
    """Every case, in order."""
    # Workers of a process of their own: each case forks one, which costs what is in it (a test runner has a GiB).
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare_worker) as pool:
        return list(pool.map(check, cases, chunksize=8))


def summary(results: Iterable[Result]) -> list[str]:
    """A line for each area and the closing line."""
    areas: dict[str, dict[str, int]] = {}
    for result in results:
        counts = areas.setdefault(result.area, dict.fromkeys(("agreed", "refused", "wrong", "uncounted"), 0))
        counts[result.verdict] += 1
    lines = []
    total = dict.fromkeys(("agreed", "refused", "wrong", "uncounted"), 0)
    for area, counts in areas.items():
        of = sum(counts.values()) - counts["uncounted"]
        extra = f"  ({counts['uncounted']} not counted)" if counts["uncounted"] else ""
        lines.append(
            f"{area:18} {counts['agreed']:4} agreed {counts['refused']:4} refused {counts['wrong']:4} wrong of {of}{extra}"
        )
        for key, number in counts.items():
            total[key] += number
    of = total["agreed"] + total["refused"] + total["wrong"]
    lines.append(
        f"conformance: {total['agreed']} agreed, {total['refused']} refused, {total['wrong']} wrong of {of}"
    )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m winboot_lab.conformance", description="hold the lab to recordings"
    )
    parser.add_argument("folder", type=Path, help="folder with <area>.jsonl files")
    parser.add_argument("--area", action="append", default=[], help="only this area (repeatable)")
    parser.add_argument("--case", help="only the case of this name; shows what it gave")
    parser.add_argument(
        "--show", choices=("wrong", "refused", "agreed", "uncounted"), action="append", default=[]
    )
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    cases = load(options.folder, options.area, noted=OWN)
    if options.case:
        return _show_case([case for case in cases if case.name == options.case])
    results = run_all(cases, processes=options.processes)
    for result in results:
        if result.verdict in options.show:
            print(f"{result.verdict} {result.area}/{result.name}: {result.why}")
    print("\n".join(summary(results)))
    return 0


def _show_case(cases: Sequence[Case]) -> int:
    _prepare_worker()
    for case in cases:
        print(f"# {case.area}/{case.name} {dict(case.meta) or ''}\n{case.script}\n--")
        made = answer(case, _machine)
        print("expected", json.dumps(case.data.get("output"))[:3000])
        print("got     ", json.dumps(made.output)[:3000])
        print(
            "expected errors",
            json.dumps([*(case.data.get("errors") or ()), case.data.get("terminated")])[:2000],
        )
        print("got errors     ", json.dumps(made.errors)[:2000])
        for extra in (made.refusal, made.crash, made.parse_error):
            if extra is not None:
                print(extra)
        print("=>", *judge(case, made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
