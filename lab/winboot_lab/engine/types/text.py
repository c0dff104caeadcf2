"""System.String, Char, System.Text: strings, StringBuilder, encodings; System.Globalization.CultureInfo."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from functools import lru_cache

from winboot_lab.engine.dotnet import dotnet, named
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
)
from winboot_lab.engine.formatting import dotnet_text
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.collections import ENUMERATOR
from winboot_lab.engine.values import (
    CHAR,
    STRING,
    Array,
    ByteArray,
    Char,
    Enumerator,
    EnumValue,
    Instance,
    Value,
    enumerate_value,
    fold,
    plain,
)

WHITE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028"
    "\u2029\u202f\u205f\u3000"
)
"""What .NET trims as white space."""


def utf16_length(text: str) -> int:
    """The number of UTF-16 units, which is .NET's length of a string."""
    return len(text) if text.isascii() else len(text) + sum(1 for letter in text if ord(letter) > 0xFFFF)


def upper(text: str) -> str:
    """Upper case letter by letter, so that the length stays."""
    if text.isascii():
        return text.upper()
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in text)


def lower(text: str) -> str:
    """Lower case letter by letter."""
    if text.isascii():
        return text.lower()
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


# -- cultures


class Culture(Instance):
    """System.Globalization.CultureInfo; the lab knows the invariant culture and en-US."""

    def __init__(self, name: str) -> None:
        self.name = name


INVARIANT = Culture("")
_CULTURES = {
    "": (127, "Invariant Language (Invariant Country)"),
    "en-us": (1033, "English (United States)"),
}
CULTURE = dotnet("System.Globalization.CultureInfo", Culture, accelerators=["cultureinfo"])
IFORMAT_PROVIDER = dotnet("System.IFormatProvider", kind="interface")
CULTURE.interfaces = (IFORMAT_PROVIDER,)


def _culture(name: str) -> Culture:
    if name.lower() not in _CULTURES:
        raise Refusal("value", name, "culture")
    return INVARIANT if not name else Culture("en-US")


def is_american(provider: Value) -> bool:
    """Is that the culture en-US, given by name? Dates and money look otherwise than to the invariant culture."""
    return isinstance(provider, Culture) and bool(provider.name)


CULTURE.prop("Name", "string", lambda self: self.name)
CULTURE.method("ToString()")(lambda self: self.name)
CULTURE.static_prop("InvariantCulture", "CultureInfo", lambda: INVARIANT)

# -- strings


def _ignores_case(comparison: EnumValue) -> bool:
    return bool(comparison.number % 2)


def _needs(value: Value, name: str = "value") -> Value:
    if value is None:
        raise ArgumentNullException(name)
    return value


STRING.prop("Length", "int", utf16_length)


STRING.method("ToString()", "ToString(System.IFormatProvider provider)")(lambda self, provider=None: self)
STRING.method("Clone()")(lambda self: self)
STRING.method("ToUpper()", "ToUpper(CultureInfo culture)")(lambda self, culture=None: upper(self))
STRING.method("ToLower()", "ToLower(CultureInfo culture)")(lambda self, culture=None: lower(self))
STRING.method("ToUpperInvariant()")(upper)
STRING.method("ToLowerInvariant()")(lower)


class CharEnumerator(Enumerator):
    """What a text's GetEnumerator() gives."""


dotnet("System.CharEnumerator", CharEnumerator, base=ENUMERATOR)
STRING.method("ToCharArray()")(lambda self: Array((Char(letter) for letter in self), CHAR))
STRING.method("ToCharArray(int startIndex, int length)")(
    lambda self, start, length: Array((Char(letter) for letter in self[start : start + length]), CHAR)
)


@STRING.method("Substring(int startIndex)")
def _substring_from(self: str, start: int) -> str:
    if start < 0 or start > len(self):
        reason = (
            "startIndex cannot be larger than length of string."
            if start > 0
            else "StartIndex cannot be less than zero."
        )
        raise ArgumentOutOfRangeException("startIndex", reason)
    return self[start:]


