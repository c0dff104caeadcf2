"""Where a token begins and ends: PowerShell's two ways of reading, as compiled patterns and one scanner.

PowerShell reads the same characters differently in two modes. In command mode (`Write-Output 1+2`) almost
any run of characters is one word, in expression mode (`1+2`) it is numbers, names and operators. The parser
says which mode it is in each time it peeks; the scanner keeps the last token it found, so peeking twice
costs nothing.

Kinds of tokens (`Scanner.kind`):

    ( ) { } [ ] $( @( @{ , ; . .. :: : + - * / % ++ -- ! | || & &&      punctuation, named as written
    nl eof unknown                                                   line end, end of text, a stray character
    var splat         `value` is the variable's path
    num               `value` is (number, type name)
    str here          a text without anything to expand; `value` is the text
    xstr xhere        a text to expand; `value` is a list of texts and pieces
    id                a simple name (expression mode)
    word              a bare word (command mode); `value` is its text
    xword             a bare word with something to expand; `value` is (text, list of texts and pieces)
    kw                a keyword (command mode); `value` in lower case
    op                an operator with a dash (expression mode); `value` is its name
    param             `-Name` (`value` is name, has a colon)
    assign            = += -= *= /= %=
    redir redirin     `value` is (stream, append, merge into or None)
    label             `:name`; `value` is the name

More than 800 lines: one scanner holds the state of both ways of reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from winboot_lab.language.messages import MESSAGES
from winboot_lab.language.syntax import ParseError, Source

# ----------------------------------------------------------------------------------------------------
# Characters

SPACE: Final = "\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SINGLE: Final = "'\u2018\u2019\u201a\u201b"
_DOUBLE: Final = '"\u201c\u201d\u201e'
_DASH: Final = "\\-\u2013\u2014\u2015"
SINGLE_QUOTES: Final = frozenset(_SINGLE)
DOUBLE_QUOTES: Final = frozenset(_DOUBLE)
DASHES: Final = frozenset("-\u2013\u2014\u2015")
END: Final = "\0"
_SPACES = frozenset(char for char in map(chr, range(0x3001)) if re.match(f"[{SPACE}]", char))
# A character that ends a bare word, whatever came before it.
WORD_ENDS: Final = _SPACES | frozenset("\r\n\0&(),;{}|")
_NUMBER_ENDS = WORD_ENDS | DASHES | frozenset("!#%*+./<=>]")
_SKIPPED = _SPACES | frozenset("#<`")
# After `$name` in command mode these go on with the token as a variable; anything else makes it a bare word.
_VARIABLE_ENDS = WORD_ENDS | frozenset(".[=")

_SKIP = re.compile(rf"(?:[{SPACE}]+|`(?:\r\n?|\n|[{SPACE}]+)|#[^\r\n]*|<#(?s:.*?)#>)*")
_SKIP_LINES = re.compile(rf"(?:[{SPACE}\r\n]+|`(?:\r\n?|\n|[{SPACE}]+)|#[^\r\n]*|<#(?s:.*?)#>)*")
_SKIP_ENDS = re.compile(rf"(?:[{SPACE}\r\n;]+|`(?:\r\n?|\n|[{SPACE}]+)|#[^\r\n]*|<#(?s:.*?)#>)*")
_NAME = re.compile(r"\w+")
SIMPLE_NAME: Final = re.compile(r"[^\W\d]\w*")
_PLAIN_WORD = re.compile(rf"[^{SPACE}\r\n\0&(),;{{}}|`${_SINGLE}{_DOUBLE}]+")
_VARIABLE = re.compile(r"\$(?:[$?^]|[\w:](?:[\w?]|:(?!:))*)")
_SPLAT = re.compile(r"@(?:[$?^]|[\w:](?:[\w?]|:(?!:))*)")
_BRACED_VARIABLE = re.compile(rf"\$\{{([^`{{}}{_DOUBLE}\0]+)\}}")
_SINGLE_QUOTED = re.compile(rf"[{_SINGLE}]([^{_SINGLE}\0]*)[{_SINGLE}](?![{_SINGLE}])")
_SINGLE_TEXT = re.compile(rf"[^{_SINGLE}\0]+")
_DOUBLE_QUOTED = re.compile(rf"[{_DOUBLE}]([^{_DOUBLE}`$\0]*)[{_DOUBLE}](?![{_DOUBLE}])")
_DOUBLE_TEXT = re.compile(rf"[^{_DOUBLE}`$\0]+")
_HERE_TEXT = re.compile(r"[^\r\n`$\0]+")
_HERE_HEADER = re.compile(rf"[{SPACE}]*(\r\n?|\n)?")
_HERE_FALSE_HEADER = re.compile(r"[^\r\n\0]*")
_SUBEXPRESSION_TEXT = re.compile(rf"[^()`{_DOUBLE}\0]+")
_NUMBER = re.compile(
    r"(?:0[xX](?P<hex>[0-9a-fA-F]+)"
    r"|(?P<digits>(?:[0-9]+(?P<point>\.(?!\.)[0-9]*)?|(?P<bare>\.[0-9]+))"
    r"(?P<exponent>[eE][+\-\u2013\u2014\u2015]?[0-9]+)?))"
    r"(?P<suffix>[lLdD]?)(?P<scale>(?:[kKmMgGtTpP][bB])?)"
)
_PARAMETER = re.compile(rf"[{_DASH}]([^{SPACE}\r\n\0{{}}();,|&.\[:{_SINGLE}{_DOUBLE}]*)(:?)")
_DASH_WORD = re.compile(rf"[{_DASH}]([A-Za-z]*)")
_REDIRECTION = re.compile(r"([1-6*]?)(>>?)(?:&([12]))?")
_LABEL = re.compile(r":([^\W\d]\w*)")
_TYPE_NAME = re.compile(r"[^\W\d](?:[\w.`+#\\])*")
_VERBATIM = re.compile(rf"(?:[{_DOUBLE}][^{_DOUBLE}\r\n\0]*[{_DOUBLE}]?|&(?!&)|[^{_DOUBLE}|&\r\n\0])*")
# Numbers as newer PowerShells write them; in 5.1 they would be the names of commands.
NEWER_NUMBER: Final = re.compile(
    r"(?:0[bB][01]+|0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:(?:u[lsy]?|[ysn])(?:[kmgtp]b)?|(?<=[bB][01])[01]*(?:[ldusyn]|u[lsy])?(?:[kmgtp]b)?)$",
    re.IGNORECASE,
)

_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SCALES = {"k": 10, "m": 20, "g": 30, "t": 40, "p": 50}

KEYWORDS: Final = frozenset(
    [
        "begin",
        "break",
        "catch",
        "class",
        "configuration",
        "continue",
        "data",
        "define",
        "do",
        "dynamicparam",
        "else",
        "elseif",
        "end",
        "enum",
        "exit",
        "filter",
        "finally",
        "for",
        "foreach",
        "from",
        "function",
        "if",
        "in",
        "param",
        "parallel",
        "process",
        "return",
        "sequence",
        "switch",
        "throw",
        "trap",
        "try",
        "until",
        "using",
        "var",
        "while",
        "workflow",
    ]
)

# ----------------------------------------------------------------------------------------------------
# Operators

_COMPARISONS = [
    "eq",
    "ne",
    "ge",
    "gt",
    "le",
    "lt",
    "like",
    "notlike",
    "match",
    "notmatch",
    "contains",
    "notcontains",
    "in",
    "notin",
    "replace",
    "split",
]
# Operators as written (after the dash, lower case) and the name in the tree.
DASH_OPERATORS: Final[dict[str, str]] = {
    **{word: "i" + word for word in _COMPARISONS},
    **{"i" + word: "i" + word for word in _COMPARISONS},
    **{"c" + word: "c" + word for word in _COMPARISONS},
    **{
        word: word
        for word in [
            "and",
            "or",
            "xor",
            "band",
            "bor",
            "bxor",
            "shl",
            "shr",
            "f",
            "is",
            "isnot",
            "as",
            "join",
            "not",
            "bnot",
        ]
    },
}
UNARY_DASH: Final = frozenset(["not", "bnot", "join", "isplit", "csplit"])
PRECEDENCE: Final[dict[str, int]] = {
    **dict.fromkeys(["and", "or", "xor"], 1),
    **dict.fromkeys(["band", "bor", "bxor"], 2),
    **{name: 5 for name in DASH_OPERATORS.values() if name not in {"not", "bnot"}},
    **dict.fromkeys(["and", "or", "xor"], 1),
    **dict.fromkeys(["band", "bor", "bxor"], 2),
    **dict.fromkeys(["+", "-"], 9),
    **dict.fromkeys(["*", "/", "%"], 10),
    "f": 12,
    "..": 13,
}

# ----------------------------------------------------------------------------------------------------
# The scanner

EXPRESSION: Final = 0
COMMAND: Final = 1
EITHER: Final = 2
OPERAND: Final = 3  # expression mode where a sign belongs to the number behind it

_PUNCTUATION = {char: char for char in "(){};,]"} | {"\n": "nl"}


class VariablePiece(NamedTuple):
    """`$name` or `${name}` in a text to expand, not yet parsed."""

    start: int
    end: int
    path: str


class SubExpressionPiece(NamedTuple):
    """`$( … )` in a text to expand, not yet parsed.

    `dropped` are offsets of characters that are not part of the code: the first of each doubled quote.
    """

    start: int
    end: int
    dropped: tuple[int, ...]


Piece = str | VariablePiece | SubExpressionPiece


class Scanner:
    """Reads one token at a time from `pos`, in the mode the caller asks for."""

    __slots__ = (
        "_at",
        "_mode",
        "_reported",
        "end",
        "errors",
        "kind",
        "pos",
        "requires",
        "size",
        "source",
        "start",
        "text",
        "value",
    )

    def __init__(self, source: Source, text: str | None = None) -> None:
        """Scan `source`, or only the beginning of it given as `text`."""
        self.source = source
        text = source.text if text is None else text
        self.size = len(text)
        # One more character than the script has, so that looking at the next one needs no test.
        self.text = text + END
        self.pos = 0
        self.kind = ""
        self.start = self.end = 0
        self.value: Any = None
        self.errors: list[ParseError] = []
        self.requires: list[tuple[int, int]] = []
        self._reported: set[tuple[str, int]] = set()
        self._at = -1
        self._mode = -1

    # -- errors ----------------------------------------------------------------------------------------

    def report(self, error_id: str, offset: int, *arguments: object) -> None:
        """Note a complaint, once for each place: a token may be scanned twice."""
        if (error_id, offset) in self._reported:
            return
        self._reported.add((error_id, offset))
        line, column = self.source.position(offset)
        message = MESSAGES[error_id] % arguments if arguments else MESSAGES[error_id]
        self.errors.append(ParseError(error_id, message, line, column, offset))

    # -- moving ----------------------------------------------------------------------------------------

    def peek(self, mode: int) -> str:
        """The kind of the next token in this mode; its places and value are in the attributes."""
        if self._at == self.pos and (self._mode == mode or self._mode == EITHER):
            return self.kind
        return self._scan(mode)

    def take(self) -> int:
        """Step over the token last peeked at; gives where it ended."""
        self.pos = self.end
        return self.end

    def token_text(self) -> str:
        """The token last peeked at, as written."""
        return self.text[self.start : self.end]

    def skip_newlines(self) -> None:
        """Step over line ends, spaces and comments."""
        self._skip_with(_SKIP_LINES, "\r\n")

    def skip_terminators(self) -> None:
        """Step over line ends, semicolons, spaces and comments."""
        self._skip_with(_SKIP_ENDS, "\r\n;")

    def _skip_with(self, pattern: re.Pattern[str], extra: str) -> None:
        char = self.text[self.pos]
        if char in _SKIPPED or char in extra:
            start = self.pos
            match = pattern.match(self.text, start)
            self.pos = self._skipped(start, match.end() if match else start)

    def _skipped(self, start: int, end: int) -> int:
        """Look at what was stepped over: #requires lines, an unclosed comment."""
        end = min(end, self.size)
        if "#" in self.text[start:end]:
            self._note_requires(start, end)
        if self.text.startswith("<#", end):
            self.report("MissingTerminatorMultiLineComment", end)
            return self.size
        return end

    def _note_requires(self, start: int, end: int) -> None:
        for match in re.finditer(r"#requires(?=[ \t])[^\r\n\0]*", self.text[start:end], re.IGNORECASE):
            place = (start + match.start(), start + match.end())
            if place not in self.requires:
                self.requires.append(place)

    def _scan(self, mode: int) -> str:
        text = self.text
        at = self._at = self.pos
        char = text[at]
        if char in _SKIPPED:
            match = _SKIP.match(text, at)
            at = self._skipped(at, match.end() if match else at)
            char = text[at]
        self.start = at
        kind = _PUNCTUATION.get(char)
        if kind is not None:
            self._mode = EITHER
            self.kind = kind
            self.end = at + 1
            return kind
        self._mode = mode
        handler = _HANDLERS.get(char)
        if handler is not None:
            kind = handler(self, at, mode)
        elif char.isalpha() or char == "_":
            kind = self._name(at, mode)
        else:
            kind = self._word(at)
        self.kind = kind
        return kind

    # -- names and words -------------------------------------------------------------------------------

    def _name(self, at: int, mode: int) -> str:
        if mode == COMMAND:
            return self._word(at)
        match = _NAME.match(self.text, at)
        self.end = match.end() if match else at + 1
        self.value = self.text[at : self.end]
        return "id"

    def _word(self, at: int) -> str:
        text = self.text
        match = _PLAIN_WORD.match(text, at)
        if match is not None and text[match.end()] in WORD_ENDS:
            self.end = match.end()
            word = self.value = match[0]
            if len(word) <= 13 and word.lower() in KEYWORDS:
                self.value = word.lower()
                return "kw"
            return "word"
        return self._long_word(at)

    def _long_word(self, start: int) -> str:
        """A bare word with quotes, escapes or `$` in it."""
        text = self.text
        pieces: list[Piece] = []
        plain: list[str] = []
        at = start
        while at == start or text[at] not in WORD_ENDS:
            char = text[at]
            match = _PLAIN_WORD.match(text, at)
            if match is not None:
                at = match.end()
                pieces.append(match[0])
                plain.append(match[0])
            elif char == "`":
                escaped, at = self._escape(at)
                pieces.append(escaped)
                plain.append(escaped)
            elif char in SINGLE_QUOTES:
                value, at = self._single_quoted(at)
                pieces.append(value)
                plain.append(value)
            elif char in DOUBLE_QUOTES:
                inner, after = self._double_quoted(at + 1)
                pieces.extend(inner)
                plain.append(self._as_written(inner))
                at = after
            elif char == "$":
                dollar, after = self._dollar(at, False)
                pieces.append(dollar)
                plain.append(text[at:after])
                at = after
            else:
                # Only the first character of a word may be one that ends words: a stray NUL.
                pieces.append(char)
                plain.append(char)
                at += 1
            if at >= self.size:
                at = self.size
                break
        self.end = at
        if all(isinstance(piece, str) for piece in pieces):
            self.value = "".join(plain)
            return "word"
        self.value = ("".join(plain), pieces)
        return "xword"

    def _as_written(self, pieces: list[Piece]) -> str:
        return "".join(p if isinstance(p, str) else self.text[p.start : p.end] for p in pieces)

    # -- strings ---------------------------------------------------------------------------------------

    def _escape(self, at: int) -> tuple[str, int]:
        """The character that a backtick at `at` writes, and where the text continues."""
        char = self.text[at + 1] if at < self.size else END
        if char == END:
            return "`", at + 1
        if char == "e" or (char == "u" and self.text[at + 2] == "{"):
            self.report("NewerEscapeNotSupported", at, "e" if char == "e" else "u{}")
        return _ESCAPES.get(char, char), at + 2

    def _single_string(self, at: int, mode: int) -> str:
        self.value, self.end = self._single_quoted(at)
        self._mode = EITHER
        return "str"

    def _single_quoted(self, start: int) -> tuple[str, int]:
        text = self.text
        match = _SINGLE_QUOTED.match(text, start)
        if match is not None:
            return match[1], match.end()
        parts: list[str] = []
        at = start + 1
        while True:
            match = _SINGLE_TEXT.match(text, at)
            if match is not None:
                parts.append(match[0])
                at = match.end()
            char = text[at]
            if char == END:
                if at >= self.size:
                    self.report("TerminatorExpectedAtEndOfString", start, "'")
                    return "".join(parts), self.size
                parts.append(char)
                at += 1
            elif text[at + 1] in SINGLE_QUOTES:
                parts.append(text[at + 1])
                at += 2
            else:
                return "".join(parts), at + 1

    def _double_string(self, at: int, mode: int) -> str:
        self._mode = EITHER
        match = _DOUBLE_QUOTED.match(self.text, at)
        if match is not None:
            self.value = match[1]
            self.end = match.end()
            return "str"
        pieces, self.end = self._double_quoted(at + 1)
        return self._string_of(pieces, "str", "xstr")

    def _string_of(self, pieces: list[Piece], plain: str, expandable: str) -> str:
        texts = [piece for piece in pieces if isinstance(piece, str)]
        if len(texts) == len(pieces):
            self.value = "".join(texts)
            return plain
        self.value = pieces
        return expandable

    def _double_quoted(self, start: int) -> tuple[list[Piece], int]:
        """The pieces of a text whose opening quote is before `start`, and where it ends."""
        text = self.text
        pieces: list[Piece] = []
        at = start
        while True:
            match = _DOUBLE_TEXT.match(text, at)
            if match is not None:
                pieces.append(match[0])
                at = match.end()
            char = text[at]
            if char == "$":
                piece, at = self._dollar(at, False)
                pieces.append(piece)
            elif char == "`":
                escaped, at = self._escape(at)
                pieces.append(escaped)
            elif char in DOUBLE_QUOTES:
                if text[at + 1] not in DOUBLE_QUOTES:
                    return pieces, at + 1
                pieces.append(text[at + 1])
                at += 2
            elif at >= self.size:
                self.report("TerminatorExpectedAtEndOfString", start - 1, '"')
                return pieces, self.size
            else:
                pieces.append(char)
                at += 1

    def _dollar(self, at: int, here: bool) -> tuple[Piece, int]:
        """What `$` begins inside a text: a sub-expression, a variable, or only itself."""
        text = self.text
        following = text[at + 1]
        if following == "(":
            piece = self._subexpression(at, here)
            return piece, piece.end
        if following == "{":
            path, end = self._braced_variable(at, True)
            return VariablePiece(at, end, path), end
        match = _VARIABLE.match(text, at)
        if match is None:
            return "$", at + 1
        path = match[0][1:]
        self._check_path(path, at)
        return VariablePiece(at, match.end(), path), match.end()

    def _subexpression(self, start: int, here: bool) -> SubExpressionPiece:
        """Find the matching parenthesis by counting alone, as PowerShell does."""
        text = self.text
        depth = 1
        at = start + 2
        dropped: list[int] = []
        while True:
            match = _SUBEXPRESSION_TEXT.match(text, at)
            if match is not None:
                at = match.end()
            char = text[at]
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    return SubExpressionPiece(start, at + 1, tuple(dropped))
            elif char == END:
                if at >= self.size:
                    self.report("IncompleteDollarSubexpressionReference", start)
                    return SubExpressionPiece(start, self.size, tuple(dropped))
            elif not here and text[at + 1] in DOUBLE_QUOTES:
                dropped.append(at)
                at += 1
            at += 1

    def _at_sign(self, at: int, mode: int) -> str:
        text = self.text
        following = text[at + 1]
        self._mode = EITHER
        if following == "(" or following == "{":
            self.end = at + 2
            return "@" + following
        if following in SINGLE_QUOTES:
            return self._here_string(at, "'", SINGLE_QUOTES)
        if following in DOUBLE_QUOTES:
            return self._here_string(at, '"', DOUBLE_QUOTES)
        match = _SPLAT.match(text, at)
        if match is not None:
            self.end = match.end()
            self.value = match[0][1:]
            self._check_path(self.value, at)
            return "splat"
        self.report("UnrecognizedToken", at)
        self.end = at + 1
        return "unknown"

    def _here_string(self, start: int, quote: str, quotes: frozenset[str]) -> str:
        text = self.text
        header = _HERE_HEADER.match(text, start + 2)
        at = header.end() if header else start + 2
        kinds = ("here", "here") if quote == "'" else ("here", "xhere")
        if header is None or header[1] is None:
            return self._bad_here_string(start, at, quote)
        pieces: list[Piece] = []
        false_footer = -1
        line_end = ""
        while True:
            # Here `at` is at the beginning of a line, and `line_end` is what ended the line before.
            if text[at] in quotes and text[at + 1] == "@":
                self.end = at + 2
                return self._string_of(pieces, *kinds)
            if line_end:
                pieces.append(line_end)
            if false_footer < 0:
                match = _SKIP_SPACES.match(text, at)
                inner = match.end() if match else at
                if inner > at and text[inner] in quotes and text[inner + 1] == "@":
                    false_footer = inner
            at = self._here_line(at, quote, pieces)
            if at >= self.size:
                if false_footer >= 0:
                    self.report("WhitespaceBeforeHereStringFooter", false_footer)
                else:
                    self.report("TerminatorExpectedAtEndOfString", start, quote + "@")
                self.end = self.size
                return self._string_of(pieces, *kinds)
            line_end = "\r\n" if text.startswith("\r\n", at) else text[at]
            at += len(line_end)

    def _here_line(self, at: int, quote: str, pieces: list[Piece]) -> int:
        """Collect one line of a here-string (a sub-expression may make it several); gives where it ends."""
        text = self.text
        while True:
            match = _HERE_TEXT.match(text, at) if quote == '"' else _LINE.match(text, at)
            if match is not None:
                pieces.append(match[0])
                at = match.end()
            char = text[at]
            if char in "\r\n" or at >= self.size:
                return at
            if char == "$":
                piece, at = self._dollar(at, True)
                pieces.append(piece)
            elif char == "`":
                escaped, at = self._escape(at)
                pieces.append(escaped)
            else:
                pieces.append(char)
                at += 1

    def _bad_here_string(self, start: int, at: int, quote: str) -> str:
        """Something follows the header: give up on this line, as PowerShell does."""
        self.value = ""
        if at >= self.size:
            self.report("TerminatorExpectedAtEndOfString", start, quote + "@")
            self.end = self.size
            return "here"
        self.report("UnexpectedCharactersAfterHereStringHeader", at)
        match = _HERE_FALSE_HEADER.match(self.text, at)
        line = match[0] if match else ""
        footer = line.find(quote + "@")
        self.end = min(at + (footer + 2 if footer >= 0 else len(line)), self.size)
        return "here"

    # -- variables -------------------------------------------------------------------------------------

    def _variable(self, at: int, mode: int) -> str:
        text = self.text
        following = text[at + 1]
        if following == "(":
            self._mode = EITHER
            self.end = at + 2
            return "$("
        if following == "{":
            path, end = self._braced_variable(at, False)
            if mode == COMMAND and text[end] not in WORD_ENDS and text[end] not in ".[":
                return self._long_word(at)
            self.value, self.end = path, end
            return "var"
        match = _VARIABLE.match(text, at)
        if match is None:
            return self._long_word(at)
        end = match.end()
        if mode == COMMAND and text[end] not in WORD_ENDS:
            special = text[at + 1] in "$?^"
            if special or not (text[end] in _VARIABLE_ENDS or text.startswith("::", end)):
                return self._long_word(at)
        self.value = match[0][1:]
        self.end = end
        self._check_path(self.value, at)
        return "var"

    def _check_path(self, path: str, at: int) -> None:
        if path.endswith(":"):
            scope = path[:-1].lower() in {"global", "local", "script", "private"}
            self.report("InvalidVariableReference" if scope else "InvalidVariableReferenceWithDrive", at)

    def _braced_variable(self, start: int, in_string: bool) -> tuple[str, int]:
        text = self.text
        match = _BRACED_VARIABLE.match(text, start)
        if match is not None:
            return match[1], match.end()
        name: list[str] = []
        at = start + 2
        while text[at] != "}":
            char = text[at]
            if char == END and at >= self.size:
                self.report("IncompleteDollarVariableReference", start + 1)
                return "".join(name) or ":Error:", self.size
            if char == "`":
                char, at = self._escape(at)
                name.append(char)
                continue
            if char == "{":
                self.report("OpenBraceNeedsToBeBackTickedInVariableName", at + 1)
            if in_string and char in DOUBLE_QUOTES and text[at + 1] in DOUBLE_QUOTES:
                at += 1
            name.append(text[at])
            at += 1
        if not name:
            self.report("EmptyVariableReference", at)
            return ":Error:", at + 1
        return "".join(name), at + 1

    # -- numbers ---------------------------------------------------------------------------------------

    def _number(self, at: int, mode: int, sign: str = "") -> str:
        text = self.text
        begin = at + len(sign)
        match = _NUMBER.match(text, begin)
        if match is None:
            return self._word(at)
        following = text[match.end()]
        ends = WORD_ENDS if mode == COMMAND else _NUMBER_ENDS
        if following not in ends:
            return self._word(at)
        number = number_value(match, sign == "-")
        if number is None:
            if mode == COMMAND:
                return self._word(at)
            self.report("BadNumericConstant", at, text[at : match.end()])
            number = (0, "Int32")
        self.value = number
        self.end = match.end()
        return "num"

    def _digit(self, at: int, mode: int) -> str:
        text = self.text
        if text[at + 1] == ">" and text[at] in "123456":
            return self._scan_redirection(at, mode)
        return self._number(at, mode)

    # -- operators and punctuation ---------------------------------------------------------------------

    def _operator(self, at: int, length: int, kind: str, mode: int) -> str:
        """An operator in expression mode; in command mode only when nothing is glued to it."""
        if mode == COMMAND and self.text[at + length] not in WORD_ENDS:
            return self._word(at)
        self.end = at + length
        self.value = self.text[at : self.end]
        return kind

    def _arithmetic(self, at: int, mode: int) -> str:
        """One of + * / % with what may follow it."""
        text = self.text
        char = text[at]
        following = text[at + 1]
        if following == "=":
            return self._operator(at, 2, "assign", mode)
        if char == "*" and following == ">":
            return self._scan_redirection(at, mode)
        if char == "+":
            if following == "+":
                return self._operator(at, 2, "++", mode)
            if mode == OPERAND and (following.isdecimal() or following == "."):
                return self._number(at, mode, "+")
        return self._operator(at, 1, char, mode)

    def _dash(self, at: int, mode: int) -> str:
        following = self.text[at + 1]
        if following in DASHES:
            return self._operator(at, 2, "--", mode)
        if following == "=":
            return self._operator(at, 2, "assign", mode)
        if following.isalpha() or following == "_" or following == "?":
            return self._parameter(at) if mode == COMMAND else self._dash_word(at)
        if mode == OPERAND and (following.isdecimal() or following == "."):
            return self._number(at, mode, "-")
        return self._operator(at, 1, "-", mode)

    def _parameter(self, at: int) -> str:
        match = _PARAMETER.match(self.text, at)
        end = match.end() if match else at + 1
        quoted = self.text[end] in SINGLE_QUOTES or self.text[end] in DOUBLE_QUOTES
        if match is None or (quoted and match[2] != ":"):
            return self._word(at)
        self.end = end
        self.value = (match[1], match[2] == ":")
        return "param"

    def _dash_word(self, at: int) -> str:
        match = _DASH_WORD.match(self.text, at)
        word = match[1] if match else ""
        self.end = at + 1 + len(word)
        if not word:
            self.value = "-"
            return "-"
        operator = DASH_OPERATORS.get(word.lower())
        if operator is not None:
            self.value = operator
            return "op"
        self.value = (word, False)
        return "param"

    def _equals(self, at: int, mode: int) -> str:
        return self._operator(at, 1, "assign", mode)

    def _bang(self, at: int, mode: int) -> str:
        following = self.text[at + 1]
        if mode != COMMAND and (following.isalpha() or following == "_"):
            return self._word(at)
        return self._operator(at, 1, "!", mode)

    def _bracket(self, at: int, mode: int) -> str:
        return self._operator(at, 1, "[", mode)

    def _dot(self, at: int, mode: int) -> str:
        following = self.text[at + 1]
        if following == ".":
            return self._operator(at, 2, "..", mode)
        if following in "0123456789":
            return self._number(at, mode)
        if mode == COMMAND and following not in WORD_ENDS and following not in "$\"'":
            return self._word(at)
        self.end = at + 1
        return "."

    def _colon(self, at: int, mode: int) -> str:
        if self.text[at + 1] == ":":
            return self._operator(at, 2, "::", mode)
        if mode != COMMAND:
            self.end = at + 1
            return ":"
        match = _LABEL.match(self.text, at)
        if match is None or self.text[match.end()] not in WORD_ENDS:
            return self._word(at)
        self.end = match.end()
        self.value = match[1]
        return "label"

    def _ampersand(self, at: int, mode: int) -> str:
        self._mode = EITHER
        double = self.text[at + 1] == self.text[at]
        self.end = at + (2 if double else 1)
        return self.text[at : self.end]

    def _less(self, at: int, mode: int) -> str:
        self.end = at + 1
        return "redirin"

    def _scan_redirection(self, at: int, mode: int) -> str:
        match = _REDIRECTION.match(self.text, at)
        stream, arrows, into = match.groups() if match else ("", ">", None)
        # `2>&3` is a redirection to a file, followed by an ampersand; `>&1` and `>>&1` are no merges either.
        merge = into is not None and arrows == ">" and stream != "" and not (stream == "*" and into != "1")
        self.end = at + len(stream) + len(arrows) + (2 if merge else 0)
        number = 0 if stream == "*" else int(stream or 1)
        self.value = (number, arrows == ">>", int(into) if merge and into else None)
        self._mode = EITHER
        return "redir"

    def _carriage_return(self, at: int, mode: int) -> str:
        self._mode = EITHER
        self.end = at + (2 if self.text[at + 1] == "\n" else 1)
        return "nl"

    def _nul(self, at: int, mode: int) -> str:
        if at < self.size:
            return self._long_word(at)
        self._mode = EITHER
        self.end = at
        return "eof"

    def _backtick(self, at: int, mode: int) -> str:
        if at + 1 >= self.size:
            self.report("IncompleteString", self.size)
            self._mode = EITHER
            self.start = self.end = self.size
            return "eof"
        return self._word(at)

    # -- what only some places read --------------------------------------------------------------------

    def take_verbatim(self) -> tuple[str, int, int] | None:
        """The rest of the line after `--%`, as it is; None when there is nothing."""
        match = _SKIP_SPACES.match(self.text, self.pos)
        start = match.end() if match else self.pos
        match = _VERBATIM.match(self.text, start)
        end = min(match.end() if match else start, self.size)
        self.pos = end
        return (self.text[start:end], start, end) if end > start else None

    def simple_name(self) -> tuple[str, int, int] | None:
        """Step over a plain name at the position (after spaces and comments) and return it, or None."""
        text = self.text
        at = self.pos
        if text[at] in _SKIPPED:
            match = _SKIP.match(text, at)
            at = self._skipped(at, match.end() if match else at)
        name = SIMPLE_NAME.match(text, at)
        if name is None:
            return None
        self.pos = name.end()
        return name[0], at, name.end()

    def type_name(self) -> tuple[str, int, int] | None:
        """Step over a type's name (dots, backticks and pluses included) and return it, or None."""
        text = self.text
        at = self.pos
        if text[at] in _SKIPPED:
            match = _SKIP.match(text, at)
            at = self._skipped(at, match.end() if match else at)
        name = _TYPE_NAME.match(text, at)
        if name is None:
            return None
        self.pos = name.end()
        return name[0], at, name.end()


