"""Three lines of the library took a command without output for an empty text, and no test could see it (issue 9).

Real PowerShell makes null of it in a cast and in an argument of a .NET method. Here each line is put back as it was, and the
lab must fail as the real engine did (reviews: D1, D2, D3).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from winboot_lab.engine.run import run_script
from winboot_lab.windows.machine import Machine

from tests.lab.site import only, problems
from tests.lab.test_networks import BY_NAME, a_site
from tests.matrix import first
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.test_library import answer, with_library

FLANNEL = ("flannel-host-gw", "flannel-vxlan")
# The call itself, and the function's answer for a file that is not there: either alone would be enough today.
SUBNET = (
    (
        '$match = [regex]::Match("$(Read-FileText -Path $Path)"',
        "$match = [regex]::Match((Read-FileText -Path $Path)",
    ),
    (
        "{ return $null }\n    [Text.Encoding]::UTF8.GetString($bytes)",
        "{ return }\n    [Text.Encoding]::UTF8.GetString($bytes)",
    ),
)
TOKEN = (
    "\"$(Read-Member -Object $User -Names 'token')\"",
    "([string](Read-Member -Object $User -Names 'token'))",
)
BOOT = (
    "$stamp = Get-BootStamp",
    "return [string](Read-Member -Object (Read-StateJson -Name 'boot.json') -Names 'boot_id')",
)


def put_back(script: str, *changes: tuple[str, str]) -> str:
    """The script as it was. Every mutation must hit, or the test says nothing."""
    for now, before in changes:
        assert script.count(now) == 1, f"not there (once): {now}"
        script = script.replace(now, before)
    return script


@pytest.mark.parametrize("profile", FLANNEL)
def test_the_look_of_a_bare_machine_fails_with_the_old_line_and_not_with_the_new_one(profile: str) -> None:
    bench = Bench(spec=a_spec_of(profile))
    text = bench.text("pod-network", mode="Look")

    assert bench.run_text(text, mode="Look").states == {"pod-network": "would-change"}
    problem = bench.run_text(put_back(text, *SUBNET), mode="Look").problem("pod-network")
    assert (problem.id, problem.message.partition(".")[0]) == ("LookFailed", "Value cannot be null")


@pytest.mark.parametrize("name", first(1, FLANNEL))
def test_the_old_line_fails_the_join_of_every_flannel_node(name: str, tmp_path: Path) -> None:
    def rewrite(script: str) -> str:
        return put_back(script, *SUBNET) if "$steps = @(" in script else script

    report = a_site(tmp_path, BY_NAME[name]).controller(rewrite=rewrite).join(ready=60.0)

    told = problems(report)
    assert any("failed: LookFailed: Value cannot be null" in one for one in told), told
    assert not only(report).ready


def test_a_machine_whose_log_was_cleared_names_its_boot_null_with_the_old_line() -> None:
    bench = Bench()
    bench.machine.events.clear("System")
    text = bench.text("computer-name", mode="Look")

    assert len(bench.run_text(text, mode="Look").events[0]["boot_id"]) == 36
    assert bench.run_text(put_back(text, BOOT), mode="Look").events[0]["boot_id"] is None


@pytest.mark.parametrize("user", [{"client-certificate": "x.pem"}, {"tokenFile": "t"}, {}])
def test_a_credential_without_a_token_is_a_call_on_null_with_the_old_line(user: dict[str, str]) -> None:
    call = f"Get-CredentialEnd -User (ConvertFrom-Json -InputObject '{json.dumps(user)}')"
    session = Machine().session()
    assert answer(session, call) == []

    ended = run_script(session, put_back(with_library(call), TOKEN), {}, emit=lambda _stream, _value: None)

    assert ended.error is not None
    assert ended.error.id == "InvokeMethodOnNull"
