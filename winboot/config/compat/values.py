"""What a value of a configuration field must look like, as the decoder and the validation of Kubernetes 1.36.2 say.

The types are in the data, with each field. Sources, all of kubernetes/kubernetes at v1.36.2:

    Go types        staging/src/k8s.io/kubelet/config/v1beta1/types.go, kube-proxy/config/v1alpha1/types.go (and
                    component-base/logs/api, tracing/api, config/v1alpha1)
    ranges, choices pkg/kubelet/apis/config/validation/validation.go, pkg/proxy/apis/config/validation/validation.go
    thresholds      pkg/kubelet/eviction/helpers.go
    reservations    cmd/kubelet/app/server.go (parseResourceList)

A program that meets another value ends while it starts.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from winboot.config.compat.facts import Facts
from winboot.config.source import nearest

_INTEGERS: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
}
# time.ParseDuration; apimachinery/pkg/api/resource.ParseQuantity.
_DURATION: Final = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_DURATION_PART: Final = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS: Final = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
# int64 nanoseconds, which is what a duration is in Go.
_LONGEST: Final = Decimal(2**63) / 10**9
_QUANTITY: Final = re.compile(
    r"(?P<sign>[-+]?)(?P<number>[0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,3})?"
)
_UNITS: Final = ("Ki", "Mi", "Gi", "Ti", "k", "M", "G", "T", "m", "n", "u")
_PERCENT: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)%")
_HOST_PORT: Final = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<v4>[^:]+)):(?P<port>[0-9]{1,5})")
SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
)
RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")

_A_DURATION: Final = "a duration such as 10s or 1h30m"
_A_QUANTITY: Final = "a quantity such as 500m, 2Gi or 1.5G"
_A_THRESHOLD: Final = "a quantity such as 500Mi, or a percentage up to 100%"


@dataclass(frozen=True, slots=True)
class WrongValue:
    """What is wrong with a value, and what was expected. `below` is the way from the field to the part that is wrong."""

    wrong: str
    expected: str
    did_you_mean: str = ""
    below: tuple[str | int, ...] = ()


def wrong_values(entry: Facts, value: Any) -> Iterator[WrongValue]:
    """Everything that keeps a value from being one of the field's; nothing for a field whose type is not known."""
    kind = entry.get("type")
    if kind is None or value is None:
        return
    if kind in _SCALARS:
        yield from _one(_SCALARS[kind], entry, value)
    elif kind in _ITEMS:
        yield from _items(_ITEMS[kind], entry, value)
    elif kind in _MAPS:
        yield from _members(_MAPS[kind], value)
    elif kind == "list":
        yield from _objects(entry.get("items", {}), value)
    elif kind in ("map", "gates") and not isinstance(value, Mapping):
        yield WrongValue(_shown(value), "a mapping")


def seconds(text: str) -> Decimal | None:
    """A Go duration in seconds, or None for any other text."""
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        return None
    total = sum((Decimal(n) * _SECONDS[unit] for n, unit in _DURATION_PART.findall(text)), Decimal(0))
    return -total if text.startswith("-") else total


_Check = Callable[[Facts, Any], WrongValue | None]


def _one(check: _Check, entry: Facts, value: Any) -> Iterator[WrongValue]:
    found = check(entry, value)
    if found is not None:
        yield found


def _items(check: _Check, entry: Facts, value: Any) -> Iterator[WrongValue]:
    if not isinstance(value, list | tuple):
        yield WrongValue(_shown(value), "a list")
        return
    for index, item in enumerate(value):
        found = check(entry, item)
        if found is not None:
            yield WrongValue(found.wrong, found.expected, found.did_you_mean, (index,))


def _members(check: Callable[[str, Any], WrongValue | None], value: Any) -> Iterator[WrongValue]:
    if not isinstance(value, Mapping):
        yield WrongValue(_shown(value), "a mapping")
        return
    for key, item in value.items():
        found = None if item is None else check(str(key), item)
        if found is not None:
            yield WrongValue(found.wrong, found.expected, found.did_you_mean, (str(key),))


