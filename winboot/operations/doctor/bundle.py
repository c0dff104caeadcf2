"""A bundle: the documents and collected items of nodes in one zip file, with a manifest that names each item and its hash."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from winboot.base.clean import clean
from winboot.base.errors import UsageError
from winboot.base.foreign import Malformed, decoded
from winboot.operations.doctor.collection import Item
from winboot.operations.doctor.document import LARGEST, READABLE, SCHEMA, Document, document_of, save

MANIFEST: Final = "manifest.json"


class Entry(msgspec.Struct, frozen=True):
    """One file of the bundle. `command` is what the node ran; `error` why it has less than all, empty without one."""

    node: str
    item: str
    file: str
    command: str
    size: int
    truncated: bool
    error: str
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What the bundle holds. `logs` is true if it holds free text of logs, which may hold anything."""

    schema: int
    winboot: str
    taken: str
    since_s: int
    logs: bool
    items: tuple[Entry, ...]


_MANIFEST: Final = msgspec.json.Decoder(Manifest)


def pack(
    documents: Sequence[Document],
    items: Mapping[str, Sequence[Item]],
    *,
    winboot: str,
    since_s: int,
    logs: bool,
) -> bytes:
    """The bytes of a bundle of these nodes."""
    entries: list[Entry] = []
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in documents:
            own = Item("document", "", save([one]), truncated=False, error=one.login_problem)
            for item in (own, *items.get(one.node, ())):
                name = f"{one.node}/{item.file}"
                entries.append(_entry(one.node, name, item))
                archive.writestr(name, item.content)
        taken = min((one.taken for one in documents), default="")
        manifest = Manifest(SCHEMA, winboot, taken, since_s, logs, tuple(entries))
        archive.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return data.getvalue()


def _entry(node: str, file: str, item: Item) -> Entry:
    digest = hashlib.sha256(item.content).hexdigest()
    return Entry(node, item.name, file, item.command, len(item.content), item.truncated, item.error, digest)


def load(path: Path) -> list[Document]:
    """The documents of a bundle, or of a file that `doctor --out` wrote. Raises UsageError for any other file."""
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= LARGEST else b""
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if not raw:
        raise UsageError(f"{path} holds no document: it has {size} bytes, at most {LARGEST} are read")
    if raw.startswith(b"PK\x03\x04"):
        return _unpacked(path, raw)
    return [document_of(path, number, line) for number, line in enumerate(raw.splitlines(), 1)]


def _unpacked(path: Path, raw: bytes) -> list[Document]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            manifest = _manifest(path, _content(archive, MANIFEST))
            return [_document(path, archive, one) for one in manifest.items if one.item == "document"]
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise UsageError(
            f"{path} is not a bundle of `winboot collect`: {clean(str(error))}",
            hint="Collect again, or copy the whole file.",
        ) from None


def _content(archive: zipfile.ZipFile, file: str) -> bytes:
    if archive.getinfo(file).file_size > LARGEST:
        raise ValueError(f"{file} has more than {LARGEST} bytes")
    return archive.read(file)


def _manifest(path: Path, raw: bytes) -> Manifest:
    found = decoded(_MANIFEST, raw)
    if found.schema not in READABLE:
        raise UsageError(
            f"{path}: winboot cannot read version {found.schema} of this bundle",
            hint="Use the winboot that wrote it, or a newer one.",
        )
    return found


def _document(path: Path, archive: zipfile.ZipFile, entry: Entry) -> Document:
    content = _content(archive, entry.file)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise Malformed(f"{entry.file} is not what its manifest names")
    return document_of(path / entry.file, 1, content.rstrip(b"\n"))
