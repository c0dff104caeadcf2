"""console.*: the standard streams of the process behind a session."""

from __future__ import annotations

from winboot_lab.windows.call import primitive
from winboot_lab.windows.door import Plain
from winboot_lab.windows.session import Session

Objects = tuple[Plain, ...]


@primitive("console.read")
def console_read(session: Session, count: int) -> Objects:
    """At most `count` bytes of standard input; empty at its end. A session without a console has none."""
    return (session.standard.read(count),)


@primitive("console.write")
def console_write(session: Session, content: bytes, error: bool = False) -> Objects:
    """Write to standard output, or to standard error. A session without a console drops it."""
    (session.standard.error if error else session.standard.output)(content)
    return ()
