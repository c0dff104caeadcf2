"""A version number that compares as numbers, so that 1.9 comes before 1.10."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import Final

# At most six digits: no release has more, and CI puts a date (20260822) into the pre-release part only.
_FORM: Final = re.compile(
    r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?(?:-([0-9A-Za-z.-]{1,60}))?(?:\+[0-9A-Za-z.-]+)?"
)
# git tags of kubernetes/kubernetes and containerd/containerd; what else follows a patch is a distribution's own build.
_EARLY: Final = re.compile(r"(alpha|beta|rc)\..+")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """Major, minor, patch and an optional pre-release part; `1.36.0-rc.1` comes before `1.36.0`.

    `patch` is None where only a minor was written (`1.36`); such a version compares like its first patch.
    """

    major: int
    minor_number: int
    patch: int | None = None
    pre: str = ""

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read `1.36`, `1.36.5`, `v1.36.5` or `1.37.0-beta.0`; ValueError for anything else."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a version such as 1.36.5")
        major, minor, patch, pre = match.groups()
        return cls(int(major), int(minor), None if patch is None else int(patch), pre or "")

    @property
    def minor(self) -> str:
        """The release line as text: `1.36`."""
        return f"{self.major}.{self.minor_number}"

    @property
    def upstream(self) -> Version:
        """The release that a distribution built this version from: 1.36.5 of `1.36.5-eks-1a2b3c`."""
        return self if _EARLY.fullmatch(self.pre) else Version(self.major, self.minor_number, self.patch)

    def at_least(self, text: str) -> bool:
        """Is this version that one or a later one? `Version.parse("1.36.5").at_least("1.33")` is true."""
        return self >= Version.parse(text)

    def _key(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        return (self.major, self.minor_number, self.patch or 0, not self.pre, _pre_key(self.pre))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        patch = "" if self.patch is None else f".{self.patch}"
        pre = f"-{self.pre}" if self.pre else ""
        return f"{self.minor}{patch}{pre}"


def _pre_key(pre: str) -> tuple[tuple[bool, int, str], ...]:
    """Numbers compare as numbers and come before words, as in semantic versioning."""
    parts = pre.split(".") if pre else []
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)


@lru_cache(maxsize=256)
def minor_key(minor: str) -> tuple[int, int]:
    """`1.34` as numbers, for comparing release lines."""
    major, _, number = minor.partition(".")
    return int(major), int(number)
