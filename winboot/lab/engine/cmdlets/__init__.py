"""The cmdlets of the lab, by family. Importing this package declares them all."""

from winboot.lab.engine.cmdlets import (
    converting,
    looping,
    making,
    out_file,
    output,
    scripting,
    selecting,
    text,
    variables,
)

__all__ = [
    "converting",
    "looping",
    "making",
    "out_file",
    "output",
    "scripting",
    "selecting",
    "text",
    "variables",
]
