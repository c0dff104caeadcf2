"""What holds for any input: command lines, addresses of files, and snapshots."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from winboot_lab.windows.firewall import FirewallRule, read_rule, rule_text
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.processes import split_arguments
from winboot_lab.windows.scm import FailureActions, unpack_failure_actions
from winboot_lab.windows.snapshot import diff

from lab_windows.conftest import still

_WORDS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), max_size=5)


def quoted(word: str) -> str:
    """A word as the rules of CommandLineToArgvW want it."""
    if word and not any(c in word for c in ' \t"'):
        return word
    out, slashes = '"', 0
    for char in word:
        if char == "\\":
            slashes += 1
            continue
        out += "\\" * (slashes * 2 + 1 if char == '"' else slashes) + char
        slashes = 0
    return out + "\\" * (slashes * 2) + '"'


@given(_WORDS)
def test_words_that_are_quoted_properly_arrive_as_they_were(words: list[str]) -> None:
    """Backslashes, quotes, spaces and empty words included."""
    line = " ".join([r'"C:\a b\x.exe"', *map(quoted, words)])
    assert split_arguments(line)[1:] == words


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**32 - 1)), max_size=5),
)
def test_failure_actions_survive_packing(reset: int, actions: list[tuple[int, int]]) -> None:
    """Whatever the numbers."""
    wanted = FailureActions(reset, tuple(actions))
    assert unpack_failure_actions(wanted.packed()) == wanted


@given(st.binary(max_size=64))
def test_damaged_failure_actions_are_no_crash(raw: bytes) -> None:
    """The manager reads what is there."""
    unpack_failure_actions(raw)


_PORTS = st.lists(st.integers(1, 65535).map(str), max_size=3)


@given(
    st.sampled_from(["Inbound", "Outbound"]),
    st.sampled_from(["TCP", "UDP"]),
    _PORTS,
    st.lists(st.ip_addresses(v=4).map(str), max_size=3),
    st.booleans(),
)
def test_a_firewall_rule_survives_the_registry(
    direction: str, protocol: str, ports: list[str], addresses: list[str], enabled: bool
) -> None:
    """Written as one line and read back."""
    rule = FirewallRule(
        "id",
        "a rule",
        enabled=enabled,
        direction="Inbound" if direction == "Inbound" else "Outbound",
        protocol=protocol,
        local_ports=ports,
        remote_addresses=addresses,
    )
    assert read_rule("id", rule_text(rule, 20348)) == rule


_NAMES = st.text("abAB.", min_size=1, max_size=3).filter(lambda n: n.rstrip(". "))


@settings(max_examples=30)
@given(st.lists(st.tuples(_NAMES, st.binary(max_size=8)), max_size=6))
def test_files_follow_one_rule_of_names(writes: list[tuple[str, bytes]]) -> None:
    """Names that differ in case or in trailing dots are one file; the bytes of all files are counted right."""
    machine = Machine("WIN-1", time=still())
    machine.files.make_directory(r"C:\t")
    before = machine.files.volumes["C:"].used
    expected: dict[str, bytes] = {}
    for name, content in writes:
        machine.files.write(rf"C:\t\{name}", content)
        expected[name.rstrip(". ").lower()] = content
    found = {e.name.lower(): e.node.content for e in machine.files.list(r"C:\t")}
    assert found == expected
    assert machine.files.volumes["C:"].used - before == sum(map(len, expected.values()))


def test_a_snapshot_is_plain_json_and_equal_ones_do_not_differ() -> None:
    """So that it can be stored and compared anywhere."""
    machine = Machine("WIN-1", time=still())
    first = machine.snapshot()
    assert json.loads(json.dumps(first)) == first
    assert diff(first, machine.snapshot()) == []
