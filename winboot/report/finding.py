"""One thing that was found before anything is changed."""

from __future__ import annotations

from typing import Annotated, Literal

from winboot.report.line import Line, says

Level = Literal["error", "warning"]


class Finding(Line, frozen=True, tag="preflight"):
    """A finding before anything is changed."""

    # A finding that was skipped stops no node and stays in the report.
    where = "`preflight`, `plan`, `join`, `repair`"
    id: Annotated[str, says("the stable id of the check, which `--skip-preflight` takes")]
    level: Annotated[Level, says("an error stops a join")]
    reason: Annotated[str, says("what is wrong")]
    fix: Annotated[str, says("what to do next")]
    nodes: Annotated[tuple[str, ...], says("the nodes of the finding; empty for the whole cluster")] = ()
    skipped: Annotated[bool, says("whether `--skip-preflight` skips this finding")] = False

    @property
    def stops(self) -> bool:
        """Whether a join must not continue."""
        return self.level == "error" and not self.skipped


class CloudFinding(Finding, frozen=True, tag="cloud"):
    """A finding about a node and its cloud."""

    where = "`cloud check`"
