"""What a function of a module knows of its caller's preferences: only what is global."""

from typing import Any

import pytest
from winboot_lab.engine.run import Ended, run_script

MISSING = "New-NetRoute -DestinationPrefix 10.9.0.0/24 -NextHop 10.0.0.1 -InterfaceIndex 9999"


def run(session: Any, text: str) -> tuple[list[object], Ended]:
    """What a script said on all streams, and how it ended; in a scope of its own, as over WinRM."""
    said: list[object] = []
    ended = run_script(
        session, text, {}, emit=lambda stream, value: said.append((stream, str(value))), local_scope=True
    )
    return said, ended


def test_a_script_of_its_own_scope_does_not_stop_the_functions_of_modules(session):
    said, ended = run(session, f"$ErrorActionPreference = 'Stop'; {MISSING}; 'went on'")

    assert ended.state == "completed"
    assert [stream for stream, _ in said] == ["error", "output"]


@pytest.mark.parametrize(
    "preference",
    ["$global:ErrorActionPreference = 'Stop'", "$script:ErrorActionPreference = 'Stop'"],
)
def test_the_global_preference_does(session, preference):
    said, ended = run(session, f"{preference}; {MISSING}; 'went on'")

    assert ended.state == "failed"
    assert said == []


def test_what_the_call_says_counts_more(session):
    said, _ = run(
        session, f"$global:ErrorActionPreference = 'Stop'; {MISSING} -ErrorAction SilentlyContinue; 'on'"
    )

    assert said == [("output", "on")]


def test_a_compiled_cmdlet_heeds_its_caller(session):
    said, ended = run(session, "$ErrorActionPreference = 'Stop'; Get-Service -Name absent; 'went on'")

    assert ended.state == "failed"
    assert said == []
