"""How PowerShell turns failures into error records, and which catch clause takes which of them.

Every failure inside the engine is a `DotNetException`. On its way out of a statement it becomes a `RuntimeException` (the
one `$_` in a bare catch shows); `record_of` gives the ErrorRecord that goes with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from winboot_lab.engine.dotnet import DotNetType
from winboot_lab.engine.exceptions import (
    ActionPreferenceStopException,
    CmdletInvocationException,
    CommandNotFoundException,
    DotNetException,
    ErrorRecord,
    PSInvalidCastException,
    RuntimeException,
    as_record,
)
from winboot_lab.engine.values import type_of

Value = Any


def as_runtime(failure: DotNetException) -> RuntimeException:
    """A failure as a RuntimeException: itself, or one around it that shares its record."""
    if isinstance(failure, RuntimeException):
        return failure
    if failure.record is None and not hasattr(failure, "error_record"):
        failure.record = ErrorRecord(failure, failure.type_name, "OperationStopped", None)
    record = as_record(failure)
    outer = RuntimeException(failure.message, record.id, record.category, record.target, failure)
    if isinstance(failure, PSInvalidCastException):
        # A failed conversion shows the outer exception; the conversion error is its InnerException.
        outer.record = copy_record(record, outer)
    else:
        outer.record = record
    return outer


def record_of(failure: RuntimeException) -> ErrorRecord:
    """The error record of a runtime exception, made on first use."""
    return as_record(failure)


def copy_record(record: ErrorRecord, exception: DotNetException | None = None) -> ErrorRecord:
    """The same record once more, perhaps about another exception."""
    made = ErrorRecord(exception or record.exception, record.id, record.category, record.target)
    made.activity = record.activity
    made.reason = record.reason
    made.target_name = record.target_name
    made.target_type = record.target_type
    made.details = record.details
    made.invocation = record.invocation
    made.script_stack_trace = record.script_stack_trace
    return made


def stop_exception(record: ErrorRecord) -> ActionPreferenceStopException:
    """What a non-terminating error becomes under -ErrorAction Stop."""
    made = ActionPreferenceStopException(
        'The running command stopped because the preference variable "ErrorActionPreference" or common parameter is set to'
        f" Stop: {record}",
        record.id,
        record.category,
        record.target,
    )
    made.record = record
    made.settled = True  # it ends the script wherever no `try` takes it, whatever the preference says outside
    return made


def cmdlet_failure(record: ErrorRecord) -> RuntimeException:
    """What ThrowTerminatingError raises: the record is as given, its exception stands inside."""
    inner = record.exception
    made = CmdletInvocationException(inner.message, record.id, record.category, record.target, inner)
    made.record = record
    return made


def is_wrapped_by_cmdlets(failure: RuntimeException) -> bool:
    """Whether a cmdlet that ran a script block hands a failure of the block on in an exception of its own.

    As ManageInvocationException does (PowerShell, engine/CommandProcessorBase.cs): all but a script's `throw`, an error that
    a preference made terminating, and what another cmdlet has wrapped already.
    """
    kept = (CmdletInvocationException, ActionPreferenceStopException)
    return not (isinstance(failure, kept) or failure.was_thrown_from_throw_statement)


def cmdlet_wrapping(
    failure: RuntimeException, invocation: Any, activity: str, suffix: str
) -> CmdletInvocationException:
    """A failure as the cmdlet hands it on: the id ends with the cmdlet, and the place is the cmdlet's.

    CmdletInvocationException's constructor copies the record and gives it the cmdlet's InvocationInfo, which
    FullyQualifiedErrorId reads (PowerShell, utils/ExecutionExceptions.cs, engine/ErrorPackage.cs).
    """
    record = copy_record(record_of(failure), failure)
    record.id = f"{record.id.partition(',')[0]},{suffix}"
    record.activity = record.activity or activity
    record.invocation = invocation
    made = CmdletInvocationException(failure.message, record.id, record.category, record.target, failure)
    made.record = record
    made.settled = failure.settled
    return made


def command_not_found(name: str) -> CommandNotFoundException:
    """The error of a name that is no command."""
    return CommandNotFoundException(
        f"The term '{name}' is not recognized as the name of a cmdlet, function, script file, or operable program. "
        "Check the spelling of the name, or if a path was included, verify that the path is correct and try again.",
        target=name,
    )


def undefined_variable(path: str) -> RuntimeException:
    """Strict mode's complaint about a variable without a value."""
    return RuntimeException(
        f"The variable '${path}' cannot be retrieved because it has not been set.",
        "VariableIsUndefined",
        "InvalidOperation",
        path,
    )


# -- which clause takes it


def find_handler(
    failure: RuntimeException, clauses: Sequence[Sequence[DotNetType] | None]
) -> tuple[int, ErrorRecord] | None:
    """The clause (its number) that takes a failure, and the record it gets as `$_`.

    A clause is a list of types, or None for a bare `catch`. The inner exception is offered first, which is why
    `catch [IO.FileNotFoundException]` works for a failing .NET method; a bare catch gets the outer one.
    """
    candidates: list[DotNetException] = []
    if failure.inner is not None:
        candidates.append(failure.inner)
    candidates.append(failure)
    record = as_record(failure)
    if isinstance(failure, ActionPreferenceStopException):
        candidates.append(record.exception)
        if record.exception.inner is not None:
            candidates.append(record.exception.inner)
    elif isinstance(failure, CmdletInvocationException) and failure.inner and failure.inner.inner:
        # What a script block raised stands one level deeper (FindMatchingHandler in PowerShell's MiscOps.cs).
        candidates.append(failure.inner.inner)
    for candidate in candidates:
        found = _best_clause(type_of(candidate), clauses)
        if found is not None:
            stopped = isinstance(failure, ActionPreferenceStopException) and candidate is not failure
            if stopped and isinstance(candidate, RuntimeException):
                # PowerShell's own exception brings its own record, which knows no command.
                return found, copy_record(candidate.error_record, candidate)
            return found, copy_record(record, candidate)
    for number, clause in enumerate(clauses):
        if clause is None:
            return number, record
    return None


def _best_clause(wanted: DotNetType, clauses: Sequence[Sequence[DotNetType] | None]) -> int | None:
    """The first clause that names the type exactly, else the first that names a base of it."""
    inherited: int | None = None
    for number, clause in enumerate(clauses):
        for offered in clause or ():
            if offered is wanted:
                return number
            if inherited is None and wanted.is_a(offered):
                inherited = number
    return inherited