@STRING.method("Substring(int startIndex, int length)")
def _substring(self: str, start: int, length: int) -> str:
    if start < 0:
        raise ArgumentOutOfRangeException("startIndex", "StartIndex cannot be less than zero.")
    if start > len(self):
        raise ArgumentOutOfRangeException("startIndex", "startIndex cannot be larger than length of string.")
    if length < 0:
        raise ArgumentOutOfRangeException("length", "Length cannot be less than zero.")
    if start + length > len(self):
        raise ArgumentOutOfRangeException(
            "length", "Index and length must refer to a location within the string."
        )
    return self[start : start + length]


@STRING.method("Contains(string value)")
def _contains(self: str, value: str) -> bool:
    return _needs(value) in self


def _trim_set(letters: Iterable[str] | None) -> str:
    text = "".join(letters or ())
    return text or WHITE


for _name, _strip in (("Trim", str.strip), ("TrimStart", str.lstrip), ("TrimEnd", str.rstrip)):

    def _trim(self: str, letters: Value = None, strip: Value = _strip) -> str:
        return str(strip(self, _trim_set(letters)))

    STRING.method(f"{_name}(params char[] trimChars)")(_trim)
STRING.method("Trim()")(lambda self: self.strip(WHITE))


@STRING.method("StartsWith(string value)")
def _starts(self: str, value: str) -> bool:
    return self.startswith(_needs(value))


@STRING.method("EndsWith(string value)")
def _ends(self: str, value: str) -> bool:
    return self.endswith(_needs(value))


@STRING.method("StartsWith(string value, StringComparison comparisonType)")
def _starts_as(self: str, value: str, comparison: EnumValue) -> bool:
    if _ignores_case(comparison):
        return fold(self).startswith(fold(_needs(value)))
    return self.startswith(_needs(value))


@STRING.method("EndsWith(string value, StringComparison comparisonType)")
def _ends_as(self: str, value: str, comparison: EnumValue) -> bool:
    if _ignores_case(comparison):
        return fold(self).endswith(fold(_needs(value)))
    return self.endswith(_needs(value))


@STRING.method("StartsWith(string value, bool ignoreCase, CultureInfo culture)")
def _starts_culture(self: str, value: str, ignore: bool, _culture: Value) -> bool:
    return fold(self).startswith(fold(value)) if ignore else self.startswith(value)


@STRING.method("EndsWith(string value, bool ignoreCase, CultureInfo culture)")
def _ends_culture(self: str, value: str, ignore: bool, _culture: Value) -> bool:
    return fold(self).endswith(fold(value)) if ignore else self.endswith(value)


@STRING.method("Equals(string value)", "Equals(object obj)")
def _equals(self: str, other: Value) -> bool:
    return type(plain(other)) is str and self == other


@STRING.method("Equals(string value, StringComparison comparisonType)")
def _equals_as(self: str, other: Value, comparison: EnumValue) -> bool:
    if other is None:
        return False
    return fold(self) == fold(other) if _ignores_case(comparison) else self == other


STRING.static_method("Equals(string a, string b, StringComparison comparisonType)")(
    lambda first, second, how: (
        first is second if first is None or second is None else _equals_as(first, second, how)
    )
)


# searching


def _find(self: str, value: str, start: int, count: int | None, *, ignore: bool = False) -> int:
    if not 0 <= start <= len(self):
        raise ArgumentOutOfRangeException(
            "startIndex",
            "Index was out of range. Must be non-negative and less than the size of the collection.",
        )
    end = len(self) if count is None else start + count
    if count is not None and (count < 0 or end > len(self)):
        raise ArgumentOutOfRangeException(
            "count",
            "Count must be positive and count must refer to a location within the string/array/collection.",
        )
    if ignore:
        return fold(self).find(fold(value), start, end)
    return self.find(str(value), start, end)


@STRING.method(
    "IndexOf(char value)",
    "IndexOf(char value, int startIndex)",
    "IndexOf(char value, int startIndex, int count)",
    "IndexOf(string value)",
    "IndexOf(string value, int startIndex)",
    "IndexOf(string value, int startIndex, int count)",
)
def _index_of(self: str, value: str, start: int = 0, count: int | None = None) -> int:
    return _find(self, _needs(value), start, count)


@STRING.method("IndexOf(string value, StringComparison comparisonType)")
def _index_of_as(self: str, value: str, comparison: EnumValue) -> int:
    return _find(self, _needs(value), 0, None, ignore=_ignores_case(comparison))


