"""`python -m winboot.script.steps` prints docs/steps.md."""

from winboot.script.steps.page import steps_page

print(steps_page(), end="")
