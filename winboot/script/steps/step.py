"""What a step is, as a value: its name, why it exists, what it builds on, and what it takes from the spec.

One name, four places: the Step here, `templates/powershell/steps/<name>.ps1.j2` (dashes become underscores), a test
in `tests/steps/` and a line in docs/steps.md, which is written from these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from winboot.config.node_spec import NodeSpec, StepSource

Side = Literal["node", "cluster"]


def nothing(spec: NodeSpec) -> Mapping[str, object]:
    """For a step whose template needs no value."""
    return {}


def always(spec: NodeSpec) -> bool:
    """For a step that every node has."""
    return True


def no_secrets(spec: NodeSpec) -> tuple[str, ...]:
    """For a step that works without any."""
    return ()


def no_files(spec: NodeSpec) -> Mapping[str, str]:
    """For a step that writes no file of which the whole text is known before the join."""
    return {}


def nothing_left(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    """For a step that leaves nothing behind but its files."""
    return {}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that must be so on a node.

    `inputs` gives the values that the template may name; each becomes a PowerShell literal. `secrets` gives the names
    (never values) of what a change reads from `$Secrets`. `files` gives path and text of what the step writes, for
    the preview; its template finds them by path in `files`. A cluster-side step has no template: the controller does
    it. `identity` is False for a step that takes nothing that distinguishes nodes and mints nothing. It may run on a
    machine of a warm pool, or while an image is made, before it is known which node it will be. `leaves` names what
    is on the machine after the join, in addition to those files, by kind ("services": names): the script opens with
    it.
    `essential` steps are part of every plan, also under --only. `source` is the text of a user's own step.
    """

    name: str
    why: str
    inputs: Callable[[NodeSpec], Mapping[str, object]] = nothing
    needs: tuple[str, ...] = ()
    wanted: Callable[[NodeSpec], bool] = always
    secrets: Callable[[NodeSpec], tuple[str, ...]] = no_secrets
    files: Callable[[NodeSpec], Mapping[str, str]] = no_files
    leaves: Callable[[NodeSpec], Mapping[str, Sequence[str]]] = nothing_left
    side: Side = "node"
    essential: bool = False
    identity: bool = True
    source: StepSource | None = None

    @property
    def stem(self) -> str:
        """The name as a file's stem."""
        return self.name.replace("-", "_")

    @property
    def template(self) -> str:
        """Where the template lies below templates/powershell."""
        return f"steps/{self.stem}.ps1.j2"


def custom(source: StepSource) -> Step:
    """A user's own PowerShell step as a winboot step."""
    return Step(name=source.name, why=source.why, needs=source.needs, source=source)
