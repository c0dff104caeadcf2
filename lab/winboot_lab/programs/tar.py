"""tar.exe of Windows (bsdtar): unpacks real archives of the machine's files."""

from __future__ import annotations

import fnmatch
import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from winboot_lab.programs.base import Run, go_text, windows_text
from winboot_lab.windows import paths
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.session import Computer


@dataclass(slots=True)
class _Wish:
    mode: str = ""
    file: str = ""
    folder: str = ""
    strip: int = 0
    verbose: bool = False
    members: list[str] = field(default_factory=list)


class _TarError(Exception):
    """What tar says before it ends with 1."""


class Tar:
    """tar: -x and -t, with -f, -C, -z, -v, --strip-components and member patterns."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation."""
        run = Run(machine, process, argv, env, stdin)
        wish = _parse(run)
        try:
            return self._work(run, wish)
        except _TarError as e:
            return Exit(1, b"", go_text(f"tar: {e}"))
        except Failure as e:
            return Exit(
                1, b"", go_text(f"tar: {e.problem.message}", "tar: Error exit delayed from previous errors.")
            )

    def _work(self, run: Run, wish: _Wish) -> Exit:
        folder = run.path(wish.folder) if wish.folder else run.process.directory
        if not run.machine.files.is_directory(folder):
            raise _TarError(f"could not chdir to '{wish.folder}'")
        archive = run.path(wish.file)
        if not run.machine.files.exists(archive):
            raise _TarError(f"Error opening archive: Failed to open '{wish.file}'")
        unmatched, said = set(wish.members), []
        for name, content in _entries(run.machine.files.read(archive, run.process.token, share=7)):
            if wish.members:
                hits = [m for m in wish.members if _matches(name, m)]
                if not hits:
                    continue
                unmatched -= set(hits)
            said.append(name)
            if wish.mode == "x":
                self._extract(run, folder, _stripped(name, wish.strip), content)
        if unmatched:
            lines = [f"tar: {m}: Not found in archive" for m in sorted(unmatched)]
            return Exit(1, b"", go_text(*lines, "tar: Error exit delayed from previous errors."))
        if wish.mode == "t":
            return Exit(0, windows_text(*said))
        return Exit(0, b"", go_text(*(f"x {n}" for n in said)) if wish.verbose else b"")

    def _extract(self, run: Run, folder: str, name: str, content: bytes | None) -> None:
        if not name:
            return
        target = paths.normal(paths.join(folder, name.replace("/", "\\")))
        if content is None:
            run.machine.files.make_directory(target, run.process.token)
            return
        run.machine.files.make_directory(paths.parent(target), run.process.token)
        run.machine.files.write(target, content, run.process.token)


def _parse(run: Run) -> _Wish:
    wish, words = _Wish(), run.argv[1:]
    if words and not words[0].startswith("-"):
        words[0] = "-" + words[0]  # the old style: `tar xzf file`
    while words:
        word = words.pop(0)
        if word.startswith("--strip-components"):
            wish.strip = int(word.partition("=")[2] or words.pop(0))
        elif word.startswith("--") or not word.startswith("-"):
            if word.startswith("--"):
                raise run.refuse(word)
            wish.members.append(word)
        else:
            _letters(run, wish, word[1:], words)
    if not wish.mode or not wish.file:
        raise run.refuse("without -x or -t and -f")
    return wish


def _letters(run: Run, wish: _Wish, letters: str, words: list[str]) -> None:
    for index, letter in enumerate(letters):
        match letter:
            case "x" | "t":
                wish.mode = letter
            case "z" | "o" | "m" | "k":
                pass
            case "v":
                wish.verbose = True
            case "f" | "C":
                value = letters[index + 1 :] or words.pop(0)
                if letter == "f":
                    wish.file = value
                else:
                    wish.folder = value
                return
            case _:
                raise run.refuse(f"-{letter}")


def _entries(raw: bytes) -> Iterator[tuple[str, bytes | None]]:
    """Names and contents (None: a folder) of a tar, compressed or not, or a zip."""
    try:
        if raw[:4] == b"PK\x03\x04":
            with zipfile.ZipFile(io.BytesIO(raw)) as found:
                for info in found.infolist():
                    yield info.filename, None if info.is_dir() else found.read(info)
            return
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                yield member.name, file.read() if file is not None else None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as e:
        problem = (
            "Unrecognized archive format" if isinstance(e, tarfile.ReadError) else "Truncated input file"
        )
        raise _TarError(f"Error opening archive: {problem}") from None


def _matches(name: str, pattern: str) -> bool:
    """bsdtar's rule: a leading `./` counts on neither side, a folder brings what is below it."""
    name, pattern = (
        name.removeprefix("./").rstrip("/"),
        pattern.replace("\\", "/").removeprefix("./").rstrip("/"),
    )
    return fnmatch.fnmatchcase(name, pattern) or name.startswith(pattern + "/")


def _stripped(name: str, count: int) -> str:
    return "/".join(name.removeprefix("./").split("/")[count:])
