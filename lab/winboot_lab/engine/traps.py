"""What happens when a statement fails."""

from __future__ import annotations

from collections.abc import Sequence

from winboot_lab.engine.errors import as_runtime, find_handler
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord, RuntimeException
from winboot_lab.engine.flow import BreakLoop, ContinueLoop
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit, Trap
from winboot_lab.language.syntax import Node


def failed(scope: Scope, failure: DotNetException, node: Node, out: Emit) -> None:
    """A statement failed: hand the error on (raise) or report it and let the next statement run.

    This is the heart of PowerShell's error flow: inside a `try` everything travels outwards; a `trap` may take it;
    `$ErrorActionPreference` decides the rest; an uncaught `throw` always ends the script.
    """
    session, runtime = scope.session, as_runtime(failure)
    record = session.locate(runtime, node)
    session.remember(record)
    session.question = False
    activation = session.stack[-1]
    traps = activation.traps[-1] if activation.traps else None
    if not traps and (session.in_try or runtime.settled):
        raise runtime
    action = None
    if traps:
        action = _trap(scope, traps, runtime, record, out)
    if action is None:
        if traps and (session.in_try or runtime.settled):
            raise runtime
        action = scope.preference("erroractionpreference", "Continue")
        trapped = False
    else:
        trapped = True
    runtime.settled = True
    if action == "SilentlyContinue":
        return
    if action == "Stop" or (runtime.was_thrown_from_throw_statement and not trapped):
        raise runtime
    session.streams.error(record)


def _trap(
    scope: Scope,
    traps: Sequence[Trap],
    runtime: RuntimeException,
    record: ErrorRecord,
    out: Emit,
) -> str | None:
    """Run the trap that takes the failure; what it decided, or None when no trap takes it."""
    session = scope.session
    clauses = [None if trap.types is None else [trap.types(scope)] for trap in traps]
    found = find_handler(runtime, clauses)
    if found is None:
        return None
    number, seen = found
    before = scope.variables.get("_")
    saved = before.value if before is not None else None
    scope.put("_", seen)
    activation = session.stack[-1]
    activation.traps.append(None)
    outer, session.in_try = session.in_try, False
    try:
        traps[number].body(scope, out)
    except ContinueLoop as jump:
        if jump.label:
            raise
        return "SilentlyContinue"
    except BreakLoop as jump:
        if jump.label:
            raise
        return "Stop"
    finally:
        session.in_try = outer
        activation.traps.pop()
        if before is None:
            scope.variables.pop("_", None)
        else:
            before.value = saved
    return scope.preference("erroractionpreference", "Continue") if not outer else "Stop"
