"""How far the clock of a machine may be from the cluster's."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# Kerberos refuses more than five minutes by default (MS-KILE, "Maximum tolerance for computer clock synchronization"),
# and a kubelet's certificate is valid from five minutes before its signature (kubernetes, pkg/controller/certificates/signer,
# backdate), so that a clock further behind takes it for one of the future.
CLOCK_FAILS: Final = timedelta(seconds=300)
CLOCK_WARNS: Final = timedelta(seconds=5)
