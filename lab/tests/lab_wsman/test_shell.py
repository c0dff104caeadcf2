"""Shells and pipelines as a client's library sees them: pypsrp, unchanged, against the endpoint."""

from __future__ import annotations

import threading
import time
import uuid
from xml.etree import ElementTree

import pytest
from pypsrp.complex_objects import PSInvocationState
from pypsrp.exceptions import WinRMTransportError, WSManFaultError
from pypsrp.powershell import PowerShell, RunspacePool
from pypsrp.serializer import TaggedValue
from pypsrp.shell import SignalCode
from pypsrp.wsman import NAMESPACES, WSMan, WSManAction
from winboot_lab.wsman.executor import Ended, ErrorRecord, SecureText
from winboot_lab.wsman.farm import Farm
from winboot_lab.wsman.faults import Fault

from lab_wsman.stage import PASSWORD, USER, Actor, node, says


@pytest.fixture
def farm():
    with Farm() as farm:
        yield farm


def wsman(machine, auth: str = "ntlm", **changes) -> WSMan:
    given = {
        "username": USER,
        "password": PASSWORD,
        "ssl": False,
        "port": machine.http_port,
        "auth": auth,
        **changes,
    }
    if auth == "basic":
        given["encryption"] = "never"
    return WSMan("127.0.0.1", **given)


def invoke(pool: RunspacePool, script: str = "anything", **parameters) -> PowerShell:
    shell = PowerShell(pool)
    shell.add_script(script).add_parameters(parameters)
    shell.invoke()
    return shell


@pytest.mark.parametrize("auth", ["ntlm", "negotiate", "basic"])
def test_an_unchanged_client_runs_a_script(farm, auth):
    """Output, errors, state and the first-use progress record."""
    error = ErrorRecord("no", error_id="Id")

    def play(script, parameters, emit, cancelled):
        emit("output", "one")
        emit("error", error)
        emit("output", {"a": 1})
        return Ended("failed", error)

    with RunspacePool(wsman(node(farm, Actor(play)), auth)) as pool:
        shell = invoke(pool)

    assert shell.output[0] == "one"
    assert shell.had_errors
    assert [str(each) for each in shell.streams.error] == ["no", "no"]
    assert [each.activity for each in shell.streams.progress] == ["Preparing modules for first use."]


def test_the_opening_takes_two_answers(farm):
    """Recorded: what the server can do and its versions first, then that the pool is open."""
    machine = node(farm, says())
    with RunspacePool(wsman(machine)) as pool:
        assert pool.protocol_version == "2.3"
        table = pool.application_private_data.data["PSVersionTable"]
        assert table["PSVersion"] == machine.settings.ps_version
    assert [seen.action for seen in machine.requests if seen.action] == [
        "Create",
        "Receive",
        "Receive",
        "Delete",
    ]


def test_secure_strings_are_decrypted_with_the_exchanged_key(farm):
    """Alone, and inside a hashtable."""
    actor = says()
    with RunspacePool(wsman(node(farm, actor))) as pool:
        pool.exchange_keys()
        invoke(pool, A=TaggedValue("SS", "plain"), B={"deep": TaggedValue("SS", "päß🎉")})

    assert actor.runs[0][1] == {"A": SecureText("plain"), "B": {"deep": SecureText("päß🎉")}}
    assert "plain" not in repr(actor.runs)


def test_a_quiet_pipeline_times_out_and_continues(farm):
    """Fault 2150858793 says that there was nothing to say; the pipeline is not disturbed."""

    def play(script, parameters, emit, cancelled):
        time.sleep(1.3)
        emit("output", "late")
        return Ended()

    machine = node(farm, Actor(play))
    with RunspacePool(wsman(machine, operation_timeout=1)) as pool:
        assert invoke(pool).output == ["late"]
    assert [seen.status for seen in machine.requests].count(500) == 1


