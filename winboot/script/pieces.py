"""A rendered script is two pieces in one text: what is one machine's, and the library, the same bytes for every machine.

The line `BOUNDARY` is where the library begins. It is here, and not with the rendering, for code that only reads
scripts: the lab compiles a library once and a node's part for each node.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BOUNDARY: Final = (
    "#region Library: the same text for every node of a release, from this line to the end of the script."
)


class Pieces(NamedTuple):
    """The text of a script is `node` + `library`; each of the two is a complete PowerShell script by itself."""

    node: str
    library: str


def split(text: str) -> Pieces | None:
    """The two pieces of a rendered script; None for any other text.

    The library names the boundary once, in its first line: the last one in the text is the right one, whatever the
    values of the node's part say.
    """
    at = text.rfind(f"\n{BOUNDARY}\n")
    return None if at < 0 else Pieces(text[: at + 1], text[at + 1 :])
