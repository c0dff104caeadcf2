"""One node, driven: passes, restarts, detached runs, lost connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from winboot.base.errors import (
    BadEvent,
    Busy,
    ConnectionLost,
    ExcessiveOutput,
    IncompleteRun,
    Interrupted,
    LoginRefused,
    NodeFailed,
    ProtocolError,
    QuietNode,
    Superseded,
    Unreachable,
)
from winboot.base.secret import Secret
from winboot.node.run import PATIENT_ANSWERS, Patience, ScriptRunner, Stop
from winboot.report.events import Event
from winboot.report.journal import Journal
from winboot.script.library import Library
from winboot.script.rendering import Helpers, Script

HELPERS = Helpers(restart="the restart script", boot_id="the boot id script")
SCRIPT = Script("the node part", Library(" and the library", "its hash"), settings="", files=())
WHOLE, LOADER = SCRIPT.text, SCRIPT.kept.loader
Lines = Iterator[str]


class Silent:
    """A listener that ignores every event."""

    def event(self, node: str, event: Event) -> None:
        pass

    def say(self, node: str, text: str) -> None:
        pass


class Machine:
    """Answers pipelines from a list: each answer is the reason to end with, or an error to raise."""

    def __init__(
        self,
        *answers: str | Exception,
        boots: tuple[str, ...] = ("b1",),
        refusals: tuple[Exception, ...] = (),
    ) -> None:
        self.answers = list(answers)
        self.boots = list(boots)
        # What a request to restart ends with instead of a restart.
        self.refusals = list(refusals)
        self.modes: list[str] = []
        self.secrets: list[Mapping[str, Secret]] = []
        self.scripts: list[str] = []
        self.restarts = 0
        self.sessions = 0
        self.closed = 0

    def connect(self) -> Machine:
        self.sessions += 1
        return self

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.closed += 1

    def probe(self) -> None:
        raise NotImplementedError

    def run(self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        if script == HELPERS.restart:
            self.restarts += 1
            if self.refusals:
                raise self.refusals.pop(0)
            self.boots.pop(0)
            return
        if script == HELPERS.boot_id:
            yield self.boots[0]
            return
        self.scripts.append(script)
        self.modes.append(str(arguments["Mode"]))
        self.secrets.append(secrets)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield from self._say(str(arguments["RunId"]), answer)

    def _say(self, run: str, reason: str) -> Lines:
        base = {"v": 1, "run": run}
        missing = json.dumps(base | {"event": "library-missing", "why": "it is not there"})
        if reason == "library-missing":
            yield missing
            return
        boot = {
            "boot_id": self.boots[0],
            "smbios_uuid": "u",
            "build": "20348.1",
            "computer_name": "N",
            "fence": 1,
        }
        yield json.dumps(base | {"event": "run", "seq": 1} | boot)
        yield "warning: this is noise"
        yield json.dumps(base | {"event": "step", "seq": 2, "step": "one", "state": "ok", "ms": 1})
        if reason == "reboot":
            yield json.dumps(base | {"event": "reboot", "seq": 3, "steps": ["one"]})
        if reason == "detached":
            yield json.dumps(
                base | {"event": "detached", "seq": 3, "id": "d1", "step": "one", "timeout_s": 0}
            )
        if reason == "complete and missing":
            yield missing
            return
        if reason != "cut":
            yield json.dumps(base | {"event": "done", "seq": 4, "reason": reason})


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Callable[..., ScriptRunner]]:
    """Builds a ScriptRunner over a Machine, with a patience that costs the test no time."""
    journal = Journal(tmp_path / "n1.jsonl")

    def build(machine: Machine, *, stop: Stop | None = None, **patience: float) -> ScriptRunner:
        quick = {
            "poll": 0.0,
            "reconnect": 5.0,
            "restart": 5.0,
            "detached_margin": 5.0,
            "held": 5.0,
        } | patience
        return ScriptRunner(
            "n1",
            SCRIPT,
            HELPERS,
            machine.connect,  # type: ignore[arg-type]  # a stand-in answers for the protocol's four methods
            steps=("one",),
            listener=Silent(),
            journal=journal,
            patience=Patience(**quick),
            stop=stop or Stop(),
        )

    yield build
    journal.close()


def test_a_look_costs_one_session_and_one_pipeline(drive: Callable[..., ScriptRunner]) -> None:
    """The second run of a healthy node is the protocol's floor."""
    machine = Machine("complete")
    node = drive(machine)

    done = node.look({})

    assert (machine.sessions, machine.modes, done.to_change) == (1, ["Look"], ())


