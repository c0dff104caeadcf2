"""console.*: the standard streams of the process behind a session."""

from __future__ import annotations

from winboot_lab.windows.call import primitive
from winboot_lab.windows.door import Plain
from winboot_lab.windows.failure import failure
from winboot_lab.windows.session import Session

_NO_DATA = 0x800700E8 - (
    1 << 32
)  # ERROR_NO_DATA, what WriteFile says of a pipe whose reader is gone (winerror.h)
Objects = tuple[Plain, ...]


@primitive("console.read")
def console_read(session: Session, count: int) -> Objects:
    """At most `count` bytes of standard input; empty at its end. A session without a console has none."""
    return (session.standard.read(count),)


@primitive("console.write")
def console_write(session: Session, content: bytes, error: bool = False) -> Objects:
    """Write to standard output, or to standard error. A session without a console drops it."""
    try:
        (session.standard.error if error else session.standard.output)(content)
    except BrokenPipeError as gone:
        raise failure("System.IO.IOException", "The pipe is being closed.", hresult=_NO_DATA) from gone
    return ()
