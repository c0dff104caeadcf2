"""`python tools/runtime_lock.py`: the part of requirements.lock that winboot and its lab need to run, with its hashes.

`make demo` installs it. It runs before anything is installed, so it uses the standard library alone. The lock says behind each
package which other ones brought it (`# via`).
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
# `pip install -e --no-build-isolation` needs them in addition to the dependencies.
BUILD: Final = ("hatchling", "editables")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def normal(name: str) -> str:
    """A project's name as the lock writes it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def roots(root: Path = ROOT) -> set[str]:
    """What winboot and its lab depend on, without extras."""
    files = (root / "pyproject.toml", root / "lab" / "pyproject.toml")
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]
    needs = [one for table in tables for one in table["project"]["dependencies"]]
    names = (match[0] for one in needs if (match := _NAME.match(one)))
    return {*map(normal, names), *BUILD} - {"winboot"}


def entries(lock: str) -> Iterator[tuple[str, set[str], str]]:
    """Each package of a lock: its name, which packages brought it, its lines."""
    for text in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]:
        comments = re.findall(r"^ +# +(?:via )?([A-Za-z0-9][\w.-]*)", text, re.MULTILINE)
        yield normal(text.partition("==")[0].partition("[")[0]), {normal(one) for one in comments}, text


def runtime(lock: str, wanted: set[str]) -> dict[str, str]:
    """Name -> lines of the wanted packages and of all that they bring; a package has several entries for several Pythons."""
    found, before = set(wanted), set[str]()
    known = list(entries(lock))
    while found != before:
        before = set(found)
        found |= {name for name, parents, _ in known if parents & found}
    chosen: dict[str, str] = {}
    for name, _, text in known:
        if name in found:
            chosen[name] = chosen.get(name, "") + text
    return chosen


def main() -> None:
    """Write the requirements to standard output, and what they are to standard error."""
    found = runtime((ROOT / "requirements.lock").read_text(encoding="utf-8"), roots())
    sys.stdout.write("".join(found.values()))
    sys.stderr.write(f"fetching {len(found)} packages of winboot and its lab (about 110 MB) into .venv\n")


if __name__ == "__main__":
    main()
