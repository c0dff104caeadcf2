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

from winboot.base.errors import UsageError
from winboot.base.private import open_to_append, own_folder
from winboot.base.secret import Secret
from winboot.report.line import json_text


class Journal:
    """Appends records to one file, each with a time stamp; safe to use from several threads.

    Raises UsageError where the file cannot be made. A record that cannot be written later (a full disk) is reported in
    `problem` and stops nothing.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._hidden: set[str] = set()
        self.problem = ""
        try:
            own_folder(path.parent)
            descriptor = open_to_append(path)
        except OSError as error:
            raise UsageError(
                f"the journal {path} cannot be written: {error.strerror}",
                hint="Set the environment variable WINBOOT_STATE to another folder.",
            ) from error
        self._file: TextIO = os.fdopen(descriptor, "a", encoding="utf-8")
        self.path = path

    def hide(self, secret: Secret) -> None:
        """Never write this value, whatever its source."""
        forms = {secret.reveal()}
        # Inside a JSON string it is escaped, and again where an event quotes a JSON text.
        for _ in range(3):
            forms |= {json.dumps(form, ensure_ascii=plain)[1:-1] for form in forms for plain in (True, False)}
        self._hidden |= forms

    def write(self, kind: str, data: Mapping[str, object]) -> None:
        """Append one record of this kind (see `report.shape`); `at` is in seconds since 1970."""
        line = json_text(kind, {"at": round(time.time(), 3), **data})
        with self._lock:
            for value in sorted(self._hidden, key=len, reverse=True):
                line = line.replace(value, "***")
            try:
                self._file.write(line)
                self._file.flush()
            except OSError as error:
                self.problem = f"winboot could not write all of the journal {self.path}: {error.strerror}"

    def close(self) -> None:
        """Close the file; further writes are an error."""
        try:
            self._file.close()
        except OSError as error:
            # What was not flushed is gone; `write` has tried it already.
            self.problem = f"winboot could not write all of the journal {self.path}: {error.strerror}"
