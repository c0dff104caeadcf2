"""The requests that a stand-in sends to HNS, in order, as a contract writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from winboot_lab.windows.machine import Machine

_ID: Final = re.compile(r"\b[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
_DOCUMENTS: Final = {
    "hcn.list": "query",
    "hcn.create": "settings",
    "hcn.join": "settings",
    "hcn.modify": "settings",
}
_CALLS: Final = {"hcn.list": "Enumerate", "hcn.create": "Create", "hcn.delete": "Delete"}


@contextmanager
def sent(machine: Machine) -> Iterator[list[list[Any]]]:
    """What is sent to HNS from now on: `[POST, /networks/, {…}]` of the first version of its API, `[Create, Endpoint, {…}]`
    of the second. Ids are `<id>`; a request that is the same as the one before it counts once."""
    requests: list[list[Any]] = []
    ask = machine.invoke

    def listen(command: str, parameters: Any) -> Any:
        if command.startswith(("hns.", "hcn.")):
            one = _shown(command, parameters)
            if requests[-1:] != [one]:
                requests.append(one)
        return ask(command, parameters)

    machine.invoke = listen  # type: ignore[method-assign]
    try:
        yield requests
    finally:
        machine.invoke = ask  # type: ignore[method-assign]


def _shown(command: str, parameters: Any) -> list[Any]:
    if command == "hns.call":
        words, document = [parameters["method"], parameters["path"]], parameters["request"]
    elif command in _CALLS:
        words, document = (
            [_CALLS[command], parameters["kind"]],
            parameters.get(_DOCUMENTS.get(command, ""), ""),
        )
    else:
        words, document = (
            ["Modify", "Namespace" if command == "hcn.join" else "Network"],
            parameters["settings"],
        )
    return [
        *(_ID.sub("<id>", word) for word in words),
        *([json.loads(_ID.sub("<id>", document))] if document else []),
    ]


def ordered(value: Any) -> str:
    """As text, in which the order of fields counts, too."""
    return json.dumps(value)


def fields(value: Any) -> Any:
    """The fields of a document with their order, and the numbers; texts count by their names alone."""
    if isinstance(value, dict):
        return [(key, one if key == "Type" else fields(one)) for key, one in value.items()]
    if isinstance(value, list):
        return [fields(one) for one in value]
    return value if isinstance(value, int) else "text"
