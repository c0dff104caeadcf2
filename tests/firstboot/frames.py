"""What the loader of `console` writes for some output."""

from __future__ import annotations

import base64


def frames(*lines: str) -> bytes:
    """Its start, a frame for each line, and its end."""
    pairs = [("start", "17"), *(("output", line) for line in lines), ("end", "{}")]
    return b"".join(
        f"#winboot:{kind}:{base64.b64encode(text.encode()).decode()}\n".encode() for kind, text in pairs
    )
