"""`-o yaml`: each JSON line of a command as a YAML document."""

from __future__ import annotations

import io
import json
import sys
from typing import TextIO

import yaml


class YamlLines(io.TextIOBase):
    """Standard output of a command that writes JSON lines."""

    def __init__(self, under: TextIO) -> None:
        self.under = under
        self._begun = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream below."""
        return self.under.encoding

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Pass on each line that is complete."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            document = yaml.safe_dump(json.loads(line), sort_keys=False, allow_unicode=True)
            self.under.write(f"---\n{document}")
        return len(text)

    def leave(self) -> None:
        """Standard output is the stream below again, unless something else has replaced it."""
        if sys.stdout is self:
            sys.stdout = self.under

    def flush(self) -> None:
        """Flush the stream below."""
        self.under.flush()
