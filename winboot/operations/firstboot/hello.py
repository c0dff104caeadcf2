"""What a machine says of itself, and what winboot answers to a machine that may not come in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from winboot.base.errors import InvalidInput

_LONGEST: Final = 256
_LONGEST_DOCUMENT: Final = 16384
_MOST_ADDRESSES: Final = 64
_UUID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True)
class Hello:
    """What a machine says of itself. `peer` is where its call came from, which it cannot choose; `document` is its cloud's
    signed word, empty without one."""

    uuid: str
    computer_name: str
    addresses: tuple[str, ...]
    host: str
    voucher: str
    peer: str
    document: str = ""

    @classmethod
    def read(cls, said: Any, peer: str) -> Hello:
        """Raises InvalidInput for anything else than a hello."""
        if not isinstance(said, dict):
            raise InvalidInput("a hello must be an object")
        words = {name: said.get(name, "") for name in ("uuid", "computer_name", "host", "voucher")}
        addresses, document = said.get("addresses", []), said.get("document", "")
        texts = [*words.values(), *(addresses if isinstance(addresses, list) else [None])]
        # A lone surrogate, which JSON may have, is not printable: no encoding takes it.
        if not all(isinstance(text, str) and len(text) <= _LONGEST and text.isprintable() for text in texts):
            raise InvalidInput("texts in a hello must be printable, of at most 256 characters")
        if not isinstance(document, str) or len(document) > _LONGEST_DOCUMENT or not document.isascii():
            raise InvalidInput(f"an identity document must have at most {_LONGEST_DOCUMENT} ASCII characters")
        # It is shown to people: letters, digits and hyphens alone.
        if len(addresses) > _MOST_ADDRESSES or not _UUID.fullmatch(words["uuid"]):
            raise InvalidInput("a hello must have the machine's SMBIOS UUID and at most 64 addresses")
        return cls(addresses=tuple(addresses), peer=peer, document=document, **words)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, by name; `wait` when asking again may help. `node` is the one that a caller without a proof wants to be."""

    id: str
    why: str
    wait: bool = False
    node: str = ""

    @property
    def head(self) -> str:
        """How its sentence begins: by its name."""
        return f"not let in ({self.id}): "

    @property
    def word(self) -> str:
        """The sentence of console, log and `winboot why`."""
        return self.head + self.why


def ready_word(node: str) -> str:
    """The sentence of a machine that has become its node."""
    return f"is the Ready node {node}"


@dataclass(frozen=True, slots=True)
class Done:
    """The machine is its Ready node already, as `word` says: an answer that was lost is given again, and nothing else."""

    node: str
    word: str
    ready_file: str
