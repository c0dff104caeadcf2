"""The driver on the node: look, change, look again; what stops a step, and the events that the controller gets."""

import json
from typing import Any

import pytest
from winboot_lab.engines import run_script
from winboot_lab.windows.machine import Machine

from winboot.script.library import templates_root

# Other files test the machine's identity and its stored state.
STUBS = """
function Get-DoubtNotice { }
function Assert-StateFolder { }
function Get-TextHash { param($Text) "hash of '$Text'" }
function Get-MachineIdentity { @{ BootId = 'b'; Uuid = 'u'; Build = '20348.1'; Name = 'WIN-1' } }
function Get-NodeIp { '10.0.1.11' }
function Read-VersionNote { }
function Read-ImageNote { }
function Update-LiveFact { }
function Get-Fence { if ($script:World.superseded) { 8 } else { 7 } }
function Test-Fence { (Get-Fence) -eq 7 }
function Get-HolderText { 'somebody else' }
function Write-Journal { param([string]$Line, $Waiting) }
function Save-RebootMark { param([string[]]$Steps) $script:World.rebootOf = $Steps -join ',' }
"""

LOOK = "Invoke-Look"
# The notes of a step, and the folder they are in, are other files' business, too.
UNDO = r"""
function Get-StatePath { param($Name) "C:\state\$Name" }
function Test-FormerValue { [IO.File]::Exists("C:\state\former\$($script:Run.Step).jsonl") }
function Clear-FormerValue { [IO.File]::Delete("C:\state\former\$($script:Run.Step).jsonl") }
function Clear-OldFile { }
function Remove-UnnotedThing { param($Things) }
function Remove-StateFolder { $script:World.gone = $true }
[void][IO.Directory]::CreateDirectory('C:\state\former')
foreach ($step in $steps) { [IO.File]::WriteAllText("C:\state\former\$($step.Name).jsonl", '{}') }
Invoke-Undo
$notes = [IO.Directory]::GetFiles('C:\state\former')
New-EventLine -Fields @{ event = 'left'; notes = $notes; gone = [bool]$script:World['gone'] }
"""
CHANGE = "Invoke-Step -Steps $steps -Drive { param($Step) Get-ChangeResult -Step $Step }"


@pytest.fixture(scope="module")
def session():
    return Machine().session()


def step(name: str, look: str = "", change: str = "", needs: str = "", secrets: str = "") -> str:
    return (
        f"@{{ Name = '{name}'; Needs = @({needs}); Secrets = @({secrets}); Values = {{ $subject = '{name}' }}"
        f"\nLook = {{ {look} }}\nChange = {{ {change} }} }}"
    )


# A step whose thing is either so or not, kept in $script:World.
def thing(name: str, needs: str = "", flags: str = "", after: str = "", secrets: str = "") -> str:
    look = f"if (-not $script:World['{name}']) {{ New-Difference -What 'thing' -Is $null -Want 'there' {flags} }}"
    return step(name, look, f"$script:World['{name}'] = $true; {after}", needs, secrets)


def drive(
    session: Any, how: str, *steps: str, world: str = "", facts: str = "", secrets: str = "", text: str = ""
) -> list[dict]:
    """Run the driver over steps and return its events."""
    library = "\n".join(
        (templates_root() / "lib" / name).read_text(encoding="utf-8")
        for name in ("difference.ps1", "drive.ps1", "preflight.ps1")
    )
    script = "\n".join(
        [
            "Set-StrictMode -Version 2.0",
            "$ErrorActionPreference = 'Stop'",
            library,
            STUBS,
            f"$script:World = @{{ superseded = $false; {world} }}",
            "$steps = @(\n" + "\n".join(steps) + "\n)",
            f"$script:Run = New-Run -Mode Look -Id r1 -Steps $steps -Secrets @{{{secrets}}} -Facts @{{{facts}}} -Text '{text}' "
            "-Plan @{ Winboot = '0.1.0'; Digest = 'd'; Library = 'l'; Modes = @('Look', 'Change') }",
            how,
        ]
    )
    lines: list[str] = []
    ended = run_script(session, script, {}, emit=lambda stream, value: lines.append(str(value)))
    assert ended.state == "completed", getattr(ended.error, "message", "")
    return [json.loads(line) for line in lines]


def states(events: list[dict]) -> dict[str, str]:
    return {event["step"]: event["state"] for event in events if event["event"] == "step"}


def one(events: list[dict], name: str) -> dict:
    return next(event for event in events if event.get("step") == name)


def test_a_look_reports_differences_at_once_and_the_rest_in_one_batch_at_the_end(session):
    events = drive(session, LOOK, thing("a"), thing("b"), thing("c"), world="a = $true; c = $true")

    assert [event.get("step", event["event"]) for event in events] == ["run", "b", "a", "c", "done"]
    assert states(events) == {"a": "ok", "b": "would-change", "c": "ok"}
    assert events[-1]["reason"] == "complete"


def test_events_are_numbered_and_carry_the_run(session):
    events = drive(session, LOOK, thing("a"))

    assert {event["seq"] for event in events} == {1, 2, 3}
    assert {event["run"] for event in events} == {"r1"}
    assert {event["v"] for event in events} == {1}


