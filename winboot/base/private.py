"""Files and folders that are their owner's alone, whatever the umask says; a file is replaced as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from winboot.base.errors import ForeignFolder


def open_to_others(path: Path) -> str:
    """How a file's mode lets everybody on this computer read or change it ("0644"); empty where it does not, or where
    files have no modes. A group may: that is how Kubernetes mounts a Secret for one (fsGroup). Raises OSError."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return f"{mode:04o}" if os.name != "nt" and mode & 0o006 else ""


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, each with mode 0700. Raises OSError."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):
            one.mkdir(mode=0o700)
            # A umask may also take rights from the owner.
            one.chmod(0o700)


def own_folder(folder: Path) -> Path:
    """Make a folder if it is missing, and give it back. Raises ForeignFolder, also if it is another user's; OSError."""
    make_private_folder(refuse_strangers(folder))
    # In /tmp another user may have been quicker.
    return refuse_strangers(folder)


def refuse_strangers(folder: Path) -> Path:
    """Give the folder back, which may be missing. Raises ForeignFolder if another user decides what is in it; OSError."""
    if stranger := stranger_above(folder):
        raise ForeignFolder(
            f"winboot does not use the folder {folder}: {stranger}",
            hint="Set the environment variable WINBOOT_STATE to your own folder; sudo may keep another user's HOME.",
        )
    return folder


def stranger_above(folder: Path) -> str:
    """Which other user could put another file into a folder's place, as a sentence; empty if none can, or if files have no
    owners. Each folder and link on the way counts: its owner may rename what is in it. Raises OSError."""
    for one in _way(folder) if _has_owners() else ():
        found = one.lstat()
        if found.st_uid not in (0, os.geteuid()):
            return f"{one} belongs to the user {found.st_uid}"
        # In a folder with the sticky bit, such as /tmp, no other user renames a file (inode(7)).
        if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            return f"everybody may write into {one}"
    return ""


def others_say(file: Path) -> str:
    """Why another user may decide what is in a file, as a sentence. Empty if it is the user's own (or root's), if
    files have no owners, or if there is no file. Raises OSError."""
    if not _has_owners() or not file.exists():
        return ""
    if file.stat().st_mode & stat.S_IWOTH:
        return f"everybody may write to {file}"
    return stranger_above(file)


def _has_owners() -> bool:
    # A pod has no other users, and its volumes are written for everybody: 0777 is the mode of an emptyDir
    # (kubernetes pkg/volume/emptydir/empty_dir.go, perm).
    return os.name != "nt" and "KUBERNETES_SERVICE_HOST" not in os.environ


def _way(path: Path) -> list[Path]:
    """The path with each folder above it and each link on the way, as far as they exist; links followed."""
    found: dict[Path, None] = {}
    waiting = [path.absolute()]
    while waiting:
        place = waiting.pop()
        for one in (place, *place.parents):
            if one in found or not os.path.lexists(one):
                continue
            found[one] = None
            if one.is_symlink():
                waiting.append(one.parent / one.readlink())
    return list(found)


def open_to_append(path: Path) -> int:
    """A descriptor of a file that is ours alone, with mode 0600; it is made where it is missing. Links are not followed,
    neither at its name nor at its folder's. Raises OSError; FileExistsError where the file is not our own."""
    if os.name == "nt":
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path.name, flags, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
        os.close(descriptor)
        raise FileExistsError(errno.EEXIST, "the path is a link, not a file, or owned by another user")
    os.fchmod(descriptor, 0o600)
    return descriptor


def replace_privately(path: Path, text: str | bytes) -> None:
    """Put `text` in place of what the file holds, with mode 0600; a reader sees the old text or the new one.

    Raises OSError; the file is then what it was.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        # What a killed run has left, or a link of another user that has us write elsewhere.
        part.unlink(missing_ok=True)
        _write(part, text)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _write(path: Path, text: str | bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    # "backslashreplace": a lone surrogate, which no encoding has, must not cost the rest of a report.
    content = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    with os.fdopen(descriptor, "wb") as file:
        path.chmod(0o600)
        file.write(content)
        file.flush()
        # Else a power cut after the rename can leave an empty file under the name.
        os.fsync(descriptor)
