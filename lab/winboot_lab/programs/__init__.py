"""What winboot starts on a lab machine, as far as its effect on machine and cluster goes.

`install_programs(programs, outside)` makes all of them known to `machine.programs`; each is found by the name in its image.
"""

from winboot_lab.programs.outside import Images, Outside
from winboot_lab.programs.registry import install_programs

__all__ = ["Images", "Outside", "install_programs"]
