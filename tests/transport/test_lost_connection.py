"""A connection that breaks, at every request: the same output exactly once, or ConnectionLost."""

from __future__ import annotations

import threading
import time

import pytest
from lab_wsman.stage import FAST, MODES, NEGOTIATE, NTLM, NTLM_CA, Actor, node, says, transport
from winboot_lab.wsman.executor import Ended, SecureText
from winboot_lab.wsman.faults import Answer, Delay, Drop, Fault, Half, Silence, Trickle

from winboot.base.errors import Busy, ConnectionLost, Unreachable
from winboot.base.secret import Secret

LINES = [f"line {number}" for number in range(5)]
CUTS = {"before": Drop(), "after": Drop(handled=True), "in the answer": Half()}

# Each cut in two modes every day, one of each kind of wrapping; by hand in all.
CUT_MODES = [
    pytest.param(
        mode, cut, id=f"{name}-{mode.name}", marks=() if mode in (NTLM, NTLM_CA) else pytest.mark.matrix
    )
    for name, cut in CUTS.items()
    for mode in MODES
]
ONE_SEALED_ONE_TLS = pytest.mark.parametrize("mode", [NTLM, NTLM_CA], ids=lambda mode: mode.name)


def play_slowly(script, parameters, emit, cancelled):
    """Enough pauses for the output to need several answers."""
    for line in LINES:
        emit("output", line)
        time.sleep(0.005)
    return Ended()


@pytest.mark.parametrize(("mode", "cut"), CUT_MODES)
def test_a_cut_at_any_request_is_not_seen_in_the_output(farm, mode, cut):
    """Login, opening, key exchange, start, output, end: wherever the connection breaks, all lines come once,
    and the script has run once.
    """
    actor = Actor(play_slowly)
    machine = node(farm, actor, gather_s=0)
    # The number of answers that the output takes differs from run to run, so the table ends where a cut finds
    # nothing.
    for number in range(1, 100):
        machine.recount()
        machine.faults.at(number, cut)
        if _run_once(farm, machine, mode, actor) < number:
            break
        machine.faults.clear()
    assert number > mode.logins + 8


def _run_once(farm, machine, mode, actor) -> int:
    actor.runs.clear()
    with transport(farm, machine, mode) as wire:
        lines = list(wire.run("anything", {"Mode": "Change"}, {"token": Secret("t")}))
    assert lines == LINES
    assert actor.runs == [("anything", {"Mode": "Change", "Secrets": {"token": SecureText("t")}})]
    return len(machine.requests)


@ONE_SEALED_ONE_TLS
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_a_cut_is_survived_by_a_script_that_is_over_at_once(farm, mode, cut):
    """Its output waits complete on the machine when the client comes back."""
    actor = says(*LINES)
    machine = node(farm, actor, gather_s=5)
    for number in range(1, mode.logins + 7):
        machine.recount()
        actor.runs.clear()
        machine.faults.at(number, cut)
        with transport(farm, machine, mode) as wire:
            assert list(wire.run("anything", {}, {})) == LINES
        assert len(actor.runs) == 1
        machine.faults.clear()


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_a_script_in_several_messages_never_runs_twice(farm, cut):
    """An incomplete script is sent again; where the last message was lost, its output shows whether it runs."""
    script = "# äöü\n" * 90_000
    actor = Actor(play_slowly)
    machine = node(farm, actor)
    with transport(farm, machine) as wire:
        assert list(wire.run(script, {}, {})) == LINES
    actions = [seen.action for seen in machine.requests]
    assert actions.count("Send") >= 2

    for number, action in enumerate(actions, 1):
        if action not in ("Command", "Send"):
            continue
        machine.recount()
        actor.runs.clear()
        machine.faults.at(number, cut)
        with transport(farm, machine) as wire:
            try:
                assert list(wire.run(script, {}, {})) == LINES
            except ConnectionLost:
                assert number == len(actions) - actions[::-1].index("Send"), (
                    "only the last Send leaves a doubt"
                )
        assert len(actor.runs) <= 1
        assert all(text == script for text, _ in actor.runs)
        machine.faults.clear()


def test_a_restart_in_the_middle_is_a_lost_connection(farm, mode):
    """The shell dies with the machine, so the progress of the script is unknown; winboot does not run it again by itself."""
    restarted = threading.Event()

    def play(script, parameters, emit, cancelled):
        emit("output", "before the restart")
        assert restarted.wait(10)
        return Ended("stopped")

    actor = Actor(play)
    machine = node(farm, actor)
    with transport(farm, machine, mode) as wire:
        lines = wire.run("anything", {}, {})
        assert next(lines) == "before the restart"
        farm.down(machine)
        restarted.set()
        threading.Timer(0.3, farm.up, [machine]).start()
        with pytest.raises(ConnectionLost):
            next(lines)
        assert len(actor.runs) == 1

        assert next(wire.run("the next one", {}, {})) == "before the restart"


def test_a_machine_that_stays_away_is_given_up(farm):
    """After `timeouts.resume` seconds, with the error that says: it may be running there."""
    gone = threading.Event()

    def play(script, parameters, emit, cancelled):
        emit("output", "started")
        gone.wait(10)
        return Ended()

    machine = node(farm, Actor(play))
    timeouts = FAST.__class__(connect=1, operation=1, read=3, open=1, resume=1, close=1)
    with transport(farm, machine, timeouts=timeouts) as wire:
        lines = wire.run("anything", {}, {})
        assert next(lines) == "started"
        farm.down(machine)
        gone.set()
        with pytest.raises(ConnectionLost):
            next(lines)