_SKIP_SPACES = re.compile(rf"[{SPACE}]*")
_LINE = re.compile(r"[^\r\n\0]+")

_HANDLERS: dict[str, Callable[[Scanner, int, int], str]] = {
    "$": Scanner._variable,
    "@": Scanner._at_sign,
    "=": Scanner._equals,
    "!": Scanner._bang,
    "[": Scanner._bracket,
    ".": Scanner._dot,
    ":": Scanner._colon,
    "&": Scanner._ampersand,
    "|": Scanner._ampersand,
    "<": Scanner._less,
    ">": Scanner._scan_redirection,
    "\r": Scanner._carriage_return,
    "`": Scanner._backtick,
    END: Scanner._nul,
    **dict.fromkeys(_SINGLE, Scanner._single_string),
    **dict.fromkeys(_DOUBLE, Scanner._double_string),
    **dict.fromkeys("0123456789", Scanner._digit),
    **dict.fromkeys("+*/%", Scanner._arithmetic),
    **dict.fromkeys(DASHES, Scanner._dash),
}


# ----------------------------------------------------------------------------------------------------
# The value of a number

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_DECIMAL_LIMIT = 79228162514264337593543950335


def number_value(match: re.Match[str], negative: bool) -> tuple[object, str] | None:
    """The value and .NET type of a number, None when no type can hold it."""
    suffix = match["suffix"].lower()
    scale = 1 << _SCALES.get(match["scale"][:1].lower(), 0)
    if match["hex"] is not None:
        return _hexadecimal(match["hex"], suffix, -scale if negative else scale)
    digits = match["digits"].translate(_PLAIN_DASH)
    real = match["point"] is not None or match["bare"] is not None or match["exponent"] is not None
    if real:
        return _real(digits, suffix, scale, negative)
    return _integer(int(digits) * (-scale if negative else scale), suffix)


