"""The run that may change a machine: mutex, fence and journal in the state folder."""

import contextlib
import json
import re
from typing import Any

import pytest
from winboot_lab.engines import run_script
from winboot_lab.windows.accounts import Token
from winboot_lab.windows.acl import FULL, READ, WRITE, Acl, Rule
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.primitives.access import show_acl
from winboot_lab.windows.session import Session

from tests.steps.bench import Bench
from tests.steps.library import call
from tests.steps.test_trust import callers
from winboot.script.library import functions_for

STEP = "dynamic-ports"
FOLDER = r"C:\ProgramData\winboot"


@pytest.fixture
def user(bench: Bench) -> Token:
    bench.machine.accounts.add("alice", administrator=False)
    return bench.machine.accounts.token("alice")


def test_a_state_folder_that_is_a_link_is_not_followed(bench: Bench, user: Token):
    files = bench.machine.files
    files.make_directory(r"C:\elsewhere")
    before = files.need(r"C:\elsewhere")[1].acl.sddl()
    files.link(FOLDER, r"C:\elsewhere", "Junction", user)

    told = bench.run(STEP)
    assert told.ended == "failed"
    assert re.search("is a link to another place", told.events[-1]["problem"]["message"])
    assert files.need(r"C:\elsewhere")[1].acl.sddl() == before
    assert not files.list(r"C:\elsewhere")


@pytest.mark.parametrize("mode", ["Look", "Change"])
def test_a_state_folder_that_is_a_link_to_nothing_yet_is_not_followed_either(
    bench: Bench, user: Token, mode: str
):
    """The user that made the link can create its target afterwards."""
    bench.machine.files.link(FOLDER, r"C:\elsewhere", "Junction", user)

    told = bench.run(STEP, mode=mode)

    assert told.ended == "failed"
    assert "is a link to another place" in told.events[-1]["problem"]["message"]


@pytest.mark.parametrize("mode", ["Look", "Change"])
def test_an_account_that_may_replace_programdata_could_replace_the_state(
    bench: Bench, user: Token, mode: str
):
    """winboot reported it as another run that has taken over: it did not believe the fence."""
    bench.machine.files.need(r"C:\ProgramData")[1].acl.explicit.append(Rule(user.sid, FULL, inheritance=3))

    told = bench.run(STEP, mode=mode)

    assert told.ended == "failed"
    message = told.events[-1]["problem"]["message"]
    assert rf"C:\ProgramData belongs to {user.sid}, or can be changed there" in message
    assert not bench.machine.files.exists(FOLDER)


def test_a_file_that_another_account_put_into_the_state_folder_is_not_believed(bench: Bench, user: Token):
    bench.run(STEP)
    bench.machine.files.need(FOLDER)[1].acl.explicit.append(Rule(user.sid, WRITE))
    bench.machine.files.write(rf"{FOLDER}\former\..\reboot.json", b"{}", user)

    told = bench.run(STEP)
    assert told.ended == "failed"
    assert re.search(r"reboot.json belongs to .* not an administrator", told.events[-1]["problem"]["message"])


def test_an_ordinary_user_cannot_hold_up_a_run_with_a_mutex_of_that_name(bench: Bench, user: Token):
    squatter = bench.machine.session(token=user)
    squatter.invoke("mutex.create", {"name": r"Global\winboot", "initially_owned": True})

    assert bench.run(STEP).ended == "complete"


def test_a_mutex_that_an_ordinary_user_opens_to_all_is_not_believed(bench: Bench, user: Token):
    everybody = Acl("", "", protected=True, explicit=[Rule("S-1-1-0", 0x1F0001)])
    squatter = bench.machine.session(token=user)
    squatter.invoke(
        "mutex.create",
        {"name": r"Global\winboot", "initially_owned": True, "security": show_acl(everybody)},
    )

    assert bench.run(STEP).ended == "complete"
    assert bench.run(STEP).ended == "complete"


def test_an_ordinary_user_may_not_open_the_mutex_of_a_run(bench: Bench, user: Token):
    library = functions_for("Open-RunMutex")
    running = bench.machine.session("Administrator")
    run_script(running, f"{library}\n$held = Open-RunMutex\n", {}, emit=lambda stream, value: None)

    assert bench.machine.session("SYSTEM").invoke("mutex.open", {"name": r"Global\winboot"}).objects
    for primitive in ("mutex.create", "mutex.open"):
        told = bench.machine.session(token=user).invoke(primitive, {"name": r"Global\winboot"})
        assert [one.exception for one in told.errors] == ["System.UnauthorizedAccessException"]


def test_a_look_writes_nothing_and_a_change_raises_the_fence(bench: Bench):
    assert bench.look(STEP).events[0]["fence"] == 0
    assert bench.file(rf"{FOLDER}\fence.json") is None
    assert [bench.run(STEP).events[0]["fence"] for _ in range(2)] == [1, 2]
    assert bench.look(STEP).events[0]["fence"] == 2