def test_the_same_receive_gets_the_same_answer(farm):
    """By MessageID: a client that lost an answer asks again and loses nothing."""
    machine = node(farm, says("one"))
    connection = wsman(machine, "basic")
    pool = RunspacePool(connection)
    pool.open()
    shell = PowerShell(pool)
    shell.add_script("anything")
    shell.begin_invoke()
    envelope = _receive_envelope(connection, pool, shell)

    first = ElementTree.fromstring(connection.transport.send(envelope))
    second = ElementTree.fromstring(connection.transport.send(envelope))

    streams = "s:Body/rsp:ReceiveResponse/rsp:Stream"
    assert [each.text for each in first.iterfind(streams, NAMESPACES)] == [
        each.text for each in second.iterfind(streams, NAMESPACES)
    ]
    pool.close()


def _receive_envelope(connection: WSMan, pool: RunspacePool, shell: PowerShell) -> bytes:
    sent = []
    send = connection.transport.send
    connection.transport.send = lambda message, **_: sent.append(message) or b"<x/>"
    with pytest.raises(Exception, match="related id"):
        pool._receive(shell.id)
    connection.transport.send = send
    return sent[0]


def test_a_newer_receive_takes_over(farm):
    """Two at once: the older one ends with 995, output goes to one of them only."""
    go = threading.Event()

    def play(script, parameters, emit, cancelled):
        go.wait(5)
        emit("output", "for one only")
        return Ended()

    machine = node(farm, Actor(play))
    first, second = wsman(machine, "basic"), wsman(machine, "basic")
    pool = RunspacePool(first)
    pool.open()
    shell = PowerShell(pool)
    shell.add_script("anything")
    shell.begin_invoke()
    pool._receive(shell.id)  # the progress record
    outcomes = []

    def ask(connection):
        copy = RunspacePool(connection)
        copy.id = pool.id
        copy.shell.id, copy.shell._selector_set = pool.shell.id, pool.shell._selector_set
        copy.pipelines[shell.id] = shell
        try:
            outcomes.append(copy.shell.receive("stdout", command_id=shell.id)[2]["stdout"])
        except WSManFaultError as fault:
            outcomes.append(fault.code)

    older = threading.Thread(target=ask, args=(wsman(machine, "basic"),))
    older.start()
    time.sleep(0.2)
    newer = threading.Thread(target=ask, args=(second,))
    newer.start()
    older.join(5)
    assert outcomes == [995]
    go.set()
    newer.join(5)
    assert b"for one only" in outcomes[1]
    pool.close()


def test_terminate_stops_and_forgets_a_pipeline(farm):
    """After that its id is unknown: fault 2150858843."""
    stopped = threading.Event()

    def play(script, parameters, emit, cancelled):
        while not cancelled():
            time.sleep(0.01)
        stopped.set()
        return Ended("stopped")

    with RunspacePool(wsman(node(farm, Actor(play)))) as pool:
        shell = PowerShell(pool)
        shell.add_script("anything")
        shell.begin_invoke()
        pool.shell.signal(SignalCode.TERMINATE, shell.id)
        assert stopped.wait(5)
        with pytest.raises(WSManFaultError) as caught:
            shell.poll_invoke()
        assert caught.value.code == 2150858843


def test_ctrl_c_stops_a_pipeline_and_says_so(farm):
    """It ends as Stopped, with PowerShell's own error."""

    def play(script, parameters, emit, cancelled):
        while not cancelled():
            time.sleep(0.01)
        return Ended("stopped")

    with RunspacePool(wsman(node(farm, Actor(play)))) as pool:
        shell = PowerShell(pool)
        shell.add_script("anything")
        shell.begin_invoke()
        pool.shell.signal(SignalCode.PS_CTRL_C, shell.id)
        while shell.state == PSInvocationState.RUNNING:
            shell.poll_invoke()
        assert shell.state == PSInvocationState.STOPPED
        assert [each.fq_error for each in shell.streams.error] == ["PipelineStopped"]


