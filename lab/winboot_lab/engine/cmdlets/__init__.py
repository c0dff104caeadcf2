"""The cmdlets of the lab, by family. Importing this package declares them all."""

from winboot_lab.engine.cmdlets import (
    add_type,
    contents,
    items,
    looping,
    making,
    out_file,
    output,
    paths,
    properties,
    scripting,
    security,
    selecting,
    text,
    time,
)

__all__ = [
    "add_type",
    "contents",
    "items",
    "looping",
    "making",
    "out_file",
    "output",
    "paths",
    "properties",
    "scripting",
    "security",
    "selecting",
    "text",
    "time",
]
