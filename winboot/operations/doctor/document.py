"""One document of facts about a node: what is expected, what the machine reports, what the cluster reports.

It holds no secret and no line of a log, and rules read nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from winboot.base.errors import UsageError
from winboot.base.foreign import converted, decoded, ready
from winboot.base.limits import LARGEST_FACTS
from winboot.node.facts import Facts, cleaned, facts_of

SCHEMA: Final = 1
READABLE: Final = frozenset({1})


class Expected(msgspec.Struct, frozen=True):
    """What the profile wants of the node, as far as rules need it."""

    kubernetes: str
    services: tuple[str, ...]
    displays: Mapping[str, str]
    on_demand: tuple[str, ...]  # services that winboot's startup task starts
    pause_image: str
    network: str  # the HNS network's name, empty if the profile names none
    hns_type: str
    solution: str  # the id of the network solution
    network_owner: str
    overlay: bool
    pod_cidr: bool  # whether the Node's pod CIDR is the network's subnet
    first_pod: bool  # whether the network comes with the first pod
    source_vip: bool
    routes: bool
    nat: bool
    pod_cidrs: tuple[str, ...]
    service_cidrs: tuple[str, ...]
    dns: tuple[str, ...]
    kube_proxy: bool
    cni_file: str
    computer_name: str
    provider: str
    startup_taint: str
    taints: tuple[str, ...]
    labels: Mapping[str, str]
    rules: tuple[str, ...]


class NodeView(msgspec.Struct, frozen=True):
    """The Node object as the cluster reports it."""

    ready: bool
    reason: str
    message: str
    pod_cidrs: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    addresses: tuple[tuple[str, str], ...]
    kubelet: str
    silent_since: str
    network_reason: str
    unschedulable: bool
    vtep: str = ""


class ApiView(msgspec.Struct, frozen=True):
    """What the cluster reports about the node; `node` is None if it has no such Node."""

    version: str
    node: NodeView | None
    pending: tuple[str, ...] = ()  # client or serving: requests that wait for longer than a minute
    loose_daemon_sets: tuple[str, ...] = ()


class Document(msgspec.Struct, frozen=True):
    """All facts of one node. Without a login, `login` is false, and `machine` has known texts of logs at most."""

    schema: int
    node: str
    taken: str
    margin_s: float
    expected: Expected
    machine: Mapping[str, Sequence[dict[str, Any]]]
    problems: Mapping[str, str]
    login: bool
    login_problem: str = ""
    api: ApiView | None = None
    api_problem: str = ""

    @property
    def taken_seconds(self) -> float:
        """When the facts were read, in seconds since 1970."""
        return datetime.fromisoformat(self.taken).timestamp()


_ANYTHING: Final = msgspec.json.Decoder()
LARGEST: Final = 8 * LARGEST_FACTS  # bytes of a file
ready(Document)


def save(documents: Sequence[Document]) -> bytes:
    """The documents as JSON lines."""
    return b"".join(msgspec.json.encode(one) + b"\n" for one in documents)


def document_of(path: object, number: int, line: bytes) -> Document:
    """The document on a line of a file. Raises UsageError for any other line."""
    try:
        # Another person wrote the file, so its texts are made fit to be shown.
        found = converted(cleaned(decoded(_ANYTHING, line)), Document)
        datetime.fromisoformat(found.taken)
    except ValueError:
        raise UsageError(
            f"{path}:{number}: this line is not a document of `winboot doctor --out FILE`",
            hint="Write the file again with `winboot doctor --out FILE`.",
        ) from None
    if found.schema not in READABLE:
        raise UsageError(
            f"{path}:{number}: winboot cannot read version {found.schema} of this document",
            hint="Use the winboot version that wrote the document, or a newer version.",
        )
    facts = {subject: rows_of(facts_of(subject, list(rows))[0]) for subject, rows in found.machine.items()}
    return msgspec.structs.replace(found, machine=facts)


def rows_of(facts: Sequence[Facts]) -> list[dict[str, Any]]:
    """Facts as rules read them: an empty text where PowerShell has nothing."""
    return [{key: "" if value is None else value for key, value in one.items()} for one in facts]