def test_only_system_and_administrators_read_the_state_folder(bench: Bench):
    bench.run(STEP)
    rules = bench.machine.console.invoke("acl.get", {"path": FOLDER}).objects[0]["rules"]

    assert {rule["identity"] for rule in rules} == {"S-1-5-18", "S-1-5-32-544"}


def test_a_second_run_beside_the_first_waits_and_then_names_it(bench: Bench):
    bench.run(STEP, facts={"Holder": "ann@laptop"})
    other = bench.machine.session("Administrator")
    handle = other.invoke("mutex.create", {"name": r"Global\winboot"}).objects[0]["handle"]
    assert other.invoke("mutex.wait", {"handle": handle, "milliseconds": 0}).objects == ["acquired"]

    told = bench.run(STEP)

    assert told.ended == "held"
    assert "ann@laptop" in told.events[-1]["message"]
    other.close()
    assert bench.run(STEP).ended == "complete", "a holder that died lets go"


def test_an_error_before_the_first_step_gives_the_mutex_back(bench: Bench):
    """WMI may be broken, or a scanner holds the journal: the session lives on, and the next run is not kept out."""
    text = bench.text(STEP).replace("function New-RunEvent {", "function New-RunEvent { throw 'no WMI'", 1)
    session = bench.machine.session("Administrator")

    ended = run_script(session, text, {"Mode": "Change", "RunId": "r1"}, emit=lambda *_: None)

    assert ended.state == "failed"
    other = bench.machine.session("Administrator")
    handle = other.invoke("mutex.create", {"name": r"Global\winboot"}).objects[0]["handle"]
    assert other.invoke("mutex.wait", {"handle": handle, "milliseconds": 0}).objects == ["acquired"]


def test_what_keeps_a_run_from_beginning_is_the_reason_of_its_end(bench: Bench):
    text = bench.text(STEP).replace("function Enter-Run {", "function Enter-Run { throw 'no mutex'", 1)

    told = bench.run_text(text)

    problem = told.events[-1]["problem"]
    assert (told.ended, problem["id"]) == ("failed", "RunFailed")
    assert "no mutex" in problem["message"]


def test_a_run_that_takes_over_raises_the_fence_before_it_has_the_mutex(bench: Bench):
    """So that the older run sees it at its next step and lets go."""
    bench.run(STEP)
    other = bench.machine.session("Administrator")
    handle = other.invoke("mutex.create", {"name": r"Global\winboot"}).objects[0]["handle"]
    other.invoke("mutex.wait", {"handle": handle, "milliseconds": 0})

    told = bench.run(STEP, facts={"TakeOver": True, "Holder": "bob@desk"})

    assert told.ended == "held"
    assert bench.state("fence.json") | {"since": ""} == {
        "fence": 2,
        "run": "r1",
        "holder": "bob@desk",
        "since": "",
    }


def test_the_journal_holds_the_events_of_a_change(bench: Bench):
    told = bench.run(STEP)
    lines = (bench.file(rf"{FOLDER}\journal.jsonl") or b"").decode().splitlines()

    assert [json.loads(line)["event"] for line in lines] == told.events


