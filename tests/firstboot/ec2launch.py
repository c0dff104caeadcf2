"""A model of how EC2Launch v1 and v2 read user data.

EC2 user guide, "Run commands when you launch an EC2 instance with user data input" (Windows). The tags are `<script>`,
`<powershell>`, `<powershellArguments>`, `<persist>`, and for v2 `<runAsLocalSystem>` and `<detach>`. Text that begins with
`version:` is v2's YAML. Each tag appears once. A script runs once unless `<persist>true</persist>`. cloudbase-init reads the
same form with `<powershell>([\\s\\S]+?)</powershell>` (cloudbaseinit/plugins/common/execcmd.py). The agents themselves are
closed: what is not in the guide, such as whether case counts, is taken in the stricter way here.
"""

from __future__ import annotations

import re
from typing import Final

TAGS: Final = ("script", "powershell", "powershellArguments", "persist", "runAsLocalSystem", "detach")
LIMIT: Final = 16384


def powershell_of(text: str) -> str:
    """The PowerShell that is run once. Raises ValueError for a text in which an agent might see anything else."""
    if len(text.encode()) > LIMIT:
        raise ValueError("larger than EC2 takes")
    if not text.isascii():
        raise ValueError("not ASCII: agents differ in what they take it for")
    if text.lstrip().startswith(("version:", "#")):
        raise ValueError("not the tagged form")
    for tag in TAGS:
        opened, closed = (len(re.findall(f"<{slash}{tag}>", text, re.IGNORECASE)) for slash in ("", "/"))
        if opened != closed or opened != (tag == "powershell"):
            raise ValueError(f"<{tag}> stands {opened} times")
    found = re.fullmatch(r"\s*<powershell>([\s\S]+?)</powershell>\s*", text)
    if found is None:
        raise ValueError("something stands outside of the tag")
    return found[1]
