"""A lab machine, and scripts on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from winboot_lab.engine.run import Ended, run_script
from winboot_lab.programs import Outside, install_programs
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.sockets import World


@dataclass
class Ran:
    """What a script said."""

    output: list[Any]
    errors: list[str]
    ended: Ended


@pytest.fixture(scope="module")
def session() -> Any:
    programs = Programs()
    install_programs(programs, Outside(World()))
    return Machine(programs=programs).session()


@pytest.fixture
def run(session: Any) -> Callable[..., Ran]:
    def run(text: str, **parameters: object) -> Ran:
        output: list[Any] = []
        errors: list[str] = []

        def emit(stream: str, value: Any) -> None:
            if stream == "output":
                output.append(value)
            elif stream == "error":
                errors.append(value.id)

        return Ran(output, errors, run_script(session, text, parameters, emit=emit))

    return run