def test_a_journal_that_is_full_gives_its_name_to_the_next(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke(
        "file.write", {"path": rf"{FOLDER}\journal.jsonl", "content": b"x" * 1_100_000}
    )
    bench.run(STEP)

    assert len(bench.file(rf"{FOLDER}\journal.1.jsonl") or b"") == 1_100_000
    assert len(bench.file(rf"{FOLDER}\journal.jsonl") or b"") < 10_000


def test_a_complete_undo_leaves_nothing_of_winboot_behind(bench: Bench):
    bench.run(STEP)
    bench.undo(STEP)

    assert not bench.machine.console.invoke("file.stat", {"path": FOLDER}).objects


def test_undo_puts_back_what_an_older_profile_changed(bench: Bench):
    """Former values are the node's own memory; the profile of today need not know the step."""
    bench.run("dynamic-ports", "firewall-rules")
    bench.undo("firewall-rules")

    assert bench.look(STEP).differences(STEP)["dynamic ports: tcp"][0] == "49152+16384"
    assert not bench.machine.console.invoke("file.stat", {"path": FOLDER}).objects


def test_a_note_that_a_power_cut_tore_costs_only_itself(bench: Bench):
    """What it was about was not changed; the notes after it stand on lines of their own."""
    bench.run("directories")
    torn = b'{"kind":"PortRange","key":"tcp","value":{"start":1}'
    bench.machine.console.invoke("file.write", {"path": rf"{FOLDER}\former\{STEP}.jsonl", "content": torn})

    assert bench.run(STEP).step(STEP)["state"] == "changed"
    assert bench.undo(STEP).step(STEP)["state"] == "changed"
    assert bench.look(STEP).differences(STEP)["dynamic ports: tcp"][0] == "49152+16384"


@pytest.mark.parametrize("owner", ["S-1-5-32-544", "S-1-5-18"], ids=["Administrators", "SYSTEM"])
def test_a_state_folder_of_ours_is_used_again(bench: Bench, owner: str):
    bench.run(STEP)
    bench.machine.files.need(FOLDER)[1].acl.owner = owner

    assert bench.run(STEP).ended == "complete"


def test_a_state_folder_that_another_account_made_is_not_believed(bench: Bench):
    """Its former values would be put back in the name of an administrator."""
    bench.run(STEP)
    bench.machine.files.need(FOLDER)[1].acl.owner = "S-1-5-21-1-2-3-1001"

    told = bench.run(STEP)

    assert told.ended == "failed"
    assert "which is not an administrator" in told.events[-1]["problem"]["message"]


def test_the_state_folder_belongs_to_administrators(bench: Bench):
    bench.run(STEP)

    assert bench.machine.files.need(FOLDER)[1].acl.owner == "S-1-5-32-544"


def test_an_event_of_the_mutex_name_costs_no_run(bench: Bench):
    """All kinds of objects share one space of names, and any user may be the first."""
    bench.machine.mutexes.squat(r"Global\winboot")

    assert bench.run(STEP).ended == "complete"
    assert bench.run(STEP).ended == "complete"
    assert bench.undo(STEP).ended == "complete"


def test_a_program_without_access_to_the_mutex_is_reported_and_continues(bench: Bench):
    broken = "function Open-RunMutex { throw 'no such object' }\nWait-MutexIfPossible -Seconds 1"

    found = call(bench, f"$script:Run.Mode = 'Look'; $script:Run += @{{ Id = 'r'; Sequence = 0 }}\n{broken}")

    assert (found.objects, found.id) == ([], "")
    assert {"Invoke-Detached", "Start-FailedService"} <= callers("Wait-MutexIfPossible")


def planted(bench: Bench, user: Token, name: str) -> None:
    """An ordinary user is quicker: the folder has ProgramData's rules, and the user writes a file."""
    bench.machine.files.make_directory(FOLDER)
    bench.machine.files.write(rf"{FOLDER}\{name}", b"theirs", user)


@pytest.mark.parametrize("name", ["logs.ps1", "fence.json", "mutex.txt"])
def test_a_file_that_came_while_the_folder_was_open_ends_the_run_before_its_first_step(
    bench: Bench, user: Token, name: str
):
    planted(bench, user, name)

    for told in (bench.look("log-rotation"), bench.run("log-rotation")):
        assert told.ended == "failed"
        assert rf"{FOLDER}\{name} belongs to {user.sid}" in told.events[-1]["problem"]["message"]
    assert bench.machine.tasks.find("logs", "\\winboot\\") is None


@pytest.mark.parametrize("share", [7, 0])
@pytest.mark.parametrize("kind", ["HardLink", "Junction"])
def test_a_link_in_the_state_folder_ends_the_run(bench: Bench, user: Token, kind: str, share: int):
    files = bench.machine.files
    files.make_directory(FOLDER)
    files.make_directory(r"C:\elsewhere")
    files.write(r"C:\elsewhere\x", b"x")
    files.link(
        rf"{FOLDER}\journal.jsonl", r"C:\elsewhere\x" if kind == "HardLink" else r"C:\elsewhere", kind, user
    )
    handle = files.hold(rf"{FOLDER}\journal.jsonl", READ, pid=4000, token=user, share=share)

    assert bench.run(STEP).ended == "failed"
    files.close(handle.handle)
    assert files.read(r"C:\elsewhere\x") == b"x"


def test_the_state_folder_never_has_the_rules_of_the_folder_above(bench: Bench, user: Token, monkeypatch):
    """A race at every operation: before each of winboot's calls the user tries to put a script there first."""
    invoke = Session.invoke
    got_in: list[str] = []

    def raced(self: Session, command: str, parameters: dict[str, Any], input: Any = ()) -> Any:
        done = invoke(self, command, parameters, input)
        with contextlib.suppress(Failure):
            bench.machine.files.write(rf"{FOLDER}\logs.ps1", b"theirs", user)
            got_in.append(command)
        return done

    monkeypatch.setattr(Session, "invoke", raced)
    told = bench.run("log-rotation")

    assert got_in == []
    assert told.states == {"log-rotation": "changed"}


def test_the_scripts_of_tasks_have_their_own_rules(bench: Bench):
    """They are moved into place: File.Replace would keep the rules of what was there."""
    bench.run("log-rotation", "postboot-task")

    scripts = [entry.name for entry in bench.machine.files.list(FOLDER) if entry.name.endswith(".ps1")]
    # The third is the library that is kept for the controller.
    assert len(scripts) == 3
    for name in scripts:
        acl = bench.machine.files.need(rf"{FOLDER}\{name}")[1].acl
        assert (acl.protected, acl.owner) == (True, "S-1-5-32-544")
        assert {rule.sid for rule in acl.rules} == {"S-1-5-18", "S-1-5-32-544"}
