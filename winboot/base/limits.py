"""How much a machine may say, and how often: every bound of winboot on what others send, in one place.

A machine may be anybody's. What goes beyond one of these ends the work on it, by name, and on no other. Each is
some ten times what the largest run of the lab needs, so that no honest machine meets it.
docs/security.md shows them all (tests/test_limits.py holds the two together).
"""

from __future__ import annotations

from typing import Final

# Certificates.
MOST_NAMES: Final = 64  # names and addresses in one certificate; a kubelet asks for two to six
LARGEST_REQUEST: Final = 65_536  # characters of a certificate request; a kubelet's has about a thousand
