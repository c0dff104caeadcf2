"""The .NET types of the lab, one module per family of namespaces. Importing this package declares them all."""

from winboot.lab.engine.types import (
    enums,  # first: the others name enums in their signatures
)
from winboot.lab.engine.types import (
    basics,
    blocks,
    collections,
    crypto,
    delegates,
    environment,
    failures,
    files,
    net,
    numbers,
    paths,
    psobject,
    regex,
    secure,
    streams,
    text,
    time,
)

__all__ = [
    "basics",
    "blocks",
    "collections",
    "crypto",
    "delegates",
    "enums",
    "environment",
    "failures",
    "files",
    "net",
    "numbers",
    "paths",
    "psobject",
    "regex",
    "secure",
    "streams",
    "text",
    "time",
]
