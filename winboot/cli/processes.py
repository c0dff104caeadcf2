"""`join --processes`: the other processes of a run, from their start to their end."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from winboot.cli.targets import SIGNALS, Fleet, Part, run_context
from winboot.cli.trust import settled, settled_before

if TYPE_CHECKING:
    from winboot.config.demands import Kind
    from winboot.config.inventory import Machine
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.join import Options, RunContext
    from winboot.report.results import Report

# Windows has none.
_MASK: Final = getattr(signal, "pthread_sigmask", None)


@dataclass(frozen=True, slots=True)
class _Share:
    """What a process of a run needs. The parent has read the files and settled the questions about them."""

    command: str
    run: str
    specs: Sequence[NodeSpec]
    machines: Mapping[str, Machine]
    options: Options
    settled: frozenset[tuple[Path, Kind, str]]


def join_by_processes(
    count: int, specs: Sequence[NodeSpec], context: RunContext, options: Options, *, command: str
) -> Report:
    """Join by `count` processes more; see `winboot.operations.fleet.joining.join_in_processes`."""
    from winboot.node.fleet import Processes
    from winboot.operations.fleet.joining import join_in_processes
    from winboot.remote.transport.logins import Logins

    share = _Share(command, context.run, specs, context.machines, options, settled())

    def start(number: int, connection: Connection) -> BaseProcess:
        process = get_context("spawn").Process(
            target=_work, args=(connection, number, share), name=f"winboot-{number}", daemon=True
        )
        with _no_signal_yet():
            process.start()
        return process

    with Processes(count, start, context.listener, context.stop) as processes:
        return join_in_processes(specs, context, options, processes, Logins(), command)


@contextmanager
def _no_signal_yet() -> Iterator[None]:
    """A process that begins holds signals back until it can handle them: Ctrl-C reaches all of a terminal's processes."""
    if _MASK is None:
        yield
        return
    before = _MASK(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        _MASK(signal.SIG_SETMASK, before)


def _work(connection: Connection, number: int, share: _Share) -> None:
    """One process, until the one that has started it hangs up."""
    from winboot.node.fleet import Line
    from winboot.operations.fleet.joining import Joining

    settled_before(share.settled)
    line = Line(connection)
    fleet = Fleet(list(share.specs), {}, machines=share.machines)
    with run_context(share.specs, line, fleet=fleet, part=Part(share.run, number)) as (context, _):
        if _MASK is not None:
            _MASK(signal.SIG_UNBLOCK, SIGNALS)
        joining = Joining(share.specs, context, share.options, command=share.command)
        line.serve(joining, joining.findings, context.stop)
