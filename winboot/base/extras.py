"""The optional parts of winboot: what each needs, and the command that brings it.

The command works from a checkout of the repository and never names winboot to a package registry. A stranger that
registered that name there would run code next to kubeconfigs and passwords.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final, Literal

from winboot.base.errors import UsageError

ExtraName = Literal["ssh", "aws", "azure", "kerberos"]

# Modules whose absence shows that an extra is missing. Windows has its own Kerberos (SSPI), which needs no package.
_MODULES: Final[dict[ExtraName, tuple[str, ...]]] = {
    "ssh": ("paramiko",),
    "aws": ("boto3", "prometheus_client"),
    "azure": ("azure.mgmt.compute", "azure.identity", "prometheus_client"),
    "kerberos": () if os.name == "nt" else ("gssapi",),
}


def lacking(extra: ExtraName) -> tuple[str, ...]:
    """The modules of an extra that are not installed; none where it is whole. Imports none of them."""
    return tuple(module for module in _MODULES[extra] if not _installed(module))


def how_to_install(*extras: ExtraName, lab: bool = False) -> str:
    """What a person types in a checkout of winboot, as the end of a sentence. One command: `./lab` needs the same winboot."""
    own = f".[{','.join(extras)}]" if extras else "."
    words = [f"'{own}'" if extras else own]
    if lab:
        words.append("'./lab[aws]'" if "aws" in extras else "./lab")
    first = "apt-get install libkrb5-dev gcc, then " if "kerberos" in extras else ""
    with_pipx = "" if lab else f" (with pipx: `pipx install --force {words[0]}`)"
    return f"in winboot's checkout: {first}`pip install {' '.join(words)}`{with_pipx}"


def require(extra: ExtraName, what: str) -> None:
    """Raise UsageError where the modules of an extra are missing; `what` asks for them ("transport: ssh")."""
    if missing := lacking(extra):
        raise UsageError(
            f"{what} needs the Python package{'' if len(missing) == 1 else 's'} {', '.join(missing)},"
            f" which {'is' if len(missing) == 1 else 'are'} not installed",
            hint=f"Install it {how_to_install(extra)}.",
        )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False