def test_look_and_change_share_one_session(drive: Callable[..., ScriptRunner]) -> None:
    """The change pipeline runs in the pool that the look opened."""
    machine = Machine("complete", "complete")
    node = drive(machine)

    node.look({})
    node.change({}, {})

    assert (machine.sessions, machine.modes) == (1, ["Look", "Change"])


def test_a_restart_is_done_once_and_the_same_script_runs_again(drive: Callable[..., ScriptRunner]) -> None:
    """After a changed boot id the same node's part continues, with the library that the change has kept."""
    machine = Machine("reboot", "complete", boots=("b1", "b2"))
    node = drive(machine)

    done = node.change({}, {})

    assert (machine.restarts, done.ended.reason, done.started.boot_id) == (1, "complete", "b2")
    assert machine.scripts == [WHOLE, LOADER]


def test_a_machine_that_was_joined_is_sent_the_short_script(drive: Callable[..., ScriptRunner]) -> None:
    """The library stays there: 0.4 MB less for each look of each node."""
    machine = Machine("complete", "complete")
    node = drive(machine)
    node.expect_library()

    node.look({})
    node.look({})

    assert machine.scripts == [LOADER, LOADER]


def test_a_machine_without_the_library_is_sent_the_whole_script_until_a_change_has_kept_it(
    drive: Callable[..., ScriptRunner],
) -> None:
    machine = Machine("library-missing", *["complete"] * 4)
    node = drive(machine)
    node.expect_library()

    node.look({})
    node.look({})
    node.change({}, {})
    node.look({})

    assert machine.scripts == [LOADER, *[WHOLE] * 3, LOADER]
    assert machine.modes == ["Look", "Look", "Look", "Change", "Look"]


def test_a_machine_that_says_after_its_work_that_the_library_is_missing_lies(
    drive: Callable[..., ScriptRunner],
) -> None:
    """The work would be done a second time."""
    machine = Machine("complete and missing", "complete")
    node = drive(machine)
    node.expect_library()

    with pytest.raises(ExcessiveOutput, match="its identity twice"):
        node.look({})


def test_a_machine_that_answers_with_the_old_boot_id_is_still_waited_for(
    drive: Callable[..., ScriptRunner],
) -> None:
    """A port that answers proves nothing: the machine may not have gone down yet."""
    machine = Machine("reboot", "complete", boots=("b1", "b1", "b2"))
    answers = iter(["b1", "b1", "b2"])
    original = machine.run

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        if script == HELPERS.boot_id:
            machine.boots[0] = next(answers)
            yield machine.boots[0]
            return
        yield from original(script, arguments, secrets)

    machine.run = run  # type: ignore[method-assign]

    done = drive(machine).change({}, {})

    assert done.started.boot_id == "b2"


def gives_no_boot_id(machine: Machine, times: int) -> None:
    """Its powershell.exe ends at once so many times: as long as it goes down, or for good."""
    original, left = machine.run, [times]

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        if script == HELPERS.boot_id and left[0]:
            left[0] -= 1
            raise ProtocolError("powershell.exe could not be started (exit code 3221226091)")
        yield from original(script, arguments, secrets)

    machine.run = run  # type: ignore[method-assign]


def test_a_machine_that_goes_down_while_it_is_asked_is_waited_for(drive: Callable[..., ScriptRunner]) -> None:
    machine = Machine("reboot", "complete", boots=("b1", "b2"))
    gives_no_boot_id(machine, 3)

    assert drive(machine).change({}, {}).started.boot_id == "b2"


def test_a_machine_that_starts_no_powershell_after_a_restart_is_named_so(
    drive: Callable[..., ScriptRunner],
) -> None:
    machine = Machine("reboot", boots=("b1", "b2"))
    gives_no_boot_id(machine, 1 << 30)

    with pytest.raises(ProtocolError, match="could not be started"):
        drive(machine, restart=0.05).change({}, {})


