"""Requests from bytes: in any pieces, and whatever nonsense comes."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from winboot_lab.wsman.farm import Farm
from winboot_lab.wsman.http import BadRequest, Parser, Response

from lab_wsman.stage import node, says

BODIES = st.lists(st.binary(max_size=300), min_size=1, max_size=4)


def request(body: bytes) -> bytes:
    return b"POST /wsman HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@given(BODIES, st.lists(st.integers(1, 40), min_size=1))
def test_requests_are_found_in_any_pieces(bodies, sizes):
    """TCP keeps no borders: bytes arrive one by one or three requests at a time."""
    data = b"".join(request(body) for body in bodies)
    parser, found, start, turn = Parser(1000), [], 0, 0
    while start < len(data):
        size = sizes[turn % len(sizes)]
        parser.feed(data[start : start + size])
        while (one := parser.next()) is not None:
            found.append(one.body)
        start, turn = start + size, turn + 1

    assert found == bodies


@given(st.binary(max_size=400))
def test_nonsense_is_refused_or_waits(data):
    """Nothing that comes in raises anything but BadRequest."""
    parser = Parser(1000)
    parser.feed(data)
    try:
        while parser.next() is not None:
            pass
    except BadRequest:
        pass


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00",
        b"POST /wsman\r\n\r\n",
        b"POST /wsman HTTP/1.1\r\nNoColon\r\n\r\n",
        b"POST /wsman HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /wsman HTTP/1.1\r\nContent-Length: 1001\r\n\r\n",
        b"POST /wsman HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"A" * 70_000,
    ],
)
def test_what_no_client_sends_is_a_bad_request(data):
    """TLS on the wrong port, broken headers, lengths that cannot be."""
    parser = Parser(1000)
    parser.feed(data)
    with pytest.raises(BadRequest):
        parser.next()


def test_an_answer_says_its_length():
    """Also an empty one: clients know a whole answer by it."""
    assert b"Content-Length: 0\r\n\r\n" in Response(401).encode()
    assert (
        Response(200, (("A", "b"),), b"xy")
        .encode()
        .endswith(b"A: b\r\nServer: Microsoft-HTTPAPI/2.0\r\nContent-Length: 2\r\n\r\nxy")
    )


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /wsman HTTP/1.1\r\n\r\n", b"405"),
        (b"POST /other HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /wsman HTTP/1.1\r\n\r\n", b"401"),
        (b"\x16\x03\x01", b"400"),
        (b"POST /wsman HTTP/1.1\r\nAuthorization: Negotiate !!!\r\n\r\n", b"401"),
        (b"POST /wsman HTTP/1.1\r\nAuthorization: Basic QQ==\r\n\r\n", b"401"),
        (b"POST /wsman HTTP/1.1\r\nAuthorization: Negotiate TlRMTVNTUAADAAAA\r\n\r\n", b"401"),
    ],
)
def test_a_stranger_gets_a_status_and_nothing_else(sent, status):
    """Asked by raw sockets."""
    with Farm() as farm:
        machine = node(farm, says())
        with socket.create_connection(("127.0.0.1", machine.http_port)) as client:
            client.settimeout(5)
            client.sendall(sent)
            assert client.recv(4096).split(b" ")[1] == status
        assert machine.shells == ()
        assert machine.crashes == []


def test_requests_in_one_packet_are_answered_in_order():
    """One after the other, on one connection."""
    with Farm() as farm:
        machine = node(farm, says())
        with socket.create_connection(("127.0.0.1", machine.http_port)) as client:
            client.settimeout(5)
            client.sendall(b"GET /wsman HTTP/1.1\r\n\r\nPOST /other HTTP/1.1\r\n\r\n")
            data = b""
            while data.count(b"HTTP/1.1") < 2:
                data += client.recv(4096)
        assert data.index(b" 405 ") < data.index(b" 404 ")
