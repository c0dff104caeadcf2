"""Border parsers: of any text of a caller, machine or queue only declared errors come out (`make fuzz`)."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.anything import EXAMPLES, JSON, TEXTS, objects, texts_of
from winboot.base.errors import CloudError, InvalidInput
from winboot.node.facts import FORMS, facts_of, said
from winboot.operations.firstboot.endpoint import Nonces, _one_line
from winboot.operations.firstboot.hello import Hello
from winboot.operations.server import Request, _Connection, _named_by
from winboot.remote.cloud.aws_messages import parse
from winboot.remote.cloud.base import HookAction, Nothing
from winboot.remote.cloud.metadata import Answer, _document, reported_events

pytestmark = pytest.mark.nightly
NAMES = ("uuid", "computer_name", "addresses", "host", "voucher", "document", "nonce")
HELLOS = objects(*NAMES)
HEADS = st.lists(
    st.sampled_from(
        [
            b"POST",
            b"GET",
            b" ",
            b"/v1/said",
            b"HTTP/1.1",
            b"\r\n",
            b":",
            b"Content-Length",
            b"Host: x",
            b"chunked",
        ]
    )
    | st.binary(max_size=20),
    max_size=30,
).map(b"".join)


@EXAMPLES
@given(HELLOS)
def test_a_hello_is_read_or_refused(said: Any) -> None:
    try:
        hello = Hello.read(json.loads(json.dumps(said)), "10.0.0.1")
    except InvalidInput:
        return
    for text in (hello.uuid, hello.computer_name, hello.host, hello.voucher, *hello.addresses):
        assert text.isprintable()
        text.encode()


@EXAMPLES
@given(JSON)
def test_a_nonce_that_was_not_given_is_refused(said: Any) -> None:
    assert not Nonces().good(said, "10.0.0.1")


@EXAMPLES
@given(st.binary(max_size=107) | st.text().map(lambda text: f"PROXY TCP4 {text}\r\n".encode()))
def test_a_line_of_a_balancer_names_an_address_or_is_refused(line: bytes) -> None:
    try:
        socket.inet_pton(
            socket.AF_INET6 if ":" in (named := _named_by(line)) else socket.AF_INET, named.split("%")[0]
        )
    except ValueError:
        return


@EXAMPLES
@given(TEXTS)
def test_a_sentence_fits_a_header(text: str) -> None:
    h11.Response(status_code=200, headers=[("Winboot-Word", _one_line(text))])


@EXAMPLES
@given(HEADS)
def test_a_request_is_read_or_refused(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        connection = _Connection(ours, "10.0.0.1", None)
        try:
            assert isinstance(connection.request(), Request)
            connection.body(10)
        except (h11.RemoteProtocolError, OSError):
            return


# ---- texts of machines, annotations and queues ---------------------------------------------------------------------

EVENT_KEYS = (
    "DocumentIncarnation",
    "Events",
    "EventId",
    "EventType",
    "EventStatus",
    "Resources",
    "NotBefore",
)
EVENTS = objects(*EVENT_KEYS, words=("Terminate", "Scheduled", "Thu, 01 Jan 1970 00:00:00 GMT"))
MESSAGE_KEYS = (
    "Type",
    "Message",
    "source",
    "detail",
    "detail-type",
    "time",
    "instance-id",
    "Event",
    "LifecycleTransition",
)
MESSAGE_WORDS = (
    *("Notification", "aws.autoscaling", "aws.ec2", "aws.health", "EC2 Spot Instance Interruption Warning"),
    *("autoscaling:EC2_INSTANCE_LAUNCHING", "i-0123456789abcdef0"),
)


@EXAMPLES
@given(texts_of(EVENTS))
def test_an_answer_of_a_metadata_service_is_read_or_refused(text: str) -> None:
    with suppress(CloudError):
        _document(Answer(200, text))


@EXAMPLES
@given(
    st.lists(st.sampled_from("|;") | TEXTS | st.just("Thu, 01 Jan 1970 00:00:00 GMT"), max_size=12).map(
        "".join
    )
)
def test_an_annotation_of_a_machine_names_events_or_nothing(text: str) -> None:
    for event in reported_events(text):
        assert event.not_before is None or event.not_before.tzinfo is not None


@EXAMPLES
@given(texts_of(objects(*MESSAGE_KEYS, words=MESSAGE_WORDS)))
def test_a_message_of_a_queue_is_an_action_or_nothing(text: str) -> None:
    assert isinstance(parse(text), HookAction | Nothing)


@EXAMPLES
@given(st.sampled_from(sorted(FORMS)), JSON, TEXTS)
def test_facts_of_a_machine_have_their_form_or_are_left_out(subject: str, facts: Any, noise: str) -> None:
    for line in said([noise, json.dumps({subject: facts})], subject):
        right, _ = facts_of(subject, line[subject])
        assert all(FORMS[subject](one) for one in right)
