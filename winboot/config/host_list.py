"""Machines as other programs list them, for `init --hosts-file` and `host add --from`.

A list is read only where each machine's name is next to its address; all others are refused. Sources of the forms:

win-1 10.0.1.11 2022          or win-1=10.0.1.11,2022: a line each, # for remarks
terraform output -json        developer.hashicorp.com/terraform/cli/commands/output: {OUTPUT: {value, type, sensitive}}
az vm list -d                 learn.microsoft.com/cli/azure/vm: VirtualMachine with privateIps
az vm list-ip-addresses       the same page: virtualMachine.name, .network.privateIpAddresses
aws ec2 describe-instances    docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
gcloud compute instances list cloud.google.com/compute/docs/reference/rest/v1/instances
kubectl get nodes -o json     kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1
govc vm.info -json            vSphere API, GuestInfo
NetBox                        netbox.dev, /api/virtualization/virtual-machines/: results with primary_ip4
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, get_args

from winboot.base.errors import InvalidInput
from winboot.config.inventory import Os
from winboot.config.profile.values import host_name, node_name
from winboot.config.source import Complaint, Place, Wrong

_SPLIT: Final = re.compile(r"[\s=,]+")
_RELEASE: Final = re.compile(r"(?<![0-9])(20(?:16|19|22|25))(?![0-9])")
# What objects of other programs call these, in any spelling. A public address leads from the outside alone.
_NAMES: Final = ("name", "hostname", "computername")
_ADDRESSES: Final = (
    "address",
    "privateip",
    "privateips",
    "privateipaddress",
    "ipaddress",
    "ip",
    "ipv4",
    "defaultipaddress",
)
_RELEASES: Final = ("os", "release", "windows")
# A key that is one of these is not a machine, whatever is next to it.
_ADDRESS_WORD: Final = re.compile(
    r"(?:ansible|default|external|floating|guest|host|internal|nat|network|node|primary|private|public|remote|vm)*"
    r"(?:ips?|ipv[46]|address(?:es)?|ip(?:v[46])?address(?:es)?|networks?|subnets?|gateways?|netmask|cidrs?|fqdn|host|dns|version)"
    r"|.*version"
)
_ELSEWHERE: Final[Mapping[str, str]] = {
    "_meta": "`winboot inventory import FILE` reads an Ansible inventory.",
    "terraform_version": "`terraform output -json NAME` writes an output that maps names to addresses.",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """One machine: what it is called, where it is, and its Windows release, where the list says so."""

    name: str
    address: str
    os: str


@dataclass(frozen=True, slots=True)
class _Form:
    """What a program writes: the path of its objects (keys in lower case, * for each item). Then a key that such an
    object has, and where in it name, address and the words about its operating system are. The first that is there
    counts."""

    objects: str
    mark: str
    names: Sequence[str]
    addresses: Sequence[str]
    system: Sequence[str] = ()


_FORMS: Final = (
    _Form("virtualmachines.*", "guest", ("name",), ("guest.ipaddress",), ("guest.guestfullname",)),
    _Form(
        "*",
        "storageprofile",
        ("osprofile.computername", "name"),
        ("privateips",),
        ("storageprofile.osdisk.ostype", "storageprofile.imagereference.sku"),
    ),
    _Form("*.virtualmachine", "network", ("name",), ("network.privateipaddresses.*",)),
    _Form("*", "networkinterfaces", ("name",), ("networkinterfaces.0.networkip",), ("disks.*.licenses.*",)),
    _Form(
        "reservations.*.instances.*",
        "instanceid",
        ("tags.name",),
        ("privateipaddress",),
        ("platform", "platformdetails"),
    ),
    _Form(
        "items.*",
        "status",
        ("metadata.name",),
        ("status.addresses.internalip",),
        ("status.nodeinfo.operatingsystem", "status.nodeinfo.osimage"),
    ),
    _Form("results.*", "primary_ip4", ("name",), ("primary_ip4.address",), ("platform.name",)),
)
# Where these programs list their objects; none are there if nothing matches.
_LISTS: Final = tuple(form.objects.partition(".")[0] for form in _FORMS if form.objects[0] != "*")
# Lists of pairs that are maps: AWS's tags, and a Node's addresses.
_PAIRS: Final = (("key", "value"), ("type", "address"))


def read_hosts(text: str, file: str) -> tuple[Listed, ...]:
    """The machines of a list. Raises InvalidInput with each invalid line, and for a document of another form."""
    nothing = text.strip() in ("", "null")  # null is what jq says of a path that is not there
    of_json = text.lstrip()[:1] in ("{", "[")
    found = () if nothing else tuple(_from_json(text, file) if of_json else _from_lines(text, file))
    if not found:
        _refuse(file, "no machine is in it", "a line NAME ADDRESS OS for each")
    return found


def _from_lines(text: str, file: str) -> Iterator[Listed]:
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        words = [word for word in _SPLIT.split(line.partition("#")[0].strip()) if word]
        if not words:
            continue
        name, address, release = [*words, "", ""][:3]
        if what := _wrong_with(words):
            wrong.append(
                Complaint(Place(file, number, 1), "", what, "NAME ADDRESS OS, with OS 2019, 2022 or 2025")
            )
            continue
        yield Listed(name.lower(), address, release)
    if wrong:
        _refuse_all(file, wrong)


def _wrong_with(words: Sequence[str]) -> str:
    """Why a line's words are no machine; empty for those of a machine."""
    name, address, release = [*words, "", ""][:3]
    if _plain(name) in _NAMES or _ADDRESS_WORD.fullmatch(_plain(address)):
        return "a heading, and no machine"
    if len(words) > 3:
        return f"{len(words)} words"
    if release and release not in get_args(Os):
        return f"{release!r} is not a release"
    if _address(name):
        return f"{name} is an address, and no name"
    try:
        node_name(name.lower())
        host_name(address or name)
    except Wrong as error:
        return error.wrong
    return ""


