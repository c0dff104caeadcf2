"""The .NET types of the lab, one module per family of namespaces. Importing this package declares them all."""

from winboot.lab.engine.types import (
    enums,  # first: the others name enums in their signatures
)
from winboot.lab.engine.types import (
    basics,
    blocks,
    collections,
    delegates,
    failures,
    net,
    numbers,
    psobject,
    regex,
    text,
    time,
)

__all__ = [
    "basics",
    "blocks",
    "collections",
    "delegates",
    "enums",
    "failures",
    "net",
    "numbers",
    "psobject",
    "regex",
    "text",
    "time",
]