def test_a_machine_that_never_comes_back_is_named_so(drive: Callable[..., ScriptRunner]) -> None:
    """The wait for a restart is bounded."""
    machine = Machine("reboot", boots=("b1", "b1"))

    with pytest.raises(Unreachable, match="the machine does not answer"):
        drive(machine, restart=0.0).change({}, {})


def test_a_lost_connection_is_followed_by_the_same_pass(drive: Callable[..., ScriptRunner]) -> None:
    """The pass is looked at again from the start; nothing is remembered here."""
    machine = Machine(ConnectionLost("cut", hint=""), "complete")
    node = drive(machine)

    node.change({}, {})

    assert machine.modes == ["Change", "Change"]
    assert node.record.reconnects == 1


def test_output_that_ends_early_counts_as_a_lost_connection(drive: Callable[..., ScriptRunner]) -> None:
    """Without the closing event nothing is known of the rest."""
    machine = Machine("cut", "complete")

    assert drive(machine).look({}).ended.reason == "complete"


def test_a_refused_login_is_not_tried_again(drive: Callable[..., ScriptRunner]) -> None:
    """A second try with the same password locks accounts."""
    machine = Machine(LoginRefused("no", hint=""), "complete")

    with pytest.raises(LoginRefused):
        drive(machine).look({})
    assert machine.sessions == 1


def test_a_detached_run_is_waited_for_outside_the_session(drive: Callable[..., ScriptRunner]) -> None:
    """The controller leaves the session, comes back, and runs the same text again."""
    machine = Machine("detached", "detached", "complete")
    node = drive(machine)

    node.change({}, {})

    assert (node.record.detached, machine.closed, machine.sessions) == (1, 2, 3)


def test_a_detached_run_past_its_time_fails_the_node(drive: Callable[..., ScriptRunner]) -> None:
    """The run's own timeout and a margin bound the wait."""
    machine = Machine("detached", "detached", "detached")

    with pytest.raises(NodeFailed, match="detached"):
        drive(machine, detached_margin=-1.0).change({}, {})


def test_a_superseded_run_ends_with_its_own_exit_code(drive: Callable[..., ScriptRunner]) -> None:
    """The older of two runs stops at once."""
    with pytest.raises(Superseded) as caught:
        drive(Machine("superseded")).change({}, {})
    assert caught.value.exit_code == 75


def test_a_held_node_is_waited_for_and_then_worked_on(drive: Callable[..., ScriptRunner]) -> None:
    """The other run may end in time."""
    machine = Machine("held", "complete")

    assert drive(machine).change({}, {}).ended.reason == "complete"


def test_a_script_that_wants_a_restart_again_and_again_is_stopped(drive: Callable[..., ScriptRunner]) -> None:
    """Twenty restarts prove that something is wrong with the step, not with the machine."""
    machine = Machine(*["reboot"] * 30, boots=tuple(f"b{n}" for n in range(40)))

    with pytest.raises(NodeFailed, match="restarts"):
        drive(machine).change({}, {})


def test_a_stop_request_ends_the_run_between_events(drive: Callable[..., ScriptRunner]) -> None:
    """Ctrl-C is answered at the next event, with the exit code for it."""
    stop = Stop()
    stop.request()

    with pytest.raises(Interrupted):
        drive(Machine("complete"), stop=stop).look({})


def test_a_secret_never_reaches_the_journal(drive: Callable[..., ScriptRunner], tmp_path: Path) -> None:
    """Even a script that repeats a secret cannot put it into the journal."""
    secret = Secret('to"ken-123')
    machine = Machine("complete")
    original = machine.run

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        yield f"noise with {secrets['t'].reveal()}"
        yield from original(script, arguments, secrets)

    machine.run = run  # type: ignore[method-assign]
    drive(machine).change({}, {"t": secret})

    assert "ken-123" not in (tmp_path / "n1.jsonl").read_text()


def test_a_machine_that_was_never_reached_fails_at_once(drive: Callable[..., ScriptRunner]) -> None:
    """A wrong address must not cost ten minutes a host; what was reached once is waited for."""
    machine = Machine(Unreachable("no answer", hint=""), "complete")

    with pytest.raises(Unreachable):
        drive(machine).look({})
    assert machine.sessions == 1


