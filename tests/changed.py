"""`make test CHANGED=1`: the tests of what a change touches, in seconds. `python -m tests.changed [REF]` runs them.

A change is the difference from where this branch left main (on main: the uncommitted files, or else the last commit), or
from REF. The command runs these tests:

- test files that import a changed module, or a module that imports it
- test files with the changed file's name (`drive.ps1`, `steps/kubelet.py`: `test_drive.py`, `test_kubelet.py`)
- for the library, the tests of the steps and library files that call its functions
- the quick tests of the whole repository

Tests of whole joins run only if they are changed themselves: they are for `make test`.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import grimp
import pytest

ROOT: Final = Path(__file__).parents[1]
TEMPLATES: Final = "templates/powershell"
# Where modules are: the folder above a package, as it is in the names of files.
_ROOMS: Final = ("lab/tests", "lab", "")
# Seconds each, and they look at all of the repository.
ALWAYS: Final = (
    "tests/test_imports.py",
    "tests/test_docs.py",
    "tests/test_english.py",
    "tests/test_decisions.py",
    "tests/mutations",
    "tests/steps/test_catalogue.py",
    "tests/config/test_published.py",
)
# What is made of templates and profiles.
MADE: Final = ("tests/golden", "tests/steps/test_rendering.py")
# A join takes seconds, and these make dozens.
WHOLE_JOINS: Final = ("tests/lab/", "tests/genuine/", "tests/peer/")
# Lists of everything, and the tests of the list: all that imports such a list would run for one new line.
REGISTRIES: Final = {"winboot.script.steps": ("tests/test_plan.py", "tests/steps/test_catalogue.py")}
_FUNCTION: Final = re.compile(r"^function ([\w-]+)", re.MULTILINE)


def changed_files(ref: str = "") -> list[str]:
    """Paths below the repository, new and changed ones; deleted ones, too."""
    base = ref or _base()
    listed = _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")
    return sorted(set(listed))


def _base() -> str:
    main = next((one for one in ("main", "origin/main") if _git("rev-parse", "-q", "--verify", one)), "HEAD")
    (head,) = _git("rev-parse", "HEAD")
    left = next(iter(_git("merge-base", "HEAD", main)), head)
    if left != head or _git("status", "--porcelain"):
        return left
    return "HEAD~1"


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def module_of(path: str) -> str:
    """The dotted name of a Python file; of another file, that of the package it lies in. Empty for none."""
    file = PurePosixPath(path)
    if file.parts[0] not in ("winboot", "lab", "tests"):
        return ""
    room = next(one for one in _ROOMS if path.startswith(f"{one}/" if one else ""))
    name = file.relative_to(room)
    if file.suffix == ".py" and file.name != "__init__.py":
        return ".".join(name.with_suffix("").parts)
    return ".".join(name.parent.parts).removesuffix(".data")


def path_of(module: str) -> str | None:
    """The file of a module of this repository."""
    inside = module.replace(".", "/")
    places = (f"{room}/{inside}".lstrip("/") for room in ("", "lab", "lab/tests"))
    return next((f"{one}.py" for one in places if (ROOT / f"{one}.py").is_file()), None)


@functools.cache
def graph_of_all() -> grimp.ImportGraph:
    """The imports of tool, lab, and the tests of both."""
    sys.path.insert(0, str(ROOT / "lab" / "tests"))
    labs = sorted(one.parent.name for one in (ROOT / "lab" / "tests").glob("lab_*/__init__.py"))
    return grimp.build_graph("winboot", "winboot_lab", "tests", *labs, cache_dir=None)


def by_imports(modules: Iterable[str], graph: grimp.ImportGraph) -> Iterator[str]:
    """Test files that import one of the modules, or a module that does; for what only tests use, at any distance."""
    for module in set(modules) & graph.modules:
        near = {module}
        if module not in REGISTRIES:
            near |= graph.find_modules_that_directly_import(module)
        yield from (test for one in near & REGISTRIES.keys() for test in REGISTRIES[one])
        helpers = {one for one in near if _is_of_tests(one)}
        users = set().union(
            *(graph.find_modules_that_directly_import(one) for one in near - REGISTRIES.keys())
        )
        # A helper of tests is no room of the tool: what stands on it is all that uses it.
        if _is_of_tests(module):
            users |= graph.find_downstream_modules(module)
        yield from (path for one in users | helpers if (path := path_of(one)) and is_test(path))


def _is_of_tests(module: str) -> bool:
    return module.partition(".")[0] not in ("winboot", "winboot_lab")


def is_test(path: str) -> bool:
    """Whether pytest collects this file."""
    file = PurePosixPath(path)
    return file.name.startswith("test_") and file.suffix == ".py"


def by_names(files: Iterable[str]) -> Iterator[str]:
    """Test files named after a changed file, and after the templates that call what a library file defines. A helper of tests
    is used by those that import it, and names none."""
    stems = {_noun(path) for path in with_callers(files) if not path.startswith(("tests/", "lab/tests/"))}
    for path in _git("ls-files", "tests", "lab/tests"):
        if is_test(path) and PurePosixPath(path).stem.removeprefix("test_") in stems:
            yield path


def _noun(path: str) -> str:
    """What a file is about: its name, or for a package its folder's."""
    file = PurePosixPath(path)
    return file.parent.name if file.stem == "__init__" else file.name.partition(".")[0].strip("_")


def with_callers(files: Iterable[str]) -> Iterator[str]:
    """The files, and for those of the library the templates that call one of its functions."""
    texts = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (ROOT / TEMPLATES).rglob("*.*")
        if path.is_file()
    }
    for file in files:
        yield file
        for name in _FUNCTION.findall(texts.get(file, "") if "/lib/" in file else ""):
            yield from (
                path for path, text in texts.items() if path != file and re.search(rf"\b{name}\b", text)
            )


def chosen_for(files: Sequence[str]) -> list[str]:
    """The test files for a change of these files."""
    graph = graph_of_all()
    found = {*by_imports(map(module_of, files), graph), *by_names(files)}
    light = {path for path in found if not path.startswith(WHOLE_JOINS)}
    chosen = {path for path in (*light, *files) if is_test(path) and (ROOT / path).exists()}
    made = (
        [*MADE] if any(path.startswith(("templates/", "profiles/", "inventories/")) for path in files) else []
    )
    return sorted({*chosen, *ALWAYS, *made})


def main(words: Sequence[str]) -> int:
    """Run them on all processors."""
    files = changed_files(words[0] if words and words[0] != "1" else "")
    tests = chosen_for(files)
    print(f"{len(files)} files changed: {len(tests)} files and folders of tests", flush=True)
    return int(
        pytest.main(
            [
                "-q",
                "-n",
                "auto",
                "--maxprocesses",
                "8",
                "-m",
                "not nightly and not matrix and not check",
                *tests,
            ]
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
