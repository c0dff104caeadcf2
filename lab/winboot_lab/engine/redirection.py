"""Where redirected streams go: into the output, into a file, or nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from winboot_lab.engine.exceptions import IOException, UnauthorizedAccessException
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit, Streams, nowhere

Value = Any


@dataclass(frozen=True, slots=True)
class Target:
    """One redirection: of `stream` (0 is all), to the output (`merge`), to a file `path`, or to nowhere (no path)."""

    stream: int
    path: str | None
    merge: bool = False
    append: bool = False


_NAMES = {2: "error", 3: "warning", 4: "verbose", 5: "debug", 6: "information"}


@contextmanager
def redirected(scope: Scope, targets: Sequence[Target], out: Emit) -> Iterator[tuple[Emit, Streams]]:
    """The output and the streams while the redirections are in force; files are written when it ends."""
    from winboot_lab.engine.cmdlets.out_file import FileSink, open_failure

    streams = scope.session.streams.copy()
    inner = out
    files: list[FileSink] = []
    merges: list[int] = []
    for target in targets:
        if target.merge:
            merges.append(target.stream)
            continue
        sink: Emit = nowhere
        if target.path is not None:
            try:
                file = FileSink(scope, target.path, append=target.append)
            except (IOException, UnauthorizedAccessException) as failure:
                raise open_failure(failure, target.path) from None
            files.append(file)
            sink = file.write
        if target.stream in (0, 1):
            inner = sink
        if target.stream == 0:
            merges.append(0)
        elif target.stream != 1:
            setattr(streams, _NAMES[target.stream], sink)
    for stream in merges:
        for number, name in _NAMES.items():
            if stream in (0, number):
                setattr(streams, name, inner)
    yield inner, streams
    for file in files:
        file.close()