@ONE_SEALED_ONE_TLS
def test_a_connection_closed_while_idle_is_opened_again(farm, mode):
    """http.sys hangs up after two quiet minutes; the next run must not notice, sealed or not."""
    machine = node(farm, says("done"), idle_s=0.3)

    with transport(farm, machine, mode) as wire:
        for _ in range(3):
            assert list(wire.run("anything", {}, {})) == ["done"]
            time.sleep(0.7)
        assert [seen.action for seen in machine.requests].count("Create") == 1
    assert 400 not in [seen.status for seen in machine.requests]


def test_a_session_that_the_machine_closed_is_replaced(farm, mode):
    """Between two runs a session may run out; the script has not run in it, so it runs in another one."""
    actor = says("done")
    machine = node(farm, actor)

    with transport(farm, machine, mode) as wire:
        assert list(wire.run("first", {}, {})) == ["done"]
        farm.down(machine)
        farm.up(machine)
        assert list(wire.run("second", {}, {"a": Secret("b")})) == ["done"]

    assert [script for script, _ in actor.runs] == ["first", "second"]


def test_silence_at_the_first_contact_is_a_machine_out_of_reach(farm):
    """A port that takes the connection and never answers must not hold a fleet for long."""
    machine = node(farm, says("done"))
    for number in range(1, 20):
        machine.faults.at(number, Silence())
    timeouts = FAST.__class__(connect=1, operation=1, read=1, open=1, resume=1, close=1)

    with transport(farm, machine, timeouts=timeouts) as wire, pytest.raises(Unreachable):
        list(wire.run("anything", {}, {}))

    # Each silence costs a read timeout, and the next attempt is made only within `open`.
    assert len(machine.requests) <= 4


@ONE_SEALED_ONE_TLS
def test_an_answer_that_never_comes_is_asked_for_again(farm, mode):
    """A Receive that is swallowed is repeated on a new connection."""
    machine = node(farm, says("done"))
    machine.faults.on("Receive", Silence(), skip=2)
    timeouts = FAST.__class__(connect=1, operation=1, read=1, open=1, resume=5, close=1)

    with transport(farm, machine, mode, timeouts=timeouts) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]


@ONE_SEALED_ONE_TLS
def test_a_quiet_script_is_waited_for(farm, mode):
    """The machine says every `timeouts.operation` seconds that it has nothing to say; that is no end."""

    def play(script, parameters, emit, cancelled):
        time.sleep(2.5)
        emit("output", "at last")
        return Ended()

    machine = node(farm, Actor(play))
    timeouts = FAST.__class__(connect=1, operation=1, read=3, open=1, resume=1, close=1)
    with transport(farm, machine, mode, timeouts=timeouts) as wire:
        assert list(wire.run("anything", {}, {})) == ["at last"]
    assert [seen.status for seen in machine.requests].count(500) == 2


@ONE_SEALED_ONE_TLS
def test_an_answer_may_trickle(farm, mode):
    """Slow is not lost."""
    machine = node(farm, says(*LINES))
    machine.faults.on("Receive", Trickle(size=100, seconds=0.01), times=3)

    with transport(farm, machine, mode) as wire:
        assert list(wire.run("anything", {}, {})) == LINES


@ONE_SEALED_ONE_TLS
def test_an_answer_may_be_late(farm, mode):
    """As long as it comes within `timeouts.read`."""
    machine = node(farm, says("done"))
    machine.faults.on("Command", Delay(0.5))

    with transport(farm, machine, mode) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]


@pytest.mark.parametrize(
    "misfortune", [Fault(2150859173), Fault(2150859174), Fault(995)], ids=lambda f: str(f.code)
)
def test_a_busy_machine_is_asked_again(farm, mode, misfortune):
    """Quotas and a service that is about to stop pass by themselves."""
    machine = node(farm, says("done"))
    machine.faults.on("Create", misfortune, times=2)

    with transport(farm, machine, mode) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]


def test_a_machine_that_stays_busy_is_said_to_be_busy(farm):
    """With the machine's own words, after `timeouts.open` seconds."""
    machine = node(farm, says("done"), max_shells=0)
    timeouts = FAST.__class__(connect=1, operation=1, read=3, open=1, resume=1, close=1)

    with transport(farm, machine, timeouts=timeouts) as wire, pytest.raises(Busy) as caught:
        list(wire.run("anything", {}, {}))

    assert "maximum number of concurrent shells" in str(caught.value)


@ONE_SEALED_ONE_TLS
def test_a_service_that_is_starting_is_asked_again(farm, mode):
    """HTTP 503, at the login and in the middle."""
    machine = node(farm, says("done"))
    machine.faults.at(1, Answer(503))
    machine.faults.at(mode.logins + 3, Answer(503))

    with transport(farm, machine, mode) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]


@pytest.mark.parametrize("sealed", [NTLM, NEGOTIATE], ids=lambda mode: mode.name)
@pytest.mark.parametrize("leg", [1, 2, 3, 4])
def test_a_login_that_was_answered_by_503_begins_again(farm, leg, sealed):
    """A booting machine says so at any leg. Gone on with, the half-finished login could not unseal the next answer, and the
    session that it had opened stayed.
    """
    machine = node(farm, says("done"))
    machine.faults.at(leg, Answer(503))

    with transport(farm, machine, sealed) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]

    assert machine.shells == ()


@pytest.mark.parametrize("misfortune", [Half(), Drop(handled=True)], ids=["half", "none"])
def test_a_session_whose_answer_was_lost_is_ended(farm, misfortune):
    """We chose its id, so that it can be."""
    machine = node(farm, says("done"))
    machine.faults.on("Create", misfortune, times=1)

    with transport(farm, machine, NTLM) as wire:
        assert list(wire.run("anything", {}, {})) == ["done"]

    assert machine.shells == ()