def test_a_machine_that_was_reached_is_waited_for(drive: Callable[..., ScriptRunner]) -> None:
    machine = Machine("complete", Unreachable("no answer", hint=""), "complete")
    node = drive(machine)

    node.look({})
    node.change({}, {})

    assert node.record.reconnects == 1


@pytest.mark.parametrize("foreign", [{"run": "another"}, {"v": 2}])
def test_lines_of_another_run_or_version_are_noise(
    foreign: dict[str, object], drive: Callable[..., ScriptRunner]
) -> None:
    """A detached task of an older run may still write; a newer script may mean something else by the same words."""
    machine = Machine("complete")
    original = machine.run

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        step = {
            "v": 1,
            "run": arguments["RunId"],
            "event": "step",
            "seq": 7,
            "step": "two",
            "state": "failed",
            "ms": 1,
        }
        yield json.dumps(step | foreign)
        yield from original(script, arguments, secrets)

    machine.run = run  # type: ignore[method-assign]

    assert [step.step for step in drive(machine).look({}).steps] == ["one"]


def told(drive: Callable[..., ScriptRunner], *lines: object, **patience: float) -> ScriptRunner:
    """A runner whose machine says these lines in every pass: texts as they are, fields as an event of the run."""
    machine = Machine()

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        for line in lines:
            yield line if isinstance(line, str) else json.dumps({"v": 1, "run": arguments["RunId"], **line})  # type: ignore[dict-item]

    machine.run = run  # type: ignore[method-assign]
    return drive(machine, **patience)


BEGUN = {
    "event": "run",
    "boot_id": "b1",
    "smbios_uuid": "u",
    "build": "1.1",
    "computer_name": "N",
    "fence": 1,
}
ONE = {"event": "step", "step": "one", "state": "ok", "ms": 1}
COMPLETE = {"event": "done", "reason": "complete"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((BEGUN, COMPLETE), "0 of 1 steps, not one"),
        ((BEGUN, ONE, ONE, COMPLETE), "one 2 times"),
        ((BEGUN, ONE, {**ONE, "step": "two"}, COMPLETE), "two, which is not in the plan"),
        ((BEGUN, ONE, {**COMPLETE, "reason": "superseded"}), "the end 'superseded' of a look"),
        ((BEGUN, ONE, {**COMPLETE, "reason": "weird"}), "the end 'weird' of a look"),
    ],
)
def test_a_look_that_does_not_report_every_step_once_is_no_success(
    lines: tuple[object, ...], said: str, drive: Callable[..., ScriptRunner]
) -> None:
    """Once a look without a single step was reported as ok, exit 0, on a machine with 18 things to change."""
    with pytest.raises(IncompleteRun) as caught:
        told(drive, *lines).look({})
    assert said in caught.value.problem


@pytest.mark.parametrize(
    "damage",
    [{"ms": None}, {"ms": 1e400}, {"state": "fine"}, {"step": 3}, {"differences": "x"}, {"problem": []}],
)
def test_a_damaged_line_of_ours_is_an_error_with_a_name(
    damage: dict[str, object], drive: Callable[..., ScriptRunner]
) -> None:
    with pytest.raises(BadEvent):
        told(drive, BEGUN, {**ONE, **damage}, COMPLETE).look({})


@pytest.mark.parametrize(
    "noise",
    [
        "[" * 200_000,
        '{"v": 1, "ms": Infinity}',
        "\x1b[2J",
        "x" * 1_000_000,
        '{"v":1,"run":"another","event":"run"}',
        "\ud800",
    ],
    ids=["deep brackets", "Infinity", "ESC", "a megabyte", "another run", "a surrogate"],
)
def test_noise_fails_no_node(noise: str, drive: Callable[..., ScriptRunner], tmp_path: Path) -> None:
    runner = told(drive, noise, BEGUN, *[noise] * 3, ONE, COMPLETE)

    assert runner.look({}).ended.reason == "complete"


def test_the_journal_keeps_the_beginning_of_noise(drive: Callable[..., ScriptRunner], tmp_path: Path) -> None:
    told(drive, BEGUN, *["y" * 10_000] * 5000, ONE, COMPLETE).look({})

    assert (tmp_path / "n1.jsonl").stat().st_size < 5_000_000
    assert "4000 more lines were dropped" in (tmp_path / "n1.jsonl").read_text()


