"""The files of the machine: bytes, names without case, attributes, times, links, locks, access rules and disk space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from winboot_lab.windows import acl, paths
from winboot_lab.windows.accounts import ADMINISTRATORS, SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import Acl
from winboot_lab.windows.failure import Failure, failure, io_failure
from winboot_lab.windows.host import Host
from winboot_lab.windows.snapshot import Tree, show_bytes

READ_ONLY = 0x1
HIDDEN = 0x2
SYSTEM_FILE = 0x4
DIRECTORY = 0x10
ARCHIVE = 0x20
NORMAL = 0x80
REPARSE = 0x400
COMPRESSED = 0x800
ENCRYPTED = 0x4000
# What is made in a folder takes these from it (learn.microsoft.com/windows/win32/fileio/file-compression-and-decompression).
_INHERITED = COMPRESSED | ENCRYPTED

LinkKind = Literal["SymbolicLink", "Junction"]
# MS-FSCC 2.1.2.1, Reparse Tags.
TAGS: Final[dict[LinkKind, int]] = {"SymbolicLink": 0xA000000C, "Junction": 0xA0000003}

SHARES = {"read": 1, "write": 2, "delete": 4}
_MAX_LINKS = 31


@dataclass(eq=False, slots=True)
class Node:
    """A file or directory. Several names may lead to one file (hard links)."""

    directory: bool
    created: datetime
    modified: datetime
    accessed: datetime
    acl: Acl
    content: bytes = b""
    attributes: int = 0
    children: dict[str, Entry] = field(default_factory=dict)
    link: tuple[LinkKind, str] | None = None
    # What kind of reparse point it is; 0: none.
    tag: int = 0
    names: int = 1
    # A container layer: only the host compute service removes it (k3s-io/k3s#9296, microsoft/hcsshim#166).
    layer: bool = False
    # Processes whose image this is: the file may be renamed, but neither written nor deleted.
    images: set[int] = field(default_factory=set)
    opened: list[OpenFile] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A name in a directory, spelled as it was created."""

    name: str
    node: Node


@dataclass(eq=False, slots=True)
class OpenFile:
    """An open handle: which process, what it may do, and what it lets others do (1 read, 2 write, 4 delete)."""

    handle: str
    pid: int
    path: str
    node: Node
    access: int
    share: int
    delete_on_close: bool = False
    # What was granted when it was opened, and stays granted.
    rights: int = 0


@dataclass(slots=True)
class Volume:
    """A drive: its root and its space. `other` is used by what the model does not hold as files."""

    root: Node
    total: int
    other: int
    used: int = 0
    label: str = ""
    kind: str = "Fixed"
    format: str = "NTFS"

    @property
    def free(self) -> int:
        """Bytes that may still be written."""
        return max(self.total - self.other - self.used, 0)


def share_mask(text: str) -> int:
    """`Read, Delete` as bits; `None` is 0, `ReadWrite` both."""
    mask = 0
    for word in text.replace(" ", "").lower().split(","):
        if word == "readwrite":
            mask |= 3
        elif word in SHARES:
            mask |= SHARES[word]
        elif word not in ("none", "inheritable", "0"):
            raise failure("System.ArgumentOutOfRangeException", f"Enum value was out of legal range: {text}")
    return mask


