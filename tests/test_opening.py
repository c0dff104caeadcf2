"""Whoever reads a script before it may run is told first which steps there are and why, and what they leave behind."""

from dataclasses import replace
from typing import get_args

from tests.steps.builders import a_spec_of
from winboot.networks.base import KnownName
from winboot.opening import PLACES, opening
from winboot.plan import make_plan
from winboot.powershell.parser import parse
from winboot.script import render
from winboot.spec import StepSource
from winboot.steps import STEPS
from winboot.steps.step import Step


def head(profile: str = "flannel-host-gw", *, undo: bool = False) -> str:
    """The opening of a profile's script as one line of words."""
    spec = a_spec_of(profile)
    text = render(make_plan(spec, STEPS), spec, undo=undo).text
    return " ".join(text[: text.index("param(")].replace("\n#", " ").split())


def test_each_step_is_there_with_its_reason_and_in_its_order():
    spec = a_spec_of("flannel-host-gw")
    found = head()
    places = [found.index(f" {step.name} {step.why}") for step in make_plan(spec, STEPS).node_side]

    assert places == sorted(places)


def test_what_stays_on_the_machine_comes_from_the_spec():
    spec, found = a_spec_of("flannel-host-gw"), head()

    assert "services containerd, kubelet, flanneld, kube-proxy" in found
    assert (
        r"scheduled tasks \winboot\boot (at each start of the machine), \winboot\logs (every hour)" in found
    )
    for name in (rule.id for rule in spec.firewall):
        assert name in found
    for path in (spec.paths.kubelet_root, spec.paths.cluster_ca, spec.paths.cni_bin):
        assert path in found


def test_a_profile_without_an_agent_leaves_no_service_of_it():
    assert "flanneld" not in head("win-bridge").partition("What stays")[2]


def test_the_script_of_remove_begins_with_what_it_takes_away():
    found = head(undo=True)

    assert found.index(" kube-proxy services have no address") < found.index(" node-preflight ")
    assert "What winboot made is taken away" in found


def test_every_place_of_a_text_has_its_meaning_and_only_those_that_are_used_are_named():
    assert PLACES.keys() == set(get_args(KnownName))
    assert "<<pod_gateway>>" in head()
    assert "<<pod_gateway_v6>>" not in head()


def test_nothing_that_a_profile_says_leaves_the_comment():
    why = "x\nRemove-Item C:\\ -Recurse\r\u2028\u0085 y"
    spec = replace(a_spec_of("minimal"), steps=())
    own = Step(name="own\nthrow", why=why, source=StepSource("own", why, (), "", "", ""))
    plan = replace(make_plan(spec, STEPS), steps=(own,))

    text = opening(plan, spec, "")

    assert all(line.startswith("#") for line in text.splitlines())
    assert parse(text).end is None or not parse(text).end.statements