@STRING.method("IndexOf(string value, int startIndex, StringComparison comparisonType)")
def _index_from_as(self: str, value: str, start: int, comparison: EnumValue) -> int:
    return _find(self, _needs(value), start, None, ignore=_ignores_case(comparison))


@STRING.method(
    "LastIndexOf(char value)",
    "LastIndexOf(char value, int startIndex)",
    "LastIndexOf(string value)",
    "LastIndexOf(string value, int startIndex)",
)
def _last_index_of(self: str, value: str, start: int | None = None) -> int:
    end = len(self) if start is None else min(start + 1, len(self))
    return self.rfind(str(_needs(value)), 0, end)


@STRING.method("LastIndexOf(string value, StringComparison comparisonType)")
def _last_index_as(self: str, value: str, comparison: EnumValue) -> int:
    if _ignores_case(comparison):
        return fold(self).rfind(fold(value))
    return self.rfind(value)


# changing


@STRING.method("Replace(char oldChar, char newChar)")
def _replace_char(self: str, old: str, new: str) -> str:
    return self.replace(str(old), str(new))


@STRING.method("Replace(string oldValue, string newValue)")
def _replace(self: str, old: str, new: str) -> str:
    if not _needs(old, "oldValue"):
        raise ArgumentException("String cannot be of zero length.", "oldValue")
    return self.replace(old, new or "")


@STRING.method("Remove(int startIndex)")
def _remove_from(self: str, start: int) -> str:
    if start < 0:
        raise ArgumentOutOfRangeException("startIndex", "StartIndex cannot be less than zero.")
    if start >= len(self):
        raise ArgumentOutOfRangeException("startIndex", "startIndex must be less than length of string.")
    return self[:start]


@STRING.method("Remove(int startIndex, int count)")
def _remove(self: str, start: int, count: int) -> str:
    if start < 0:
        raise ArgumentOutOfRangeException("startIndex", "StartIndex cannot be less than zero.")
    if count < 0:
        raise ArgumentOutOfRangeException("count", "Count cannot be less than zero.")
    if start + count > len(self):
        raise ArgumentOutOfRangeException(
            "count", "Index and count must refer to a location within the string."
        )
    return self[:start] + self[start + count :]


@STRING.method("Insert(int startIndex, string value)")
def _insert(self: str, start: int, value: str) -> str:
    if not 0 <= start <= len(self):
        raise ArgumentOutOfRangeException("startIndex")
    return f"{self[:start]}{_needs(value)}{self[start:]}"


def _pad(self: str, width: int, letter: str, *, left: bool) -> str:
    if width < 0:
        raise ArgumentOutOfRangeException("totalWidth", "Non-negative number required.")
    return self.rjust(width, str(letter)) if left else self.ljust(width, str(letter))


STRING.method("PadLeft(int totalWidth)", "PadLeft(int totalWidth, char paddingChar)")(
    lambda self, width, letter=" ": _pad(self, width, letter, left=True)
)
STRING.method("PadRight(int totalWidth)", "PadRight(int totalWidth, char paddingChar)")(
    lambda self, width, letter=" ": _pad(self, width, letter, left=False)
)


@lru_cache(maxsize=128)
def _any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(mark) for mark in marks))


def _split(self: str, separators: list[str], count: int, options: int) -> Array:
    """Cut at the separators (without any: at white space), at most into `count` pieces."""
    wanted = [separator for separator in separators if separator] or list(WHITE)
    if count == 0:
        return Array((), STRING)
    pieces: list[str] = []
    start = 0
    drop = bool(options & 1)
    for cut in _any_of(tuple(wanted)).finditer(self):
        if 0 <= count <= len(pieces) + 1:
            break
        if cut.start() > start or not drop:
            pieces.append(self[start : cut.start()])
        start = cut.end()
    rest = self[start:]
    if drop and count >= 0:
        while (mark := next((mark for mark in wanted if rest.startswith(mark)), None)) is not None:
            rest = rest[len(mark) :]
    if rest or not drop:
        pieces.append(rest)
    return Array(pieces, STRING)


def _marks(separators: Value) -> list[str]:
    return [str(mark) for mark in separators or () if mark is not None]