def test_an_endless_noise_is_a_quiet_node_with_the_step_that_was_due(
    drive: Callable[..., ScriptRunner],
) -> None:
    """Output without winboot's events has an upper bound, and ends with a named error."""
    machine = Machine()

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        yield json.dumps({"v": 1, "run": arguments["RunId"], **BEGUN})
        while True:
            yield "noise"

    machine.run = run  # type: ignore[method-assign]

    with pytest.raises(QuietNode, match="winboot waits for one"):
        drive(machine, quiet=0.05).look({})


def test_a_stop_is_noticed_while_a_script_is_silent_or_noisy(drive: Callable[..., ScriptRunner]) -> None:
    stop = Stop()
    machine = Machine()

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        yield "noise"
        stop.request()
        machine.on_quiet()  # type: ignore[attr-defined]
        raise AssertionError("it went on")

    machine.run = run  # type: ignore[method-assign]

    with pytest.raises(Interrupted):
        drive(machine, stop=stop).look({})


def test_the_events_of_a_broken_off_pass_are_in_the_record(drive: Callable[..., ScriptRunner]) -> None:
    runner = told(drive, BEGUN, ONE, reconnect=0.0)

    with pytest.raises(ConnectionLost):
        runner.look({})
    assert [step.step for step in runner.record.steps] == ["one"]


def test_a_restart_that_was_refused_is_asked_for_again(drive: Callable[..., ScriptRunner]) -> None:
    """Once the controller waited half an hour for a restart that had not begun."""
    machine = Machine("reboot", "complete", boots=("b1", "b2"), refusals=(Busy("995", hint=""),) * 2)

    asked = counts_boot_ids(machine)

    done = drive(machine).change({}, {})

    assert (machine.restarts, done.started.boot_id) == (3, "b2")
    assert asked == ["b1", "b1", "b2"], "with the first answer of the old boot"


def counts_boot_ids(machine: Machine) -> list[str]:
    """The boot ids that it answers with from now on."""
    original, asked = machine.run, list[str]()

    def run(script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]) -> Lines:
        for line in original(script, arguments, secrets):
            if script == HELPERS.boot_id:
                asked.append(line)
            yield line

    machine.run = run  # type: ignore[method-assign]
    return asked


def test_a_restart_that_was_taken_and_does_not_come_is_asked_for_again_after_a_while(
    drive: Callable[..., ScriptRunner],
) -> None:
    """Windows drops one that an update holds up; a second request could restart a machine that is going down."""
    machine = Machine("reboot", "complete", boots=("b1", "b1", "b2"))
    asked = counts_boot_ids(machine)

    done = drive(machine).change({}, {})

    assert (machine.restarts, done.started.boot_id) == (2, "b2")
    assert asked == ["b1"] * PATIENT_ANSWERS + ["b2"]


@pytest.mark.parametrize("answer", ["", "warning: the log is empty", "error: no"])
def test_a_restart_without_proof_is_not_believed(answer: str, drive: Callable[..., ScriptRunner]) -> None:
    """Only another id proves it; silence, a warning or an error proves nothing."""
    machine = Machine("reboot", boots=("b1", answer))

    with pytest.raises(Unreachable, match="the machine does not answer"):
        drive(machine, restart=0.05).change({}, {})


def test_a_machine_that_is_busy_at_first_is_waited_for(drive: Callable[..., ScriptRunner]) -> None:
    """A quota or a starting WinRM says so with the first request of a run as with any other."""
    machine = Machine(Busy("503", hint=""), Busy("995", hint=""), "complete")

    assert drive(machine).look({}).ended.reason == "complete"


def test_a_machine_that_stays_busy_is_given_up(drive: Callable[..., ScriptRunner]) -> None:
    with pytest.raises(Busy):
        drive(Machine(*[Busy("503", hint="")] * 3, "complete"), first=0.0).look({})


def test_a_machine_that_breaks_every_session_off_is_given_up(drive: Callable[..., ScriptRunner]) -> None:
    machine = Machine(*[ConnectionLost("reset", hint="")] * 50)

    with pytest.raises(ConnectionLost):
        drive(machine).look({})
    assert machine.sessions == 20
