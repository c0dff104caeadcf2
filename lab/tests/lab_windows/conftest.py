"""A machine whose time passes only while a program waits, and small helpers to call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.door import Door, Plain, Problem, Record
from winboot_lab.windows.machine import Machine


def still() -> LabTime:
    """Lab time that stands between waits and costs nothing in them."""
    return LabTime(scale=0, real=False)


@pytest.fixture
def machine() -> Machine:
    """A Windows Server 2022 with a static address."""
    return Machine("WIN-1", time=still())


Ask = Callable[..., list[Any]]


def ask(door: Door, command: str, **parameters: Plain) -> list[Any]:
    """The objects a command gives; it must not fail."""
    result = door.invoke(command, parameters)
    assert result.errors == []
    return list(result.objects)


def one(door: Door, command: str, **parameters: Plain) -> Any:
    """The single object a command gives."""
    (found,) = ask(door, command, **parameters)
    return found


def refused(door: Door, command: str, **parameters: Plain) -> Problem:
    """The single error of a command that gives nothing else."""
    result = door.invoke(command, parameters)
    assert result.objects == []
    (problem,) = result.errors
    return problem


def shown(record: object, name: str) -> str | None:
    """A property by its text."""
    assert isinstance(record, Record)
    value = record.properties[name]
    return getattr(value, "text", None) or str(getattr(value, "value", value))
