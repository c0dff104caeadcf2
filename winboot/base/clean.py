"""Text from outside, made fit to be shown: by terminals, by XML and by UTF-8.

Whatever a machine, a server or a certificate request says passes here once, where it enters: events, errors, probes
and what the cluster reports. Control characters would move an operator's cursor or retitle the window. A lone
surrogate (valid in JSON and in Windows names) ends every UTF-8 writer, and a text without an end fills memory and
reports.
"""

from __future__ import annotations

import re
from typing import Final

from winboot.base.limits import LONGEST_TEXT

LONGEST: Final = LONGEST_TEXT

# C0 but tab and newline, DEL, C1, surrogates, and the characters that turn the direction of text (U+061C, too), that
# have no width, or end a line. Also tag characters (an invisible text within a text), and U+FFFE/U+FFFF, which XML
# 1.0 does not have (https://www.w3.org/TR/xml/#charsets;
# https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing).
_UNFIT: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f]"
)


def clean(text: str, longest: int = LONGEST) -> str:
    """The text with visible escapes (`\\x1b`) for what must not be shown, cut to `longest` characters."""
    text = text.replace("\r\n", "\n")
    if len(text) > longest:
        text = f"{text[:longest]}… ({len(text) - longest} more characters)"
    return _UNFIT.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
