"""Each exception of the libraries below becomes a winboot error: the test walks the classes, without a list."""

from __future__ import annotations

import binascii
import builtins
import http.client
import importlib
import inspect
import pkgutil
import socket
import ssl
import struct
import sys
import warnings
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree

import paramiko
import pypsrp
import pytest
import requests
import spnego
import urllib3
from pypsrp.encryption import WinRMEncryption
from pypsrp.exceptions import WinRMTransportError, WSManFaultError
from pypsrp.messages import Message
from pypsrp.powershell import Fragment
from pypsrp.serializer import Serializer
from pypsrp.wsman import SelectorSet
from spnego.exceptions import FeatureMissingError, SpnegoError

from tests.every import assert_none_wrong, untrue
from winboot.base.errors import (
    AccessDenied,
    Busy,
    CertificateNotTrusted,
    ConnectionLost,
    LoginRefused,
    ProtocolError,
    TransportError,
    Unreachable,
    UsageError,
    WinbootError,
)
from winboot.base.secret import Secret
from winboot.remote.transport.base import Endpoint
from winboot.remote.transport.failures import LIBRARY_ERRORS, QUOTAS, SHORT, translate
from winboot.remote.transport.psrp import _last_error, _value
from winboot.remote.transport.ssh import _common_algorithms
from winboot.remote.transport.wire import Connection

# Command-line tools and plug-ins for other programs, which importing would run or need.
_NOT_OURS = (
    "__main__",
    "contrib.emscripten",
    "contrib.pyopenssl",
    "contrib.socks",
    "_sspi",
    "http2",
    "_version",
)


def classes_of(package) -> Iterator[type[Exception]]:
    """Every exception class that any module of `package` defines."""
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if any(info.name.endswith(part) or f".{part}." in info.name for part in _NOT_OURS):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(info.name)
        for value in vars(module).values():
            if _is_error(value) and value.__module__.startswith(package.__name__):
                yield value


def _is_error(value: object) -> bool:
    return (
        inspect.isclass(value)
        and issubclass(value, Exception)
        and not issubclass(value, Warning)
        and not value.__name__.startswith("_")
    )


def classes_in(*modules) -> Iterator[type[Exception]]:
    """The exception classes of plain modules, and the OSErrors of Python itself."""
    for module in modules:
        yield from (value for value in vars(module).values() if _is_error(value))
    yield from (value for value in vars(builtins).values() if _is_error(value) and issubclass(value, OSError))


ALL = sorted(
    {
        *classes_of(pypsrp),
        *classes_of(requests),
        *classes_of(urllib3),
        *classes_of(spnego),
        *classes_in(ssl, socket, http.client),
    },
    key=lambda kind: f"{kind.__module__}.{kind.__qualname__}",
)


_WHAT_THEY_PRINT = {"expected": 1, "length": b"", "response": None}


def an_instance(kind: type[Exception]) -> Exception:
    """Made without its constructor, whose arguments differ everywhere."""
    error = kind.__new__(kind)
    error.args = ("something",)
    for name, value in _WHAT_THEY_PRINT.items():
        if not hasattr(error, name):
            setattr(error, name, value)
    if issubclass(kind, http.client.IncompleteRead):
        error.partial = 0 if issubclass(kind, urllib3.exceptions.HTTPError) else b""
    if issubclass(kind, FeatureMissingError):
        error.args = (1,)
    if issubclass(kind, WSManFaultError):
        error.args = (1, "machine", "reason", None, None, None)
    if issubclass(kind, WinRMTransportError):
        error.args = ("http", 500, "")
    if issubclass(kind, SpnegoError):
        error._error_code = 0
        error._context_message = None
        error._base_error = None
    return error


def test_the_walk_finds_the_libraries():
    """A walk that found nothing would pass everything."""
    packages = {kind.__module__.split(".")[0] for kind in ALL}

    assert {"pypsrp", "requests", "urllib3", "spnego", "ssl", "socket", "http"} <= packages
    assert len(ALL) > 90


def untranslated(kind: type[Exception]) -> list[str]:
    ours = translate(an_instance(kind), "win-a1", "Administrator")
    return untrue(
        caught=issubclass(kind, LIBRARY_ERRORS),
        ours=isinstance(ours, TransportError | UsageError),
        named=str(ours).startswith("win-a1: ") and ours.node == "win-a1",
    )


