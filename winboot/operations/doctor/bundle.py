"""A bundle: the documents and collected items of nodes in one zip file, with a manifest that names each item and its hash."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from winboot.base.clean import clean
from winboot.base.errors import UsageError
from winboot.base.foreign import Malformed, decoded
from winboot.node.facts import cleaned
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
    since_s: int
    logs: bool
    items: tuple[Entry, ...]


_MANIFEST: Final = msgspec.json.Decoder(Manifest)
_FACTS: Final = msgspec.json.Decoder()


def of_document(document: Document) -> Item:
    """A document as an item of its node."""
    return Item("document", "", save([document]), truncated=False, error=document.login_problem)


def pack(nodes: Mapping[str, Sequence[Item]], *, winboot: str, since_s: int, logs: bool) -> bytes:
    """The bytes of a bundle of these nodes."""
    files = [(node, f"{node}/{one.file}", one) for node, items in nodes.items() for one in items]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for _, name, one in files:
            archive.writestr(name, one.content)
        entries = tuple(_entry(node, name, one) for node, name, one in files)
        manifest = Manifest(SCHEMA, winboot, since_s, logs, entries)
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
    if not raw.startswith(b"PK\x03\x04"):
        return [document_of(path, number, line) for number, line in enumerate(raw.splitlines(), 1)]
    found = _read(path, raw, lambda one: one.item == "document")
    return [document_of(path / one.file, 1, content.rstrip(b"\n")) for one, content in found]


def facts(path: Path) -> dict[str, dict[str, list[Any]]]:
    """The collected facts of a bundle, by node and item, without documents and the text of logs. Raises UsageError."""
    nodes: dict[str, dict[str, list[Any]]] = {}
    wanted = _read(path, path.read_bytes(), lambda one: one.file.endswith(".json") and one.item != "document")
    for one, content in wanted:
        rows = cleaned(decoded(_FACTS, content))
        nodes.setdefault(one.node, {})[one.item] = rows if isinstance(rows, list) else []
    return nodes


def _read(path: Path, raw: bytes, wanted: Callable[[Entry], bool]) -> list[tuple[Entry, bytes]]:
    """The wanted entries of a bundle with their content, as its manifest names it."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            manifest = _manifest(path, _content(archive, MANIFEST))
            return [(one, _checked(archive, one)) for one in manifest.items if wanted(one)]
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


def _checked(archive: zipfile.ZipFile, entry: Entry) -> bytes:
    content = _content(archive, entry.file)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise Malformed(f"{entry.file} does not match its hash in the manifest")
    return content
