"""Machines as other programs list them, for `init --hosts-file` and `host add --from`: lines, Terraform's output, govc's JSON.

win-1 10.0.1.11 2022          or win-1=10.0.1.11,2022: a line each, # for remarks
terraform output -json        {"OUTPUT": {"value": {"win-1": "10.0.1.11"}}}, or a list of objects in the place of the map
                              (developer.hashicorp.com/terraform/cli/commands/output)
govc vm.info -json 'win-*'    virtualMachines[].name, .guest.ipAddress, .guest.guestFullName (vSphere API, GuestInfo)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from winboot.base.errors import InvalidInput
from winboot.config.inventory import Os
from winboot.config.source import Complaint, Place

_SPLIT: Final = re.compile(r"[\s=,]+")
_RELEASE: Final = re.compile(r"\b(20(?:16|19|22|25))\b")
# What objects of other programs call these; in any spelling.
_NAMES: Final = ("name", "hostname", "computername")
_ADDRESSES: Final = ("address", "privateip", "privateipaddress", "ipaddress", "ip", "defaultipaddress")
_RELEASES: Final = ("os", "release", "windows")


@dataclass(frozen=True, slots=True)
class Listed:
    """One machine: what it is called, where it is, and its Windows release, where the list says so."""

    name: str
    address: str
    os: str


def read_hosts(text: str, file: str) -> tuple[Listed, ...]:
    """The machines of a list. Raises InvalidInput with each line that is none, or where there is no machine."""
    nothing = text.strip() in ("", "null")  # null is what jq says of a path that is not there
    of_json = text.lstrip()[:1] in ("{", "[")
    found = () if nothing else tuple(_from_json(text, file) if of_json else _from_lines(text, file))
    if not found:
        _refuse(
            file, [Complaint(Place(file, 1, 1), "", "no machine is in it", "a line NAME ADDRESS OS for each")]
        )
    return found


def _from_lines(text: str, file: str) -> Iterator[Listed]:
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        words = [word for word in _SPLIT.split(line.partition("#")[0].strip()) if word]
        if not words:
            continue
        name, address, release = [*words, "", ""][:3]
        if len(words) > 3 or (release and release not in get_args(Os)):
            what = f"{release!r} is no release" if len(words) == 3 else f"{len(words)} words"
            wrong.append(
                Complaint(Place(file, number, 1), "", what, "NAME ADDRESS OS, with OS 2019, 2022 or 2025")
            )
            continue
        yield Listed(name, address, release)
    if wrong:
        _refuse(file, wrong)


def _from_json(text: str, file: str) -> Iterator[Listed]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        _refuse(file, [Complaint(Place(file, error.lineno, error.colno), "", error.msg, "JSON")])
    except RecursionError:
        _refuse(file, [Complaint(Place(file, 1, 1), "", "nested too deeply", "a flatter list")])
    yield from dict.fromkeys(_machines(data))


def _machines(data: Any) -> Iterator[Listed]:
    """What looks like a machine, wherever it stands."""
    if isinstance(data, list):
        for item in data:
            yield from _machines(item)
    elif isinstance(data, dict):
        named = {re.sub("[^a-z]", "", str(key).lower()): value for key, value in data.items()}
        if "virtualmachines" in named:
            yield from _of_govc(named["virtualmachines"])
        elif (one := _of_object(named)) is not None:
            yield one
        elif "value" in named and "type" in named:
            # An output of Terraform's.
            yield from _machines(named["value"])
        else:
            yield from _of_map(data)


def _of_object(named: Mapping[str, Any]) -> Listed | None:
    name = next((named[key] for key in _NAMES if isinstance(named.get(key), str)), None)
    address = next((named[key] for key in _ADDRESSES if isinstance(named.get(key), str)), None)
    if name is None or address is None:
        return None
    return Listed(
        name.lower(), address, _release(next((named[key] for key in _RELEASES if key in named), ""))
    )


def _of_map(data: Mapping[str, Any]) -> Iterator[Listed]:
    """Names with addresses, or with objects that have one."""
    for key, value in data.items():
        if (
            isinstance(value, str)
            and re.fullmatch(r"[0-9A-Fa-f.:]+", value)
            and ("." in value or ":" in value)
        ):
            yield Listed(str(key).lower(), value, "")
        elif isinstance(value, dict):
            inner = {re.sub("[^a-z]", "", str(one).lower()): what for one, what in value.items()}
            one = _of_object({"name": str(key), **inner})
            yield from [one] if one is not None else _machines(value)
        else:
            yield from _machines(value)


def _of_govc(machines: Any) -> Iterator[Listed]:
    """Machines of vSphere; one without Windows is none of winboot's."""
    for machine in machines if isinstance(machines, list) else []:
        named = (
            {str(key).lower(): value for key, value in machine.items()} if isinstance(machine, dict) else {}
        )
        guest = named.get("guest")
        inner = {str(key).lower(): value for key, value in guest.items()} if isinstance(guest, dict) else {}
        name, address, system = (
            named.get("name"),
            inner.get("ipaddress"),
            str(inner.get("guestfullname") or ""),
        )
        if isinstance(name, str) and isinstance(address, str) and "windows" in (system.lower() or "windows"):
            yield Listed(name.lower(), address, _release(system))


def _release(text: object) -> str:
    found = _RELEASE.search(str(text))
    return found[1] if found else ""


def _refuse(file: str, wrong: list[Complaint]) -> Any:
    raise InvalidInput(
        f"{file}: is no list of machines",
        problems=tuple(wrong),
        hint="docs/inventories.md shows what is read.",
    )
