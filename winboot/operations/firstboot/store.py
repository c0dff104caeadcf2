"""What first boot remembers, in one private file: vouchers, approvals, and how far each machine has come.

The endpoint shares it with `winboot hook voucher`, `winboot hook approve NODE` and `winboot why NODE`; each change
is made under a lock. A voucher is kept as its hash alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from winboot.base.errors import InvalidInput, UsageError
from winboot.base.private import open_to_append, own_folder, replace_privately
from winboot.base.secret import Secret
from winboot.operations.firstboot.hello import Refusal

State = Literal["waits", "refused", "joining", "failed", "Ready"]
# A voucher for one host is good for so many seconds; one for a group until it is revoked.
HOST_VOUCHER_S: Final = 3600.0
# States of a machine that was let in.
_LET_IN: Final = ("joining", "failed", "Ready")
_MOST_REFUSED: Final = 200
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
                return f"the voucher {self.id} was used by another machine ({next(iter(self.used))})"
            if now - self.made > HOST_VOUCHER_S:
                return f"the voucher {self.id} is older than {HOST_VOUCHER_S / 60:.0f} minutes"
        if sum(now - at < 60.0 for at in self.used.values()) >= PER_MINUTE:
            return f"the voucher {self.id} has let {PER_MINUTE} machines in within a minute"
        return ""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a machine has come, in one sentence; `node` is empty where nobody knows which it is to be.

    Times are seconds of the epoch. What the last machine that was let in under this name has left stays, whoever asks to be
    it afterwards: `let_in` is its SMBIOS UUID, `let_in_from` and `let_in_at` where and when that was noted last, `ready_at`
    when it was Ready last; empty and 0 for never.
    """

    node: str
    state: State
    why: str
    uuid: str
    address: str
    at: float
    let_in: str = ""
    let_in_from: str = ""
    let_in_at: float = 0.0
    ready_at: float = 0.0


@dataclass(slots=True)
class Remembered:
    """The whole file. `approved` are nodes that somebody let in by hand, each with the UUID of its machine; `refused` are
    the last callers that were not let in, by address."""

    vouchers: dict[str, Voucher] = field(default_factory=dict)
    approved: dict[str, str] = field(default_factory=dict)
    machines: dict[str, Seen] = field(default_factory=dict)
    refused: dict[str, Seen] = field(default_factory=dict)

    def about(self, word: str) -> Seen | None:
        """What was seen last of a machine, by its node's name, its address or its SMBIOS UUID."""
        everybody = (*self.machines.values(), *self.refused.values())
        found = [one for one in everybody if word in (one.node, one.address) or same_text(word, one.uuid)]
        return max(found, key=lambda one: one.at, default=None)


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
                {name: Seen(**one) for name, one in raw["machines"].items()},
                {address: Seen(**one) for address, one in raw.get("refused", {}).items()},
            )
        except FileNotFoundError:
            return Remembered()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                f"{self.path} cannot be read: {error}",
                hint="Move it away; vouchers are then made again.",
            ) from error

    @contextmanager
    def change(self) -> Iterator[Remembered]:
        """Read, change, and write; nobody else changes it meanwhile."""
        try:
            own_folder(self.path.parent)
            with _locked(self.path.with_suffix(".lock")):
                found = self.read()
                yield found
                replace_privately(self.path, json.dumps(_plain(found), indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise InvalidInput(
                f"{self.path} cannot be written: {error}", hint="Free the disk, or see its rights."
            ) from error

    # ---- vouchers ------------------------------------------------------------------------------------------

    def voucher(self, kind: Literal["host", "group"], scope: str) -> Secret:
        """A new voucher; its text is told here and kept nowhere."""
        id_, secret = secrets.token_hex(3), secrets.token_urlsafe(24)
        with self.change() as known:
            known.vouchers[id_] = Voucher(id_, _hash(secret), kind, scope, self.now())
        return Secret(f"{id_}.{secret}")

    def revoke(self, id_: str) -> None:
        """Forget a voucher. Raises UsageError where there is none of this id."""
        with self.change() as known:
            if known.vouchers.pop(id_, None) is None:
                listed = ", ".join(sorted(known.vouchers)) or "none"
                raise UsageError(f"there is no voucher {id_}", hint=f"There are: {listed}.")

    def find(self, text: str) -> Voucher | None:
        """The voucher of this text; None where it is none, or revoked."""
        id_, _, secret = text.partition(".")
        voucher = self.read().vouchers.get(id_)
        if voucher is None or not hmac.compare_digest(voucher.hash, _hash(secret)):
            return None
        return voucher

    def use(self, id_: str, uuid: str) -> str:
        """Note that a machine came with a voucher; why it may not, or nothing."""
        with self.change() as known:
            voucher = known.vouchers.get(id_)
            if voucher is None:
                return f"the voucher {id_} was revoked"
            refusal = voucher.refusal(uuid, self.now())
            if not refusal and uuid not in voucher.used:
                known.vouchers[id_] = replace(voucher, used={**voucher.used, uuid: self.now()})
            return refusal

    # ---- machines ------------------------------------------------------------------------------------------

    def note(self, node: str, state: State, why: str, *, uuid: str, address: str) -> None:
        """Keep how far a machine has come."""
        with self.change() as known:
            now = self.now()
            seen = Seen(node, state, why, uuid, address, now)
            before = known.machines.get(node)
            if before is not None:
                seen = _remembering(seen, before)
            if state in _LET_IN:
                seen = replace(seen, let_in=uuid, let_in_from=address, let_in_at=now)
            if state == "Ready":
                # A yes is for this once: what runs there from now on could say the same UUID.
                known.approved.pop(node, None)
                seen = replace(seen, ready_at=now)
            known.machines[node] = seen

    def refuse(self, refusal: Refusal, *, uuid: str, address: str) -> None:
        """Keep who was not let in and why: the last of each address, and of the newest addresses alone. The same name again
        is written once a minute, whatever UUID it is said with, since anybody may call."""
        last = self.read().refused.get(address)
        if last is not None and last.why.startswith(refusal.head) and self.now() - last.at < _SAME_S:
            return
        with self.change() as known:
            known.refused[address] = Seen("", "refused", refusal.word, uuid, address, self.now())
            for old in sorted(known.refused, key=lambda one: known.refused[one].at)[:-_MOST_REFUSED]:
                del known.refused[old]

    def begin(self) -> None:
        """An endpoint starts: what an earlier one was joining is nobody's work any more, and no other machine waits for it."""
        with self.change() as known:
            for name, seen in known.machines.items():
                if seen.state == "joining":
                    known.machines[name] = replace(seen, state="failed", why="the endpoint ended meanwhile")

    def approve(self, node: str) -> Seen:
        """Let the machine in that waits to be this node. Raises UsageError where none does."""
        with self.change() as known:
            seen = known.machines.get(node)
            if seen is None or seen.state != "waits":
                waiting = ", ".join(sorted(n for n, one in known.machines.items() if one.state == "waits"))
                raise UsageError(f"no machine waits to be {node}", hint=f"These wait: {waiting or 'none'}.")
            known.approved[node] = seen.uuid
            return seen


def _remembering(seen: Seen, before: Seen) -> Seen:
    """What is seen now, with what the last machine that was let in has left."""
    return replace(
        seen,
        let_in=before.let_in,
        let_in_from=before.let_in_from,
        let_in_at=before.let_in_at,
        ready_at=before.ready_at,
    )


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
