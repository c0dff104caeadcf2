"""What a machine says of itself to `winboot verify` may be a lie in any form: it costs that machine's rows, and no more."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.node.test_probes import NOW, a_look, a_node
from tests.steps.builders import a_spec_of
from winboot.base.errors import ExcessiveOutput
from winboot.base.limits import LARGEST_FACTS, MOST_FACTS, MOST_NOISE
from winboot.node.facts import FORMS, facts_of
from winboot.node.probes import Probe, judge, look

SPEC = a_spec_of("flannel-vxlan")


class Machine:
    """Says these lines to any script."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines = lines
        self.taken = 0

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Any]) -> Iterator[str]:
        for line in self.lines:
            self.taken += 1
            yield line


def lines(facts: Mapping[str, Any]) -> Iterator[str]:
    return (json.dumps({"subject": name, "facts": some, "problem": ""}) for name, some in facts.items())


def whole() -> dict[str, Any]:
    """What a node says, with the keys that only a diagnosis reads."""
    facts: dict[str, Any] = copy.deepcopy(a_look())
    facts["networks"][0]["remotes"] = [{"prefix": "10.244.2.0/24", "hop": "10.0.1.12"}]
    facts["endpoints"][0] |= {"dns": "", "suffix": "", "gateway": "", "nat": True, "provider": ""}
    acl = dict.fromkeys(("Protocols", "LocalPorts", "RemotePorts", "RemoteAddresses"), "")
    acl |= {"Action": "Allow", "Direction": "In", "Priority": "100"}
    facts["endpoints"][0] |= {"exceptions": ["10.96.0.0/12"], "routes": [], "acls": [acl]}
    facts["balancers"][0]["to"] = ["10.244.1.4"]
    facts["routes"] = [{"prefix": "10.244.2.0/24", "hop": "10.0.1.12"}]
    facts["interfaces"] = [{"address": "10.0.1.11", "alias": "Ethernet", "mtu": 1500, "forwarding": True}]
    facts["rules"] = [{"name": "winboot-kubelet", "ok": True}]
    return facts | of_doctor()


def of_doctor() -> dict[str, list[dict[str, Any]]]:
    """One row of each subject that `winboot doctor` reads as well."""
    now = NOW.isoformat()
    return {
        "system": [
            {
                "name": "WIN-1",
                "build": 20348,
                "revision": 1,
                "booted": now,
                "pending": "",
                "page_file": "",
                "servicing": "",
                "path": 100,
                "containers": "Enabled",
                "ignored": [],
            }
        ],
        "known": [
            {
                "name": "hns",
                "state": "Running",
                "start": "auto",
                "end": "",
                "missing": [],
                "deleted": False,
                "waits": ["x"],
            }
        ],
        "events": [{"id": 7031, "subject": "kubelet", "count": 1}],
        "signatures": [{"service": "kubelet", "id": "unknown-flag", "count": 1}],
        "cni": [
            {"file": "a.conflist", "mark": False, "valid": True, "network": "cbr0", "plugins": ["flannel"]}
        ],
        "subnet": [{"network": "10.244.0.0/16", "subnet": "10.244.1.1/24"}],
        "adapters": [
            {"alias": "Ethernet", "address": "10.0.1.11", "state": "Preferred", "servers": ["10.0.0.2"]}
        ],
        "maker": [{"id": "", "what": "", "changed": []}],
        "gateways": [{"prefix": "0.0.0.0/0", "hop": "10.0.1.1", "alias": "Ethernet"}],
        "store": [{"used": 1, "vip": "", "sandboxes": 0, "shims": 0}],
        "credentials": [{"fault": "", "bootstrap": False, "broken": False, "serving": True}],
        "files": [{"path": "a", "size": 0, "written": now}],
    }


def probed(facts: Mapping[str, Any]) -> dict[str, Probe]:
    found = look(SPEC, Machine(lines(facts)), now=lambda: NOW)  # type: ignore[arg-type]
    return {one.id: one for one in judge(SPEC, found, a_node(SPEC), services=[])}


def test_what_is_right_is_believed() -> None:
    assert set(whole()) == set(FORMS)
    assert [one.seen for one in probed(whole()).values() if not one.passed] == []


VALUES = [
    None,
    [],
    {},
    [None],
    [{}],
    "x",
    -1,
    10**400,
    True,
    1.5,
    "9" * 5000,
    "0+99999999999",
    [[1]],
    [["a", "b"]],
]


@pytest.mark.parametrize("subject", list(FORMS))
def test_no_fact_in_another_form_ends_anything(subject: str) -> None:
    """Each key of the subject with each value, missing, and the facts as something else; KeyError and others were bugs."""
    good = whole()
    for value in VALUES:
        assert isinstance(probed({**good, subject: value}), dict)
        assert isinstance(probed({**good, subject: [value]}), dict)
    for key in good[subject][0]:
        for value in VALUES:
            lie = copy.deepcopy(good)
            lie[subject][0][key] = value
            told = probed(lie)
            assert all(isinstance(one.seen, str) for one in told.values())
        lie = copy.deepcopy(good)
        del lie[subject][0][key]
        found = look(SPEC, Machine(lines(lie)), now=lambda: NOW)  # type: ignore[arg-type]
        assert "answers are malformed" in found.problems[subject]


def test_what_is_left_out_is_named_and_no_probe_of_it_passes() -> None:
    lie = whole()
    del lie["disk"][0]["free"]

    assert probed(lie)["node-disk"].passed is None
    assert probed(lie)["node-disk"].seen == "1 of the machine's answers are malformed"


def test_nothing_moves_the_cursor_or_begins_a_line_of_another_node() -> None:
    lie = whole()
    lie["services"][0] |= {"name": "\x1b]0;owned\x07\nwin-2: node-services passed", "state": "Stopped"}

    seen = probed(lie)["node-services"].seen

    assert "\x1b" not in seen and "\n" not in seen
    assert "\\x1b]0;owned" in seen


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("warning", id="noise without an end"),
        pytest.param(json.dumps({"subject": "rules", "facts": []}), id="facts without an end"),
        pytest.param(json.dumps({"subject": "rules", "facts": ["x" * 100_000]}), id="long ones"),
        pytest.param("[" * 100_000, id="deep ones"),
    ],
)
def test_a_machine_that_does_not_end_is_named(line: str) -> None:
    machine = Machine(iter(lambda: line, None))

    with pytest.raises(ExcessiveOutput):
        look(SPEC, machine, now=lambda: NOW)  # type: ignore[arg-type]

    assert machine.taken <= MOST_NOISE + 2
    assert machine.taken * len(line) <= LARGEST_FACTS + (MOST_NOISE + 2) * 100 + len(line)


def test_many_facts_are_cut_and_said() -> None:
    right, wrong = facts_of("rules", [{"name": "x", "ok": True}] * (MOST_FACTS + 5))

    assert (len(right), wrong) == (MOST_FACTS, "5 of the machine's answers are malformed")
