"""file.*: what .NET's file classes and the FileSystem provider need."""

from __future__ import annotations

from datetime import datetime

from winboot_lab.windows import files as model
from winboot_lab.windows import paths
from winboot_lab.windows.acl import drive_root
from winboot_lab.windows.call import as_int, primitive
from winboot_lab.windows.door import Plain, Record
from winboot_lab.windows.failure import failure, io_failure
from winboot_lab.windows.primitives.access import read_acl
from winboot_lab.windows.programs_api import read_image
from winboot_lab.windows.session import Session

Objects = tuple[Plain, ...]

_PIPES = "\\\\.\\pipe\\"
_ACCESS = {"read": 1, "write": 2, "readwrite": 3}


def shown(path: str, node: model.Node) -> Record:
    """One file or directory as a Record.

    Its link is what LinkType and Target of Windows PowerShell 5.1 give: they open the path to read, and give nothing
    where a handle refuses that (InternalSymbolicLinkLinkCodeMethods.GetLinkType, PowerShell v6.0.0-alpha.7).
    """
    readable = all(one.share & model.SHARES["read"] for one in node.opened)
    link: str | None = node.link[0] if node.link else "HardLink" if node.names > 1 else None
    image = None if node.directory else read_image(node.content)
    return Record(
        "file",
        {
            "path": path,
            "name": paths.leaf(path) or path,
            "kind": "directory" if node.directory else "file",
            "length": len(node.content),
            "attributes": node.attributes or model.NORMAL,
            "created": node.created,
            "modified": node.modified,
            "accessed": node.accessed,
            "link_type": link if readable else None,
            "target": node.link[1] if node.link and readable else None,
            "version": image.version if image else "",
        },
    )


def _pipe(path: str) -> str | None:
    text = path.replace("/", "\\")
    return text[len(_PIPES) :] if text.lower().startswith(_PIPES) else None


def _pipe_record(session: Session, name: str) -> Record:
    now = session.machine.now()
    node = model.Node(False, now, now, now, drive_root(), attributes=model.NORMAL)
    return shown(_PIPES + name, node)


@primitive("file.stat")
def stat(session: Session, path: str, follow: bool = False) -> Objects:
    """One or none."""
    pipe = _pipe(path)
    if pipe is not None:
        known = {name.lower(): name for name in session.machine.files.pipes}
        return (_pipe_record(session, known[pipe.lower()]),) if pipe.lower() in known else ()
    found = session.machine.files.find(path, follow=follow)
    return (shown(*found),) if found else ()


@primitive("file.list")
def list_(session: Session, path: str) -> Objects:
    """The children, sorted."""
    files = session.machine.files
    if _pipe(path) is not None:
        return tuple(_pipe_record(session, name) for name in sorted(files.pipes))
    spelled, _ = files.need_directory(path)
    return tuple(shown(paths.join(spelled, e.name), e.node) for e in files.list(path, session.token))


@primitive("file.read")
def read(session: Session, path: str, share: str = "Read") -> Objects:
    """The content."""
    return (session.machine.files.read(path, session.token, share=model.share_mask(share)),)


@primitive("file.write")
def write(
    session: Session,
    path: str,
    content: bytes,
    mode: str = "Create",
    share: str = "Read",
    security: Record | None = None,
) -> Objects:
    """Write all of it."""
    wanted = read_acl(security) if security else None
    mask = model.share_mask(share)
    session.machine.files.write(path, content, session.token, mode=mode, share=mask, security=wanted)
    return ()


@primitive("file.append")
def append(session: Session, path: str, content: bytes) -> Objects:
    """Add to the end."""
    session.machine.files.append(path, content, session.token)
    return ()


@primitive("file.open")
def open_(
    session: Session,
    path: str,
    mode: str,
    access: str = "Read",
    share: str = "Read",
    security: Record | None = None,
    delete_on_close: bool = False,
) -> Objects:
    """Open a handle."""
    if access.lower() not in _ACCESS:
        raise failure("System.ArgumentOutOfRangeException", f"Enum value was out of legal range: {access}")
    opened = session.machine.files.open(
        path,
        mode,
        _ACCESS[access.lower()],
        model.share_mask(share),
        pid=session.process.pid,
        token=session.token,
        security=read_acl(security) if security else None,
        delete_on_close=delete_on_close,
    )
    length = len(opened.node.content)
    return (Record("handle", {"handle": opened.handle, "path": opened.path, "length": length}),)


