"""What a machine is given to begin with, in the form of its carrier."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.operations.firstboot.carrier import Carrier
from winboot.script.first_boot import stub

# Bytes that a carrier takes. EC2: "16 KB, in raw form, before it is base64-encoded" (EC2 user guide, "Run commands
# when you launch an EC2 instance"). Cloudbase-init: the smallest of its sources, OpenStack nova's 65,535 bytes of
# base64.
LIMITS: Final = {Carrier.EC2: 16384, Carrier.CLOUDBASE: 49151, Carrier.CAPI: None, Carrier.FILE: None}
# cloudbase-init restarts the machine after 1001 and 1003, and runs the script again at the next start after 1002 and 1003;
# it takes anything else, 1 included, for done (cloudbaseinit/plugins/common/execcmd.py, get_plugin_return_value). Restarts are
# the task's own, so that a stub has 0 and this one.
AGAIN_AT_NEXT_START: Final = 1002
# The stub's own bound: it is the same for a whole group, and leaves room for what else a group wants to say.
LARGEST: Final = 8192


@dataclass(frozen=True, slots=True)
class UserData:
    """The text with its voucher in it: winboot writes it where a caller asks for it and nowhere else."""

    text: str
    carrier: Carrier

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text.encode())

    @property
    def budget(self) -> str:
        """The size next to the carrier's limit, in one sentence."""
        limit = LIMITS[self.carrier]
        of = f" of {limit:,} that {self.carrier} takes" if limit is not None else ""
        return f"{self.size:,} bytes{of}"


# What secrets look like as people hand them on. A voucher and the SHA-256 of a key look like none of them.
_SECRETS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        r"(?<![a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9_-])",
        r"(?<![A-Z0-9])(AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
        r"(?<![A-Za-z0-9])gh[opsu]_[A-Za-z0-9]{36}",
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.",
        r"Authorization: *(Basic|Bearer) ",
        r"://[^/\s:@']+:[^/\s@']+@",
        r"(password|passwd|secret[a-z_-]*key|client-key-data|token|AccountKey)'?\s*[:=]\s*'?[A-Za-z0-9+/=_.-]{8,}",
        r"-AsPlainText",
        r"[?&](sig|X-Amz-Signature|X-Amz-Security-Token)=",
    )
)


def planted_secrets(text: str) -> tuple[str, ...]:
    """What of a text is shaped like a secret: where it begins, as `line:column`, never what it says."""
    starts = sorted({found.start() for one in _SECRETS for found in one.finditer(text)})
    return tuple(f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}" for at in starts)


def user_data(
    carrier: Carrier, *, address: str, port: int, pin: str, host: str = "", voucher: Secret | None = None
) -> UserData:
    """Raises InvalidInput where it grows beyond its bound, or where anything but the voucher looks like a secret."""
    text = stub(
        address=address,
        port=port,
        pin=pin,
        host=host,
        voucher=voucher.reveal() if voucher is not None else "",
        failed=AGAIN_AT_NEXT_START if carrier is Carrier.CLOUDBASE else 1,
    )
    made = UserData(_wrapped(carrier, text), carrier)
    if found := planted_secrets(made.text):
        raise InvalidInput(
            f"the user data seems to contain a secret at {', '.join(found)}",
            hint="Every reader of the user data could use the secret. Use only a voucher from `winboot hook voucher`.",
        )
    if made.size > LARGEST:
        raise InvalidInput(
            f"the user data has {made.size:,} bytes, more than {LARGEST:,}",
            hint="Give the endpoint a shorter name.",
        )
    return made


def _wrapped(carrier: Carrier, text: str) -> str:
    """EC2Launch v1, v2 and Karpenter take the tag `<powershell>` (EC2 user guide, "Format the user data scripts");
    the first line shows cloudbase-init which program runs the rest
    (cloudbaseinit/plugins/common/userdataplugins/shellscript.py)."""
    match carrier:
        case Carrier.EC2:
            return f"<powershell>\n{text}</powershell>\n"
        case Carrier.CLOUDBASE:
            return f"#ps1_sysnative\n{text}"
        # In a file of its own.
        case Carrier.CAPI | Carrier.FILE:
            return text
