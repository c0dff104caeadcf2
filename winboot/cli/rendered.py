"""Two renderings side by side: what `render --diff OLD` shows, and the hashes of `render --digest`."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winboot.base.errors import UsageError
from winboot.script.pieces import Pieces, split

if TYPE_CHECKING:
    from winboot.operations.join import PreparedNode

SIGNED = "\r\n# SIG # Begin signature block\r\n"


def digests(nodes: Sequence[PreparedNode]) -> Iterator[str]:
    """The library's SHA-256, then each node's: of its merged settings, and of its whole script."""
    from winboot.config.node_spec.digest import settings_digest

    wide = max((len(node.spec.node.name) for node in nodes), default=0)
    for library in sorted({node.script.library.sha256 for node in nodes}):
        yield f"{'':{wide}}  library   {library}"
    for node in nodes:
        yield f"{node.spec.node.name:{wide}}  settings  {settings_digest(node.spec)}"
        yield f"{'':{wide}}  script    {node.script.digest}"


def rendered_line(node: PreparedNode) -> str:
    """A node's script, its hashes and its files as a JSON line."""
    from winboot.config.node_spec.digest import settings_digest
    from winboot.report.line import json_line
    from winboot.report.shape import Rendered, RenderedFile

    script = node.script
    return json_line(
        Rendered(
            node=node.spec.node.name,
            settings=settings_digest(node.spec),
            script=script.digest,
            library=script.library.sha256,
            text=script.text,
            files=tuple(RenderedFile(one.path, one.text) for one in script.files),
        )
    )


def differences(nodes: Sequence[PreparedNode], old: Path) -> Iterator[str]:
    """The lines in which the nodes' parts differ from those of `old`, and once those of the library, with both hashes.

    `old` is a script, or a folder that `render --out` wrote. Raises UsageError where a script
    is missing or winboot did not write it.
    """
    libraries: dict[str, str] = {}
    for node in nodes:
        path = old / node.spec.node.name / "winboot.ps1" if old.is_dir() else old
        before = _pieces(path)
        libraries.setdefault(before.library, node.script.library.text)
        yield from _diff(before.node, node.script.node_part, str(path), node.spec.node.name)
    for before_text, now in libraries.items():
        if before_text != now:
            yield f"library: sha256 {_sha256(before_text)} -> {_sha256(now)}"
            yield from _diff(before_text, now, "library before", "library now")


def _pieces(path: Path) -> Pieces:
    try:
        text = path.read_bytes().decode("utf-8").partition(SIGNED)[0]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--diff {path} cannot be read: {error}",
            hint="Give a script, or a folder that `winboot render --out FOLDER` wrote.",
        ) from error
    found = split(text)
    if found is None:
        raise UsageError(
            f"--diff {path}: this is not a script of a compatible winboot version",
            hint="Give a script, or a folder that `winboot render --out FOLDER` wrote.",
        )
    return found


def _diff(before: str, now: str, old: str, new: str) -> Iterator[str]:
    yield from difflib.unified_diff(before.splitlines(), now.splitlines(), old, new, n=1, lineterm="")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
