"""Claims in a folder of this computer, for machines without a cluster to keep Leases in; see `winboot.remote.cluster.claims`.

A claim is a line of files, `NODE.1.json`, `NODE.2.json` …, of which the highest number counts. A file is written under another
name and linked to its own, which fails where somebody else has made it: that is the whole of the locking, so that a process
that is paused anywhere holds up nobody. A claim that is given back leaves an empty file, and its number is never used again.
There are as many of them as nodes, and those of the sessions of a day: no run takes another one's session, and the session
itself looks at all that it holds after such a pause, whether or not it finds the file.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from winboot.base.errors import ClusterConflict, ClusterError
from winboot.base.private import own_folder
from winboot.remote.cluster.claims import SESSIONS, Claim

_FILE: Final = re.compile(r"(?P<name>.+)\.(?P<number>[1-9]\d*)\.json")
_NOT_IN_A_NAME: Final = re.compile(r"[^a-z0-9.-]")
# What is left of a claim that was given back.
_GIVEN_BACK: Final = "{}"
# Seconds after which nothing is left of a session that is over.
_LONG_OVER: Final = 86400.0
# How often somebody may be quicker than a reader.
_TRIES: Final = 100


class ClaimFolder:
    """The claims of this computer's user. Raises ClusterRefused where somebody else may write there, ClusterError where
    nobody can."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, node: str) -> Claim | None:
        """See `Leases`."""
        found = self._last(_name(node))
        return None if found is None else _claim(*found)

    def create(self, claim: Claim) -> Claim:
        """See `Leases`."""
        last = self._last(_name(claim.node))
        if last is not None and last[1]:
            raise ClusterConflict(f"there is a claim on {claim.node}", hint="Somebody else was quicker.")
        return self._put(claim, last[0] if last else 0)

    def renew(self, claim: Claim) -> Claim:
        """See `Leases`."""
        last = self._last(_name(claim.node))
        if last is None or not last[1] or str(last[0]) != claim.version:
            raise ClusterConflict(f"the claim on {claim.node} has changed", hint="Another worker has it.")
        return self._put(claim, last[0])

    def delete(self, node: str) -> None:
        """See `Leases`."""
        for _ in range(_TRIES):
            last = self._last(_name(node))
            if last is None or not last[1]:
                return
            with suppress(ClusterConflict):
                self._link(_name(node), last[0] + 1, _GIVEN_BACK)
                if node.startswith(SESSIONS):
                    self._clear_sessions()
                return
        raise ClusterError(f"the claim on {node} changes all the time", hint="Run the same command again.")

    def all(self) -> list[Claim]:
        """See `Leases`."""
        names = dict.fromkeys(found["name"] for found in self._files())
        last = [self._last(name) for name in names]
        return [claim for one in last if one is not None and (claim := _claim(*one)) is not None]

    def _put(self, claim: Claim, number: int) -> Claim:
        acquired = claim.acquired or datetime.now(UTC)
        data = {
            "node": claim.node,
            "holder": claim.holder,
            "duration": claim.duration,
            "transitions": claim.transitions,
            "run": claim.run,
            "notes": dict(claim.notes),
            "acquired": acquired.isoformat(),
        }
        self._link(_name(claim.node), number + 1, json.dumps(data))
        written = _claim(number + 1, data)
        assert written is not None
        return written

    def _link(self, name: str, number: int, text: str) -> None:
        """Make the next file of a claim; ClusterConflict where it is there, or was and is no longer the last."""
        path = self._path(name, number)
        part = self._folder / f".{uuid.uuid4().hex}.part"
        try:
            own_folder(self._folder)
            part.write_text(text, encoding="utf-8")
            part.chmod(0o600)
            os.link(part, path)
        except FileExistsError as error:
            raise ClusterConflict(f"{path} is there already", hint="Somebody else was quicker.") from error
        except OSError as error:
            raise ClusterError(
                f"the claim {path} cannot be written: {error.strerror}",
                hint="Name another folder in the environment variable WINBOOT_STATE.",
            ) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        numbers = self._numbers(name)
        if max(numbers) != number:
            # It had been there, and was cleared away by whoever wrote a later one.
            path.unlink(missing_ok=True)
            raise ClusterConflict(f"{path} is of the past", hint="Somebody else was quicker.")
        for one in numbers:
            if one < number:
                self._path(name, one).unlink(missing_ok=True)

    def _clear_sessions(self) -> None:
        """Nothing is left of sessions that were given back long ago: each run has its own."""
        of_sessions, long_ago = _name(SESSIONS), time.time() - _LONG_OVER
        for found in self._files():
            path = self._folder / found[0]
            if found["name"].startswith(of_sessions):
                with suppress(OSError):
                    about = path.stat()
                    if about.st_size == len(_GIVEN_BACK) and about.st_mtime < long_ago:
                        path.unlink()

    def _last(self, name: str) -> tuple[int, dict[str, Any]] | None:
        """The number of a claim's last file, and what is in it: nothing where it was given back."""
        for _ in range(_TRIES):
            numbers = self._numbers(name)
            if not numbers:
                return None
            # It goes only once there is a later one.
            with suppress(FileNotFoundError):
                try:
                    read = json.loads(self._path(name, max(numbers)).read_text(encoding="utf-8"))
                except ValueError:
                    # A disk that was full, or somebody's hand: nobody's claim.
                    read = {}
                return max(numbers), read if isinstance(read, dict) else {}
        raise ClusterError(f"the claim {name} changes all the time", hint="Run the same command again.")

    def _numbers(self, name: str) -> list[int]:
        return [int(found["number"]) for found in self._files() if found["name"] == name]

    def _files(self) -> Iterator[re.Match[str]]:
        try:
            names = [one.name for one in self._folder.iterdir()]
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise ClusterError(
                f"the claims in {self._folder} cannot be read: {error.strerror}",
                hint="Name another folder in the environment variable WINBOOT_STATE.",
            ) from error
        return (found for name in names if (found := _FILE.fullmatch(name)) is not None)

    def _path(self, name: str, number: int) -> Path:
        return self._folder / f"{name}.{number}.json"


def _name(node: str) -> str:
    kind, _, name = node.rpartition("/")
    return f"{kind or 'node'}-{_NOT_IN_A_NAME.sub('-', name.lower())}"


def _claim(number: int, data: dict[str, Any]) -> Claim | None:
    """The claim in a file; None where it was given back, or is none."""
    try:
        return Claim(
            node=str(data["node"]),
            holder=str(data["holder"]),
            duration=int(data["duration"]),
            transitions=int(data["transitions"]),
            version=str(number),
            run=str(data["run"]),
            notes={str(key): str(text) for key, text in data["notes"].items()},
            acquired=datetime.fromisoformat(data["acquired"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