STRING.method("Split(params char[] separator)")(lambda self, marks: _split(self, _marks(marks), -1, 0))


@STRING.method("Split(char[] separator, int count)")
def _split_count(self: str, marks: Value, count: int) -> Array:
    if count < 0:
        raise ArgumentOutOfRangeException("count", "Count cannot be less than zero.")
    return Array([self], STRING) if count == 1 else _split(self, _marks(marks), count, 0)


STRING.method("Split(char[] separator, StringSplitOptions options)")(
    lambda self, marks, options: _split(self, _marks(marks), -1, options.number)
)
STRING.method("Split(char[] separator, int count, StringSplitOptions options)")(
    lambda self, marks, count, options: _split(self, _marks(marks), count, options.number)
)
STRING.method("Split(string[] separator, StringSplitOptions options)")(
    lambda self, marks, options: _split(self, _marks(marks), -1, options.number)
)
STRING.method("Split(string[] separator, int count, StringSplitOptions options)")(
    lambda self, marks, count, options: _split(self, _marks(marks), count, options.number)
)


# static helpers

STRING.static_method("IsNullOrEmpty(string value)")(lambda value: not value)
STRING.static_method("IsNullOrWhiteSpace(string value)")(lambda value: not (value or "").strip(WHITE))


def _concat_text(value: Value) -> str:
    return dotnet_text(plain(value))


def _join(separator: str, values: Value) -> str:
    items = enumerate_value(_needs(values, "values"))
    return (separator or "").join(_concat_text(value) for value in (items if items is not None else [values]))


STRING.static_method(
    "Join(string separator, params string[] value)",
    "Join(string separator, params object[] values)",
    "Join(string separator, System.Collections.IEnumerable values)",
)(_join)


@STRING.static_method("Join(string separator, string[] value, int startIndex, int count)")
def _join_range(separator: str, values: Value, start: int, count: int) -> str:
    if start < 0 or count < 0 or start + count > len(values):
        raise ArgumentOutOfRangeException(
            "startIndex", "Index and count must refer to a location within the buffer."
        )
    return _join(separator, Array(values[start : start + count]))


# -- encodings


class Encoding(Instance):
    """System.Text.Encoding: a Python codec, its byte order mark, and what it does with what it cannot express."""

    def __init__(
        self,
        codec: str,
        web_name: str,
        code_page: int,
        bom: bytes = b"",
        *,
        kind: str = "",
    ) -> None:
        self.codec = codec
        self.web_name = web_name
        self.code_page = code_page
        self.bom = bom
        self.kind = kind or "System.Text.SBCSCodePageEncoding"

    @property
    def dotnet_type(self) -> Value:
        return named(self.kind)

    def encode(self, text: str) -> bytes:
        """Bytes; what does not fit becomes `?` (or a lone surrogate the replacement character)."""
        if self.codec in ("ascii", "latin-1", "cp1252", "cp437", "cp850"):
            return text.encode(self.codec, "replace")
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError:
            paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return paired.encode(self.codec)

    def decode(self, data: bytes) -> str:
        """Text; malformed bytes become the replacement character (ASCII: `?`)."""
        if self.codec == "ascii":
            return "".join(chr(number) if number < 128 else "?" for number in data)
        return data.decode(self.codec, "replace")


