"""Asking the machine: its answers as PowerShell values, its problems as .NET exceptions."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.exceptions import DotNetException, WebException, Win32Exception, exception_class
from winboot_lab.engine.refusal import Refusal

Value = Any


def ask(scope: Any, primitive: str, **parameters: Any) -> list[Any]:
    """The objects a primitive answers; raises its first problem as the matching .NET exception."""
    result = scope.machine.invoke(primitive, parameters)
    if result.errors:
        raise failure_of(result.errors[0])
    objects: list[Any] = result.objects
    return objects


def ask_one(scope: Any, primitive: str, **parameters: Any) -> Any:
    """The one object a primitive answers, or None."""
    found = ask(scope, primitive, **parameters)
    return found[0] if found else None


def failure_of(problem: Any) -> DotNetException:
    """A machine's problem as the exception it names."""
    name = problem.exception if "." in problem.exception else f"System.{problem.exception}"
    kind = exception_class(name)
    if kind is None:
        for prefix in ("System.IO.", "System.Security.", "System.Net.", "System.ComponentModel."):
            kind = exception_class(prefix + problem.exception)
            if kind is not None:
                break
    if kind is None:
        raise Refusal("type", problem.exception, "an exception of the machine")
    made = kind.__new__(kind)
    inner = None if problem.inner is None else failure_of(problem.inner)
    DotNetException.__init__(made, problem.message, inner, hresult=problem.hresult)
    for name_, value in _EXTRA.items():
        if not hasattr(made, name_):
            setattr(made, name_, value)
    if isinstance(made, Win32Exception) and isinstance(problem.target, int):
        made.code = problem.target
    if isinstance(made, WebException) and isinstance(problem.target, str):
        made.status = problem.target
    return made


# What the constructors of some exception classes set; a failure built from a problem has it too.
_EXTRA: dict[str, Any] = {
    "parameter": None,
    "file_name": None,
    "code": 0,
    "id": "RuntimeException",
    "category": "NotSpecified",
    "target": None,
    "settled": False,
    "was_thrown_from_throw_statement": False,
    "crossing": None,
    "unwrapped": False,
    "response": None,
    "status": "UnknownError",
}
