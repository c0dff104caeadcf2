"""The cmdlets of the lab, by family. Importing this package declares them all."""

from winboot.lab.engine.cmdlets import (
    looping,
    out_file,
    output,
    scripting,
    text,
    variables,
)

__all__ = ["looping", "out_file", "output", "scripting", "text", "variables"]
