"""What every transport promises, asked over real sockets, real TLS and real logins."""

from __future__ import annotations

import gc
import logging
import socket
import threading
import weakref
from contextlib import suppress

import pytest
from lab_wsman.stage import BASIC, NTLM, PASSWORD, Actor, node, says, transport
from winboot_lab.wsman.executor import Ended, ErrorRecord, Information, Position, SecureText

from winboot.base.errors import ScriptFailed
from winboot.base.secret import Secret

NASTY = "quotes ' \" ` ‘’ “” „ · ünïcödé · 漢字 · 🎉 · \t \r\n \x00 \x1b · _x0041_ · <&> ]]> · $(x) · \ufeff"


def test_output_arrives_while_the_script_still_runs(farm, mode):
    """Each line is there the moment it was written, not when the script ends."""
    seen = threading.Event()

    def play(script, parameters, emit, cancelled):
        emit("output", "first")
        assert seen.wait(10)
        emit("output", "second")
        return Ended()

    with transport(farm, node(farm, Actor(play)), mode) as wire:
        lines = wire.run("anything", {}, {})
        assert next(lines) == "first"
        seen.set()
        assert list(lines) == ["second"]


def test_other_streams_come_in_between_with_a_label(farm, mode):
    """Errors that do not end the script, warnings and the like keep their place among the output."""

    def play(script, parameters, emit, cancelled):
        emit("output", "one")
        emit("error", ErrorRecord("no such thing", error_id="PathNotFound,Get-Item"))
        emit("warning", "careful")
        emit("output", "two")
        emit("verbose", "chatty")
        emit("debug", "detail")
        emit("information", Information("by the way"))
        return Ended()

    with transport(farm, node(farm, Actor(play)), mode) as wire:
        lines = list(wire.run("anything", {}, {}))

    assert lines == [
        "one",
        "error: no such thing [PathNotFound,Get-Item]",
        "warning: careful",
        "two",
        "verbose: chatty",
        "debug: detail",
        "information: by the way",
    ]


def test_a_terminating_error_is_reported_with_its_place(farm, mode):
    """What the script said before is not lost, and the session can be used again."""
    error = ErrorRecord(
        "it broke",
        error_id="SomeId",
        position=Position(3, 5, "throw", "At line:3 char:5\n+ throw\n+ ~~~~~"),
        stack="at <ScriptBlock>, <No file>: line 3",
    )

    def play(script, parameters, emit, cancelled):
        emit("output", "before")
        return Ended("failed", error) if script == "fail" else Ended()

    with transport(farm, node(farm, Actor(play)), mode) as wire:
        lines = []
        with pytest.raises(ScriptFailed) as caught:
            lines.extend(wire.run("fail", {}, {}))
            lines.extend(wire.run("never", {}, {}))
        assert list(wire.run("go on", {}, {})) == ["before"]

    assert str(caught.value) == "win-a1: it broke"
    assert caught.value.error_id == "SomeId"
    assert "char:5" in caught.value.position
    assert caught.value.stack == error.stack


@pytest.mark.parametrize("size", [200_000, 600_000], ids=["one message", "several messages"])
def test_a_big_script_arrives_whole(farm, mode, size):
    """Scripts may exceed the smallest and the usual envelope of a Windows host."""
    script = "".join(f"# line {number} äöü\n" for number in range(size // 16))
    actor = says("done")

    with transport(farm, node(farm, actor), mode) as wire:
        assert list(wire.run(script, {}, {})) == ["done"]

    assert [text for text, _ in actor.runs] == [script]


class Text(str):
    """A script whose end can be seen: a plain string takes no weak references."""


def test_the_text_of_a_script_is_dropped_once_it_is_sent(farm, mode):
    """It is half a megabyte for each node, and some scripts run for half an hour."""
    script = Text("anything")
    left = weakref.ref(script)

    with transport(farm, node(farm, says("first", "second")), mode) as wire:
        lines = wire.run(script, {}, {})
        del script
        assert next(lines) == "first"
        gc.collect()
        assert left() is None
        assert list(lines) == ["second"]


def test_a_long_line_arrives_whole(farm, mode):
    """Output beyond one fragment, and beyond one answer, is put together again."""
    line = "äb" * 200_000

    with transport(farm, node(farm, says(line, "end")), mode) as wire:
        assert list(wire.run("anything", {}, {})) == [line, "end"]


def test_no_character_is_changed_on_the_way(farm, mode):
    """Neither in the script, nor in arguments, nor in output."""
    actor = Actor(lambda script, parameters, emit, cancelled: emit("output", parameters["Text"]) or Ended())

    with transport(farm, node(farm, actor), mode) as wire:
        assert list(wire.run(f"# {NASTY}", {"Text": NASTY}, {})) == [NASTY]

    assert actor.runs[0][0] == f"# {NASTY}"


def test_arguments_keep_their_types(farm, mode):
    """Also inside hashtables and lists."""
    arguments = {
        "Text": "",
        "Nothing": None,
        "Yes": True,
        "Small": -7,
        "Big": 2**40,
        "Fraction": 0.1,
        "Bytes": b"\x00\xff",
        "Facts": {"NodeIsLive": True, "Deep": {"Numbers": [1, 2, 3]}, "Empty": {}},
    }
    actor = says()

    with transport(farm, node(farm, actor), mode) as wire:
        assert list(wire.run("anything", arguments, {})) == []

    assert actor.runs[0][1] == arguments


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, Secret("x"), [Secret("x")]], ids=lambda value: type(value).__name__
)
def test_an_argument_without_a_plain_form_is_the_callers_mistake(farm, value):
    """A TypeError before anything is sent; above all for a secret in the wrong place."""
    machine = node(farm, says())
    with transport(farm, machine) as wire, pytest.raises(TypeError):
        list(wire.run("anything", {"A": value}, {}))
    assert machine.requests == []


