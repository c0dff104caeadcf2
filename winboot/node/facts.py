"""What a machine says of itself to `winboot verify`: JSON, a line each, and nothing of it is believed before its form is known.

A machine may be anybody's: a fact in another form is left out and named, and texts are made fit to be shown. What is
more than any node has to say ends the node by name (winboot.base.limits).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from winboot.base.clean import clean
from winboot.base.errors import ExcessiveOutput
from winboot.base.foreign import Malformed
from winboot.base.limits import DEEPEST, LARGEST_FACTS, LARGEST_NUMBER, MOST_FACTS, MOST_NOISE

Facts = Mapping[str, Any]
Form = Callable[[Any], bool]


def _text(value: Any) -> bool:
    """PowerShell has nothing in place of some texts: the state of a service that is not there."""
    return value is None or isinstance(value, str)


def _word(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int) and abs(value) <= LARGEST_NUMBER


def _bytes(value: Any) -> bool:
    """A drive has more of them than anything else is counted in."""
    return isinstance(value, int) and 0 <= value < 1 << 63


def _digits(value: Any) -> bool:
    """A number as a text; nothing where HNS has none."""
    return isinstance(value, str) and (
        value == "" or (value.isascii() and value.isdigit() and len(value) < 10)
    )


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value.replace("Z", "+00:00")) is not None
    except ValueError:
        return False


def _time_or_none(value: Any) -> bool:
    return value == "" or _time(value)


def _several(form: Form) -> Form:
    return lambda value: isinstance(value, list) and len(value) <= MOST_FACTS and all(map(form, value))


def _pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_number, value))


def _table(**forms: Form) -> Form:
    return lambda value: (
        isinstance(value, dict) and all(key in value and form(value[key]) for key, form in forms.items())
    )


_HOP: Final = _table(prefix=_text, hop=_text)
_ACL: Final = _table(
    Action=_word,
    Direction=_word,
    Protocols=_word,
    LocalPorts=_word,
    RemotePorts=_word,
    RemoteAddresses=_word,
    Priority=_digits,
)
# By subject, as templates/powershell/_probes.ps1.j2 says them.
FORMS: Final[Mapping[str, Form]] = {
    "services": _table(name=_text, state=_text, ends=_number, seconds=_number),
    "processes": _table(name=_text, count=_number),
    "runtime": _table(name=_text, ok=_flag, message=_text),
    "networks": _table(
        name=_text,
        type=_text,
        management=_text,
        router=_text,
        subnets=_several(_word),
        remotes=_several(_HOP),
    ),
    "endpoints": _table(
        dns=_text,
        suffix=_text,
        gateway=_text,
        nat=_flag,
        exceptions=_several(_word),
        routes=_several(_word),
        acls=_several(_ACL),
        provider=_text,
        name=_text,
        address=_text,
        state=_number,
        network=_text,
    ),
    "balancers": _table(
        state=_number,
        address=_text,
        port=_number,
        protocol=_number,
        dsr=_flag,
        source=_text,
        to=_several(_word),
        backends=_number,
    ),
    "routes": _HOP,
    "interfaces": _table(address=_text, alias=_text, mtu=_number, forwarding=_flag),
    "rules": _table(name=_text, ok=_flag),
    "ports": _table(name=_text, range=_text, excluded=_several(_pair)),
    "server": _table(server=_text, ok=_flag),
    "disk": _table(drive=_word, free=_bytes, size=_bytes, image=_flag),
    "clock": _table(now=_time, end=_time_or_none),
    # templates/powershell/_doctor.ps1
    "system": _table(
        name=_word,
        build=_number,
        revision=_number,
        booted=_time_or_none,
        pending=_word,
        page_file=_word,
        servicing=_word,
        path=_number,
        containers=_word,
        ignored=_several(_word),
    ),
    "maker": _table(id=_word, what=_word, changed=_several(_word)),
    "known": _table(
        name=_word,
        state=_word,
        start=_word,
        end=_word,
        missing=_several(_word),
        deleted=_flag,
        waits=_several(_word),
    ),
    "events": _table(id=_number, subject=_text, count=_number),
    "signatures": _table(service=_word, id=_word, count=_number),
    "cni": _table(file=_word, mark=_flag, valid=_flag, network=_word, plugins=_several(_word)),
    "subnet": _table(network=_word, subnet=_word),
    "adapters": _table(alias=_word, address=_word, state=_word, servers=_several(_word)),
    "gateways": _table(prefix=_word, hop=_word, alias=_word),
    "store": _table(used=_number, vip=_word, sandboxes=_number, shims=_number),
    "credentials": _table(fault=_word, bootstrap=_flag, broken=_flag, serving=_flag),
    "files": _table(path=_word, size=_bytes, written=_time),
}


def bounded(lines: Iterable[str]) -> Iterator[str]:
    """The lines of one answer. Raises ExcessiveOutput."""
    characters = 0
    for number, line in enumerate(lines):
        characters += len(line)
        if characters > LARGEST_FACTS or number > MOST_NOISE:
            raise ExcessiveOutput(
                f"the machine sent more than the facts of any node ({number} lines, {characters} characters)",
                hint="Check for other programs in the sessions of winboot's account: its script does not send this.",
            )
        yield line


def said(lines: Iterable[str], key: str) -> Iterator[dict[str, Any]]:
    """The objects among the lines that have this key; warnings of the machine are left out. Raises ExcessiveOutput."""
    for line in bounded(lines):
        try:
            found = cleaned(json.loads(line))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and key in found:
            yield found


def facts_of(subject: str, given: Any) -> tuple[Sequence[Facts], str]:
    """The facts that have the form of their subject, and what is wrong with the others; nothing where nothing is."""
    form = FORMS.get(subject)
    if form is None:
        return (), ""
    facts = given if isinstance(given, list) else []
    right = [one for one in facts[:MOST_FACTS] if form(one)]
    wrong = len(facts) - len(right) if isinstance(given, list) else 1
    return (right, f"{wrong} of the machine's answers are malformed" if wrong else "")


def cleaned(value: Any, deepest: int = DEEPEST) -> Any:
    """Its texts as they can be shown, on one line each. Raises Malformed for lists and tables that are nested too deep."""
    if isinstance(value, str):
        return clean(value).replace("\n", " ")
    if deepest == 0 and isinstance(value, list | dict):
        raise Malformed(f"the answer is nested deeper than {DEEPEST} levels")
    if isinstance(value, list):
        return [cleaned(one, deepest - 1) for one in value]
    if isinstance(value, dict):
        return {cleaned(key): cleaned(one, deepest - 1) for key, one in value.items()}
    return value
