"""How far the clock of a machine may be from the cluster's: the one comparison of all commands."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal

# kube-controller-manager signs certificates that are valid from five minutes before (kubernetes,
# pkg/controller/certificates/signer/signer.go, Backdate), so that a clock further behind takes them for ones of the future.
# Kerberos refuses more than five minutes by default, too (Microsoft, security policy setting "Maximum tolerance for computer
# clock synchronization", MaxClockSkew). node-preflight compares with the same limit, on the machine.
CLOCK_FAILS: Final = timedelta(seconds=300)
# winboot's choice: what a time service that works never lets pass.
CLOCK_WARNS: Final = timedelta(seconds=5)


def clock_level(offset: timedelta) -> Literal["ok", "warning", "error"]:
    """How bad it is that a machine's clock is `offset` from the one it is compared with."""
    if abs(offset) <= CLOCK_WARNS:
        return "ok"
    return "error" if abs(offset) > CLOCK_FAILS else "warning"
