"""The cmdlets of the lab, by family. Importing this package declares them all."""

from winboot.lab.engine.cmdlets import (
    add_type,
    contents,
    converting,
    items,
    locations,
    looping,
    making,
    moving,
    out_file,
    output,
    paths,
    properties,
    scripting,
    selecting,
    text,
    variables,
)

__all__ = [
    "add_type",
    "contents",
    "converting",
    "items",
    "locations",
    "looping",
    "making",
    "moving",
    "out_file",
    "output",
    "paths",
    "properties",
    "scripting",
    "selecting",
    "text",
    "variables",
]
