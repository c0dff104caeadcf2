"""The metadata service of a lab machine, asked by the script that the machine runs over WinRM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab
from winboot_lab.windows.sockets import Request, Response

from winboot.base.errors import CloudError, CloudUnreachable
from winboot.config.inventory import load_inventory
from winboot.remote.cloud.metadata import ADDRESS, Run, approve, probe
from winboot.remote.transport.connect import connect

DOCUMENT = {
    "DocumentIncarnation": 2,
    "Events": [
        {
            "EventId": "A-1",
            "EventType": "Terminate",
            "ResourceType": "VirtualMachine",
            "Resources": ["pool_0", "POOL_1"],
            "EventStatus": "Scheduled",
            "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
        },
        {
            "EventId": "B-2",
            "EventType": "Reboot",
            "ResourceType": "VirtualMachine",
            "Resources": ["pool_0"],
            "EventStatus": "Started",
            "NotBefore": "",
        },
    ],
}


class Imds:
    """Azure's metadata service as a machine of the lab reaches it."""

    def __init__(self) -> None:
        self.approved: list[str] = []

    def handle(self, request: Request) -> Response:
        if request.headers.get("Metadata") != "true":
            return Response(400, b"Bad request: Required metadata header not specified")
        if request.method == "POST":
            starts = json.loads(request.body)["StartRequests"]
            known = {one["EventId"] for one in DOCUMENT["Events"]}  # type: ignore[index, attr-defined]
            if any(one["EventId"] not in known for one in starts):
                return Response(400, b"{}")
            self.approved += [one["EventId"] for one in starts]
            return Response(200, b"")
        return Response(200, json.dumps(DOCUMENT).encode())


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Imds | None], Run]]:
    """Ways to ask a machine whose metadata service is that one, or which has none."""
    with Lab(nodes=1) as lab, pytest.MonkeyPatch.context() as patch:
        staged = stage(lab, tmp_path_factory.mktemp("lab"))
        patch.setenv(staged.password_variable, staged.password)
        machine = load_inventory(staged.inventory)["win-1"]
        world = lab.nodes["win-1"].machine.world

        def run(script: str, arguments: Mapping[str, object]) -> Iterable[str]:
            with connect(machine.connection, name="win-1") as transport:
                yield from transport.run(script, arguments, {})

        def through(imds: Imds | None) -> Run:
            world.servers.pop((ADDRESS, 80), None)
            if imds is not None:
                world.serve(ADDRESS, 80, imds.handle)
            return run

        yield through


def test_a_refusal_proves_the_way_to_the_metadata_service(asking: Callable[[Imds | None], Run]) -> None:
    answer = probe(asking(Imds()))
    assert (answer.reached, answer.status) == (True, 400)


def test_a_lost_route_is_an_answer_that_never_came(asking: Callable[[Imds | None], Run]) -> None:
    answer = probe(asking(None))
    assert not answer.reached
    assert answer.problem in ("ConnectFailure", "Timeout")
    with pytest.raises(CloudUnreachable, match=ADDRESS):
        approve(asking(None), "A-1", "pool_0")


def test_an_event_is_approved_for_the_machine_that_it_names(asking: Callable[[Imds | None], Run]) -> None:
    imds = Imds()

    assert approve(asking(imds), "A-1", "pool_1")

    assert imds.approved == ["A-1"]


@pytest.mark.parametrize(
    ("event", "machine"),
    [("C-3", "pool_0"), ("A-1", "pool_2"), ("B-2", "pool_0")],
    ids=["unknown", "of another machine", "begun"],
)
def test_an_event_that_does_not_wait_for_this_machine_is_not_approved(
    asking: Callable[[Imds | None], Run], event: str, machine: str
) -> None:
    imds = Imds()

    assert not approve(asking(imds), event, machine)

    assert imds.approved == []


# What a machine may answer about its metadata service; each is one line of the script.
GOOD: dict[str, object] = {"status": 200, "problem": "", "body": json.dumps(DOCUMENT)}
MALFORMED = [
    "warning: something",
    "[" * 100_000,
    "5",
    json.dumps({"status": 200}),
    json.dumps({**GOOD, "status": "many"}),
    *(
        json.dumps({**GOOD, "body": body})
        for body in (
            "not json",
            "[5]",
            '{"Events":[{}]}',
            '{"Events":[{"EventId":"A-1","EventType":"Terminate","EventStatus":"Scheduled","Resources":5}]}',
            '{"Events":[{"EventId":5,"EventType":"Terminate","EventStatus":"Scheduled","Resources":["pool_0"]}]}',
            "[" * 100_000,
            '{"Events":' + "[" * 100_000,
            "<html>Please log in</html>",
        )
    ),
]


def test_an_answer_of_another_form_is_an_error_of_the_machine() -> None:
    for line in MALFORMED:
        with pytest.raises(CloudError):
            approve(lambda script, arguments, line=line: [line], "A-1", "pool_0")  # type: ignore[misc]