_PLAIN_DASH = str.maketrans(dict.fromkeys("\u2013\u2014\u2015", "-"))


def _hexadecimal(digits: str, suffix: str, scale: int) -> tuple[object, str] | None:
    value = int(digits, 16)
    length = len(digits)
    if length == 8 and not suffix and value >= 2**31:
        value -= 2**32
    elif length == 16 and value >= 2**63:
        value -= 2**64
    if length > 16:
        return None
    value *= scale
    if (suffix == "l" or length == 16) and value in _INT64:
        return value, "Int64"
    return _fitting(value) if not suffix else None


def _fitting(value: int) -> tuple[object, str] | None:
    if value in _INT32:
        return value, "Int32"
    if value in _INT64:
        return value, "Int64"
    return None


def _integer(value: int, suffix: str) -> tuple[object, str] | None:
    if suffix == "l":
        return (value, "Int64") if value in _INT64 else None
    if suffix == "d":
        return (Decimal(value), "Decimal") if abs(value) <= _DECIMAL_LIMIT else None
    fitting = _fitting(value)
    if fitting is not None:
        return fitting
    if abs(value) <= _DECIMAL_LIMIT:
        return Decimal(value), "Decimal"
    try:
        return float(value), "Double"
    except OverflowError:
        return None


def _real(digits: str, suffix: str, scale: int, negative: bool) -> tuple[object, str] | None:
    sign = -1 if negative else 1
    if suffix == "d":
        number = Decimal(digits) * scale * sign
        return (number, "Decimal") if abs(number) <= _DECIMAL_LIMIT else None
    value = float(digits) * scale
    if suffix == "l":
        # Rounded half to even, as a conversion to Int64 does.
        whole = round(value) if abs(value) < 2.0**64 else 2**64
        return (whole * sign, "Int64") if whole * sign in _INT64 else None
    return -value if negative else value, "Double"
