"""Print docs/steps.md."""

from winboot.steps.page import steps_page

print(steps_page(), end="")
