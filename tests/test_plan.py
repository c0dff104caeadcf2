"""Which steps a node gets, and in which order."""

from types import SimpleNamespace
from typing import Any

import pytest

import winboot
from winboot.base.errors import UsageError
from winboot.config.node_spec import StepSource
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS
from winboot.script.steps.step import Step


def a_spec(*own: StepSource) -> Any:
    return SimpleNamespace(steps=own, machine=SimpleNamespace(name="win-a1"))


def a_step(name: str, *needs: str, **more: Any) -> Step:
    return Step(name=name, why="the test wants it", needs=needs, **more)


def names(plan: Any) -> list[str]:
    return [step.name for step in plan.steps]


def test_a_step_comes_after_what_it_needs_and_otherwise_stays_where_it_stood():
    steps = (a_step("last", "first", "middle"), a_step("middle", "first"), a_step("first"), a_step("alone"))

    assert names(make_plan(a_spec(), steps)) == ["first", "middle", "last", "alone"]


def test_a_step_that_the_node_does_not_want_is_not_in_the_plan():
    steps = (a_step("wanted"), a_step("unwanted", wanted=lambda spec: False))

    plan = make_plan(a_spec(), steps)

    assert names(plan) == ["wanted"]
    assert plan.left_out == ()


def test_order_holds_across_a_step_that_the_node_does_not_want():
    steps = (a_step("c", "b"), a_step("b", "a", wanted=lambda spec: False), a_step("a"))

    assert names(make_plan(a_spec(), steps)) == ["a", "c"]


def test_only_keeps_the_named_and_the_essential_steps():
    steps = (a_step("check", essential=True), a_step("a"), a_step("b"))

    plan = make_plan(a_spec(), steps, only=["b"])

    assert names(plan) == ["check", "b"]
    assert plan.left_out == ("a",)


def test_only_takes_what_the_named_steps_need_with_them():
    """As the help of --only says; --skip reduces that, too."""
    steps = (a_step("a"), a_step("b", "a"), a_step("c", "b"), a_step("d"))

    assert names(make_plan(a_spec(), steps, only=["c"])) == ["a", "b", "c"]
    assert names(make_plan(a_spec(), steps, only=["c"], skip=["a"])) == ["b", "c"]


def test_the_script_is_the_same_whatever_is_chosen():
    """The node keeps it for its boot task, so it has all steps; the choice is a fact of the run."""
    steps = (a_step("a"), a_step("b"), a_step("c"))
    whole = make_plan(a_spec(), steps)
    part = make_plan(a_spec(), steps, only=["b"])

    assert part.digest == whole.digest
    assert part.complete.steps == whole.steps
    assert (whole.selection, part.selection) == ("", "b")
    assert make_plan(a_spec(), steps, skip=["a", "b", "c"]).selection == ","


@pytest.mark.parametrize("what", ["files", "secrets", "inputs"])
def test_the_digest_changes_with_every_kind_of_value(what: str):
    """A file's content and the name of a secret too, not the inputs of the template alone."""
    values = {"files": ({"f": "1"}, {"f": "2"}), "secrets": (("a",), ("b",)), "inputs": ({"v": 1}, {"v": 2})}

    first, second = (
        make_plan(a_spec(), (a_step("a", **{what: lambda spec, value=value: value}),)).digest
        for value in values[what]
    )

    assert first != second


def test_the_digest_changes_with_a_text_of_the_users_own_step():
    first, second = (
        make_plan(a_spec(StepSource("my-agent", "monitoring", (), "", change, "")), (a_step("a"),)).digest
        for change in ("one", "another")
    )

    assert first != second


def test_the_digest_changes_with_the_machine():
    first, second = (
        make_plan(SimpleNamespace(steps=(), machine=SimpleNamespace(name=name)), (a_step("a"),)).digest
        for name in ("win-a1", "win-a2")
    )

    assert first != second


def test_the_digest_changes_with_winboots_version(monkeypatch: pytest.MonkeyPatch):
    """The same steps are other texts in another version."""
    first = make_plan(a_spec(), (a_step("a"),)).digest
    monkeypatch.setattr(winboot, "__version__", "99.0.0")

    assert make_plan(a_spec(), (a_step("a"),)).digest != first


def test_skip_drops_the_named_steps():
    plan = make_plan(a_spec(), (a_step("a"), a_step("b")), skip=["a"])

    assert names(plan) == ["b"]
    assert plan.left_out == ("a",)


@pytest.mark.parametrize("where", ["only", "skip"])
def test_a_misspelt_name_is_refused_with_the_name_that_was_meant(where: str):
    with pytest.raises(UsageError, match="did you mean 'kubelet'"):
        make_plan(a_spec(), (a_step("kubelet"),), **{where: ["kublet"]})


def test_a_need_that_is_no_step_is_refused():
    with pytest.raises(UsageError, match=r"needs 'firewall'.*did you mean 'firewall-rules'"):
        make_plan(a_spec(), (a_step("a", "firewall"), a_step("firewall-rules")))


def test_steps_that_need_each_other_are_refused_with_the_circle():
    with pytest.raises(UsageError, match="need each other") as caught:
        make_plan(a_spec(), (a_step("a", "b"), a_step("b", "a")))
    assert "→" in caught.value.problem


def test_a_step_of_the_users_own_takes_its_place_after_what_it_needs():
    own = StepSource("my-agent", "monitoring", ("a",), "", "", "")

    assert names(make_plan(a_spec(own), (a_step("a"), a_step("b")))) == ["a", "b", "my-agent"]


def test_a_step_of_the_users_own_may_not_take_one_of_our_names():
    own = StepSource("a", "monitoring", (), "", "", "")

    with pytest.raises(UsageError, match="same name: a"):
        make_plan(a_spec(own), (a_step("a"),))


def test_the_digest_is_the_same_for_the_same_plan_and_another_for_another_value():
    def a_plan(value: str) -> str:
        return make_plan(a_spec(), (a_step("a", inputs=lambda spec: {"value": value}),)).digest

    assert a_plan("x") == a_plan("x")
    assert a_plan("x") != a_plan("y")


def test_the_catalogue_itself_is_in_order():
    """So that reading STEPS from top to bottom is reading the plan."""
    places = {step.name: place for place, step in enumerate(STEPS)}

    assert [
        (step.name, need) for step in STEPS for need in step.needs if places[need] > places[step.name]
    ] == []


def test_a_step_that_is_essential_is_left_out_by_its_name_alone():
    steps = (a_step("always", essential=True), a_step("one"), a_step("two"))

    assert names(make_plan(a_spec(), steps, only=["one"])) == ["always", "one"]
    assert names(make_plan(a_spec(), steps, skip=["always"])) == ["one", "two"]