@primitive("file.handle-read")
def handle_read(session: Session, handle: str, offset: int, count: int) -> Objects:
    """A piece of an open file."""
    opened = session.machine.files.handle(handle)
    if not opened.access & 1:
        raise failure("System.NotSupportedException", "Stream does not support reading.", hresult=0x80131515)
    return (opened.node.content[offset : offset + count],)


@primitive("file.handle-write")
def handle_write(session: Session, handle: str, offset: int, content: bytes) -> Objects:
    """Write into an open file."""
    opened = session.machine.files.handle(handle)
    if not opened.access & 2:
        raise failure("System.NotSupportedException", "Stream does not support writing.", hresult=0x80131515)
    session.machine.files.put(opened, offset, content)
    return ()


@primitive("file.handle-length")
def handle_length(session: Session, handle: str) -> Objects:
    """The length now."""
    return (len(session.machine.files.handle(handle).node.content),)


@primitive("file.handle-resize")
def handle_resize(session: Session, handle: str, length: int) -> Objects:
    """Cut or extend."""
    session.machine.files.resize(session.machine.files.handle(handle), length)
    return ()


@primitive("file.close")
def close(session: Session, handle: str) -> Objects:
    """Close a handle."""
    session.machine.files.close(handle)
    return ()


@primitive("file.delete")
def delete(session: Session, path: str) -> Objects:
    """Delete a file."""
    session.machine.files.delete(path, session.token)
    return ()


@primitive("file.delete-directory")
def delete_directory(session: Session, path: str, recurse: bool = False) -> Objects:
    """Delete a directory."""
    session.machine.files.delete_directory(path, session.token, recurse=recurse)
    return ()


@primitive("file.make-directory")
def make_directory(session: Session, path: str, security: Record | None = None) -> Objects:
    """Make a directory and its parents."""
    wanted = read_acl(security) if security else None
    return (shown(*session.machine.files.make_directory(path, session.token, wanted)),)


@primitive("file.move")
def move(session: Session, source: str, destination: str, overwrite: bool = False) -> Objects:
    """Rename."""
    session.machine.files.move(source, destination, session.token, overwrite=overwrite)
    return ()


@primitive("file.copy")
def copy(session: Session, source: str, destination: str, overwrite: bool = False) -> Objects:
    """Copy a file."""
    session.machine.files.copy(source, destination, session.token, overwrite=overwrite)
    return ()


@primitive("file.replace")
def replace(session: Session, source: str, destination: str, backup: str | None = None) -> Objects:
    """Put one file in another's place."""
    session.machine.files.replace(source, destination, backup, session.token)
    return ()


@primitive("file.set-attributes")
def set_attributes(session: Session, path: str, attributes: Plain) -> Objects:
    """Set the flags."""
    session.machine.files.set_attributes(path, as_int(attributes), session.token)
    return ()


@primitive("file.set-times")
def set_times(
    session: Session,
    path: str,
    created: datetime | None = None,
    modified: datetime | None = None,
    accessed: datetime | None = None,
) -> Objects:
    """Set the times given (aware ones)."""
    session.machine.files.set_times(path, created=created, modified=modified, accessed=accessed)
    return ()


@primitive("file.link")
def link(session: Session, path: str, target: str, kind: str) -> Objects:
    """Make a link."""
    files = session.machine.files
    files.link(path, target, kind, session.token)
    return (shown(*files.need(path, follow=False)),)


@primitive("file.entry")
def entry(session: Session, path: str, access: int) -> Objects:
    """What CreateFile with FILE_FLAG_OPEN_REPARSE_POINT leads to; access 0 needs no right and passes every sharing mode."""
    _, node = session.machine.files.need(path, follow=False)
    if not node.acl.allows(session.token, access):
        raise io_failure(5, path)
    return (Record("entry", {"tag": node.tag, "names": node.names, "owner": node.acl.owner}),)


@primitive("file.space")
def space(session: Session, path: str) -> Objects:
    """Total and free bytes of a volume."""
    volume = session.machine.files.volumes.get(path[:2].upper())
    if volume is None:
        raise io_failure(3, path)
    return (Record("space", {"total": volume.total, "free": volume.free}),)


@primitive("file.volumes")
def volumes(session: Session) -> Objects:
    """All drives."""
    return tuple(
        Record(
            "volume",
            {
                "name": f"{drive}\\",
                "kind": volume.kind,
                "format": volume.format,
                "label": volume.label,
                "total": volume.total,
                "free": volume.free,
                "ready": True,
            },
        )
        for drive, volume in session.machine.files.volumes.items()
    )
