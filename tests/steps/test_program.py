"""Programs are waited for with a bound, also while a child of theirs keeps their output open; Windows' own are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winboot_lab.windows.programs_api import Exit

from tests.steps.bench import Bench
from tests.steps.library import call

PATH = r"C:\Windows\System32\w32tm.exe"


@dataclass
class Canned:
    """A program that always ends like this."""

    ended: Exit

    def run(self, machine: Any, process: Any, argv: list[str], env: Mapping[str, str], stdin: bytes) -> Exit:
        """Its end."""
        return self.ended


def test_output_that_a_child_keeps_open_is_waited_for_with_a_bound(bench: Bench):
    bench.machine.programs.add("w32tm", Canned(Exit(0, b"ok", lingers=600)))

    answer = call(bench, f"Invoke-Program '{PATH}' -Seconds 20")

    assert answer.id == "winboot.ProgramHangs"
    assert PATH in answer.message
    assert bench.machine.uptime() < 300


def test_output_that_a_child_keeps_open_for_a_moment_costs_nothing(bench: Bench):
    bench.machine.programs.add("w32tm", Canned(Exit(0, b"ok", lingers=5)))

    (ended,) = call(bench, f"Invoke-Program '{PATH}' -Seconds 20").objects

    assert ended.get("Output") == "ok"


def test_what_a_program_of_windows_writes_is_in_the_code_page_of_its_consoles(bench: Bench):
    said = "Zugriff verweigert: \u00e4\u00f6\u00fc"
    key = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Nls\CodePage"
    bench.machine.registry.set(key, "OEMCP", "String", "437")
    bench.machine.programs.add("w32tm", Canned(Exit(0, said.encode("cp437"))))

    (ended,) = call(bench, f"Invoke-Program '{PATH}'").objects

    assert ended.get("Output") == said
