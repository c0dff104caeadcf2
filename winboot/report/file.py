"""The file of `--report`: written when the run begins and whenever nodes have ended, so that a killed winboot leaves
a report of what is known. Each time as a whole.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from winboot.base.errors import ReportNotWritten, UsageError
from winboot.base.private import make_private_folder, replace_privately
from winboot.report.data import json_lines, junit
from winboot.report.page import html
from winboot.report.results import NodeReport, Report

FORMS: Final = {".html": html, ".htm": html, ".json": json_lines, ".jsonl": json_lines, ".xml": junit}
# A report of a thousand nodes takes seconds to render: at most one part in so many of the run's time goes into it.
SHARE: Final = 10
# How long the end of a run waits for a report that is just being written, in seconds.
_LAST_S: Final = 5.0


class ReportFile:
    """Writes reports to one file, 0600, in the form that its name shows."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where no report could be written there, before any work is done."""
        if path.suffix.lower() not in FORMS:
            raise UsageError(
                f"--report {path}: unknown report format {path.suffix!r}",
                hint="Use .html, .json, .jsonl or .xml.",
            )
        self.path = path
        self._form = FORMS[path.suffix.lower()]
        self._current: Callable[[], Report] | None = None
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._turn = threading.Lock()
        self._try()

    def _try(self) -> None:
        """See that a file can be made there, without touching the one that there may be."""
        try:
            make_private_folder(self.path.parent)
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "this path is a folder")
            probe = self.path.with_name(f".{self.path.name}.probe")
            replace_privately(probe, "")
            probe.unlink()
        except OSError as error:
            raise UsageError(
                f"--report {self.path} cannot be written: {error.strerror}", hint="Give another file."
            ) from error

    def keep(self, current: Callable[[], Report], ended: NodeReport | None = None) -> None:
        """What `current` gives has changed: write it soon. Called from the threads of nodes, which wait for nothing."""
        self._current = current
        self._changed.set()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """While this lasts, a thread of its own writes what `keep` receives."""
        thread = threading.Thread(target=self._follow, name="report", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.end()
            thread.join(_LAST_S)

    def end(self) -> None:
        """From now on only `save` writes; what is being rendered comes too late."""
        self._ended.set()
        self._changed.set()

    def save(self, report: Report) -> None:
        """Write the whole report. Raises ReportNotWritten; the file is then what it was."""
        text = self._form(report)
        try:
            with self._turn:
                replace_privately(self.path, text)
        except OSError as error:
            raise ReportNotWritten(
                f"the report {self.path} was not written: {_reason(error)}",
                hint="The work on the nodes is done as shown. Free disk space or give another file; `winboot plan "
                "--report FILE` writes a report of the nodes' present state.",
            ) from error

    def _follow(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._ended.is_set() or self._current is None:
                return
            clock = time.monotonic()
            self._save_early(self._form(self._current()))
            self._ended.wait((time.monotonic() - clock) * SHARE)

    def _save_early(self, text: str) -> None:
        """Never in place of the last report. A disk may have space again at the end: winboot reports nothing
        before."""
        with self._turn, suppress(OSError):
            if not self._ended.is_set():
                replace_privately(self.path, text)


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({error.strerror})"
    return error.strerror or str(error)