class Files:
    """All volumes of the machine."""

    def __init__(self, machine: Host) -> None:
        self._machine = machine
        self._open: dict[str, OpenFile] = {}
        self._numbers = 0
        self.pipes: dict[str, int] = {}
        # Called with each file or directory that gets another path.
        self.moved: list[Callable[[Node, str], None]] = []
        root = Node(True, machine.now(), machine.now(), machine.now(), acl.drive_root(), attributes=DIRECTORY)
        hardware = machine.hardware
        self.volumes: dict[str, Volume] = {
            "C:": Volume(root, hardware.disk, hardware.disk_used, label="Windows")
        }

    def attach(self, drive: str, total: int) -> Volume:
        """A data volume as Windows formats it: users may create folders in its root."""
        now = self._machine.now()
        root = Node(True, now, now, now, acl.drive_root(), attributes=DIRECTORY)
        self.volumes[drive] = Volume(root, total, 0, label="Data")
        return self.volumes[drive]

    # ---- finding ---------------------------------------------------------------------------------------

    def normal(self, path: str) -> str:
        """The canonical spelling of an absolute path."""
        return paths.normal(path)

    def find(self, path: str, *, follow: bool = True) -> tuple[str, Node] | None:
        """The node a path leads to and its true spelling; None when a part of it is missing."""
        return self._walk(self.normal(path), follow, 0)

    def _walk(self, path: str, follow: bool, depth: int) -> tuple[str, Node] | None:
        if depth > _MAX_LINKS:
            return None
        drive, parts = paths.split(path)
        volume = self.volumes.get(drive)
        if volume is None:
            return None
        node, spelled = volume.root, drive + "\\"
        for index, part in enumerate(parts):
            entry = node.children.get(part.lower())
            if entry is None:
                return None
            node, spelled = entry.node, paths.join(spelled, entry.name)
            last = index == len(parts) - 1
            if node.link is not None and (follow or not last):
                found = self._walk(self._target(spelled, node), True, depth + 1)
                if found is None:
                    return None
                node = found[1]
        return spelled, node

    def _target(self, path: str, node: Node) -> str:
        assert node.link is not None
        target = node.link[1]
        if target[1:2] == ":":
            return paths.normal(target)
        return paths.normal(paths.join(paths.parent(path), target))

    def need(self, path: str, *, follow: bool = True) -> tuple[str, Node]:
        """`find`, or the failure that Windows gives: path not found when already the folder is missing."""
        found = self.find(path, follow=follow)
        if found is None:
            raise self._missing(self.normal(path))
        return found

    def _missing(self, path: str) -> Exception:
        above = self.find(paths.parent(path))
        return io_failure(2 if above is not None and above[1].directory else 3, path)

    def folder(self, path: str) -> Node:
        """The directory in which `path` has, or would have, its name."""
        found = self.find(paths.parent(path))
        if found is None or not found[1].directory:
            raise io_failure(3, path)
        return found[1]

    def exists(self, path: str) -> bool:
        """Whether there is such a file or directory."""
        return self.find(path) is not None

    def is_directory(self, path: str) -> bool:
        """Whether there is such a directory."""
        found = self.find(path)
        return found is not None and found[1].directory

    def list(self, path: str, token: Token = SYSTEM_TOKEN) -> list[Entry]:
        """The entries of a directory, sorted as NTFS does."""
        _, node = self.need_directory(path)
        self._allow(node, token, acl.READ, path)
        return [node.children[key] for key in sorted(node.children, key=str.upper)]

    def need_directory(self, path: str) -> tuple[str, Node]:
        """A directory, or the failure for a missing one or a file."""
        found = self.find(path)
        if found is None:
            raise io_failure(3, path)
        if not found[1].directory:
            raise io_failure(0x10B, path)
        return found

    def walk(self, path: str) -> Iterator[tuple[str, Node]]:
        """Every file and directory below, with its path; links are not followed."""
        spelled, node = self.need_directory(path)
        for key in sorted(node.children):
            entry = node.children[key]
            below = paths.join(spelled, entry.name)
            yield below, entry.node
            if entry.node.directory and entry.node.link is None:
                yield from self.walk(below)

    # ---- reading and writing ---------------------------------------------------------------------------

    def read(self, path: str, token: Token = SYSTEM_TOKEN, *, share: int = 1) -> bytes:
        """The whole content."""
        spelled, node = self._need_file(path)
        self._allow(node, token, acl.READ, spelled)
        self._check_share(node, 1, share, spelled)
        return node.content

    def text(self, path: str) -> str:
        """The content as UTF-8 text, for programs of the lab."""
        return self.read(path, share=7).decode("utf-8-sig", "replace")

    def write(
        self,
        path: str,
        content: bytes,
        token: Token = SYSTEM_TOKEN,
        *,
        mode: str = "Create",
        share: int = 1,
        security: Acl | None = None,
    ) -> Node:
        """Open as `mode` says, write `content`, close."""
        spelled, node = self._open_for_write(path, mode, token, share, security)
        if mode == "Append":
            self._store(node, node.content + content, spelled)
        elif mode in ("Open", "OpenOrCreate"):
            self._store(node, content + node.content[len(content) :], spelled)
        else:
            self._store(node, content, spelled)
        return node

    def append(self, path: str, content: bytes, token: Token = SYSTEM_TOKEN) -> None:
        """Add to the end; creates the file."""
        self.write(path, content, token, mode="Append")

    def log(self, path: str, line: str) -> None:
        """A line of a program's log file; the program keeps it open for others to read, so nothing is locked."""
        self.make_directory(paths.parent(self.normal(path)))
        self.append(path, line.encode() + b"\r\n")

    def _open_for_write(
        self, path: str, mode: str, token: Token, share: int, security: Acl | None
    ) -> tuple[str, Node]:
        path = self.normal(path)
        found = self.find(path)
        if found is None:
            if mode in ("Open", "Truncate"):
                raise self._missing(path)
            return path, self._create(path, token, security)
        spelled, node = found
        if mode == "CreateNew":
            raise io_failure(0x50, path)
        if node.directory or node.attributes & READ_ONLY:
            raise io_failure(5, path)
        if mode == "Create" and node.attributes & (HIDDEN | SYSTEM_FILE):
            raise io_failure(5, path)
        self._allow(node, token, acl.WRITE, path)
        self._check_share(node, 2, share, path)
        return spelled, node

    def _create(self, path: str, token: Token, security: Acl | None = None) -> Node:
        folder = self.folder(path)
        self._allow(folder, token, acl.WRITE, path)
        now = self._machine.now()
        node = Node(False, now, now, now, self._new_acl(folder, token, False, security))
        node.attributes = ARCHIVE | folder.attributes & _INHERITED
        name = paths.leaf(path)
        folder.children[name.lower()] = Entry(name, node)
        folder.modified = now
        return node

    def _new_acl(self, folder: Node, token: Token, directory: bool, security: Acl | None) -> Acl:
        owner = ADMINISTRATORS if ADMINISTRATORS in token.sids else token.sid
        made = security.copy() if security else Acl(owner, token.sid)
        made.owner = made.owner or owner
        made.group = made.group or token.sid
        if not made.protected:
            made.inherited = acl.handed_down(folder.acl.rules, directory=directory, owner=made.owner)
        return made

    def _store(self, node: Node, content: bytes, path: str) -> None:
        drive = path[:2]
        volume = self.volumes[drive]
        grows = len(content) - len(node.content)
        if grows > volume.free:
            # What fits is written before the disk is found to be full.
            fits = content[: len(node.content) + volume.free]
            volume.used += len(fits) - len(node.content)
            node.content = fits
            raise io_failure(0x70, path)
        volume.used += grows
        node.content = content
        node.modified = self._machine.now()
        node.attributes |= ARCHIVE

    def _need_file(self, path: str) -> tuple[str, Node]:
        spelled, node = self.need(path)
        if node.directory:
            raise io_failure(5, spelled)
        return spelled, node

    # ---- handles ---------------------------------------------------------------------------------------

    def open(
        self,
        path: str,
        mode: str,
        access: int,
        share: int,
        *,
        pid: int,
        token: Token = SYSTEM_TOKEN,
        security: Acl | None = None,
        delete_on_close: bool = False,
    ) -> OpenFile:
        """Open a handle: access 1 read, 2 write, 3 both; share as bits of what others may do."""
        if access & 2:
            spelled, node = self._open_for_write(path, mode, token, share, security)
        elif mode in ("CreateNew", "Create", "Truncate", "Append"):
            raise failure(
                "System.ArgumentException", f"Combining FileMode: {mode} with FileAccess: Read is invalid."
            )
        elif mode == "OpenOrCreate" and self.find(path) is None:
            spelled = self.normal(path)
            node = self._create(spelled, token, security)
        else:
            spelled, node = self._need_file(path)
        if access & 1:
            self._allow(node, token, acl.READ, spelled)
            self._check_share(node, 1, share, spelled)
        if mode in ("Create", "Truncate"):
            self._store(node, b"", spelled)
        self._numbers += 1
        opened = OpenFile(f"file-{self._numbers}", pid, spelled, node, access, share, delete_on_close)
        node.opened.append(opened)
        self._open[opened.handle] = opened
        return opened

    def hold(self, path: str, rights: int, *, pid: int, token: Token, share: int = 7) -> OpenFile:
        """Open a file, directory or link itself with access rights (`acl.CHANGE_PERMISSIONS` …) and this sharing.

        Only a handle that may read, write or delete refuses others anything (wdm.h: IoCheckShareAccess).
        Windows checks rights here and never again. Whatever the rules become, the handle keeps what it was granted
        (Raymond Chen, "The security check happens at the acquisition of the handle",
        devblogs.microsoft.com/oldnewthing/20200320-00/?p=103579).
        """
        spelled, node = self.need(path, follow=False)
        self._allow(node, token, rights, spelled)
        self._numbers += 1
        share = share if rights & (acl.READ | acl.WRITE | acl.APPEND | acl.DELETE) else 7
        opened = OpenFile(f"file-{self._numbers}", pid, spelled, node, 0, share, rights=rights)
        node.opened.append(opened)
        self._open[opened.handle] = opened
        return opened

    def set_acl_by(self, opened: OpenFile, wanted: Acl) -> None:
        """Give what is held open new rules: SetSecurityInfo asks what the handle was granted, not the rules of today."""
        if not opened.rights & acl.CHANGE_PERMISSIONS:
            raise io_failure(5, opened.path)
        opened.node.acl = wanted
        self._hand_down(opened.node)

    def handle(self, handle: str) -> OpenFile:
        """An open handle; a closed one is ObjectDisposedException."""
        found = self._open.get(handle)
        if found is None:
            raise failure(
                "System.ObjectDisposedException", "Cannot access a closed file.", hresult=0x80131622
            )
        return found

    def put(self, opened: OpenFile, offset: int, content: bytes) -> None:
        """Write into an open file; a gap is filled with zeros."""
        old = opened.node.content
        new = old[:offset].ljust(offset, b"\0") + content + old[offset + len(content) :]
        self._store(opened.node, new, opened.path)

    def resize(self, opened: OpenFile, length: int) -> None:
        """Cut or extend an open file."""
        self._store(opened.node, opened.node.content[:length].ljust(length, b"\0"), opened.path)

    def close(self, handle: str) -> None:
        """Close a handle; closing twice is fine."""
        opened = self._open.pop(handle, None)
        if opened is None:
            return
        opened.node.opened.remove(opened)
        if opened.delete_on_close and self.find(opened.path) is not None:
            self._unlink(opened.path)

    def close_all(self, pid: int) -> None:
        """A process ends: its handles and pipes close."""
        for opened in [o for o in self._open.values() if o.pid == pid]:
            self.close(opened.handle)
        for pipe in [name for name, owner in self.pipes.items() if owner == pid]:
            del self.pipes[pipe]

    def _check_share(self, node: Node, access: int, share: int, path: str) -> None:
        # Both sides must agree: what I want, all that have it open let me; what they hold, I let them.
        for other in node.opened:
            if access & ~other.share or other.access & ~share:
                raise io_failure(0x20, path)
        if access & 2 and node.images:
            raise io_failure(0x20, path)

    def _check_delete(self, node: Node, path: str) -> None:
        if any(not o.share & 4 for o in node.opened):
            raise io_failure(0x20, path)

    def _check_tree(self, node: Node, path: str) -> None:
        # A directory moves only when nothing below it is open.
        self._check_delete(node, path)
        if node.directory and node.link is None:
            for entry in node.children.values():
                below = entry.node
                if below.opened or below.images:
                    raise failure(
                        "System.IO.IOException",
                        f"Access to the path '{path}' is denied.",
                        hresult=0x80070005,
                        target=path,
                    )
                self._check_tree(below, path)

    def _allow(self, node: Node, token: Token, rights: int, path: str) -> None:
        if not node.acl.allows(token, rights):
            raise io_failure(5, path)

    # ---- deleting, moving, copying ---------------------------------------------------------------------

    def delete(self, path: str, token: Token = SYSTEM_TOKEN) -> None:
        """Delete a file; an absent file is fine, an absent folder is not."""
        path = self.normal(path)
        self.folder(path)
        found = self.find(path, follow=False)
        if found is None:
            return
        spelled, node = found
        self._may_delete(spelled, node, token)
        if node.directory and node.link is None:
            raise io_failure(5, path)
        self._unlink(spelled)

    def _may_delete(self, path: str, node: Node, token: Token) -> None:
        if node.layer or (node.attributes & READ_ONLY and not node.directory):
            raise io_failure(5, path)
        if not node.acl.allows(token, acl.DELETE):
            self._allow(self.folder(path), token, acl.DELETE_CHILD, path)
        self._check_delete(node, path)
        if node.images:
            raise io_failure(5, path)

    def delete_directory(self, path: str, token: Token = SYSTEM_TOKEN, *, recurse: bool = False) -> None:
        """Delete a directory. Links and junctions below are removed, never followed."""
        found = self.find(path, follow=False)
        if found is None:
            raise io_failure(3, path)
        spelled, node = found
        if not node.directory:
            raise io_failure(0x10B, path)
        if node.link is None and node.children:
            if not recurse:
                raise io_failure(0x91, path)
            self._delete_below(spelled, node, token)
        if node.attributes & READ_ONLY:
            raise failure(
                "System.IO.IOException",
                f"Access to the path '{path}' is denied.",
                hresult=0x80070005,
                target=path,
            )
        self._may_delete(spelled, node, token)
        self._unlink(spelled)

    def _delete_below(self, path: str, node: Node, token: Token) -> None:
        """All that can be deleted; then the first failure (referencesource: io/directory.cs, DeleteHelper)."""
        failed: Failure | None = None
        for entry in list(node.children.values()):
            below = paths.join(path, entry.name)
            try:
                if entry.node.directory:
                    self.delete_directory(below, token, recurse=True)
                else:
                    self.delete(below, token)
            except Failure as caught:
                failed = failed or caught
        if failed is not None:
            raise failed

    def make_layer(self, path: str) -> None:
        """A folder of the host compute service, with a file of an image in it."""
        self.make_directory(rf"{path}\Files")
        self.write(rf"{path}\Files\license.txt", b"layer")
        for below in (path, rf"{path}\Files", rf"{path}\Files\license.txt"):
            self.need(below)[1].layer = True

    def destroy_layer(self, path: str) -> None:
        """What HcsDestroyLayer does: folder and content are gone."""
        self.need(path)[1].layer = False
        for _, node in self.walk(path):
            node.layer = False
        self.delete_directory(path, recurse=True)

    def _unlink(self, path: str) -> None:
        folder = self.folder(path)
        entry = folder.children.pop(paths.leaf(path).lower())
        entry.node.names -= 1
        if entry.node.names == 0:
            self.volumes[path[:2]].used -= len(entry.node.content)
        folder.modified = self._machine.now()

    def make_directory(
        self, path: str, token: Token = SYSTEM_TOKEN, security: Acl | None = None
    ) -> tuple[str, Node]:
        """Make a directory and its parents; an existing one is left as it is."""
        path = self.normal(path)
        found = self.find(path)
        if found is not None:
            if not found[1].directory:
                raise io_failure(0xB7, path)
            return found
        drive, parts = paths.split(path)
        if drive not in self.volumes:
            raise io_failure(3, path)
        above, _ = drive + "\\", None
        for index, part in enumerate(parts):
            above = paths.join(above, part)
            if self.find(above) is None:
                self._make_one(above, token, security if index == len(parts) - 1 else None)
        return self.need(path)

    def _make_one(self, path: str, token: Token, security: Acl | None) -> None:
        folder = self.folder(path)
        self._allow(folder, token, acl.APPEND, path)
        now = self._machine.now()
        made = self._new_acl(folder, token, True, security)
        node = Node(True, now, now, now, made, attributes=DIRECTORY | folder.attributes & _INHERITED)
        name = paths.leaf(path)
        folder.children[name.lower()] = Entry(name, node)
        folder.modified = now

    def move(
        self, source: str, destination: str, token: Token = SYSTEM_TOKEN, *, overwrite: bool = False
    ) -> None:
        """Rename a file or directory. A running program may be renamed, but not replaced."""
        spelled, node = self.need(source, follow=False)
        goal = self.normal(destination)
        folder = self.folder(goal)
        self._allow(folder, token, acl.WRITE, goal)
        self._check_tree(node, spelled)
        if not node.acl.allows(token, acl.DELETE):
            self._allow(self.folder(spelled), token, acl.DELETE_CHILD, spelled)
        there = folder.children.get(paths.leaf(goal).lower())
        if there is not None and there.node is not node:
            if not overwrite or there.node.directory:
                raise io_failure(0xB7, goal)
            self._may_delete(goal, there.node, token)
            self._unlink(goal)
        if spelled[:2] != goal[:2]:
            raise io_failure(0x7B, goal)
        origin = self.folder(spelled)
        del origin.children[paths.leaf(spelled).lower()]
        name = paths.leaf(goal)
        folder.children[name.lower()] = Entry(name, node)
        origin.modified = folder.modified = self._machine.now()
        for opened in node.opened:
            opened.path = goal
        for told in self.moved:
            told(node, goal)

    def copy(
        self, source: str, destination: str, token: Token = SYSTEM_TOKEN, *, overwrite: bool = False
    ) -> None:
        """Copy a file; times and attributes go with it, access rules do not."""
        _, node = self._need_file(source)
        self._allow(node, token, acl.READ, source)
        self._check_share(node, 1, 1, source)
        goal = self.normal(destination)
        if self.find(goal) is not None and not overwrite:
            raise io_failure(0x50, goal)
        made = self.write(goal, node.content, token)
        made.modified = node.modified
        made.attributes = node.attributes

    def replace(self, source: str, destination: str, backup: str | None, token: Token = SYSTEM_TOKEN) -> None:
        """Replace `destination`, which keeps its rules, by `source`; the old file becomes `backup`.

        The replacement is opened without any sharing, what it replaces with all of it
        (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-replacefilew): any reader of `source` is in the way.
        """
        spelled, node = self._need_file(source)
        if node.opened:
            raise io_failure(0x20, spelled)
        goal, old = self._need_file(destination)
        self._may_delete(goal, old, token)
        if backup is not None:
            kept = self.normal(backup)
            if self.find(kept) is not None:
                self.delete(kept, token)
        node.acl = old.acl.copy()
        node.created = old.created
        if backup is None:
            self._unlink(goal)
        else:
            self.move(goal, kept, token)
        self.move(spelled, goal, token)

    # ---- attributes, times, links, rules ---------------------------------------------------------------

    def set_attributes(self, path: str, attributes: int, token: Token = SYSTEM_TOKEN) -> None:
        """Set the flags; those that say what the thing is stay."""
        _, node = self.need(path, follow=False)
        self._allow(node, token, 0x100, path)
        fixed = node.attributes & (DIRECTORY | REPARSE)
        node.attributes = (attributes & ~NORMAL & ~(DIRECTORY | REPARSE)) | fixed

    def set_times(
        self,
        path: str,
        *,
        created: datetime | None = None,
        modified: datetime | None = None,
        accessed: datetime | None = None,
    ) -> None:
        """Set the times given."""
        _, node = self.need(path, follow=False)
        node.created = created or node.created
        node.modified = modified or node.modified
        node.accessed = accessed or node.accessed

    def link(self, path: str, target: str, kind: str, token: Token = SYSTEM_TOKEN) -> None:
        """Make a symbolic link, junction or hard link called `path`."""
        path = self.normal(path)
        if self.find(path, follow=False) is not None:
            raise io_failure(0xB7, path)
        folder = self.folder(path)
        found = self.find(target)
        directory = kind == "Junction" or (kind != "HardLink" and found is not None and found[1].directory)
        # A link to a directory is a directory, and FILE_ADD_SUBDIRECTORY lets make it.
        self._allow(folder, token, acl.APPEND if directory else acl.WRITE, path)
        if kind == "SymbolicLink" and ADMINISTRATORS not in token.sids:
            # ERROR_PRIVILEGE_NOT_HELD: SeCreateSymbolicLinkPrivilege is the administrators' by default
            # (learn.microsoft.com/windows/security/threat-protection/security-policy-settings/create-symbolic-links).
            raise io_failure(0x522, path)
        if kind == "HardLink":
            _, node = self._need_file(target)
            node.names += 1
        else:
            now = self._machine.now()
            node = Node(directory, now, now, now, self._new_acl(folder, token, directory, None))
            node.attributes = REPARSE | (DIRECTORY if directory else ARCHIVE)
            made: LinkKind = "Junction" if kind == "Junction" else "SymbolicLink"
            node.link, node.tag = (made, target), TAGS[made]
        name = paths.leaf(path)
        folder.children[name.lower()] = Entry(name, node)

    def set_acl(self, path: str, wanted: Acl, token: Token = SYSTEM_TOKEN) -> None:
        """Give a file or directory new rules, and hand them down to what is below."""
        spelled, node = self.need(path)
        self._allow(node, token, acl.CHANGE_PERMISSIONS, spelled)
        if not wanted.protected:
            above = self.folder(spelled) if len(spelled) > 3 else node
            wanted.inherited = acl.handed_down(above.acl.rules, directory=node.directory, owner=wanted.owner)
        node.acl = wanted
        self._hand_down(node)

    def _hand_down(self, node: Node) -> None:
        for entry in node.children.values():
            below = entry.node
            if not below.acl.protected:
                owner = below.acl.owner
                below.acl.inherited = acl.handed_down(node.acl.rules, directory=below.directory, owner=owner)
                self._hand_down(below)

    # ---- the machine's own ----------------------------------------------------------------------------

    def forget_open(self) -> None:
        """A reboot: nothing is open, no pipe is there, no program runs."""
        for opened in self._open.values():
            opened.node.opened.clear()
        self._open.clear()
        self.pipes.clear()

    def tree(self) -> Tree:
        """Everything below the roots that is not part of Windows itself, by path."""
        found: dict[str, Tree] = {}
        for drive in sorted(self.volumes):
            for path, node in self.walk(drive + "\\"):
                if not path.lower().startswith("c:\\windows\\"):
                    found[path] = self._shown(node)
        return found

    def _shown(self, node: Node) -> Tree:
        shown: dict[str, Tree] = {"kind": "directory" if node.directory else "file"}
        if node.link is not None:
            shown["link"] = f"{node.link[0]} {node.link[1]}"
        if not node.directory:
            shown["content"] = show_bytes(node.content)
        if node.attributes & (READ_ONLY | HIDDEN):
            shown["attributes"] = node.attributes
        if node.acl.protected or node.acl.explicit:
            shown["access"] = node.acl.sddl()
        return shown
