"""The registry."""

from __future__ import annotations

import pytest
from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.door import Plain
from winboot_lab.windows.machine import Machine

from lab_windows.conftest import ask, one, refused

KEY = r"HKEY_LOCAL_MACHINE\SOFTWARE\Test"


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        ("String", "x", "x"),
        ("ExpandString", r"%SystemRoot%\x", r"%SystemRoot%\x"),
        ("DWord", 5, 5),
        ("DWord", 0xFFFFFFFF, -1),
        ("DWord", -2, -2),
        ("QWord", 2**40, 2**40),
        ("MultiString", ["a", "b"], ["a", "b"]),
        ("Binary", b"\x00\xff", b"\x00\xff"),
    ],
)
def test_values_keep_kind_and_content(machine: Machine, kind: str, given: Plain, read: Plain) -> None:
    """A DWord comes back signed."""
    ask(machine, "registry.create", key=KEY)
    ask(machine, "registry.set", key=KEY, name="V", kind=kind, value=given)
    value = one(machine, "registry.get", key=KEY, name="v")
    assert (value["name"], value["kind"], value["value"]) == ("V", kind, read)


def test_an_expand_string_comes_with_its_expansion(machine: Machine) -> None:
    """Raw and expanded side by side."""
    ask(machine, "registry.create", key=KEY)
    ask(machine, "registry.set", key=KEY, name="V", kind="ExpandString", value=r"%SystemRoot%\%none%")
    assert one(machine, "registry.get", key=KEY, name="V")["expanded"] == r"C:\Windows\%none%"


def test_values_are_listed_in_creation_order_and_keys_sorted(machine: Machine) -> None:
    """As Windows lists them."""
    for name in ("b", "A", "c"):
        ask(machine, "registry.create", key=f"{KEY}\\{name}")
        ask(machine, "registry.set", key=KEY, name=name, kind="String", value="")
    assert ask(machine, "registry.list", key=KEY) == ["A", "b", "c"]
    assert [v["name"] for v in ask(machine, "registry.values", key=KEY)] == ["b", "A", "c"]


def test_a_number_too_large_for_a_dword_is_refused(machine: Machine) -> None:
    """ArgumentException, as .NET has it."""
    ask(machine, "registry.create", key=KEY)
    problem = refused(machine, "registry.set", key=KEY, name="V", kind="DWord", value=2**32)
    assert problem.exception == "System.ArgumentException"


def test_a_key_with_subkeys_only_goes_with_recurse(machine: Machine) -> None:
    """InvalidOperation otherwise."""
    ask(machine, "registry.create", key=KEY + r"\a")
    assert refused(machine, "registry.delete-key", key=KEY).exception == "System.InvalidOperationException"
    ask(machine, "registry.delete-key", key=KEY, recurse=True)
    assert ask(machine, "registry.stat", key=KEY) == []


def test_current_control_set_is_the_first_one(machine: Machine) -> None:
    """A link, so that both names show the same key."""
    ask(machine, "registry.create", key=r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\x")
    assert ask(machine, "registry.stat", key=r"HKEY_LOCAL_MACHINE\SYSTEM\ControlSet001\Services\X") != []


def test_an_unknown_hive_is_refused_by_name(machine: Machine) -> None:
    """Not an error a script could catch."""
    with pytest.raises(Refusal, match="HKEY_PERFORMANCE_DATA"):
        machine.invoke("registry.stat", {"key": "HKEY_PERFORMANCE_DATA"})


def test_nothing_can_be_made_directly_below_a_hive(machine: Machine) -> None:
    """HKLM and HKU are closed."""
    assert refused(machine, "registry.create", key=r"HKEY_LOCAL_MACHINE\Mine").hresult == 0x80070057


def test_current_user_is_the_user_of_the_session(machine: Machine) -> None:
    """SYSTEM and Administrator have their own."""
    session = machine.session()
    ask(session, "registry.create", key=r"HKEY_CURRENT_USER\SOFTWARE\Mine")
    assert ask(session, "registry.stat", key=r"HKEY_CURRENT_USER\SOFTWARE\Mine") != []
    assert ask(machine, "registry.stat", key=r"HKEY_CURRENT_USER\SOFTWARE\Mine") == []


def test_what_a_policy_holds_is_put_back_at_once(machine: Machine) -> None:
    """A write succeeds and changes nothing."""
    machine.faults.policy(KEY, "V", "DWord", 1)
    ask(machine, "registry.set", key=KEY, name="V", kind="DWord", value=0)
    assert one(machine, "registry.get", key=KEY, name="V")["value"] == 1


def test_machine_variables_reach_new_sessions_but_services_only_after_a_reboot(machine: Machine) -> None:
    """services.exe keeps the variables of the boot."""
    ask(machine, "environment.set", name="HTTP_PROXY", value="http://p:3128", target="Machine")
    assert one(machine.session(), "environment.get", name="http_proxy") == "http://p:3128"
    assert "HTTP_PROXY" not in machine.services.environment
    machine.reboot()
    machine.settle(60)
    assert machine.services.environment["HTTP_PROXY"] == "http://p:3128"


def test_deleting_a_machine_variable_with_an_empty_text(machine: Machine) -> None:
    """As .NET Framework does."""
    ask(machine, "environment.set", name="A", value="1", target="Machine")
    ask(machine, "environment.set", name="A", value="", target="Machine")
    assert ask(machine, "environment.get", name="A", target="Machine") == []
