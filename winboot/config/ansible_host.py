"""One host of an Ansible inventory, as a host of a winboot inventory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from winboot.config.ansible_options import (
    BECOME,
    CONNECTIONS,
    NAMES,
    PLUGINS,
    TRANSPORTS,
    Effect,
    Option,
)
from winboot.config.source import Complaint, Entry, Listing, Place, Scalar, Table, nearest

# What Ansible has no word for.
OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "winboot_os": ("os",),
    "winboot_node_ip": ("node_ip",),
    "winboot_computer_name": ("computer_name",),
    "winboot_provider_id": ("provider_id",),
    "winboot_password_env": ("connection", "password", "env"),
    "winboot_password_file": ("connection", "password", "file"),
    "winboot_fingerprint": ("connection", "tls", "fingerprint"),
    "winboot_host_key": ("connection", "host_key"),
}
PROFILE: Final = "winboot_profile"
# docs.ansible.com/ansible/latest/vault_guide/vault_encrypting_content.html, "Format of files encrypted with Ansible Vault".
VAULT: Final = "$ANSIBLE_VAULT;"
OPEN: Final = "the plain value, or winboot_password_env=NAME for a password (see `ansible-vault view FILE`)"
_LOOKUP: Final = re.compile(
    r"""\{\{\s*lookup\(\s*['"](?:ansible\.builtin\.)?(env|file)['"]\s*,\s*['"]([^'"]+)['"]\s*\)\s*\}\}"""
)
_AUTH: Final = ("ntlm", "kerberos", "basic", "negotiate")
# pywinrm's words for a basic login (winrm/transport.py, `build_session`). winboot's default for the same account is better.
_NO_AUTH: Final = ("plaintext", "ssl")
_COLLECTION: Final = re.compile(r"ansible\.(?:builtin|legacy)\.")
_OURS: Final = re.compile(r"ansible_(?:winrm|psrp|ssh|paramiko)_")
_WINRM_PORT: Final = "5986"


class HostReader:
    """Reads the variables of one host. What is wrong with them goes to `complaints`."""

    def __init__(
        self, name: str, place: Place, variables: Mapping[str, Entry], complaints: list[Complaint]
    ) -> None:
        self._name, self._place = name, place
        self._complaints = complaints
        # A variable without a value is not set (lib/ansible/config/manager.py, `_loop_entries`).
        self._variables = {
            key: one
            for key, one in variables.items()
            if not (isinstance(one.value, Scalar) and one.value.is_null)
        }
        self._tree = _Tree(place)
        self._spn: dict[str, Scalar] = {}

    def table(self) -> Table:
        """The host as winboot has it."""
        for name, path in OWN.items():
            self._put(path, name, self._variables.get(name))
        plugin = self._plugin()
        for option in (*PLUGINS[plugin].values(), BECOME):
            self._read(option)
        if plugin == "winrm":
            self._fill_port()
        self._put_spn()
        self._judge_unknown()
        return self._tree.table()

    def _plugin(self) -> str:
        """The connection plug-in. Without one Ansible takes ssh, and winboot the one that the variables are of."""
        entry = self._variables.get("ansible_connection")
        if entry is None:
            kinds = {found[0] for name in self._variables if (found := _OURS.match(name))}
            return "psrp" if kinds == {"ansible_psrp_"} else "winrm"
        value = self._value("ansible_connection", entry)
        plugin = CONNECTIONS.get(_COLLECTION.sub("", value.text)) if value is not None else "winrm"
        if plugin is None:
            self._complain_of_way(value, "ansible_connection", ("winrm", "psrp", "ssh", "local"))
            return "winrm"
        if value is not None:
            text = Scalar(value.place, TRANSPORTS[plugin], plain=False)
            self._tree.put(("connection", "transport"), Entry(entry.key_place, text))
        return plugin

    def _read(self, option: Option) -> None:
        name = next((one for one in reversed(option.names) if one in self._variables), None)
        if name is None:
            return
        entry = self._variables[name]
        text = entry.value.text if isinstance(entry.value, Scalar) else ""
        if text.casefold() in option.idle:
            return
        match option.effect:
            case Effect.MAPPED if option.path[0] == "spn":
                if (value := self._value(name, entry)) is not None:
                    self._spn[option.path[1]] = value
            case Effect.MAPPED:
                self._put(option.path, name, entry)
            case Effect.SECRET:
                self._put_secret(option.path, name, entry)
            case Effect.REFUSED if option.when is None or option.when(text):
                wrong = f"{name}: without it, winboot would use another machine or user"
                self._complain(entry.key_place, wrong, option.says)
            case Effect.REFUSED | Effect.WARNED:
                shown = f"{name}={text}" if text and "{{" not in text else name
                self._warn(entry.key_place, f"{shown}: winboot does not do this", option.says)

    def _put(self, path: tuple[str, ...], name: str, entry: Entry | None) -> None:
        if entry is None:
            return
        value = self._auth(name, entry) if path[-1] == "auth" else self._value(name, entry)
        if value is not None:
            self._tree.put(path, Entry(entry.key_place, value))

    def _value(self, name: str, entry: Entry) -> Scalar | None:
        """The value of a variable; None for one that only Ansible could make."""
        value = entry.value
        if not isinstance(value, Scalar):
            self._complain(value.place, f"{name}: found a list or a mapping", "one value")
        elif value.text.startswith(VAULT):
            self._complain(value.place, f"{name}: Ansible Vault encrypts the value", OPEN)
        elif "\n" in value.text:
            self._complain(value.place, f"{name}: the value has a line break", "a single line")
        elif "{{" in value.text:
            self._complain(value.place, f"{name}: only Ansible can fill in this template", self._filled(name))
        else:
            return value
        return None

    def _filled(self, name: str) -> str:
        """What to write instead of a template. `ansible-inventory` shows it as it is, and a debug task its value, without
        a login (lib/ansible/plugins/action/debug.py)."""
        return f"the value that `ansible {self._name} -i FILE -m debug -a var={name}` shows"

    def _auth(self, name: str, entry: Entry) -> Scalar | None:
        """The way to log in. winrm tries the ways of a list in turn, as `negotiate` tries Kerberos, then NTLM."""
        words = self._words(name, entry)
        unknown = next((one for one in words if one.text not in (*_AUTH, *_NO_AUTH)), None)
        if unknown is not None:
            self._complain_of_way(unknown, name, _AUTH)
            return None
        ways = list(dict.fromkeys(one.text for one in words if one.text in _AUTH))
        if not ways:
            return None
        return Scalar(words[0].place, ways[0] if len(ways) == 1 else "negotiate", plain=False)

    def _words(self, name: str, entry: Entry) -> list[Scalar]:
        if isinstance(entry.value, Listing):
            return [one for one in entry.value.items if isinstance(one, Scalar)]
        value = self._value(name, entry)
        if value is None:
            return []
        return [Scalar(value.place, one.strip(), plain=False) for one in value.text.split(",")]

    def _put_secret(self, path: tuple[str, ...], name: str, entry: Entry) -> None:
        """A password or a key that an Ansible lookup names; winboot refuses one that is there itself."""
        if path[-1] == "password" and {"winboot_password_env", "winboot_password_file"} & set(
            self._variables
        ):
            return
        text = entry.value.text if isinstance(entry.value, Scalar) else ""
        lookup = _LOOKUP.fullmatch(text.strip())
        if lookup is not None:
            where = Scalar(entry.value.place, lookup[2], plain=False)
            self._tree.put((*path, lookup[1]), Entry(entry.key_place, where))
            return
        vaulted = text.startswith(VAULT)
        what = "the password itself" if path[-1] == "password" else "the secret itself"
        ours = "winboot_password_env=NAME or winboot_password_file=PATH, or " * (path[-1] == "password")
        self._complain(
            entry.key_place,
            f"{name}: Ansible Vault encrypts the value, and winboot cannot decrypt it"
            if vaulted
            else f"{name}: the value is {what}, or a template that only Ansible can fill in",
            f"{ours}{{{{ lookup('env', 'NAME') }}}}",
        )

    def _fill_port(self) -> None:
        """The winrm plug-in's port is 5986 over http, too (lib/ansible/plugins/connection/winrm.py, `port`)."""
        scheme = self._variables.get("ansible_winrm_scheme")
        if scheme is not None:
            port = Scalar(scheme.value.place, _WINRM_PORT, plain=False)
            self._tree.put(("connection", "port"), Entry(scheme.key_place, port))

    def _put_spn(self) -> None:
        """A service principal of the two halves that Ansible has; the other half is winboot's default."""
        auth = self._tree.text(("connection", "auth"))
        if not self._spn or auth in ("ntlm", "basic"):
            return
        first = next(iter(self._spn.values()))
        service = self._spn["service"].text if "service" in self._spn else "host"
        host = self._tree.text(("address",)) or self._name
        host = self._spn["host"].text if "host" in self._spn else host
        value = Scalar(first.place, f"{service}/{host}", plain=False)
        self._tree.put(("connection", "spn"), Entry(first.place, value))

    def _judge_unknown(self) -> None:
        known = (*OWN, PROFILE)
        for name, entry in self._variables.items():
            if name.startswith("winboot_") and name not in known:
                self._complain(
                    entry.key_place, f"unknown variable {name!r}", ", ".join(known), nearest(name, known)
                )
            elif _OURS.match(name) and name not in NAMES:
                meant = nearest(name, NAMES)
                wrong = f"{name}: ansible-core has no such variable"
                self._complaints.append(Complaint(entry.key_place, "", wrong, "", meant, level="warning"))

    def _complain_of_way(self, value: Scalar | None, name: str, words: tuple[str, ...]) -> None:
        if value is not None:
            wrong = f"{name}={value.text}: winboot does not support this value"
            self._complain(value.place, wrong, " | ".join(words), nearest(value.text, words))

    def _complain(self, place: Place, wrong: str, expected: str, meant: str = "") -> None:
        self._complaints.append(Complaint(place, "", wrong, expected, meant))

    def _warn(self, place: Place, wrong: str, expected: str) -> None:
        self._complaints.append(Complaint(place, "", wrong, expected, level="warning"))


class _Tree:
    """Nested maps that are put together value by value; the first value of a place stays."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._values: dict[tuple[str, ...], Entry] = {}

    def put(self, path: tuple[str, ...], entry: Entry) -> None:
        """One value."""
        self._values.setdefault(path, entry)

    def text(self, path: tuple[str, ...]) -> str:
        """The value that is there; empty where it is missing."""
        entry = self._values.get(path)
        return entry.value.text if entry is not None and isinstance(entry.value, Scalar) else ""

    def table(self) -> Table:
        """All of it."""
        return self._below(())

    def _below(self, path: tuple[str, ...]) -> Table:
        entries: dict[str, Entry] = {}
        for key in self._keys(path):
            whole = (*path, key)
            leaf = self._values.get(whole)
            entries[key] = leaf if leaf is not None else Entry(self._place, self._below(whole))
        return Table(self._place, entries)

    def _keys(self, path: tuple[str, ...]) -> Iterator[str]:
        depth = len(path)
        yield from dict.fromkeys(
            one[depth] for one in self._values if len(one) > depth and one[:depth] == path
        )