def test_secrets_arrive_as_secure_strings(farm, mode):
    """In a hashtable parameter called Secrets, by name."""
    actor = says()
    secrets = {"bootstrap-token": Secret("abcdef.0123456789abcdef"), "registry/x": Secret("pä🎉ss")}

    with transport(farm, node(farm, actor), mode) as wire:
        list(wire.run("anything", {"Mode": "Change"}, secrets))

    assert actor.runs[0][1] == {
        "Mode": "Change",
        "Secrets": {
            "bootstrap-token": SecureText("abcdef.0123456789abcdef"),
            "registry/x": SecureText("pä🎉ss"),
        },
    }


def test_secrets_and_scripts_are_nowhere_to_be_read(farm, caplog):
    """Not on the wire, even where nothing else is encrypted, and not in the libraries' logs at their loudest."""
    caplog.set_level(logging.DEBUG)
    actor = says("done")
    machine = node(farm, actor)
    with Relay(machine.http_port) as relay, transport(farm, machine, BASIC, port=relay.port) as wire:
        list(wire.run("SCRIPT-TEXT", {}, {"token": Secret("TOP-SECRET")}))

    said = bytes(relay.heard)
    assert actor.runs[0][1]["Secrets"] == {"token": SecureText("TOP-SECRET")}
    for encoding in ("utf-8", "utf-16-le"):
        assert "TOP-SECRET".encode(encoding) not in said
    assert b"Command" in said
    assert "TOP-SECRET" not in caplog.text
    assert "SCRIPT-TEXT" not in caplog.text
    assert PASSWORD not in caplog.text


def test_the_password_is_in_no_repr(farm):
    """A log line with an endpoint or a transport in it gives nothing away."""
    machine = node(farm, says())
    wire = transport(farm, machine)

    assert PASSWORD not in repr(NTLM.endpoint(farm, machine)) + repr(wire) + str(vars(wire))


def test_a_second_run_uses_the_same_session(farm, mode):
    """One session for a node; the finished pipeline is forgotten before the next one starts."""
    machine = node(farm, says("done"))

    with transport(farm, machine, mode) as wire:
        for _ in range(3):
            assert list(wire.run("anything", {}, {})) == ["done"]
        actions = [seen.action for seen in machine.requests]
        assert actions.count("Create") == 1
        assert actions.count("Signal") == 2
        assert len(machine.shells) == 1


def test_leaving_early_stops_the_script(farm, mode):
    """A client that stops listening does not leave a script running."""
    stopped = threading.Event()

    def play(script, parameters, emit, cancelled):
        emit("output", "started")
        while not cancelled():
            threading.Event().wait(0.01)
        stopped.set()
        return Ended("stopped")

    with transport(farm, node(farm, Actor(play)), mode) as wire:
        lines = wire.run("anything", {}, {})
        assert next(lines) == "started"
        lines.close()
        assert stopped.wait(5)


@pytest.fixture
def no_collector():
    """Without the garbage collector: the code itself closes everything."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_closing_leaves_nothing_behind(farm, mode):
    """No shell and no connection on the machine; closing again does no harm."""
    machine = node(farm, says("done"))
    wire = transport(farm, machine, mode)
    list(wire.run("anything", {}, {}))

    wire.close()
    wire.close()

    assert machine.shells == ()
    assert _soon(lambda: machine.connections == 0)


def test_a_session_that_cannot_be_ended_ends_by_itself(farm):
    """winboot states at the start how long the machine keeps an unused session."""
    machine = node(farm, says("done"))
    wire = transport(farm, machine)
    list(wire.run("anything", {}, {}))
    [held] = machine._shells.values()

    assert held.idle_timeout == "PT60S"
    wire.close()


def _soon(claim) -> bool:
    deadline = threading.Event()
    return any(claim() or deadline.wait(0.01) for _ in range(500)) and claim()


class Relay:
    """A port that passes everything on to another one and remembers what it received."""

    def __init__(self, to: int) -> None:
        self.heard = bytearray()
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            for source, target in ((client, server), (server, client)):
                thread = threading.Thread(target=self._pass, args=(source, target))
                self._threads.append(thread)
                thread.start()

    def _pass(self, source, target):
        with source, target, suppress(OSError):
            while data := source.recv(65536):
                self.heard += data
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
