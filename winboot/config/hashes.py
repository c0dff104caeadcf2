"""The hashes of downloads, found out once by `winboot init` and pinned in the profile from then on.

An artifact is fetched whole: the hash of each program inside an archive is pinned too, so that a look can detect a
changed program without the archive. Where the publisher gives a checksum, the download is held against it.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from winboot.base.errors import Unreachable, WinbootError
from winboot.config.compat.facts import Compat
from winboot.config.node_spec import Artifact

TIMEOUT_S: Final = 60
BLOCK: Final = 1 << 20


class HashMismatch(WinbootError):
    """A download is not what its publisher says it is."""


def resolve(artifact: Artifact, facts: Compat) -> dict[str, str]:
    """The pins of one artifact, `{key: sha256, …}` (see `winboot.config.node_spec.pins`).

    Raises Unreachable when it cannot be fetched, HashMismatch when it is not what the publisher's checksum says.
    """
    with tempfile.TemporaryDirectory(prefix="winboot-init-") as folder:
        path = Path(folder) / artifact.file
        digests = _fetch(artifact.url, path)
        for algorithm, suffix in _checksums(artifact, facts).items():
            _compare(artifact, algorithm, digests[algorithm], _published(artifact.url + suffix))
        found = {artifact.key: digests["sha256"]}
        if artifact.kind != "file":
            found |= {artifact.member_key(name): sha for name, sha in _members(path, artifact)}
        return found


def _checksums(artifact: Artifact, facts: Compat) -> Mapping[str, str]:
    entry: Mapping[str, Mapping[str, str]] = facts.section("artifacts").get(artifact.name, {})
    return entry.get("checksum", {})


def _fetch(url: str, path: Path) -> dict[str, str]:
    """Download to a file; the hex digests of what came."""
    digests = {"sha256": hashlib.sha256(), "sha512": hashlib.sha512()}
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer, path.open("wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
                for digest in digests.values():
                    digest.update(block)
    except (urllib.error.URLError, OSError) as error:
        raise Unreachable(
            f"{url} cannot be fetched: {_reason(error)}",
            hint="Run `winboot init` again where the files are: it fills in what is missing. Or name a mirror under "
            "artifacts.source, or fill artifacts.sha256 by hand.",
        ) from error
    return {name: digest.hexdigest() for name, digest in digests.items()}


def _reason(error: OSError) -> str:
    return str(getattr(error, "reason", None) or error)


def _published(url: str) -> str | None:
    """The hash in a checksum file: its first word. None where the publisher (or the mirror) has no such file."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            words = answer.read(4096).decode("ascii", "replace").split()
    except (urllib.error.URLError, OSError):
        return None
    return words[0].lower() if words else None


def _compare(artifact: Artifact, algorithm: str, found: str, published: str | None) -> None:
    if published is not None and published != found:
        raise HashMismatch(
            f"{artifact.file}: its {algorithm} is {found}, its publisher says {published}",
            hint=f"Do not use this download. Look at {artifact.url} from another network.",
        )


def _members(path: Path, artifact: Artifact) -> Iterator[tuple[str, str]]:
    wanted = {member.path for member in artifact.members}
    if artifact.kind == "zip":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.removeprefix("./") in wanted:
                    with archive.open(name) as file:
                        yield name.removeprefix("./"), _sha256(file)
        return
    with tarfile.open(path, "r:gz") as archive:
        for entry in archive:
            name = entry.name.removeprefix("./")
            body = archive.extractfile(entry) if name in wanted else None
            if body is not None:
                yield name, _sha256(body)


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()
