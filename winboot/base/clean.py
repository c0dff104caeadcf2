"""Text from outside, made fit to be shown: by terminals, by XML and by UTF-8.

Whatever a machine, a server or a certificate request says passes here once, where it enters: events, errors, probes
and what the cluster reports. Control characters would move an operator's cursor or retitle the window, a lone surrogate
(valid in JSON and in Windows names) ends every UTF-8 writer, and a text without an end fills memory and reports.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 16_384  # characters: more than any message of Windows, far less than harms a report

# C0 but tab and newline, DEL, C1, surrogates, the characters that turn the direction of text, and U+FFFE/U+FFFF, which
# XML 1.0 does not have (https://www.w3.org/TR/xml/#charsets).
_UNFIT: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def clean(text: str, longest: int = LONGEST) -> str:
    """The text with visible escapes (`\\x1b`) for what must not be shown, cut to `longest` characters."""
    text = text.replace("\r\n", "\n")
    if len(text) > longest:
        text = f"{text[:longest]}… ({len(text) - longest} more characters)"
    return _UNFIT.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
