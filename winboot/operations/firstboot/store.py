"""What first boot remembers, in one private file: vouchers, approvals, and how far each machine has come.

The endpoint shares it with `winboot hook voucher`, `winboot hook approve NODE UUID` and `winboot why NODE`; each change
is made under a lock. A voucher is kept as its hash alone. Beside it, first-boot.jsonl has a line for each voucher and approval
that was made, revoked or used; winboot only appends to that file.
"""

from __future__ import annotations

import getpass
import hashlib
import hmac
import json
import os
import secrets
import time
import uuid as uuids
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, Self

from winboot.base.errors import InvalidInput, UsageError
from winboot.base.private import open_to_append, own_folder, replace_privately
from winboot.base.secret import Secret
from winboot.operations.firstboot.hello import Refusal
from winboot.remote.cluster.identity import same_machine

State = Literal["waits", "refused", "joining", "failed", "Ready"]
# A voucher for one host is good for so many seconds; one for a group until it is revoked.
HOST_VOUCHER_S: Final = 3600.0
_MOST_REFUSED: Final = 200
# How many callers without a proof are kept for one node.
_MOST_WAITING: Final = 8
_SAME_S: Final = 60.0
# How many machines a voucher of a group lets in within a minute.
PER_MINUTE: Final = 30


@dataclass(frozen=True, slots=True)
class Voucher:
    """One voucher. `scope` is a host's or a group's name; `used` says which machines (SMBIOS UUID) came with it, and when
    (seconds of the epoch)."""

    id: str
    hash: str
    kind: Literal["host", "group"]
    scope: str
    made: float
    used: dict[str, float] = field(default_factory=dict)

    def refusal(self, uuid: str, now: float) -> str:
        """Why this machine may not use it now; empty where it may. A machine may come again."""
        if uuid in self.used:
            return ""
        if self.kind == "host":
            if self.used:
                return f"another machine ({next(iter(self.used))}) has used the voucher {self.id}"
            if now - self.made > HOST_VOUCHER_S:
                return f"the voucher {self.id} is older than {HOST_VOUCHER_S / 60:.0f} minutes"
        if sum(now - at < 60.0 for at in self.used.values()) >= PER_MINUTE:
            return f"the voucher {self.id} has admitted {PER_MINUTE} machines within a minute"
        return ""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a machine has come, in one sentence, at the time `at`; `node` is empty where the inventory does not say it.

    Times are seconds of the epoch; `ready_at` is when the Node was Ready last, 0 for never.
    """

    node: str
    state: State
    why: str
    uuid: str
    address: str
    at: float
    ready_at: float = 0.0

    @classmethod
    def read(cls, raw: dict[str, Any]) -> Self:
        """As it is kept; former releases kept more. Raises TypeError."""
        return cls(**{name: raw[name] for name in cls.__slots__ if name in raw})


@dataclass(slots=True)
class Remembered:
    """The whole file. `approved` are nodes that an administrator let in by hand, each with the UUID of its machine.
    `machines` were let in once, and no caller without a proof changes them. `refused` are the last callers that were
    not let in: by their address, and those that wait for an approval by address and UUID."""

    vouchers: dict[str, Voucher] = field(default_factory=dict)
    approved: dict[str, str] = field(default_factory=dict)
    machines: dict[str, Seen] = field(default_factory=dict)
    refused: dict[str, Seen] = field(default_factory=dict)

    def about(self, word: str) -> list[Seen]:
        """By a node's name, an address or an SMBIOS UUID: machines that were let in, then other callers, the newest first."""
        callers = sorted(self.refused.values(), key=lambda one: -one.at)
        everybody = (*self.machines.values(), *callers)
        return [one for one in everybody if word in (one.node, one.address) or same_text(word, one.uuid)]

    def voucher(self, id_: str) -> Voucher:
        """The voucher with this id. Raises UsageError for an unknown id."""
        if id_ not in self.vouchers:
            listed = ", ".join(sorted(self.vouchers)) or "none"
            raise UsageError(f"the voucher {id_} does not exist", hint=f"Vouchers: {listed}.")
        return self.vouchers[id_]

    def waiting(self, node: str, uuid: str) -> Seen | None:
        """The last call of the machine with this SMBIOS UUID that waits to be this node. Raises UsageError for an invalid
        UUID."""
        try:
            uuids.UUID(uuid)
        except ValueError as error:
            raise UsageError(
                f"{uuid!r} is not an SMBIOS UUID", hint=f"`winboot why {node}` shows the waiting machines."
            ) from error
        waits = (one for one in self.about(node) if one.state == "waits")
        return next((one for one in waits if same_machine(uuid, one.uuid)), None)


