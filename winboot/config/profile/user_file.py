"""A file that the profile names itself: winboot has no address and no hash of it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import Field, PlainValidator

from winboot.config.model import Model
from winboot.config.profile.values import Sha256, web_address
from winboot.config.source import Wrong, text_of

EXPECTED: Final = (
    "https://host/path/file, or a path that the node can read (D:\\folder\\file, \\\\server\\share\\file)"
)
_PATH: Final = re.compile(r"([A-Za-z]:|\\\\[A-Za-z0-9._-]+)(\\(?!\.{1,2}(\\|$))[^\\/:*?\"<>|\x00-\x1f]+)+")
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")


def _file_source(value: Any) -> str:
    text = text_of(value, EXPECTED)
    if text.startswith("/"):
        raise Wrong(f"{text!r} is a Linux path", expected=EXPECTED)
    if not _PATH.fullmatch(text):
        web_address(text, EXPECTED)
    if not _NAME.fullmatch(re.split(r"[/\\]", text)[-1]):
        raise Wrong(f"{text!r} does not end with a plain file name", expected=EXPECTED)
    return text


FileSource = Annotated[str, PlainValidator(_file_source)]


class UserFile(Model):
    """A file of yours: where the node takes it from, and its hash."""

    url: FileSource = Field(
        description="https://…, or a path that the node can read (D:\\… or \\\\server\\share\\…)"
    )
    sha256: Sha256 = Field(description="the file's hash")

    @property
    def file(self) -> str:
        """The file's own name."""
        return re.split(r"[/\\]", self.url)[-1]
