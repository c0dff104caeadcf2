"""How much a machine may say, and how often: every bound of winboot on what others send, in one place.

A machine may be anybody's. What goes beyond one of these ends the work on it, by name, and on no other. Each is far
more than a run should need, by judgement: none was measured on a real machine.
docs/security.md shows them all (tests/test_limits.py holds the two together).
"""

from __future__ import annotations

from typing import Final

# Certificates.
MOST_NAMES: Final = 64  # names and addresses in one certificate; a kubelet asks for two to six
LARGEST_REQUEST: Final = 65_536  # characters of a certificate request; a kubelet's has about a thousand

# Texts.
LONGEST_TEXT: Final = 16_384  # characters of one text: more than any message of Windows
LONGEST_EVENT: Final = 1 << 20  # characters of one event
LARGEST_NUMBER: Final = 10**12  # of milliseconds, a fence
MOST_DIFFERENCES: Final = 1_000  # of one step

# One pass of the script, and all passes of one run on one node.
MOST_NOISE: Final = 1_000  # lines that are not events, as far as the journal keeps them
LONGEST_NOISE: Final = 4_096  # characters of one of those
EVENTS_PER_STEP: Final = 10
MORE_EVENTS: Final = 1_000
LARGEST_PASS: Final = 64 << 20  # characters
LARGEST_RUN: Final = 256 << 20  # characters, and so about the size of a node's journal
MOST_PASSES: Final = 20  # with a restart in between; a bare machine needs three to five
MOST_LOST: Final = 20  # sessions that a machine takes and breaks off in one pass
MOST_DETACHED: Final = 20  # runs that go on by themselves on the node; a join needs one or two
LONGEST_DETACHED: Final = (
    7_200  # seconds that one of them may ask for; winboot's own ask for half an hour at most
)

# What a node says of itself to `winboot verify`.
LARGEST_FACTS: Final = 8 << 20  # characters of one look
LARGEST_COLLECTION: Final = 64 << 20  # bytes that the task of `winboot collect` writes on a node
LARGEST_LOG: Final = 256 << 10  # bytes of the end of a log that the kubelet gives
MOST_ITEMS: Final = 200  # items of one such task; winboot's has about sixty
LONGEST_ITEM: Final = 600  # seconds that one of them may ask for; winboot's own ask for half a minute at most
DEEPEST: Final = 64  # lists and tables in one another; winboot's have five
MOST_FACTS: Final = 10_000  # of one kind: load balancers, endpoints, routes

# A file of `winboot plan --out`.
LARGEST_PLAN: Final = 256 << 20  # bytes; a thousand nodes with all their differences are some ten million

# The wire.
LARGEST_ANSWER: Final = (
    4 << 20
)  # bytes of one answer of WinRM; MaxEnvelopeSizekb (500 by default), sealed, in base64
LARGEST_MESSAGE: Final = 16 << 20  # bytes of a PSRP message whose end has not come
LONGEST_LINE: Final = 32 << 20  # bytes of a line over SSH or of a local shell