def test_every_exception_has_a_name_here():
    """It is caught where libraries are called, and means one of our errors, with the machine's name."""
    assert_none_wrong({f"{kind.__module__}.{kind.__qualname__}": untranslated(kind) for kind in ALL})


def test_our_own_errors_stay_as_they_are():
    """Translating twice changes nothing."""
    error = Unreachable("win-a1: nothing answers")

    assert translate(error, "win-a1", "Administrator") is error


def wrapped(*errors: Exception) -> Exception:
    """The first of `errors`, caused by the second, and so on, as the libraries nest them."""
    for outer, inner in pairwise(errors):
        outer.args = (inner,)
    return errors[0]


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (wrapped(requests.ConnectionError(), ConnectionResetError(104, "reset by peer")), ConnectionLost),
        (wrapped(requests.ConnectionError(), ConnectionRefusedError(111, "refused")), Unreachable),
        (wrapped(requests.ConnectionError(), socket.gaierror(-2, "no such name")), Unreachable),
        (wrapped(requests.exceptions.SSLError(), ssl.SSLEOFError(8, "EOF occurred")), ConnectionLost),
        (
            wrapped(requests.exceptions.SSLError(), ssl.SSLCertVerificationError(1, "x")),
            CertificateNotTrusted,
        ),
        (wrapped(requests.exceptions.SSLError(), ssl.SSLError(1, "WRONG_VERSION_NUMBER")), ProtocolError),
        (requests.ConnectTimeout(), Unreachable),
        (requests.ReadTimeout(), ConnectionLost),
        (http.client.IncompleteRead(b""), ConnectionLost),
        (WSManFaultError(5, None, "Access is denied.", None, None, None), AccessDenied),
        (WSManFaultError(2150859173, None, "too many", None, None, None), Busy),
        (WSManFaultError(995, None, "aborted", None, None, None), Busy),
        (WSManFaultError(2150858843, None, "selectors", None, None, None), ConnectionLost),
        (WSManFaultError("w:Odd", None, None, None, None, None), ProtocolError),
        (WinRMTransportError("http", 503, ""), Busy),
        (WinRMTransportError("http", 403, ""), AccessDenied),
        (WinRMTransportError("http", 413, ""), ProtocolError),
        (spnego.exceptions.InvalidCredentialError(), LoginRefused),
        (spnego.exceptions.BadMICError(), ProtocolError),
        (KeyError("a type reference"), ProtocolError),
        (ImportError("gssapi"), UsageError),
        (OSError(101, "Network is unreachable"), Unreachable),
    ],
    ids=lambda value: value.__name__ if inspect.isclass(value) else type(value).__name__,
)
def test_the_meaning_is_in_the_class(error: Exception, meaning: type[WinbootError]):
    """Whether to try again, and how to exit, follows from what happened; text is not looked at."""
    assert type(translate(error, "win-a1", "Administrator")) is meaning


@pytest.mark.parametrize(
    ("user", "form"),
    [("Administrator", True), (r".\Administrator", False), (r"CORP\me", False), ("me@CORP.EXAMPLE", False)],
)
def test_a_refused_login_gets_a_hint_about_its_form_only_for_a_name_without_one(user: str, form: bool):
    told = translate(spnego.exceptions.InvalidCredentialError(), "win-a1", user)

    assert told.problem == f"win-a1: the login '{user}' was refused"
    assert (r"the form .\name" in told.hint) is form


def _read_deep() -> None:
    # As in winboot's own process: the lab's engine, which other tests of this process use, raises the limit.
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    try:
        Serializer().deserialize('<Obj RefId="0"><LST>' * 2000 + "</LST></Obj>" * 2000)
    finally:
        sys.setrecursionlimit(usual)


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (lambda: ElementTree.fromstring("no answer"), ElementTree.ParseError),
        (lambda: Fragment.unpack(b"short"), struct.error),
        (lambda: Serializer().deserialize("<BA>x</BA>"), binascii.Error),
        (lambda: Serializer().deserialize("<I32>x</I32>"), ValueError),
        (lambda: Serializer().deserialize("<S>_xD800_</S>"), UnicodeDecodeError),
        (lambda: Serializer().deserialize(f"<C>{10**20}</C>"), OverflowError),
        (lambda: Serializer().deserialize('<Ref RefId="9"/>'), KeyError),
        (lambda: Message.unpack(bytes(48), Serializer()), KeyError),
        (lambda: WinRMEncryption(None, "").unwrap_message(b"--b\r\nno length--b\r\nbody", "b"), IndexError),
        (lambda: Serializer().deserialize("<I32/>"), TypeError),
        (lambda: Serializer().deserialize("<B/>"), AttributeError),
        (_read_deep, RecursionError),
    ],
    ids=lambda value: value.__name__ if inspect.isclass(value) else "",
)
def test_an_answer_in_another_form_is_the_machines_fault(read, kind: type[Exception]):
    """What the libraries really raise for it: each class that is caught has its proof here."""
    with pytest.raises(kind) as caught:
        read()

    assert isinstance(caught.value, LIBRARY_ERRORS)
    assert type(translate(caught.value, "win-a1", "Administrator")) is ProtocolError


