"""What each variable of Ansible's connection plug-ins means to winboot.

Names, their order and defaults: ansible-core 2.19, lib/ansible/plugins/connection/{winrm,psrp,ssh,paramiko_ssh,local}.py,
DOCUMENTATION. Of several names for an option the last one that is set counts (lib/ansible/config/manager.py, `_loop_entries`).
`EXTRAS` are arguments of pywinrm that the winrm plug-in passes on under `ansible_winrm_NAME` (winrm.py, `_build_winrm_kwargs`;
github.com/diyan/pywinrm, winrm/protocol.py, `Protocol.__init__`). A variable of another plug-in than the host's has no effect
in Ansible, and none here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Effect(Enum):
    """What winboot does with an option that a file sets."""

    MAPPED = "mapped"  # to a key of winboot's inventory
    SECRET = "secret"  # the same, and a value in the file itself is refused
    REFUSED = "refused"  # without it, winboot would work on another machine or as another user
    WARNED = "warned"
    HARMLESS = "harmless"


@dataclass(frozen=True, slots=True)
class Option:
    """One option: the variables that set it, in Ansible's order. `idle` are values that change nothing; an option that is
    REFUSED with `when` is refused for the values that it matches, and has a warning for others."""

    effect: Effect
    names: tuple[str, ...]
    path: tuple[str, ...] = ()
    idle: frozenset[str] = frozenset()
    says: str = ""
    when: Callable[[str], bool] | None = None


# ssh(1), SYNOPSIS: the letters that take an argument; of these and of the words behind -o those that choose another way.
_SSH_TAKES: Final = frozenset("BbcDEeFIiJLlmOoPpRSWw")
_SSH_WAYS: Final = frozenset("JWFlp")
_SSH_WORDS: Final = frozenset(("proxyjump", "proxycommand", "hostname", "user", "port"))


def leads_elsewhere(arguments: str) -> bool:
    """Whether arguments of ssh(1) choose another machine, port, user, or a host to go through."""
    try:
        words = iter(shlex.split(arguments))
    except ValueError:
        return True
    return any(_is_way(word, words) for word in words if word.startswith("-"))


def _is_way(word: str, rest: Iterator[str]) -> bool:
    for at, letter in enumerate(word[1:], 2):
        if letter in _SSH_TAKES:
            value = word[at:] or next(rest, "")
            if letter == "o":
                return re.split(r"[\s=]", value.strip(), maxsplit=1)[0].lower() in _SSH_WORDS
            # Without a configuration of its own ssh goes where winboot goes.
            return letter in _SSH_WAYS and (letter, value) != ("F", "/dev/null")
    return False


def _mapped(path: str, names: str, idle: str = "") -> Option:
    return Option(Effect.MAPPED, tuple(names.split()), tuple(path.split(".")), frozenset(idle.split()))


def _secret(path: str, names: str) -> Option:
    return Option(Effect.SECRET, tuple(names.split()), tuple(path.split(".")))


def _refused(names: str, says: str, idle: str = "", when: Callable[[str], bool] | None = None) -> Option:
    return Option(Effect.REFUSED, tuple(names.split()), (), frozenset(idle.split()), says, when)


def _warned(names: str, says: str, idle: str = "") -> Option:
    return Option(Effect.WARNED, tuple(names.split()), (), frozenset(idle.split()), says)


def _harmless(names: str) -> Option:
    return Option(Effect.HARMLESS, tuple(names.split()))


_YES: Final = "true yes on y 1 t 1.0"
_NO: Final = "false no off n 0 f 0.0"
_NEEDS_OWN: Final = "Write this host in a winboot inventory, with"
_CERTIFICATE: Final = (
    "winboot never logs in with a client certificate. Set winboot_password_env=NAME and another auth"
)
_ENDPOINT: Final = "winboot connects only to /wsman. Give the machine's own address and port"
_VALIDATES: Final = (
    "winboot always checks the certificate. Set winboot_fingerprint=sha256:…, a CA in {}, or port 5985"
)
_DELEGATES: Final = "winboot never delegates Kerberos tickets"
_BINDS: Final = "winboot always binds the login to the TLS channel"
_HOST_KEY: Final = (
    "winboot always checks the host key. Set winboot_host_key=SHA256:…, or add it to ~/.ssh/known_hosts"
)
_SSH_ARGUMENTS: Final = f"winboot does not start ssh. {_NEEDS_OWN} connection.proxy_jump"

# The login and the address, which all of the plug-ins share under their own names.
_WINRM: Final[Mapping[str, Option]] = {
    "remote_addr": _mapped("address", "ansible_host ansible_winrm_host"),
    "remote_user": _mapped("connection.user", "ansible_user ansible_winrm_user"),
    "remote_password": _secret(
        "connection.password", "ansible_password ansible_winrm_pass ansible_winrm_password"
    ),
    "port": _mapped("connection.port", "ansible_port ansible_winrm_port"),
    "scheme": _mapped("connection.scheme", "ansible_winrm_scheme"),
    "path": _refused("ansible_winrm_path", _ENDPOINT, "/wsman wsman"),
    "transport": _mapped("connection.auth", "ansible_winrm_transport"),
    "kerberos_command": _harmless("ansible_winrm_kinit_cmd"),
    "kinit_args": _harmless("ansible_winrm_kinit_args"),
    "kinit_env_vars": _harmless("ansible_winrm_kinit_env_vars"),
    "kerberos_mode": _harmless("ansible_winrm_kinit_mode"),
    "connection_timeout": _harmless("ansible_winrm_connection_timeout"),
    "pipelining": _harmless("ansible_pipelining"),
}
EXTRAS: Final[Mapping[str, Option]] = {
    "realm": _harmless("ansible_winrm_realm"),  # "unused"
    "service": _mapped("spn.service", "ansible_winrm_service"),
    "keytab": _harmless("ansible_winrm_keytab"),  # of no effect in pywinrm's transport.py
    "ca_trust_path": _mapped("connection.tls.ca.file", "ansible_winrm_ca_trust_path", "legacy_requests"),
    "cert_pem": _refused("ansible_winrm_cert_pem", _CERTIFICATE),
    "cert_key_pem": _refused("ansible_winrm_cert_key_pem", _CERTIFICATE),
    "server_cert_validation": _warned(
        "ansible_winrm_server_cert_validation", _VALIDATES.format("ansible_winrm_ca_trust_path"), "validate"
    ),
    "kerberos_delegation": _warned("ansible_winrm_kerberos_delegation", _DELEGATES, _NO),
    "read_timeout_sec": _harmless("ansible_winrm_read_timeout_sec"),
    "operation_timeout_sec": _harmless("ansible_winrm_operation_timeout_sec"),
    "kerberos_hostname_override": _mapped("spn.host", "ansible_winrm_kerberos_hostname_override"),
    "message_encryption": _warned(
        "ansible_winrm_message_encryption", "winboot always encrypts messages over http", "auto always"
    ),
    "credssp_disable_tlsv1_2": _harmless("ansible_winrm_credssp_disable_tlsv1_2"),  # CredSSP is refused
    "send_cbt": _warned("ansible_winrm_send_cbt", _BINDS, _YES),
    "proxy": _refused(
        "ansible_winrm_proxy",
        f"winboot uses no HTTP proxy. {_NEEDS_OWN} connection.tunnel",
        "legacy_requests",
    ),
}
_PSRP: Final[Mapping[str, Option]] = {
    "remote_addr": _mapped("address", "ansible_host ansible_psrp_host"),
    "remote_user": _mapped("connection.user", "ansible_user ansible_psrp_user"),
    "remote_password": _secret(
        "connection.password", "ansible_password ansible_winrm_pass ansible_winrm_password"
    ),
    "port": _mapped("connection.port", "ansible_port ansible_psrp_port"),
    "protocol": _mapped("connection.scheme", "ansible_psrp_protocol"),
    "path": _refused("ansible_psrp_path", _ENDPOINT, "/wsman wsman"),
    "auth": _mapped("connection.auth", "ansible_psrp_auth"),
    "cert_validation": _warned(
        "ansible_psrp_cert_validation", _VALIDATES.format("ansible_psrp_ca_cert"), "validate"
    ),
    "ca_cert": _mapped("connection.tls.ca.file", "ansible_psrp_cert_trust_path ansible_psrp_ca_cert"),
    "connection_timeout": _mapped("connection.connect_timeout_s", "ansible_psrp_connection_timeout"),
    "read_timeout": _harmless("ansible_psrp_read_timeout"),
    "reconnection_retries": _harmless("ansible_psrp_reconnection_retries"),
    "reconnection_backoff": _harmless("ansible_psrp_connection_backoff ansible_psrp_reconnection_backoff"),
    "message_encryption": _warned(
        "ansible_psrp_message_encryption", "winboot always encrypts messages over http", "auto always"
    ),
    "proxy": _refused("ansible_psrp_proxy", f"winboot uses no HTTP proxy. {_NEEDS_OWN} connection.tunnel"),
    "ignore_proxy": _harmless("ansible_psrp_ignore_proxy"),  # winboot reads no proxy for WinRM
    # Of the certificate login alone, which is refused (pypsrp, wsman.py, AUTH_KWARGS); the same for CredSSP.
    "certificate_key_pem": _harmless("ansible_psrp_certificate_key_pem"),
    "certificate_pem": _harmless("ansible_psrp_certificate_pem"),
    "credssp_auth_mechanism": _harmless("ansible_psrp_credssp_auth_mechanism"),
    "credssp_disable_tlsv1_2": _harmless("ansible_psrp_credssp_disable_tlsv1_2"),
    "credssp_minimum_version": _harmless("ansible_psrp_credssp_minimum_version"),
    "negotiate_delegate": _warned("ansible_psrp_negotiate_delegate", _DELEGATES, _NO),
    "negotiate_hostname_override": _mapped("spn.host", "ansible_psrp_negotiate_hostname_override"),
    "negotiate_send_cbt": _warned("ansible_psrp_negotiate_send_cbt", _BINDS, _YES),
    "negotiate_service": _mapped("spn.service", "ansible_psrp_negotiate_service"),
    "operation_timeout": _harmless("ansible_psrp_operation_timeout"),
    "max_envelope_size": _harmless("ansible_psrp_max_envelope_size"),
    "configuration_name": _refused(
        "ansible_psrp_configuration_name",
        "winboot opens Microsoft.PowerShell, with all rights of the user. Remove this, or use another account",
        "microsoft.powershell",
    ),
    "pipelining": _harmless("ansible_pipelining"),
}
_SSH: Final[Mapping[str, Option]] = {
    "host": _mapped("address", "ansible_host ansible_ssh_host"),
    "host_key_checking": _warned("ansible_host_key_checking ansible_ssh_host_key_checking", _HOST_KEY, _YES),
    "password": _secret("connection.password", "ansible_password ansible_ssh_pass ansible_ssh_password"),
    "password_mechanism": _harmless("ansible_ssh_password_mechanism"),
    "sshpass_prompt": _harmless("ansible_sshpass_prompt"),
    "ssh_args": _refused("ansible_ssh_args", _SSH_ARGUMENTS, when=leads_elsewhere),
    "ssh_common_args": _refused("ansible_ssh_common_args", _SSH_ARGUMENTS, when=leads_elsewhere),
    "ssh_extra_args": _refused("ansible_ssh_extra_args", _SSH_ARGUMENTS, when=leads_elsewhere),
    # A program of one's own may go anywhere.
    "ssh_executable": _refused("ansible_ssh_executable", _SSH_ARGUMENTS, "ssh /usr/bin/ssh"),
    "sftp_executable": _harmless("ansible_sftp_executable"),
    "scp_executable": _harmless("ansible_scp_executable"),
    "scp_extra_args": _harmless("ansible_scp_extra_args"),
    "sftp_extra_args": _harmless("ansible_sftp_extra_args"),
    "reconnection_retries": _harmless("ansible_ssh_retries"),
    "port": _mapped("connection.port", "ansible_port ansible_ssh_port"),
    "remote_user": _mapped("connection.user", "ansible_user ansible_ssh_user"),
    "pipelining": _harmless("ansible_pipelining ansible_ssh_pipelining"),
    "private_key_file": _mapped(
        "connection.key.file", "ansible_private_key_file ansible_ssh_private_key_file"
    ),
    "private_key": _secret("connection.key", "ansible_private_key ansible_ssh_private_key"),
    "private_key_passphrase": _secret(
        "connection.passphrase", "ansible_private_key_passphrase ansible_ssh_private_key_passphrase"
    ),
    "control_path": _harmless("ansible_control_path"),
    "control_path_dir": _harmless("ansible_control_path_dir"),
    "sftp_batch_mode": _harmless("ansible_sftp_batch_mode"),
    "ssh_transfer_method": _harmless("ansible_ssh_transfer_method"),
    "use_tty": _harmless("ansible_ssh_use_tty"),
    "timeout": _mapped("connection.connect_timeout_s", "ansible_ssh_timeout"),
    "pkcs11_provider": _warned(
        "ansible_ssh_pkcs11_provider", f"winboot reads no PKCS#11 module. {_NEEDS_OWN} connection.agent"
    ),
    "verbosity": _harmless("ansible_ssh_verbosity"),
}
_PARAMIKO: Final[Mapping[str, Option]] = {
    "remote_addr": _mapped("address", "ansible_host ansible_ssh_host ansible_paramiko_host"),
    "port": _mapped("connection.port", "ansible_port ansible_ssh_port ansible_paramiko_port"),
    "remote_user": _mapped("connection.user", "ansible_user ansible_ssh_user ansible_paramiko_user"),
    "password": _secret(
        "connection.password",
        "ansible_password ansible_ssh_pass ansible_ssh_password ansible_paramiko_pass ansible_paramiko_password",
    ),
    "use_rsa_sha2_algorithms": _harmless("ansible_paramiko_use_rsa_sha2_algorithms"),
    "proxy_command": _refused("ansible_paramiko_proxy_command", _SSH_ARGUMENTS),
    "host_key_checking": _warned(
        "ansible_host_key_checking ansible_ssh_host_key_checking ansible_paramiko_host_key_checking",
        _HOST_KEY,
        _YES,
    ),
    "timeout": _mapped("connection.connect_timeout_s", "ansible_ssh_timeout ansible_paramiko_timeout"),
    "private_key_file": _mapped(
        "connection.key.file",
        "ansible_private_key_file ansible_ssh_private_key_file ansible_paramiko_private_key_file",
    ),
}
_LOCAL: Final[Mapping[str, Option]] = {
    # The plug-in connects to nothing; the address is still that of the machine.
    "remote_addr": _mapped("address", "ansible_host"),
    "become_success_timeout": _harmless("ansible_local_become_success_timeout"),
    "become_strip_preamble": _harmless("ansible_local_become_strip_preamble"),
    "pipelining": _harmless("ansible_pipelining"),
}
PLUGINS: Final[Mapping[str, Mapping[str, Option]]] = {
    "winrm": {**_WINRM, **EXTRAS},
    "psrp": _PSRP,
    "ssh": _SSH,
    "paramiko_ssh": _PARAMIKO,
    "local": _LOCAL,
}
# Of no connection plug-in: https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_privilege_escalation.html
BECOME: Final = _warned("ansible_become", "winboot always works as the user of the login", _NO)
# https://docs.ansible.com/ansible/latest/collections/index_connection.html; `smart` is ssh (play_context.py).
CONNECTIONS: Final[Mapping[str, str]] = {
    "winrm": "winrm",
    "psrp": "psrp",
    "ssh": "ssh",
    "smart": "ssh",
    "paramiko": "paramiko_ssh",
    "paramiko_ssh": "paramiko_ssh",
    "local": "local",
}
TRANSPORTS: Final[Mapping[str, str]] = {
    "winrm": "winrm",
    "psrp": "winrm",
    "ssh": "ssh",
    "paramiko_ssh": "ssh",
    "local": "local",
}
NAMES: Final = frozenset(
    name for options in PLUGINS.values() for option in options.values() for name in option.names
)
