"""Move the range of client ports away from the NodePorts, make it large, and keep other programs' ports out of it."""

import pytest

from tests.matrix import first
from tests.steps.bench import Bench, part_of
from tests.steps.builders import a_spec
from winboot.script.rendering import render

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

    assert told.states == {STEP: "changed"}
    assert bench.look(STEP).differences(STEP)["dynamic ports: tcp"][0] == "49152+16384"


def text(bench: Bench) -> str:
    """The script of this step."""
    return render(part_of(bench.spec, (STEP,)), bench.spec).text


def a_bench(excluded: str, **more: str) -> Bench:
    return Bench(spec=a_spec(**{"update_hold: false": f"excluded_ports: {excluded}", **more}))


ONE = "[{protocol: udp, start: 65330}]"


def test_a_profile_without_excluded_ports_never_asks_for_them(bench: Bench):
    # The library has it for others.
    assert "excluded" not in render(part_of(bench.spec, (STEP,)), bench.spec).node_part.lower()


def test_excluded_ports_are_excluded_once_and_given_back_by_undo():
    bench = a_bench(ONE)
    found = bench.look(STEP).differences(STEP)

    assert found["excluded ports: udp 65330-65330"] == (None, "excluded")
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert bench.machine.network.excluded == [("udp", 65330, 1, True)]
    bench.undo(STEP)
    assert bench.machine.network.excluded == []


def test_ports_that_another_program_excluded_stay_excluded_after_an_undo():
    bench = a_bench(ONE)
    bench.machine.network.excluded.append(("udp", 65000, 500, True))

    assert bench.run(STEP).states == {STEP: "changed"}, "the dynamic range"
    bench.undo(STEP)

    assert bench.machine.network.excluded == [("udp", 65000, 500, True)]


def test_both_protocols_are_meant_when_none_is_named():
    bench = a_bench(
        "[{start: 30000, count: 2768}]",
        **{"dynamic_ports: {start: 33000, count: 32536}": "dynamic_ports: false"},
    )

    assert set(bench.look(STEP).differences(STEP)) == {
        "excluded ports: tcp 30000-32767",
        "excluded ports: udp 30000-32767",
    }


def test_a_range_that_overlaps_another_programs_is_refused_with_the_words_of_windows():
    bench = a_bench("[{protocol: tcp, start: 50000, count: 100}]")
    bench.machine.network.excluded.append(("tcp", 50050, 100, False))

    problem = bench.run(STEP).step(STEP)["problem"]

    assert problem["id"] == "ProgramFailed"
    assert "netsh.exe" in problem["message"]


@pytest.mark.parametrize(
    "line", first(1, ["     50000       50059     *", "50000\t50059", "  50000  50059 "])
)
def test_lines_that_are_two_numbers_count_whatever_the_words_around_them_are(line: str):
    bench = a_bench("[{protocol: tcp, start: 50000, count: 60}]")
    script = text(bench).replace(
        "(Invoke-ExcludedRange -Verb 'show' -Protocol $Protocol)",
        f'"Bereiche 1 bis 2`r`nStart  Ende`r`n---- ----`r`n{line}`r`n`r`n* - 3 4"',
    )

    told = bench.run_text(script, mode="Look")

    assert "excluded ports: tcp 50000-50059" not in told.differences(STEP)