def test_a_look_does_not_block_on_what_would_change(session):
    """So that the plan of a bare machine is complete."""
    events = drive(session, LOOK, thing("a"), thing("b", needs="'a'"))

    assert states(events) == {"a": "would-change", "b": "would-change"}


def test_a_look_that_fails_is_reported_with_its_reason_and_blocks_what_builds_on_it(session):
    events = drive(
        session, LOOK, step("a", "throw 'no way'"), thing("b", needs="'a'"), thing("c", needs="'b'")
    )

    assert states(events) == {"a": "failed", "b": "blocked", "c": "blocked"}
    assert one(events, "a")["problem"]["id"] == "LookFailed"
    assert one(events, "a")["problem"]["message"] == "no way"
    assert one(events, "b")["problem"]["id"] == "NeedsStep"


def test_a_problem_of_our_own_keeps_its_name_and_its_hint(session):
    events = drive(session, LOOK, step("a", "Stop-Step -Id 'DiskSpace' -Message 'full' -Hint 'make room'"))

    problem = one(events, "a")["problem"]
    assert (problem["id"], problem["message"], problem["hint"]) == ("DiskSpace", "full", "make room")


def test_a_look_that_emits_anything_else_is_a_mistake_in_the_step(session):
    events = drive(session, LOOK, step("a", "'hello'"))

    assert states(events) == {"a": "failed"}
    assert "not a difference: hello" in one(events, "a")["problem"]["message"]


def test_two_differences_of_one_name_are_a_mistake_in_the_step(session):
    twice = "New-Difference -What 'x' -Is '1' -Want '2'; New-Difference -What 'x' -Is '1' -Want '3'"

    message = one(drive(session, LOOK, step("a", twice)), "a")["problem"]["message"]

    assert "names two differences alike: x" in message


def test_a_difference_keeps_null_apart_from_an_empty_text(session):
    look = "New-Difference -What 'x' -Is $null -Want ''; New-Difference -What 'y' -Is @('a', 'b') -Want $true"
    (x, y) = one(drive(session, LOOK, step("a", look)), "a")["differences"]

    assert (x["is"], x["want"]) == (None, "")
    assert (y["is"], y["want"]) == ("a, b", "true")


def test_what_a_policy_holds_is_reported_and_not_counted(session):
    events = drive(session, LOOK, thing("a", flags="-Policy"))

    assert states(events) == {"a": "ok"}
    assert one(events, "a")["differences"][0]["policy"] is True


def test_texts_beyond_ascii_arrive_whole_in_ascii_lines(session):
    events = drive(
        session, LOOK, step("a", "New-Difference -What 'ü' -Is $null -Want ([string][char]0x20AC)")
    )

    assert one(events, "a")["differences"][0]["what"] == "ü"
    assert one(events, "a")["differences"][0]["want"] == "€"


def test_a_change_is_changed_when_the_second_look_finds_nothing(session):
    events = drive(session, CHANGE, thing("a"), thing("b", needs="'a'"), world="b = $true")

    assert states(events) == {"a": "changed", "b": "ok"}
    assert one(events, "a")["differences"][0]["what"] == "thing", "the event names the change"


def test_a_change_that_changes_nothing_is_failed(session):
    events = drive(
        session, CHANGE, step("a", "New-Difference -What 'x' -Is '1' -Want '2'"), thing("b", needs="'a'")
    )

    assert states(events) == {"a": "failed", "b": "blocked"}
    assert one(events, "a")["problem"]["id"] == "StillDifferent"


def test_a_change_that_throws_is_failed_and_the_independent_steps_go_on(session):
    events = drive(session, CHANGE, thing("a", after="throw 'broken'"), thing("b"))

    assert states(events) == {"a": "failed", "b": "changed"}
    assert one(events, "a")["problem"]["message"] == "broken"


def test_stray_output_of_a_change_is_a_mistake_in_the_step(session):
    events = drive(session, CHANGE, thing("a", after="'noise'"))

    assert states(events) == {"a": "failed"}


def test_one_restart_serves_all_that_ask_and_what_builds_on_them_waits(session):
    events = drive(
        session,
        CHANGE,
        thing("a", after="New-Reboot"),
        thing("b", after="New-Reboot"),
        thing("c", needs="'a'"),
        thing("d"),
    )

    assert states(events) == {"a": "changed", "b": "changed", "c": "blocked", "d": "changed"}
    assert one(events, "c")["problem"]["id"] == "PendingReboot"
    assert events[-2]["steps"] == ["a", "b"]
    assert events[-1]["reason"] == "reboot"


def test_a_difference_that_a_restart_mends_may_stay_until_then(session):
    look = "New-Difference -What 'feature' -Is 'EnablePending' -Want 'Enabled' -Reboot"
    events = drive(session, CHANGE, step("a", look, "New-Reboot"))

    assert states(events) == {"a": "changed"}


