"""Move the range of client ports away from the NodePorts, and make it large."""

from tests.steps.bench import Bench

STEP = "dynamic-ports"


def test_the_range_of_a_fresh_machine_differs_for_both_protocols(bench: Bench):
    found = bench.look(STEP).differences(STEP)

    assert found["dynamic ports: tcp"] == ("49152+16384", "33000+32536")
    assert found["dynamic ports: udp"] == ("49152+16384", "33000+32536")


def test_it_is_changed_once_and_then_ok(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}


def test_undo_puts_the_former_range_back(bench: Bench):
    bench.run(STEP)
    told = bench.undo(STEP)

    assert told.states == {STEP: "changed", "node-preflight": "ok"} or told.states == {STEP: "changed"}
    assert bench.look(STEP).differences(STEP)["dynamic ports: tcp"][0] == "49152+16384"