def test_a_shell_survives_a_disconnect(farm):
    """Its answers have an empty body; the state is seen by Get."""
    machine = node(farm, says("done"))
    with RunspacePool(wsman(machine)) as pool:
        pool.disconnect()
        assert pool.shell._get_shell()["State"] == "Disconnected"
        pool.connect()
        assert pool.shell._get_shell()["State"] == "Connected"
        assert invoke(pool).output == ["done"]


def test_the_number_of_runspaces_can_be_asked_for(farm):
    """pypsrp writes CI where psrpcore reads ci."""
    with RunspacePool(wsman(node(farm, says())), max_runspaces=3) as pool:
        assert pool.get_available_runspaces() == 3
        pool.max_runspaces = 5
        assert pool.get_available_runspaces() == 5
        pool.reset_runspace_state()


def test_quotas_are_faults(farm):
    """Shells for a user, commands in a shell."""
    machine = node(farm, says(), max_shells=1, max_commands=2)
    with RunspacePool(wsman(machine)) as pool:
        with pytest.raises(WSManFaultError) as caught:
            RunspacePool(wsman(machine)).open()
        assert caught.value.code == 2150859173
        for _ in range(2):
            invoke(pool)
        with pytest.raises(WSManFaultError) as caught:
            invoke(pool)
        assert caught.value.code == 2150859174


def test_an_unused_shell_ends(farm):
    """After the time that its client asked for."""
    machine = node(farm, says())
    pool = RunspacePool(wsman(machine), idle_timeout=1)
    pool.open()
    assert machine.shells == (pool.id,)

    assert _soon(lambda: machine.shells == ())
    with pytest.raises(WSManFaultError) as caught:
        pool.close()
    assert caught.value.code == 2150858843


def test_ids_are_the_clients_and_used_once(farm):
    """So a client that lost an answer can ask by id; a second one with the same id is refused."""
    machine = node(farm, says())
    with RunspacePool(wsman(machine)) as pool:
        again = RunspacePool(wsman(machine))
        again.id = again.shell.id = pool.id
        with pytest.raises(WSManFaultError):
            again.open()
        shell = invoke(pool)
        twin = PowerShell(pool)
        twin.id = shell.id
        twin.add_script("anything")
        with pytest.raises(WSManFaultError):
            twin.begin_invoke()


@pytest.mark.parametrize("action", [WSManAction.ENUMERATE, WSManAction.PUT, "http://x/Nonsense"])
def test_what_the_endpoint_does_not_know_is_a_fault(farm, action):
    """And no silence."""
    machine = node(farm, says())
    with RunspacePool(wsman(machine)) as pool, pytest.raises(WSManFaultError):
        pool.connection.invoke(action, pool.shell.resource_uri, None, selector_set=pool.shell._selector_set)


@pytest.mark.parametrize(
    "body", [b"<x/>", b"not xml", b"<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'/>"]
)
def test_what_is_no_envelope_is_a_fault(farm, body):
    """HTTP 500, as WinRM answers."""
    connection = wsman(node(farm, says()))
    with pytest.raises(WinRMTransportError) as caught:
        connection.transport.send(body)
    assert caught.value.code == 500


def test_broken_fragments_are_a_fault(farm):
    """A Command whose fragments make no sense starts nothing."""
    actor = says()
    with RunspacePool(wsman(node(farm, actor))) as pool:
        for data in ("", "!!!", "AAAA", "A" * 64):
            with pytest.raises(WSManFaultError):
                pool.shell.command("", [data], command_id=str(uuid.uuid4()))
    assert actor.runs == []


def test_a_planned_fault_comes_as_often_as_planned(farm):
    """Then the machine is itself again."""
    machine = node(farm, says("done"))
    machine.faults.on("Command", Fault(2150859174), times=2)
    with RunspacePool(wsman(machine)) as pool:
        for _ in range(2):
            with pytest.raises(WSManFaultError):
                invoke(pool)
        assert invoke(pool).output == ["done"]


def _soon(claim) -> bool:
    return any(claim() or time.sleep(0.05) for _ in range(100))
