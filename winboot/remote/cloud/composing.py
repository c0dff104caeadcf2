"""From machines of a cloud to members of an inventory: names, variables and groups, in the words of Ansible's plugins.

Expressions are Jinja, run in its sandbox: they see the machine's description and reach nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from winboot.config.ansible_options import PLUGINS, Effect
from winboot.config.source import Complaint, Table, locate
from winboot.remote.cloud.base import CloudHost, NodeIdentity
from winboot.remote.cloud.settings import CloudFile, HostName, KeyedGroup

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
# Ansible's names of filters for the attributes whose own name differs.
_SYNONYMS: Final = {"dns_name": "public_dns_name", "ip_address": "public_ip_address", "name": "name"}


@dataclass(frozen=True, slots=True)
class Member:
    """One machine of the inventory. `variables` are the cloud's words with those of `compose` over them."""

    name: str
    host: CloudHost
    identity: NodeIdentity
    variables: Mapping[str, Any]
    groups: tuple[str, ...] = ()


def _sandbox() -> SandboxedEnvironment:
    environment = SandboxedEnvironment(undefined=StrictUndefined)
    filters: dict[str, Callable[..., Any]] = {
        "regex_replace": lambda text, pattern, put="": re.sub(pattern, put, str(text)),
        "regex_search": lambda text, pattern: (
            found.group(0) if (found := re.search(pattern, str(text))) else ""
        ),
        "split": lambda text, at=None: str(text).split(at),
        "ternary": lambda value, yes, no="": yes if value else no,
    }
    environment.filters.update(filters)
    return environment


# What says how Ansible reaches a machine and logs in there, other than the three that `compose` gives a host.
_WAYS: Final = {"ansible_connection"} | {
    name
    for options in PLUGINS.values()
    for option in options.values()
    if option.effect in (Effect.MAPPED, Effect.SECRET, Effect.REFUSED)
    for name in option.names
} - {"ansible_host", "ansible_port", "ansible_user"}


@dataclass(slots=True)
class Composer:
    """Makes members of hosts, and gathers what is wrong with expressions and names."""

    file: CloudFile
    top: Table
    complaints: list[Complaint] = field(default_factory=list)
    _environment: SandboxedEnvironment = field(default_factory=_sandbox)

    def members(self, hosts: Iterable[tuple[CloudHost, NodeIdentity]]) -> list[Member]:
        """One member a host, in the order of their names."""
        found: dict[str, Member] = {}
        for host, identity in hosts:
            member = self._member(host, identity)
            if member is None:
                continue
            if member.name in found:
                wrong = f"{host.id} and {found[member.name].host.id} are both named {member.name!r}"
                self._complain("hostnames", wrong, "names that differ, such as [instance-id]")
                continue
            found[member.name] = member
        return [found[name] for name in sorted(found)]

    def check(self) -> None:
        """Complain about expressions that are not Jinja, and about variables of Ansible that would have no effect here."""
        for name in sorted(self.file.compose.keys() & _WAYS):
            self._complain(
                f"compose.{name}",
                "winboot does not read this variable from `compose`",
                "`connection` under `defaults` or `settings`",
            )
        texts = [("compose", name, text) for name, text in self.file.compose.items()]
        texts += [("groups", name, str(text)) for name, text in self.file.groups.items()]
        texts += [("keyed_groups", str(index), one.key) for index, one in enumerate(self.file.keyed_groups)]
        for section, key, text in texts:
            try:
                self._environment.compile_expression(text)
            except TemplateError as error:
                self._complain(f"{section}.{key}", f"{text!r}: {error}", "a Jinja expression")

    def _member(self, host: CloudHost, identity: NodeIdentity) -> Member | None:
        name = self._name(host, identity)
        if name is None:
            self._complain(
                "hostnames", f"no name for {host.id}", "an entry that has a value for this machine"
            )
            return None
        variables = {**host.data, "tags": dict(host.tags), "node_name": identity.node_name}
        for key, text in self.file.compose.items():
            found = self._value(f"compose.{key}", text, variables, host)
            if found is not None:
                variables[key] = found
        return Member(name, host, identity, variables, tuple(self._groups(variables, host)))

    # Names

    def _name(self, host: CloudHost, identity: NodeIdentity) -> str | None:
        for wanted in self.file.names:
            found = self._word(wanted.name, host, identity)
            if found:
                return f"{self._prefix(wanted, host, identity)}{found}".lower()
        return None

    def _prefix(self, wanted: HostName, host: CloudHost, identity: NodeIdentity) -> str:
        prefix = self._word(wanted.prefix, host, identity) if wanted.prefix else ""
        return f"{prefix}{wanted.separator}" if prefix else ""

    @staticmethod
    def _word(word: str, host: CloudHost, identity: NodeIdentity) -> str:
        if word == "node-name":
            return identity.node_name
        if word.startswith("tag:"):
            key, equals, value = word.removeprefix("tag:").partition("=")
            found = host.tags.get(key, "")
            return found if not equals or found == value else ""
        key = word.replace("-", "_")
        return str(host.data.get(_SYNONYMS.get(key, key)) or "")

    # Groups

    def _groups(self, variables: Mapping[str, Any], host: CloudHost) -> Iterator[str]:
        for name, condition in self.file.groups.items():
            if self._value(f"groups.{name}", str(condition), variables, host):
                yield group_name(name)
        for index, keyed in enumerate(self.file.keyed_groups):
            value = self._value(f"keyed_groups.{index}.key", keyed.key, variables, host)
            names = [one for one in _keyed_names(keyed, value) if one]
            yield from names
            if names and keyed.parent_group:
                yield group_name(keyed.parent_group)

    def _value(self, path: str, text: str, variables: Mapping[str, Any], host: CloudHost) -> Any:
        """What an expression gives for a machine; None, and a complaint, where it fails."""
        try:
            value = self._environment.compile_expression(text, undefined_to_none=False)(**variables)
            str(value)  # an undefined name is an object, and no error, until a caller asks for its text
            return value
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            self._fail(path, text, host, error)
        return None

    def _fail(self, path: str, text: str, host: CloudHost, error: Exception) -> None:
        self._complain(
            path,
            f"{text!r} for {host.id}: {error}",
            "a name that it has, or `| default(…)`",
            warning=not self.file.strict,
        )

    def _complain(self, path: str, wrong: str, expected: str, *, warning: bool = False) -> None:
        place = locate(self.top, path.split("."))
        self.complaints.append(
            Complaint(place, path, wrong, expected, level="warning" if warning else "error")
        )


def group_name(text: str) -> str:
    """A name that Ansible takes: letters, digits and underscores."""
    return _NOT_IN_A_NAME.sub("_", text)


def _keyed_names(keyed: KeyedGroup, value: Any) -> Iterator[str]:
    match value:
        case Mapping():
            values: Sequence[Any] = [
                f"{key}{keyed.separator}{one}" if str(one) else key for key, one in value.items()
            ]
        case list() | tuple():
            values = list(value)
        case None | "":
            values = [keyed.default_value] if keyed.default_value is not None else []
        case _:
            values = [value]
    front = f"{keyed.prefix}{keyed.separator}" if keyed.prefix else ""
    for one in values:
        text = str(one) if str(one) else (keyed.default_value or "")
        if text:
            yield group_name(f"{front}{text}")