def _objects(fields: Mapping[str, str], value: Any) -> Iterator[WrongValue]:
    """A list of mappings whose fields are known by name and type."""
    if not isinstance(value, list | tuple):
        yield WrongValue(_shown(value), "a list")
        return
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            yield WrongValue(_shown(item), "a mapping", below=(index,))
            continue
        for key, inner in item.items():
            if key not in fields:
                names = ", ".join(fields)
                yield WrongValue(
                    f"unknown field {key!r}", f"one of {names}", nearest(key, fields), (index, key)
                )
                continue
            for found in wrong_values({"type": fields[key]}, inner):
                yield WrongValue(found.wrong, found.expected, found.did_you_mean, (index, key, *found.below))


def _shown(value: Any) -> str:
    match value:
        case Mapping():
            return "found a mapping"
        case list() | tuple():
            return "found a list"
        case bool():
            return str(value).lower()
    return repr(value)


def _bool(entry: Facts, value: Any) -> WrongValue | None:
    if isinstance(value, bool):
        return None
    meant = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
    return WrongValue(_shown(value), "true or false", meant.get(str(value).lower(), ""))


def _integer(entry: Facts, value: Any) -> WrongValue | None:
    low, high = _INTEGERS[entry["type"]]
    low, high = max(low, entry.get("min", low)), min(high, entry.get("max", high))
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return None
    meant = str(int(value)) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value, re.ASCII) else ""
    return WrongValue(_shown(value), f"a whole number {_bounds(low, high)}", meant)


def _bounds(low: int, high: int) -> str:
    bounded = high not in {limit for _, limit in _INTEGERS.values()}
    return (
        f"from {low} to {high}"
        if bounded
        else f"of at least {low}"
        if low > -(2**31)
        else "that fits the field"
    )


def _float(entry: Facts, value: Any) -> WrongValue | None:
    low, high = entry.get("min", -math.inf), entry.get("max", math.inf)
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if number and low <= value <= high:
        return None
    return WrongValue(_shown(value), "a number" if math.isinf(high) else f"a number from {low} to {high}")


def _text(entry: Facts, value: Any) -> WrongValue | None:
    if not isinstance(value, str):
        quoted = "" if isinstance(value, Mapping | list | tuple) else f'"{_shown(value)}"'
        return WrongValue(_shown(value), f"text{f', in quotes: {quoted}' if quoted else ''}")
    choices = entry.get("choices")
    if choices is not None and value not in choices:
        return WrongValue(repr(value), " | ".join(one or '""' for one in choices), nearest(value, choices))
    return None


def _duration(entry: Facts, value: Any) -> WrongValue | None:
    found = seconds(value)
    if found is None or abs(found) > _LONGEST:
        return WrongValue(_shown(value), _A_DURATION, _meant_duration(value))
    low, high = entry.get("min"), entry.get("max")
    if low is not None and found < low:
        return WrongValue(repr(value), f"a duration of at least {low}s")
    if high is not None and found > high:
        return WrongValue(repr(value), f"a duration from {low or 0}s to {high}s")
    return None


def _meant_duration(value: Any) -> str:
    """`1 minute`, `30 sec` and a number without a unit are what people write."""
    match = re.fullmatch(r"([0-9]{1,9}) ?(ms|s|m|h)?[a-z]*", str(value).lower(), re.ASCII)
    return f"{match[1]}{match[2] or 's'}" if match else ""


def _time(entry: Facts, value: Any) -> WrongValue | None:
    """A duration, or nanoseconds (component-base/logs/api/v1, TimeOrMetaDuration)."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return None
    return _duration(entry, value)


def _quantity(entry: Facts, value: Any) -> WrongValue | None:
    if entry.get("number") and isinstance(value, int) and not isinstance(value, bool):
        return None
    if not isinstance(value, str):
        # The field is text for the decoder, although it holds a number.
        return _text({}, value)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        return WrongValue(repr(value), _A_QUANTITY, _meant_quantity(value))
    if match["sign"] == "-" and Decimal(match["number"]):
        return WrongValue(repr(value), f"{_A_QUANTITY}, not negative")
    return None


def _meant_quantity(value: str) -> str:
    """`2 GB`, `2gb` and `500 MiB` are what people write; a GB has no letter B here."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)", value.strip().lower(), re.ASCII)
    unit = match[2].removesuffix("b") if match else ""
    found = next((one for one in _UNITS if one.lower() == unit), "")
    return f"{match[1]}{found}" if match and found else ""


