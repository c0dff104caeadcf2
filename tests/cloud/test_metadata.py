"""The metadata service of a lab machine, asked by the script that the machine runs over WinRM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab
from winboot_lab.windows.sockets import Request, Response

from winboot.base.errors import CloudError, CloudUnreachable
from winboot.config.inventory import load_inventory
from winboot.remote.cloud.metadata import ADDRESS, Run, approve, probe, scheduled_events
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
        scheduled_events(asking(None))


def test_terminate_events_are_read_and_approved_for_the_machine_they_name(
    asking: Callable[[Imds | None], Run],
) -> None:
    imds = Imds()
    run = asking(imds)
    first, second = scheduled_events(run)
    assert first.not_before == datetime(2016, 9, 19, 18, 29, 47, tzinfo=UTC)
    assert (second.status, second.not_before) == ("Started", None)
    assert [first.names(name) for name in ("pool_0", "pool_1", "pool_2")] == [True, True, False]
    assert second.names("pool_0") and second.kind == "Reboot"
    approve(run, first)
    assert imds.approved == ["A-1"]


def test_an_event_that_azure_does_not_know_is_not_taken_for_approved(
    asking: Callable[[Imds | None], Run],
) -> None:
    run = asking(Imds())
    event = scheduled_events(run)[0]
    with pytest.raises(CloudError, match="HTTP 400"):
        approve(run, type(event)("C-3", "Terminate", "Scheduled", ("pool_0",), None))


def test_a_machine_that_says_something_else_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CloudError, match="no JSON"):
        probe(lambda script, arguments: ["warning: something"])