@pytest.mark.parametrize("flag", ["-Reboot", "-Disrupts", "-Disturbs"])
def test_a_live_node_is_not_disturbed_without_a_drain(session, flag: str):
    events = drive(session, CHANGE, thing("a", flags=flag), thing("b"), facts="NodeIsLive = $true")

    assert states(events) == {"a": "blocked", "b": "changed"}
    assert one(events, "a")["problem"]["id"] == "NeedsDrain"


def test_a_drained_node_is_changed(session):
    events = drive(
        session, CHANGE, thing("a", flags="-Disrupts"), facts="NodeIsLive = $true; Drained = $true"
    )

    assert states(events) == {"a": "changed"}


def test_a_missing_secret_is_named_before_anything_is_changed(session):
    events = drive(session, CHANGE, thing("a", secrets="'token', 'other'"), secrets="other = 1")

    assert states(events) == {"a": "failed"}
    assert one(events, "a")["problem"]["id"] == "SecretMissing"
    assert "token" in one(events, "a")["problem"]["message"]
    assert "other" not in one(events, "a")["problem"]["message"]


def test_a_step_without_differences_needs_no_secret(session):
    events = drive(session, CHANGE, thing("a", secrets="'token'"), world="a = $true")

    assert states(events) == {"a": "ok"}


def test_a_run_that_was_taken_over_stops_before_its_next_step(session):
    events = drive(session, CHANGE, thing("a", after="$script:World.superseded = $true"), thing("b"))

    assert states(events) == {"a": "changed"}
    assert (events[-1]["reason"], events[-1]["message"]) == ("superseded", "somebody else")


def test_a_step_that_continues_detached_ends_the_pipeline(session):
    detached = "[pscustomobject]@{ kind = 'detached'; id = 'a-1'; timeout_s = 300 }"
    events = drive(session, CHANGE, thing("a", after=detached), thing("b"))

    assert states(events) == {}
    assert [(event["event"], event.get("id")) for event in events] == [("detached", "a-1"), ("done", None)]
    assert events[-1]["reason"] == "detached"


def test_blocks_see_the_values_of_their_own_step_only(session):
    events = drive(
        session,
        LOOK,
        step("a", "New-Difference -What $subject -Is $null -Want 'x'; $subject = 'spoilt'"),
        step("b", "New-Difference -What $subject -Is $null -Want 'x'"),
    )

    assert [one(events, name)["differences"][0]["what"] for name in "ab"] == ["a", "b"]


def test_a_value_may_have_any_name(session):
    """Those of the driver's own parameters, too, which are typed."""
    values = "$Step = 1; $Block = 'x'; $Name = 'y'; $subject = 'a'"
    a = step("a", "New-Difference -What $subject -Is $null -Want 'x'").replace("$subject = 'a'", values)

    assert one(drive(session, LOOK, a, thing("b")), "a")["differences"][0]["what"] == "a"


def test_facts_read_once_are_read_again_after_a_change(session):
    """A change makes them untrue."""
    look = (
        "$cache = $script:Run.Cache; if (-not $cache.ContainsKey('n')) { $cache['n'] = $script:World.n }\n"
        "Compare-Wanted -What 'n' -Is $cache['n'] -Want 2"
    )
    events = drive(session, CHANGE, step("a", look, "$script:World.n = 2"), world="n = 1")

    assert states(events) == {"a": "changed"}


def undo(name: str, block: str = "", needs: str = "") -> str:
    """A step that can be taken back."""
    return step(name, needs=needs).removesuffix("}") + f"\nUndo = {{ {block} }} }}"


def left(events: list[dict]) -> tuple[list[str], bool]:
    """After an undo: the steps whose former values are still noted, and whether the state folder is gone."""
    told = next(event for event in events if event["event"] == "left")
    return [path.rpartition("\\")[2].removesuffix(".jsonl") for path in told["notes"]], told["gone"]


def test_an_undo_goes_from_the_last_step_to_the_first_and_leaves_no_notes(session):
    events = drive(session, UNDO, undo("a"), undo("b", needs="'a'"))

    assert list(states(events).items()) == [("b", "changed"), ("a", "changed")]
    assert left(events) == ([], True)


def test_what_others_still_build_on_is_not_taken_back(session):
    events = drive(session, UNDO, undo("a"), undo("b", "throw 'held'", needs="'a'"), undo("c"))

    assert states(events) == {"c": "changed", "b": "failed", "a": "blocked"}
    assert one(events, "a")["problem"]["message"] == "what builds on it was not taken back: b"
    assert left(events) == (["a", "b"], False)


def test_an_undo_that_continues_detached_keeps_its_notes_until_it_is_done(session):
    detached = "[pscustomobject]@{ kind = 'detached'; id = 'b-1'; timeout_s = 300 }"

    events = drive(session, UNDO, undo("a"), undo("b", detached))

    assert (states(events), left(events)) == ({}, (["a", "b"], False))


@pytest.mark.parametrize(
    "signature", ["", "\r\n# SIG # Begin signature block\r\n# MIIF\r\n# SIG # End signature block"]
)
def test_a_signed_copy_is_the_same_text(session, signature: str):
    events = drive(session, LOOK, thing("a"), text=f"text{signature}")

    assert events[0]["script"] == "hash of 'text'"