UTF8 = Encoding("utf-8", "utf-8", 65001, codecs.BOM_UTF8, kind="System.Text.UTF8Encoding")
UTF8_BARE = Encoding("utf-8", "utf-8", 65001, kind="System.Text.UTF8Encoding")
UNICODE = Encoding("utf-16-le", "utf-16", 1200, codecs.BOM_UTF16_LE, kind="System.Text.UnicodeEncoding")
BIG_UNICODE = Encoding("utf-16-be", "utf-16BE", 1201, codecs.BOM_UTF16_BE, kind="System.Text.UnicodeEncoding")
UTF32 = Encoding("utf-32-le", "utf-32", 12000, codecs.BOM_UTF32_LE, kind="System.Text.UTF32Encoding")
UTF7 = Encoding("utf-7", "utf-7", 65000, kind="System.Text.UTF7Encoding")
ASCII = Encoding("ascii", "us-ascii", 20127, kind="System.Text.ASCIIEncoding")
LATIN1 = Encoding("latin-1", "iso-8859-1", 28591, kind="System.Text.Latin1Encoding")
ANSI = Encoding("cp1252", "Windows-1252", 1252)
OEM = Encoding("cp437", "IBM437", 437)
_BY_NAME = {
    "utf-8": UTF8,
    "utf8": UTF8,
    "utf-16": UNICODE,
    "utf-16le": UNICODE,
    "unicode": UNICODE,
    "utf-16be": BIG_UNICODE,
    "unicodefffe": BIG_UNICODE,
    "utf-32": UTF32,
    "us-ascii": ASCII,
    "ascii": ASCII,
    "iso-8859-1": LATIN1,
    "latin1": LATIN1,
    "windows-1252": ANSI,
    "ibm437": OEM,
}
_BY_PAGE = {
    made.code_page: made for made in (UTF8, UNICODE, BIG_UNICODE, UTF32, UTF7, ASCII, LATIN1, ANSI, OEM)
} | {0: ANSI}

ENCODING = dotnet("System.Text.Encoding")
for _name in (
    "System.Text.UTF8Encoding",
    "System.Text.UnicodeEncoding",
    "System.Text.UTF32Encoding",
    "System.Text.UTF7Encoding",
    "System.Text.ASCIIEncoding",
    "System.Text.SBCSCodePageEncoding",
    "System.Text.Latin1Encoding",
):
    dotnet(_name, base=ENCODING)
for _name, _made in (
    ("UTF8", UTF8),
    ("Unicode", UNICODE),
    ("BigEndianUnicode", BIG_UNICODE),
    ("UTF32", UTF32),
    ("UTF7", UTF7),
    ("ASCII", ASCII),
    ("Default", ANSI),
):
    ENCODING.static_field(_name, "System.Text.Encoding", _made)


@ENCODING.static_method("GetEncoding(string name)")
def encoding_by_name(name: str) -> Encoding:
    """An encoding by its web name."""
    found = _BY_NAME.get(name.lower())
    if found is None:
        if name.lower().startswith(
            ("iso-8859", "windows-", "ibm", "koi8", "gb", "shift", "euc", "big5", "x-")
        ):
            raise Refusal("value", name, "encoding")
        raise ArgumentException(
            f"'{name}' is not a supported encoding name. For information on defining a custom encoding, see the "
            "documentation for the Encoding.RegisterProvider method.",
            "name",
        )
    return found


@ENCODING.static_method("GetEncoding(int codepage)")
def encoding_by_page(page: int) -> Encoding:
    """An encoding by its code page."""
    if page not in _BY_PAGE:
        raise Refusal("value", str(page), "code page")
    return _BY_PAGE[page]


def _bytes_of(letters: Value) -> str:
    return letters if isinstance(letters, str) else "".join(letters)


# The order of reflection: of two overloads that fit $null as well, PowerShell takes the first.
ENCODING.method("GetBytes(char[] chars)")(
    lambda self, letters: ByteArray(self.encode(_bytes_of(_needs(letters, "chars"))))
)
ENCODING.method("GetBytes(string s)")(lambda self, text: ByteArray(self.encode(_needs(text, "s"))))
ENCODING.method("GetString(byte[] bytes)")(lambda self, data: self.decode(bytes(_needs(data, "bytes"))))


@ENCODING.method("GetString(byte[] bytes, int index, int count)")
def _get_string(self: Encoding, data: Value, index: int, count: int) -> str:
    if index < 0 or count < 0 or index + count > len(data):
        raise ArgumentOutOfRangeException(
            "bytes", "Index and count must refer to a location within the buffer."
        )
    return self.decode(bytes(data[index : index + count]))


_UTF8_TYPE = named("System.Text.UTF8Encoding")
_UTF8_TYPE.constructor("bool encoderShouldEmitUTF8Identifier")(lambda bom: UTF8 if bom else UTF8_BARE)


def encoding_of_bom(data: bytes) -> tuple[Encoding, int] | None:
    """The encoding a byte order mark announces, and the mark's length."""
    for made in (UTF8, UTF32, UNICODE, BIG_UNICODE):
        if data.startswith(made.bom):
            return made, len(made.bom)
    return None