def _plain(word: str) -> str:
    """A key in any spelling: private_ip and PrivateIp are one."""
    return re.sub("[^a-z0-9]", "", word.lower())


def _from_json(text: str, file: str) -> Iterator[Listed]:
    try:
        yield from dict.fromkeys(_machines(json.loads(text, object_pairs_hook=_lowered), file))
    except json.JSONDecodeError as error:
        _refuse_all(file, [Complaint(Place(file, error.lineno, error.colno), "", error.msg, "JSON")])
    except ValueError as error:
        _refuse(file, str(error), "JSON")
    except RecursionError:
        _refuse(file, "nested too deeply", "a flatter list")


def _lowered(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object with its keys in lower case: programs differ in it between their releases. Raises ValueError."""
    made = {key.lower(): value for key, value in pairs}
    if len(made) < len(pairs):
        raise ValueError("an object has a key twice, or in two spellings")
    return made


def _machines(data: Any, file: str) -> Iterator[Listed]:
    if isinstance(data, dict) and "metadata" in data and "items" not in data:
        data = {"items": [data]}  # `kubectl get node NAME`
    if isinstance(data, dict) and any(data.get(key, data) in ([], None) for key in _LISTS):
        return
    for form in _FORMS:
        objects = [one for one in _at(data, form.objects) if isinstance(one, dict)]
        if objects and all(form.mark in one for one in objects):
            yield from _of_form(form, objects, file)
            return
    outputs = _outputs(data)
    if outputs is not None:
        data = _one_output(outputs, file)
    if isinstance(data, dict) and _named(data) is not None:
        data = [data]
    if isinstance(data, list):
        yield from (_of_object(one, f"[{at}]", file) for at, one in enumerate(data) if _may_be_windows(one))
    elif isinstance(data, dict):
        yield from _of_map(data, file)


def _of_form(form: _Form, objects: Sequence[Mapping[str, Any]], file: str) -> Iterator[Listed]:
    """The Windows machines; of one that is off govc has no address, and it is left out."""
    for at, one in enumerate(objects):
        system = " ".join(str(found) for path in form.system for found in _at(one, path)).lower()
        name = next((found for path in form.names for found in _at(one, path) if found), None)
        addresses = [found for path in form.addresses for found in _at(one, path) if found]
        if (system and "windows" not in system) or (form.mark == "guest" and not addresses):
            continue
        if not isinstance(name, str):
            _refuse(file, f"machine {at + 1} has no name", " or ".join(form.names))
        address = _address(addresses[0]) if len(addresses) == 1 else ""
        if not address:
            count = sum(len(str(one).split(",")) for one in addresses)  # `az vm list -d` joins them
            _refuse(file, f"{name} has {count} addresses", f"one IP address in {form.addresses[0]}")
        yield Listed(name.lower(), address, _release(system))


def _at(data: Any, path: str) -> Iterator[Any]:
    """The values at a path: keys, * for each item of a list, a number for one of them."""
    key, _, rest = path.partition(".")
    if isinstance(data, list) and key != "*" and not key.isdigit():
        data = _paired(data)
    if isinstance(data, list):
        found = data if key == "*" else data[int(key) : int(key) + 1]
    else:
        found = [data[key]] if isinstance(data, dict) and key in data else []
    for one in found:
        yield from _at(one, rest) if rest else [one]


def _paired(pairs: Sequence[Any]) -> dict[str, Any]:
    """A list of pairs as the map that it is; the first of a name counts."""
    made: dict[str, Any] = {}
    for one in pairs:
        for name, value in _PAIRS:
            if isinstance(one, dict) and name in one and value in one:
                made.setdefault(str(one[name]).lower(), one[value])
    return made


def _outputs(data: Any) -> dict[str, Any] | None:
    """The values of Terraform's outputs; None for another document."""
    if not isinstance(data, dict) or not data:
        return None
    if not all(isinstance(one, dict) and {"value", "type"} <= set(one) for one in data.values()):
        return None
    return {name: one["value"] for name, one in data.items()}


def _one_output(outputs: Mapping[str, Any], file: str) -> Any:
    """The only output that is a list or a map."""
    found = [name for name, value in outputs.items() if isinstance(value, list | dict)]
    if len(found) != 1:
        wrong = f"{len(found)} outputs are lists or maps" + (f": {', '.join(found)}" if found else "")
        _refuse(file, wrong, "`terraform output -json NAME` for one of them")
    return outputs[found[0]]


def _of_map(data: Mapping[str, Any], file: str) -> Iterator[Listed]:
    """Names with addresses, or with objects that have one: each value is such a one, and no key a word for an address."""
    for key, hint in _ELSEWHERE.items():
        if key in data:
            _refuse(file, f"the key {key}: this is not a list of machines", "another document", hint)
    for key, value in data.items():
        if _ADDRESS_WORD.fullmatch(_plain(key)):
            _refuse(file, f"the key {key!r} is a word for an address, and no machine", "names as keys")
        one = {"name": key, **value} if isinstance(value, dict) else {"name": key, "ip": value}
        if _may_be_windows(one):
            yield _of_object(one, key, file)


def _of_object(one: Any, where: str, file: str) -> Listed:
    found = _named(one)
    if found is None:
        _refuse(file, f"{where} has no name with an IP address", f"{_NAMES[0]} and {_ADDRESSES[0]} for each")
    return found


def _may_be_windows(one: Any) -> bool:
    """False for an object whose operating system is another one."""
    system = one.get("os") if isinstance(one, dict) else None
    if not isinstance(system, str) or not system:
        return True
    return system.lower().startswith("win") or bool(_release(system)) or "windows" in system.lower()


def _named(one: Any) -> Listed | None:
    """An object with a name and an address."""
    if not isinstance(one, dict):
        return None
    plain = {_plain(key): value for key, value in one.items()}
    name = next((plain[key] for key in _NAMES if isinstance(plain.get(key), str)), None)
    address = _address(next((plain[key] for key in _ADDRESSES if key in plain), None))
    if not name or not address:
        return None
    release = next((plain[key] for key in _RELEASES if key in plain), "")
    return Listed(name.lower(), address, _release(release))


def _address(value: object) -> str:
    """An IP address without the length of its network, which NetBox writes; empty for any other value."""
    text = value.partition("/")[0] if isinstance(value, str) else ""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return ""
    return text


def _release(text: object) -> str:
    found = _RELEASE.search(str(text))
    return found[1] if found else ""


def _refuse(file: str, wrong: str, expected: str, hint: str = "") -> NoReturn:
    _refuse_all(file, [Complaint(Place(file, 1, 1), "", wrong, expected)], hint)


def _refuse_all(file: str, wrong: Sequence[Complaint], hint: str = "") -> NoReturn:
    raise InvalidInput(
        f"{file}: is not a list of machines",
        problems=tuple(wrong),
        hint=hint or "docs/inventories.md shows what is read.",
    )
