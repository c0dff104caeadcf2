"""A script begins with its steps, their reasons and their traces, for the administrator who approves it."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from winboot_lab.language.parser import parse

from tests.steps.bench import Bench
from tests.steps.builders import a_spec, a_spec_of
from winboot.config.networks.base import KnownName
from winboot.config.node_spec import StepSource
from winboot.script.library import library
from winboot.script.opening import PLACES, opening
from winboot.script.plan import make_plan
from winboot.script.rendering import MODES, UNDO_MODES, render
from winboot.script.steps import STEPS
from winboot.script.steps.step import Step


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
    boot, guard = r"\winboot\boot (at each start of the machine)", r"\winboot\guard (while networks are made)"
    assert rf"scheduled tasks {boot}, {guard}, \winboot\logs (every hour)" in found
    for name in (rule.id for rule in spec.firewall):
        assert name in found
    for path in (spec.paths.kubelet_root, spec.paths.cluster_ca, spec.paths.cni_bin):
        assert path in found


# A profile that changes everything about Windows itself that it can.
ALL_OF_WINDOWS = {
    "update_hold: false": """update_hold: true
  trust_roots: [{file: ./ca.crt}]
  long_paths: true
  crash_dump: kernel
  power_plan: high-performance
  time_servers: [time.corp.example]
  excluded_ports: [{start: 40000, count: 10}]""",
    "defender_exclusions: false": "defender_exclusions: true",
    "page_file_mib: system": "page_file_mib: 4096",
}
STEPS_OF_WINDOWS = (
    "firewall-rules",
    "defender-exclusions",
    "trust-roots",
    "computer-name",
    "system-settings",
    "dynamic-ports",
)
# What the opening calls the thing that a note of this kind is about; `key` is the note's.
NAMES = {
    "FirewallRule": "{key} (",
    "Exclusion": "{key}",
    "Root": "SHA-1 {key}",
    "ComputerName": "computer name WIN-A1",
    "Registry": "HKLM\\{key} = ",
    "PowerPlan": "power plan high-performance",
    "PortRange": "ports of clients ",
    "ExcludedRange": "ports excluded from client use 40000-40009",
}
# Registry values that the opening says in plain words.
PLAIN = {
    r"Session Manager\Memory Management\PagingFiles": r"page file C:\pagefile.sys, 4096 MiB",
    r"W32Time\Parameters\Type": "time from time.corp.example",
    r"W32Time\Parameters\NtpServer": "time from time.corp.example",
    r"w32time\Start": "service w32time automatic",
}


def announced(note: dict[str, Any]) -> str:
    """How the opening names what this note of a change is about."""
    key = note["key"].removeprefix("path ")
    plain = next(
        (text for end, text in PLAIN.items() if note["kind"] == "Registry" and key.endswith(end)), None
    )
    return plain or NAMES[note["kind"]].format(key=key)


def notes(bench: Bench) -> Iterator[dict[str, Any]]:
    """What the machine noted before each change that these steps made."""
    for step in STEPS_OF_WINDOWS:
        lines = (bench.file(rf"C:\ProgramData\winboot\former\{step}.jsonl") or b"").decode().splitlines()
        yield from (json.loads(line) for line in lines if line)


def test_whatever_these_steps_change_on_a_machine_was_announced():
    bench = Bench(spec=a_spec(**ALL_OF_WINDOWS))
    plan = make_plan(bench.spec, STEPS)
    text = render(plan, bench.spec).text
    found = " ".join(text[: text.index("param(")].partition("These objects")[2].replace("\n#", " ").split())

    bench.run(*STEPS_OF_WINDOWS)
    changed = list(notes(bench))

    assert {one["kind"] for one in changed} == set(NAMES)
    assert [announced(one) for one in changed if announced(one) not in found] == []


def test_a_profile_that_changes_none_of_it_does_not_speak_of_it():
    found = head("win-bridge").partition("These objects stay")[2]

    for kind in (
        "Defender exclusions",
        "trusted roots",
        "registry values",
        "power plan",
        "time from",
        "excluded from",
    ):
        assert kind not in found


def test_all_networks_of_a_node_are_named():
    assert "HNS networks cbr0, External" in head()
    assert "HNS networks External, Calico" in head("calico-node")


def test_a_path_with_a_blank_can_be_looked_for_by_its_text():
    spec = a_spec_of("flannel-host-gw")
    lines = render(make_plan(spec, STEPS), spec).text.partition("param(")[0].splitlines()

    paths = [member.destination for artifact in spec.artifacts for member in artifact.members]
    paths.append(spec.paths.containerd_config)
    assert any(" " in path for path in paths)
    assert [path for path in paths if not any(path in line for line in lines)] == []


def test_each_mode_of_the_script_is_explained():
    spec = a_spec_of("flannel-host-gw")
    told = {undo: render(make_plan(spec, STEPS), spec, undo=undo).node_part for undo in (False, True)}
    begin = {undo: text.partition("# Mode ")[2].partition("param(")[0] for undo, text in told.items()}

    assert [mode for mode in MODES if mode not in begin[False]] == []
    assert [mode for mode in UNDO_MODES if mode not in begin[True]] == []
    assert set(
        re.findall(r"^    '(\w+)' {", library().text.partition("switch ($Mode) {")[2], re.MULTILINE)
    ) == {
        *MODES,
        *UNDO_MODES,
    }


def test_the_files_that_hold_secrets_are_named_without_what_is_in_them():
    assert "files with secrets C:" in head()


def test_a_profile_without_an_agent_leaves_no_service_of_it():
    assert "flanneld" not in head("win-bridge").partition("These objects stay")[2]


def test_the_script_of_remove_begins_with_what_it_removes():
    found = head(undo=True)

    assert found.index(" kube-proxy without kube-proxy, services") < found.index(" node-preflight ")
    assert "winboot removes the objects" in found


def test_every_place_of_a_text_has_its_meaning_and_only_those_that_are_used_are_named():
    assert PLACES.keys() == set(get_args(KnownName))
    assert "<<pod_gateway>>" in head()
    assert "<<pod_gateway_v6>>" not in head()


def test_nothing_that_a_profile_says_leaves_the_comment():
    why = "x\nRemove-Item C:\\ -Recurse\r\u2028\u0085 y"
    spec = replace(a_spec_of("minimal"), steps=())
    own = Step(name="own\nthrow", why=why, source=StepSource("own", why, (), "", "", ""))
    plan = replace(make_plan(spec, STEPS), steps=(own,))

    text = opening(plan, spec, "", {}, library="0" * 64)

    assert all(line.startswith("#") for line in text.splitlines())
    assert parse(text).end is None or not parse(text).end.statements
