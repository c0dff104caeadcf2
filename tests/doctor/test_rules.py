"""Rules whose facts the lab cannot show, on documents."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tests.doctor.documents import documents
from tests.lab.site import Site
from winboot.operations.doctor import judge


def test_a_containerd_that_runs_and_does_not_answer_is_the_first_cause(
    joined_site: Callable[[str], Site],
) -> None:
    (document,) = documents(joined_site("plain"))
    silent = msgspec.structs.replace(document, machine={**document.machine, "runtime": []})

    (found,) = judge([silent])

    assert found.first is not None
    assert (found.first.rule.id, found.first.evidence) == ("runtime-silent", ("crictl info got no answer",))


def test_another_solutions_network_and_its_endpoints_are_no_leftovers(
    joined_site: Callable[[str], Site],
) -> None:
    (document,) = documents(joined_site("plain"))
    machine = document.machine
    own = machine["networks"]
    foreign = {**own[0], "name": "antrea-hnsnetwork", "type": "Transparent"}
    loose = {**machine["endpoints"][0], "name": "loose", "state": 1, "network": "antrea-hnsnetwork"}
    beside = {"networks": [*own, foreign], "endpoints": [*machine["endpoints"], loose]}
    blocked = {
        "networks": [foreign],
        "signatures": [{"id": "object-exists", "service": "flanneld", "count": 2}],
    }

    (quiet,) = judge([msgspec.structs.replace(document, machine={**machine, **beside})])
    (loud,) = judge([msgspec.structs.replace(document, machine={**machine, **blocked})])

    assert quiet.findings == ()
    (found,) = [one for one in loud.findings if one.rule.id == "hns-object-exists"]
    assert "the network antrea-hnsnetwork is here: antrea" in found.evidence
