"""A bundle: the documents and collected items of nodes in one zip file, with a manifest that names each item and its hash."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from winboot.base.errors import UsageError
from winboot.base.foreign import Malformed, converted, decoded, ready
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


_ANY: Final = msgspec.json.Decoder()
ready(Manifest)


def of_document(document: Document) -> Item:
    """A document as an item of its node."""
    return Item("document", "", save([document]), truncated=False, error=document.login_problem)


def pack(nodes: Mapping[str, Sequence[Item]], *, winboot: str, since_s: int, logs: bool) -> bytes:
    """The bytes of a bundle of these nodes. Raises UsageError for one that `load` would refuse."""
    files = [(node, f"{node}/{one.file}", one) for node, items in nodes.items() for one in items]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for _, name, one in files:
            archive.writestr(name, one.content)
        entries = tuple(_entry(node, name, one) for node, name, one in files)
        manifest = Manifest(SCHEMA, winboot, since_s, logs, entries)
        about = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        archive.writestr(MANIFEST, about)
    read = len(about) + sum(one.size for one in entries if one.item == "document")
    _refuse_large(max(read, len(data.getvalue())))
    return data.getvalue()


def _refuse_large(size: int) -> None:
    if size > LARGEST:
        raise UsageError(
            f"the bundle needs {size} bytes, but `winboot doctor --from FILE` reads {LARGEST} at most",
            hint="Collect fewer nodes at a time, or without --logs.",
        )


def _entry(node: str, file: str, item: Item) -> Entry:
    digest = hashlib.sha256(item.content).hexdigest()
    return Entry(node, item.name, file, item.command, len(item.content), item.truncated, item.error, digest)


def load(path: Path) -> list[Document]:
    """The documents of a bundle, or of a file that `doctor --out` wrote. Raises UsageError for any other file."""
    raw = _raw(path)
    if not raw.startswith(b"PK\x03\x04"):
        return [document_of(path, number, line) for number, line in enumerate(raw.splitlines(), 1)]
    with _declared(path):
        found = _read(path, raw, lambda one: one.item == "document")
    return [document_of(path / one.file, 1, content.rstrip(b"\n")) for one, content in found]


def facts(path: Path) -> dict[str, dict[str, list[Any]]]:
    """The collected facts of a bundle, by node and item, without documents and the text of logs. Raises UsageError."""
    nodes: dict[str, dict[str, list[Any]]] = {}
    with _declared(path):
        wanted = _read(path, _raw(path), lambda one: one.file.endswith(".json") and one.item != "document")
        for one, content in wanted:
            rows = cleaned(decoded(_ANY, content))
            nodes.setdefault(one.node, {})[one.item] = rows if isinstance(rows, list) else []
    return nodes


def _raw(path: Path) -> bytes:
    """The bytes of the file. A device has no size, so they are counted as they are read."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if not 0 < len(raw) <= LARGEST:
        size = f"more than {LARGEST}" if raw else "no"
        raise UsageError(f"{path} is no document that winboot reads: the file has {size} bytes")
    return raw


@contextmanager
def _declared(path: Path) -> Iterator[None]:
    """What the zip reader raises for a damaged file, as UsageError."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        LookupError,
        ValueError,
        EOFError,
        OverflowError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise UsageError(
            f"{path} is not a bundle of `winboot collect`: {error}",
            hint="Run `winboot collect` again, or copy the whole file.",
        ) from None


def _read(path: Path, raw: bytes, wanted: Callable[[Entry], bool]) -> list[tuple[Entry, bytes]]:
    """The wanted entries of a bundle with their content, as its manifest names it; all together have at most LARGEST bytes."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        about = _content(archive, MANIFEST, LARGEST)
        entries = _manifest(path, about).items
        if len({one.file for one in entries}) < len(entries):
            raise Malformed("the bundle's manifest names a file twice")
        left, found = LARGEST - len(about), []
        for one in filter(wanted, entries):
            found.append((one, _checked(archive, one, left)))
            left -= len(found[-1][1])
    return found


def _content(archive: zipfile.ZipFile, file: str, left: int) -> bytes:
    """The content of at most `left` bytes. The size in the archive may be a lie, and LZMA and bzip2 unpack without a bound."""
    info = archive.getinfo(file)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Malformed(f"{file} is compressed in a way that winboot does not write")
    with archive.open(info) as opened:
        content = opened.read(left + 1)
    if len(content) > left:
        raise Malformed(f"the bundle's files have more than {LARGEST} bytes together")
    return content


def _manifest(path: Path, raw: bytes) -> Manifest:
    found = converted(cleaned(decoded(_ANY, raw)), Manifest)
    if found.schema not in READABLE:
        raise UsageError(
            f"{path}: winboot cannot read version {found.schema} of this bundle",
            hint="Use the winboot version that wrote the bundle, or a newer version.",
        )
    return found


def _checked(archive: zipfile.ZipFile, entry: Entry, left: int) -> bytes:
    content = _content(archive, entry.file, left)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise Malformed(f"{entry.file} does not match its hash in the manifest")
    return content
