"""The strict check of PowerShell, which comes with the lab: users' own steps and the scripts that contain them pass it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from winboot.config.inventory import Machine
    from winboot.config.node_spec import NodeSpec
    from winboot.config.source import Complaint

GROUP: Final = "winboot.checks"  # entry points of other distributions: a Check


class Finding(Protocol):
    """One complaint of the strict check: its id, the place in the text (1-based), the fault and what to write instead."""

    @property
    def id(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def instead(self) -> str: ...


class Check(Protocol):
    """The strict check: the findings in a script."""

    def __call__(self, text: str, *, origin: str) -> Sequence[Finding]: ...


def strict_check() -> Check | None:
    """The strict check of the installed lab; None without the lab."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if "powershell" not in found:
        return None
    check: Check = found["powershell"].load()
    return check


def own_step_complaints(
    machines: Iterable[Machine], specs: Sequence[NodeSpec], *, strict: bool
) -> Iterator[Complaint]:
    """What the strict check finds in users' own steps and in each kind of rendered script that contains them.

    winboot's own steps pass the check before a release, so without own steps there is nothing to check. Without the lab,
    one complaint reports that the steps are unchecked: a warning, or an error with `strict`. Raises ScriptError where a
    script cannot be rendered.
    """
    from winboot.base.extras import how_to_install
    from winboot.config.source import Complaint

    scripts = _rendered(specs)
    paths = sorted({path for one in machines for step in one.profile.steps for path in step.files.values()})
    if not paths:
        return
    check = strict_check()
    if check is None:
        wrong = (
            "own steps not checked: the strict check of PowerShell needs winboot-lab, which is not installed"
        )
        expected = f"winboot-lab, {how_to_install(lab=True)}"
        yield Complaint(None, "steps", wrong, expected, level="error" if strict else "warning")
        return
    for path in paths:
        yield from silent_values(path, check)
    yield from _script_complaints(scripts, check)


def silent_values(path: Path, check: Check) -> Iterator[Complaint]:
    """Where an own step uses a function without output (the library's too) as a text."""
    from winboot.config.source import Complaint, Place
    from winboot.script.library import library_files

    library = "\n".join(library_files().values()) + "\n"
    above = library.count("\n")
    for finding in check(library + path.read_text(encoding="utf-8-sig"), origin=str(path)):
        if finding.id == "SilentValue" and finding.line > above:
            place = Place(str(path), finding.line - above, finding.column)
            yield Complaint(place, "", finding.message, expected=finding.instead, level="warning")


def _rendered(specs: Sequence[NodeSpec]) -> list[tuple[str, str]]:
    """Node name and script of each kind of node. Raises ScriptError where a script cannot be rendered."""
    from winboot.node.fleet import Options, prepare

    return [(task.spec.node.name, task.script.text) for task in prepare(specs, Options())]


def _script_complaints(scripts: Iterable[tuple[str, str]], check: Check) -> Iterator[Complaint]:
    """The findings in the rendered scripts, equal ones once."""
    from winboot.config.source import Complaint

    seen: set[str] = set()
    for node, script in scripts:
        for finding in check(script, origin=node):
            text = f"the rendered script, line {finding.line}: {finding.message}"
            # The complaint about the own step's file already has each SilentValue, with its place.
            if finding.id == "SilentValue" or text in seen:
                continue
            seen.add(text)
            yield Complaint(None, node, text, expected=finding.instead)