def _address(entry: Facts, value: Any) -> WrongValue | None:
    """Empty is the default address (SetDefaults of kubelet and kube-proxy)."""
    return None if value == "" else _ip(entry, value)


def _ip(entry: Facts, value: Any) -> WrongValue | None:
    try:
        ipaddress.ip_address(value if isinstance(value, str) else "")
    except ValueError:
        return WrongValue(_shown(value), "an IP address")
    return None


def _host_port(entry: Facts, value: Any) -> WrongValue | None:
    match = _HOST_PORT.fullmatch(value) if isinstance(value, str) else None
    if value == "" or (
        match and 0 < int(match["port"]) < 65536 and _ip({}, match["v6"] or match["v4"]) is None
    ):
        return None
    return WrongValue(_shown(value), "an IP address and a port, such as 0.0.0.0:10256")


def _cidr(entry: Facts, value: Any) -> WrongValue | None:
    try:
        ipaddress.ip_network(value if isinstance(value, str) and "/" in value else "", strict=False)
    except ValueError:
        return WrongValue(_shown(value), "a network such as 10.0.0.0/16")
    return None


def _named(
    key: str, names: tuple[str, ...], value: Any, check: Callable[[Any], WrongValue | None]
) -> WrongValue | None:
    if key not in names:
        return WrongValue(f"unknown name {key!r}", " | ".join(names), nearest(key, names))
    return check(value)


def _threshold(value: Any) -> WrongValue | None:
    percent = _percentage(value)
    if percent is not None:
        return None if 0 <= percent <= 100 else WrongValue(repr(value), _A_THRESHOLD)
    found = _quantity({}, value)
    if found is not None:
        return WrongValue(found.wrong, _A_THRESHOLD, found.did_you_mean)
    match = _QUANTITY.fullmatch(value)
    if match and not Decimal(match["number"]):
        return WrongValue(repr(value), f"{_A_THRESHOLD}, more than 0; 0% turns it off")
    return None


def _percentage(value: Any) -> Decimal | None:
    if not isinstance(value, str) or not _PERCENT.fullmatch(value):
        return None
    return Decimal(value.rstrip("%"))


def _reclaim(value: Any) -> WrongValue | None:
    percent = _percentage(value)
    if percent is not None:
        return None if percent > 0 else WrongValue(repr(value), "a percentage above 0%")
    return _quantity({}, value)


def _grace(value: Any) -> WrongValue | None:
    return _duration({"min": 0}, value)


def _plain_text(key: str, value: Any) -> WrongValue | None:
    return _text({}, value)


def _texts_member(key: str, value: Any) -> WrongValue | None:
    return next(_items(_text, {}, value), None)


_SCALARS: Final[Mapping[str, _Check]] = {
    "bool": _bool,
    "int32": _integer,
    "int64": _integer,
    "uint32": _integer,
    "float": _float,
    "text": _text,
    "duration": _duration,
    "time": _time,
    "quantity": _quantity,
    "ip": _address,
    "host-port": _host_port,
}
_ITEMS: Final[Mapping[str, _Check]] = {
    "texts": _text,
    "int32s": lambda entry, value: _integer({"type": "int32"}, value),
    "cidrs": _cidr,
}
_MAPS: Final[Mapping[str, Callable[[str, Any], WrongValue | None]]] = {
    "text-map": _plain_text,
    "texts-map": _texts_member,
    "thresholds": lambda key, value: _named(key, SIGNALS, value, _threshold),
    "reclaims": lambda key, value: _named(key, SIGNALS, value, _reclaim),
    "grace-periods": lambda key, value: _named(key, SIGNALS, value, _grace),
    "resources": lambda key, value: _named(key, RESERVABLE, value, lambda one: _quantity({}, one)),
    "resource-list": lambda key, value: _quantity({}, str(value) if isinstance(value, int) else value),
    "percentages": _plain_text,
}