class Store:
    """The file. `now` gives the seconds of the epoch."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self.now = now

    def read(self) -> Remembered:
        """What is remembered; nothing where there is no file yet. Raises InvalidInput where it cannot be read."""
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            return Remembered(
                {id_: Voucher(**one) for id_, one in raw["vouchers"].items()},
                dict(raw["approved"]),
                # Former releases kept waiting callers here: they have proved nothing.
                {name: Seen.read(one) for name, one in raw["machines"].items() if one["state"] != "waits"},
                {key: Seen.read(one) for key, one in raw.get("refused", {}).items()},
            )
        except FileNotFoundError:
            return Remembered()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                f"{self.path} cannot be read: {error}",
                hint="Move the file away; then make new vouchers.",
            ) from error

    @contextmanager
    def change(self) -> Iterator[Remembered]:
        """Read, change, and write; no other process changes it meanwhile."""
        try:
            own_folder(self.path.parent)
            with _locked(self.path.with_suffix(".lock")):
                found = self.read()
                yield found
                replace_privately(self.path, json.dumps(_plain(found), indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise InvalidInput(
                f"{self.path} cannot be written: {error}",
                hint="Free disk space, or check its rights.",
            ) from error

    # ---- vouchers ------------------------------------------------------------------------------------------

    def voucher(self, kind: Literal["host", "group"], scope: str) -> Secret:
        """A new voucher; only the caller receives its text; winboot does not keep it."""
        id_, secret = secrets.token_hex(3), secrets.token_urlsafe(24)
        with self.change() as known:
            known.vouchers[id_] = Voucher(id_, _hash(secret), kind, scope, self.now())
            self._record("voucher made", voucher=id_, scope=scope, by=_user())
        return Secret(f"{id_}.{secret}")

    def revoke(self, id_: str) -> None:
        """Forget a voucher. Raises UsageError where no voucher has this id."""
        with self.change() as known:
            del known.vouchers[known.voucher(id_).id]
            self._record("voucher revoked", voucher=id_, by=_user())

    def find(self, text: str) -> Voucher | None:
        """The voucher of this text; None where no voucher has it, or it is revoked."""
        id_, _, secret = text.partition(".")
        voucher = self.read().vouchers.get(id_)
        if voucher is None or not hmac.compare_digest(voucher.hash, _hash(secret)):
            return None
        return voucher

    def use(self, id_: str, uuid: str, *, node: str, address: str) -> str:
        """Note that a machine came with a voucher; why it may not, or nothing."""
        with self.change() as known:
            voucher = known.vouchers.get(id_)
            if voucher is None:
                return f"an administrator revoked the voucher {id_}"
            refusal = voucher.refusal(uuid, self.now())
            if not refusal and uuid not in voucher.used:
                known.vouchers[id_] = replace(voucher, used={**voucher.used, uuid: self.now()})
                self._record("voucher used", voucher=id_, node=node, machine=uuid, address=address)
            return refusal

    # ---- machines ------------------------------------------------------------------------------------------

    def note(self, node: str, state: State, why: str, *, uuid: str, address: str) -> None:
        """Keep how far a machine that was let in has come."""
        with self.change() as known:
            now, before = self.now(), known.machines.get(node)
            ready_at = before.ready_at if before is not None else 0.0
            seen = Seen(node, state, why, uuid, address, now, ready_at)
            if state == "Ready":
                # A yes is for this once: what runs there from now on could say the same UUID.
                if known.approved.pop(node, None) is not None:
                    self._record("approval used", node=node, machine=uuid, address=address)
                seen = replace(seen, ready_at=now)
            known.machines[node] = seen

    def refuse(self, refusal: Refusal, *, uuid: str, address: str, node: str = "") -> None:
        """Keep which callers were not let in and why: the last of each address, and of the newest addresses alone.
        The same name again is written once a minute, whatever UUID comes with it, since anybody may call. With
        `node`, each machine that waits to be it is kept, the newest few."""
        key = f"{address} {uuid}" if node else address
        last = self.read().refused.get(key)
        if last is not None and last.why.startswith(refusal.head) and self.now() - last.at < _SAME_S:
            return
        with self.change() as known:
            state: State = "waits" if node else "refused"
            known.refused[key] = Seen(node, state, refusal.word, uuid, address, self.now())
            oldest = sorted(known.refused, key=lambda one: known.refused[one].at)
            waiting = [one for one in oldest if node and known.refused[one].node == node]
            for old in {*oldest[:-_MOST_REFUSED], *waiting[:-_MOST_WAITING]}:
                del known.refused[old]

    def begin(self) -> None:
        """An endpoint starts: what an earlier one was joining belongs to no process any more, and no other machine
        waits for it."""
        with self.change() as known:
            for name, seen in known.machines.items():
                if seen.state == "joining":
                    known.machines[name] = replace(seen, state="failed", why="the endpoint stopped earlier")

    def approve(self, node: str, uuid: str) -> Seen | None:
        """Let the machine with this SMBIOS UUID in to be this node; gives its last call, if it has called. Raises UsageError
        where the UUID is invalid."""
        with self.change() as known:
            called = known.waiting(node, uuid)
            known.approved[node] = uuid
            self._record("approved", node=node, machine=uuid, by=_user())
            return called

    def _record(self, event: str, **about: str) -> None:
        """Append a line, before the file itself changes: what cannot be recorded does not happen."""
        now = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="seconds")
        line = json.dumps({"time": now, "event": event, **about}) + "\n"
        descriptor = open_to_append(self.path.with_suffix(".jsonl"))
        with os.fdopen(descriptor, "a", encoding="ascii") as file:
            file.write(line)


def _user() -> str:
    """The user that runs this command, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        # A pod's user has no name (getpass: KeyError before Python 3.13, OSError since).
        return str(os.getuid())


def same_text(one: str, other: str) -> bool:
    """Whether two UUIDs are written alike; case does not count."""
    return one.lower() == other.lower()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _plain(found: Remembered) -> dict[str, Any]:
    return {
        "vouchers": {id_: asdict(one) for id_, one in found.vouchers.items()},
        "approved": found.approved,
        "machines": {name: asdict(one) for name, one in found.machines.items()},
        "refused": {address: asdict(one) for address, one in found.refused.items()},
    }


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file; where the system has no such locks, two commands at once are the operator's own care."""
    descriptor = open_to_append(path)
    try:
        try:
            import fcntl
        except ImportError:
            pass
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