@pytest.mark.parametrize("value", [object(), {"key": object()}])
def test_a_bug_of_our_own_is_not_called_an_answer(value: object):
    """The same classes from winboot's own code, with or without Python's library below it, are raised as they are."""
    with pytest.raises(TypeError) as caught:
        _value(value)

    with pytest.raises(TypeError) as still:
        translate(caught.value, "win-a1", "Administrator")

    assert still.value is caught.value


class _Ending(Connection):
    """A connection on which nothing can be ended, for one reason or another."""

    def __init__(self, fail) -> None:
        super().__init__(Endpoint("127.0.0.1", 9, "u", lambda: Secret("p")), "win-a1")
        self._fail = fail

    def invoke(self, *args, **kwargs):
        self._fail()


def _lose() -> None:
    raise ConnectionLost("win-a1: gone")


def test_what_cannot_be_ended_is_left_and_a_bug_of_our_own_is_not():
    """A session ends by itself; a request that we cannot even write would leave one behind at every run, unseen."""

    def end(fail) -> None:
        _Ending(fail).try_once("an action", "a resource", None, SelectorSet(), 1)

    end(_lose)
    end(lambda: ElementTree.fromstring("no answer"))
    with pytest.raises(TypeError):
        end(lambda: _value(object()))


@pytest.mark.parametrize("errors", [[], ["a record that pypsrp could not read"]])
def test_a_failed_script_without_a_reason_is_an_answer_in_another_form(errors: list[str]):
    """The machine says that the script failed, and sends no record of why, or a damaged one."""
    pipeline = SimpleNamespace(streams=SimpleNamespace(error=errors))

    with pytest.raises(ProtocolError, match="win-a1: the script failed; the machine gave no reason"):
        _last_error(pipeline, "win-a1")


@pytest.mark.parametrize(
    ("code", "quota"), QUOTAS.items(), ids=lambda one: f"{one:x}" if isinstance(one, int) else ""
)
def test_a_quota_is_waited_for_and_named(code: int, quota: str):
    error = translate(WSManFaultError(code, None, "too many", None, None, None), "win-1", "u")

    assert isinstance(error, Busy)
    assert quota in error.hint


def test_every_fault_and_every_status_has_a_hint():
    codes = (5, *SHORT, *QUOTAS, 995, 1726, 2150858793, 2150858843, 2150858770, 87, "w:Odd")
    faults = {code: WSManFaultError(code, None, "reason", None, None, None) for code in codes}
    statuses = {
        status: WinRMTransportError("http", status, "") for status in (400, 401, 403, 404, 413, 500, 503)
    }

    assert [code for code, one in (faults | statuses).items() if not translate(one, "win-1", "u").hint] == []


def test_a_bad_request_names_the_long_ticket():
    """http.sys answers 400 "Request Too Long" to the ticket of an account in many groups."""
    assert "MaxFieldLength" in translate(WinRMTransportError("http", 400, ""), "win-1", "u").hint


@pytest.mark.parametrize(
    ("error", "word", "one"),
    [
        ("Incompatible ssh peer (no acceptable kex algorithm)", "KexAlgorithms", "ecdh-sha2-nistp256"),
        ("Incompatible ssh peer (no acceptable ciphers)", "Ciphers", "aes256-ctr"),
        ("Incompatible ssh peer (no acceptable macs)", "MACs", "hmac-sha2-256"),
        ("Incompatible ssh peer (no acceptable host key)", "HostKeyAlgorithms", "rsa-sha2-512"),
    ],
)
def test_a_stricter_sshd_is_answered_with_what_we_offer(error: str, word: str, one: str):
    """The words are paramiko's (transport.py, _parse_kex_init); the machine is not older, it allows less."""
    here, there = socket.socketpair()
    with here, there:
        hint = _common_algorithms(paramiko.Transport(here), error)

    assert word in hint and one in hint
