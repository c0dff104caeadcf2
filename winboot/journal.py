"""What a run did, kept on the controller: one JSON-lines file a node, under the run's folder.

Everything a node said is here, noise included, so that "what happened at 03:12" has an answer after the terminal is
closed. Values known to be secret are replaced before a line is written (`Journal.hide`); scripts are named by digest.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from winboot.secret import Secret


def default_folder() -> Path:
    """`$WINBOOT_STATE`, else `$XDG_STATE_HOME/winboot`, else `~/.local/state/winboot`."""
    explicit = os.environ.get("WINBOOT_STATE")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "winboot"


class Journal:
    """Appends records to one file, each with a time stamp; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = threading.Lock()
        self._hidden: set[str] = set()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file: TextIO = os.fdopen(descriptor, "a", encoding="utf-8")
        self.path = path

    def hide(self, secret: Secret) -> None:
        """Never write this value, whoever says it."""
        value = secret.reveal()
        # Inside a JSON string the same value may stand escaped.
        self._hidden |= {value, json.dumps(value)[1:-1]}

    def write(self, kind: str, data: Mapping[str, object]) -> None:
        """Append one record: `{"at": seconds since the epoch, "kind": …, …data}`."""
        line = json.dumps({"at": round(time.time(), 3), "kind": kind, **data}, default=str)
        with self._lock:
            for value in self._hidden:
                line = line.replace(value, "***")
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file; further writes are an error."""
        self._file.close()
