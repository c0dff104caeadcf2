"""Which inventory files ask a cloud. Apart from the clouds, whose modules take a while to load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

ProviderName = Literal["aws", "azure"]
# pool.aws.yaml; Ansible wants aws_ec2.yml and azure_rm.yml at the end of the name.
_SUFFIXES: Final[tuple[tuple[re.Pattern[str], ProviderName], ...]] = (
    (re.compile(r"(^|\.)(aws|ec2|aws_ec2)\.ya?ml$"), "aws"),
    (re.compile(r"(^|\.)(azure|azure_rm)\.ya?ml$"), "azure"),
)


def provider_of(path: Path) -> ProviderName | None:
    """Which cloud an inventory file asks, by the end of its name; None for a static one."""
    return next((name for pattern, name in _SUFFIXES if pattern.search(path.name)), None)
