"""Check commit subjects: `area: imperative, lower case`, at most 72 characters (docs/contributing.md).

`python -m tools.commit_subjects [RANGE]` exits with 1 and lists the subjects that break the rule. The default range begins
after the last commit that was made before the rule; a shallow clone without that commit is not checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Final

BEFORE_THE_RULE: Final = "e7af0609b5"
LONGEST: Final = 72  # characters: `git log --oneline` in 80 columns
_FORM: Final = re.compile(r"[a-z0-9][\w./-]*(, [a-z0-9][\w./-]*)*: [a-z`]\S*( \S+)*")


def wrong(subjects: Iterable[str]) -> list[str]:
    """The subjects that break the rule, each with the reason."""
    found = []
    for subject in subjects:
        if len(subject) > LONGEST:
            found.append(f"{len(subject)} characters, at most {LONGEST}: {subject}")
        elif not _FORM.fullmatch(subject) or subject.endswith("."):
            found.append(f"not of the form 'area: imperative, lower case': {subject}")
    return found


def main(words: list[str]) -> int:
    """Exit code: 0 if all subjects of the range keep the rule."""
    known = ["git", "cat-file", "-e", f"{BEFORE_THE_RULE}^{{commit}}"]
    if not words and subprocess.run(known, capture_output=True, check=False).returncode:
        print(f"commit subjects not checked: this clone has no commit {BEFORE_THE_RULE}")
        return 0
    span = words[0] if words else f"{BEFORE_THE_RULE}..HEAD"
    listed = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s", span], capture_output=True, text=True, check=True
    )
    found = wrong(listed.stdout.splitlines())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
