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
