"""`python -m winboot.script.steps` prints docs/steps.md; with `readme` it renews the README's support table."""

import sys
from pathlib import Path

from winboot.script.steps.page import steps_page, with_table

if sys.argv[1:] == ["readme"]:
    README = Path(__file__).parents[3] / "README.md"
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
else:
    print(steps_page(), end="")
