"""What a run costs in requests, counted by the machine: the protocol's floor, and nothing above it."""

from __future__ import annotations

import pytest
from lab_wsman.stage import (
    BASIC,
    BASIC_CA,
    NEGOTIATE,
    NEGOTIATE_PINNED,
    NTLM,
    NTLM_CA,
    Actor,
    node,
    says,
    transport,
)
from winboot_lab.wsman.executor import Ended

from winboot.base.secret import Secret

OPEN = ["Create", "Receive", "Receive"]
RUN = ["Command", "Receive"]
COLD = {
    # Sealed: two empty requests log in. Over TLS the Create itself is sent again for each step of the login.
    NTLM: ["", "", *OPEN, *RUN, "Delete"],
    NEGOTIATE: ["", "", *OPEN, *RUN, "Delete"],
    BASIC: [*OPEN, *RUN, "Delete"],
    NTLM_CA: ["", *OPEN, *RUN, "Delete"],
    # A token that may be Kerberos' is bound to the certificate, so the machine must speak first.
    NEGOTIATE_PINNED: ["", "", *OPEN, *RUN, "Delete"],
    BASIC_CA: [*OPEN, *RUN, "Delete"],
}


@pytest.fixture
def patient():
    """Output waits long enough to come in one answer, however busy this host is."""
    return {"gather_s": 5.0}


@pytest.mark.parametrize("mode", COLD, ids=lambda mode: mode.name)
def test_a_cold_run_costs_the_floor(farm, mode, patient):
    """Login, opening, one pipeline, end: 8 requests sealed, 7 with NTLM over TLS, 6 with Basic; one connection."""
    machine = node(farm, says("nothing to do"), **patient)

    with transport(farm, machine, mode) as wire:
        assert list(wire.run("anything", {}, {})) == ["nothing to do"]

    assert [seen.action for seen in machine.requests] == COLD[mode]
    assert {seen.connection for seen in machine.requests} == {1}


def test_secrets_cost_two_requests(farm, mode, patient):
    """The key for SecureStrings is agreed on once in a session, and only when there is a secret."""
    machine = node(farm, says("done"), **patient)

    with transport(farm, machine, mode) as wire:
        list(wire.run("anything", {}, {"token": Secret("x")}))
        list(wire.run("anything", {}, {"token": Secret("x")}))
        actions = [seen.action for seen in machine.requests if seen.action]

    assert actions == [*OPEN, "Send", "Receive", *RUN, "Signal", *RUN]


def test_a_second_run_costs_three_requests(farm, mode, patient):
    """Forget the last pipeline, start, receive."""
    machine = node(farm, says("done"), **patient)

    with transport(farm, machine, mode) as wire:
        list(wire.run("anything", {}, {}))
        machine.recount()
        list(wire.run("anything", {}, {}))
        assert [seen.action for seen in machine.requests] == ["Signal", *RUN]


@pytest.mark.parametrize("stream", ["warning", "verbose", "debug"])
def test_a_warning_costs_its_words(farm, stream, patient):
    """Where it was written would come with the whole script: a hundred warnings of a rendered one were 20 MB."""

    def play(script, parameters, emit, cancelled):
        for number in range(100):
            emit(stream, f"careful {number}")
        return Ended()

    machine = node(farm, Actor(play), **patient)
    script = "# what it does\n" * 14_000

    with transport(farm, machine, BASIC) as wire:
        lines = list(wire.run(script, {}, {}))

    assert lines == [f"{stream}: careful {number}" for number in range(100)]
    assert [seen.action for seen in machine.requests].count("Receive") <= len([*OPEN, *RUN])


def test_nothing_is_sent_before_the_first_run(farm, mode):
    """A fleet may prepare a thousand transports."""
    machine = node(farm, says("done"))

    transport(farm, machine, mode).close()

    assert machine.requests == []
