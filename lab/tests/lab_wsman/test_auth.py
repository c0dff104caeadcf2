"""Logins and sealing, against the library that clients use."""

from __future__ import annotations

import base64

import pytest
import spnego
from pypsrp.encryption import WinRMEncryption
from winboot_lab.wsman.auth import Accepted, Accounts, CannotUnseal, Login, Refused

from lab_wsman.stage import PASSWORD, USER

OFFERS = ("Negotiate", 'Basic realm="WSMAN"')


@pytest.fixture
def accounts(tmp_path):
    return Accounts(tmp_path / "accounts", "WIN-A1", {USER: PASSWORD, r"CORP\svc": "x"})


def log_in(accounts: Accounts, user: str, password: str, protocol: str):
    """A whole login; gives both ends, or None when it was refused."""
    login = Login(accounts, OFFERS)
    client = spnego.client(user, password, protocol=protocol, options=spnego.NegotiateOptions.wrapping_winrm)
    token = client.step()
    while True:
        verdict = login.step(f"Negotiate {base64.b64encode(token).decode()}")
        if isinstance(verdict, Accepted):
            if verdict.token is not None:
                client.step(base64.b64decode(verdict.token.partition(" ")[2]))
            return login, client, verdict
        if verdict == Refused(OFFERS):
            return None
        token = client.step(base64.b64decode(verdict.challenges[0].partition(" ")[2]))


@pytest.mark.parametrize("protocol", ["ntlm", "negotiate"])
@pytest.mark.parametrize("user", [USER, USER.lower(), rf".\{USER}", rf"WIN-A1\{USER}", rf"win-a1\{USER}"])
def test_a_local_account_logs_in(accounts, protocol, user):
    """By any of its names."""
    assert log_in(accounts, user, PASSWORD, protocol) is not None


@pytest.mark.parametrize("protocol", ["ntlm", "negotiate"])
def test_a_domain_account_logs_in(accounts, protocol):
    """The domain must match."""
    assert log_in(accounts, r"CORP\svc", "x", protocol) is not None
    assert log_in(accounts, r"OTHER\svc", "x", protocol) is None


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD), ("", "")])
@pytest.mark.parametrize("protocol", ["ntlm", "negotiate"])
def test_anyone_else_is_refused(accounts, protocol, user, password):
    """Wrong passwords and unknown names look the same."""
    assert log_in(accounts, user or "guest", password, protocol) is None


def test_a_changed_password_takes_effect_at_once(accounts):
    """The old one is refused."""
    accounts.set_password(USER, "new")

    assert log_in(accounts, USER, PASSWORD, "ntlm") is None
    assert log_in(accounts, USER, "new", "ntlm") is not None


@pytest.mark.parametrize("protocol", ["ntlm", "negotiate"])
@pytest.mark.parametrize("size", [0, 1, 1000, 200_000])
def test_sealed_bodies_are_read_by_the_other_side(accounts, protocol, size):
    """In both directions, several times, as each message moves the keys on."""
    login, client, _ = log_in(accounts, USER, PASSWORD, protocol)
    encryption = WinRMEncryption(client, WinRMEncryption.SPNEGO)
    for number in range(3):
        body = bytes([number]) * size
        _, sealed = encryption.wrap_message(body)
        assert login.unseal(sealed) == body
        assert encryption.unwrap_message(login.seal(body), "Encrypted Boundary") == body


def test_a_body_sealed_for_another_login_cannot_be_read(accounts):
    """This is what a silently reconnecting client sends; WinRM answers 400."""
    login, _, _ = log_in(accounts, USER, PASSWORD, "ntlm")
    _, other, _ = log_in(accounts, USER, PASSWORD, "ntlm")
    _, sealed = WinRMEncryption(other, WinRMEncryption.SPNEGO).wrap_message(b"body")

    with pytest.raises(CannotUnseal):
        login.unseal(sealed)
    with pytest.raises(CannotUnseal):
        Login(accounts, OFFERS).unseal(sealed)
    with pytest.raises(CannotUnseal):
        login.unseal(b"not multipart")


def test_a_login_lasts_for_the_connection(accounts):
    """Later requests carry no header."""
    login, _, verdict = log_in(accounts, USER, PASSWORD, "ntlm")

    assert verdict == Accepted(USER)
    assert login.step(None) == Accepted(USER)
    assert Login(accounts, OFFERS).step(None) == Refused(OFFERS)


def test_basic_proves_itself_with_each_request(accounts):
    """And leaves no login behind."""
    login = Login(accounts, OFFERS)
    header = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    assert login.step(header) == Accepted(USER)
    assert login.step(None) == Refused(OFFERS)
    assert login.step("Basic " + base64.b64encode(b"x:y").decode()) == Refused(OFFERS)


@pytest.mark.parametrize(
    "header", ["Kerberos YII=", "Negotiate", "Negotiate !", "Negotiate TlRMTVNTUAAJ", "", "Digest x"]
)
def test_what_is_no_login_is_refused(accounts, header):
    """Other schemes, and broken tokens."""
    assert isinstance(Login(accounts, OFFERS).step(header), Refused)
