"""System.IO streams, readers and writers: files through the machine's door, memory in Python."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    FileNotFoundException,
    IOException,
    NotSupportedException,
    ObjectDisposedException,
    declare_exception,
)
from winboot_lab.engine.formatting import dotnet_text, format_string
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.paths import full_path
from winboot_lab.engine.types.text import UTF8_BARE, Encoding, encoding_of_bom
from winboot_lab.engine.values import (
    IDISPOSABLE,
    ByteArray,
    EnumValue,
    Instance,
    Int64,
    Value,
    plain,
)

InvalidDataException = declare_exception("System.IO.InvalidDataException", IOException.__mro__[1])
InvalidDataException.default_message = "Found invalid data while decoding."


class Stream(Instance):
    """A stream of bytes. Subclasses say where they live; `runtime` comes with each call."""

    can_read = True
    can_write = True

    def __init__(self) -> None:
        self.position = 0
        self.closed = False

    def check(self) -> None:
        """Complain when the stream is closed."""
        if self.closed:
            raise ObjectDisposedException(None, "Cannot access a closed Stream.")

    def length(self, runtime: Runtime) -> int:
        raise NotImplementedError

    def read(self, runtime: Runtime, count: int) -> bytes:
        """At most `count` bytes from the position on; empty at the end."""
        raise NotImplementedError

    def write(self, runtime: Runtime, data: bytes) -> None:
        raise NotImplementedError

    def resize(self, runtime: Runtime, length: int) -> None:
        raise NotImplementedError

    def close(self, runtime: Runtime) -> None:
        self.closed = True


class MemoryStream(Stream):
    """System.IO.MemoryStream."""

    def __init__(self, data: bytes = b"", *, writable: bool = True) -> None:
        super().__init__()
        self.data = bytearray(data)
        self.can_write = writable

    def length(self, runtime: Runtime) -> int:
        return len(self.data)

    def read(self, runtime: Runtime, count: int) -> bytes:
        piece = bytes(self.data[self.position : self.position + count])
        self.position += len(piece)
        return piece

    def write(self, runtime: Runtime, data: bytes) -> None:
        if not self.can_write:
            raise NotSupportedException("Stream does not support writing.")
        self.data.extend(bytes(max(0, self.position - len(self.data))))
        self.data[self.position : self.position + len(data)] = data
        self.position += len(data)

    def resize(self, runtime: Runtime, length: int) -> None:
        del self.data[length:]
        self.data.extend(bytes(length - len(self.data)))
        self.position = min(self.position, length)


class FileStream(Stream):
    """System.IO.FileStream on a handle of the machine."""

    def __init__(self, handle: str, path: str, length: int, access: int, *, append: bool = False) -> None:
        super().__init__()
        self.handle = handle
        self.path = path
        self.can_read = bool(access & 1)
        self.can_write = bool(access & 2)
        self.position = length if append else 0

    def check(self) -> None:
        if self.closed:
            raise ObjectDisposedException(None, "Cannot access a closed file.")

    def length(self, runtime: Runtime) -> int:
        return int(ask_one(runtime, "file.handle-length", handle=self.handle))

    def read(self, runtime: Runtime, count: int) -> bytes:
        if not self.can_read:
            raise NotSupportedException("Stream does not support reading.")
        piece: bytes = ask_one(
            runtime, "file.handle-read", handle=self.handle, offset=self.position, count=count
        )
        self.position += len(piece)
        return piece

    def write(self, runtime: Runtime, data: bytes) -> None:
        if not self.can_write:
            raise NotSupportedException("Stream does not support writing.")
        ask(runtime, "file.handle-write", handle=self.handle, offset=self.position, content=data)
        self.position += len(data)

    def resize(self, runtime: Runtime, length: int) -> None:
        ask(runtime, "file.handle-resize", handle=self.handle, length=length)

    def close(self, runtime: Runtime) -> None:
        if not self.closed:
            ask(runtime, "file.close", handle=self.handle)
        self.closed = True


_MODES = {1: "CreateNew", 2: "Create", 3: "Open", 4: "OpenOrCreate", 5: "Truncate", 6: "Append"}
READ, WRITE, READ_WRITE = 1, 2, 3


def open_file(
    runtime: Runtime,
    path: str | None,
    mode: str,
    access: int | None = None,
    share: str = "Read",
    *,
    security: Any = None,
    delete_on_close: bool = False,
) -> FileStream:
    """Open a file of the machine as .NET's FileStream constructor does."""
    full = full_path(path)
    if access is None:
        access = WRITE if mode == "Append" else READ_WRITE
    if mode == "Append" and access != WRITE:
        raise ArgumentException("Append access can be requested only in write-only mode.")
    if mode in ("Create", "CreateNew", "Truncate", "Append") and not access & WRITE:
        raise ArgumentException(f"Combining FileMode: {mode} with FileAccess: Read is invalid.")
    extra = {"security": security} if security is not None else {}
    if delete_on_close:
        extra["delete_on_close"] = True
    try:
        opened = ask_one(
            runtime,
            "file.open",
            path=full,
            mode=mode,
            access={1: "Read", 2: "Write", 3: "ReadWrite"}[access],
            share=share,
            **extra,
        )
    except FileNotFoundException as missing:
        missing.file_name = full
        raise
    return FileStream(opened["handle"], full, opened["length"], access, append=mode == "Append")


def mode_name(value: EnumValue) -> str:
    """The FileMode's name."""
    return _MODES[value.number]


# -- Stream members

STREAM = dotnet("System.IO.Stream", kind="abstract", interfaces=[IDISPOSABLE])
MEMORY = dotnet("System.IO.MemoryStream", MemoryStream, base=STREAM)
FILE = dotnet("System.IO.FileStream", FileStream, base=STREAM)
_DISPOSABLE_NAMES = ("Close", "Dispose")


def _checked_length(runtime: Runtime, self: Stream) -> Int64:
    self.check()
    return Int64(self.length(runtime))


def _set_position(runtime: Runtime, self: Stream, value: int) -> None:
    self.check()
    if value < 0:
        raise ArgumentOutOfRangeException("value", "Non-negative number required.")
    self.position = int(value)


STREAM.prop("Length", "long", _checked_length, effect=True)
STREAM.prop("Position", "long", lambda runtime, self: Int64(self.position), _set_position, effect=True)


@STREAM.method("Read(byte[] buffer, int offset, int count)", effect=True)
def _read(runtime: Runtime, self: Stream, buffer: Value, offset: int, count: int) -> int:
    self.check()
    if buffer is None:
        raise ArgumentNullException("buffer")
    if offset < 0 or count < 0 or offset + count > len(buffer):
        raise ArgumentException(
            "Offset and length were out of bounds for the array or count is greater than the number of elements from "
            "index to the end of the source collection."
        )
    piece = self.read(runtime, count)
    buffer[offset : offset + len(piece)] = piece
    return len(piece)


@STREAM.method("ReadByte()", effect=True)
def _read_byte(runtime: Runtime, self: Stream) -> int:
    self.check()
    piece = self.read(runtime, 1)
    return piece[0] if piece else -1


@STREAM.method("void Write(byte[] buffer, int offset, int count)", effect=True)
def _write(runtime: Runtime, self: Stream, buffer: Value, offset: int, count: int) -> None:
    self.check()
    self.write(runtime, bytes(buffer[offset : offset + count]))


@STREAM.method("void SetLength(long value)", effect=True)
def _set_length(runtime: Runtime, self: Stream, length: int) -> None:
    self.check()
    self.resize(runtime, int(length))


@STREAM.method("void CopyTo(System.IO.Stream destination)", effect=True)
def _copy(runtime: Runtime, self: Stream, target: Stream, _size: int = 81920) -> None:
    self.check()
    while piece := self.read(runtime, 1 << 20):
        target.write(runtime, piece)


STREAM.method("void Flush()", "void Flush(bool flushToDisk)")(lambda self, disk=False: self.check())
for _name in _DISPOSABLE_NAMES:
    STREAM.method(f"void {_name}()", effect=True)(lambda runtime, self: self.close(runtime))
MEMORY.constructor("")(MemoryStream)
MEMORY.method("ToArray()")(lambda self: ByteArray(self.data))


FILE.prop("Name", "string", lambda self: self.path)
_MODE, _ACCESS, _SHARE = "System.IO.FileMode mode", "System.IO.FileAccess access", "System.IO.FileShare share"


@FILE.constructor(f"string path, {_MODE}, {_ACCESS}, {_SHARE}", effect=True)
@FILE.constructor(
    f"string path, {_MODE}, {_ACCESS}, {_SHARE}, int bufferSize, System.IO.FileOptions options", effect=True
)
def new_file_stream(
    runtime: Runtime,
    path: str,
    mode: EnumValue,
    access: EnumValue | None = None,
    share: EnumValue | None = None,
    _size: int = 4096,
    options: EnumValue | None = None,
) -> FileStream:
    """FileStream's constructors."""
    return open_file(
        runtime,
        path,
        mode_name(mode),
        None if access is None else access.number,
        "Read" if share is None else str(share),
        delete_on_close=options is not None and bool(options.number & 67108864),
    )


# The .NET Framework has these in addition to FileAccess (referencesource: mscorlib/system/io/filestream.cs): 'Write' fits both.
_BY_RIGHTS = (
    f"string path, {_MODE}, System.Security.AccessControl.FileSystemRights rights, {_SHARE}, int bufferSize, "
    "System.IO.FileOptions options"
)


@FILE.constructor(_BY_RIGHTS, effect=True)
@FILE.constructor(f"{_BY_RIGHTS}, System.Security.AccessControl.FileSecurity fileSecurity", effect=True)
def _secure_stream(
    runtime: Runtime,
    path: str,
    mode: EnumValue,
    rights: EnumValue,
    share: EnumValue,
    _size: int,
    options: EnumValue,
    security: Value = None,
) -> FileStream:
    access = (READ if rights.number & 1 else 0) | (WRITE if rights.number & 2 else 0)
    return open_file(
        runtime,
        path,
        mode_name(mode),
        access or READ,
        str(share),
        security=descriptor(security),
        delete_on_close=bool(options.number & 67108864),
    )


def descriptor(security: Value) -> Any:
    """A FileSecurity or DirectorySecurity as the record that the machine's file primitives take."""
    if security is None:
        return None
    maker = getattr(security, "machine_record", None)
    if maker is None:
        raise Refusal("value", "FileSecurity", "an access control object for a new file")
    return maker()


# -- readers


class Reader(Instance):
    """StreamReader (decoding a stream as a whole when first read) or StringReader."""

    def __init__(
        self, text: str | None, stream: Stream | None, encoding: Encoding, *, detect: bool = True
    ) -> None:
        self.text = text
        self.stream = stream
        self.encoding = encoding
        self.detect = detect
        self.position = 0
        self.closed = False

    def content(self, runtime: Runtime) -> str:
        """All text, read on first need."""
        if self.closed:
            raise ObjectDisposedException(None, "Cannot read from a closed TextReader.")
        if self.text is None:
            assert self.stream is not None
            data = b""
            while piece := self.stream.read(runtime, 1 << 20):
                data += piece
            found = encoding_of_bom(data) if self.detect else None
            if found is not None:
                self.encoding, skip = found
                data = data[skip:]
            elif self.encoding.bom and data.startswith(self.encoding.bom):
                data = data[len(self.encoding.bom) :]
            self.text = self.encoding.decode(data)
        return self.text


class StreamReader(Reader):
    """System.IO.StreamReader."""


TEXT_READER = dotnet("System.IO.TextReader", kind="abstract", interfaces=[IDISPOSABLE])
STREAM_READER = dotnet("System.IO.StreamReader", StreamReader, base=TEXT_READER)


@TEXT_READER.method("ReadLine()", effect=True)
def _read_line(runtime: Runtime, self: Reader) -> Value:
    found = split_line(self.content(runtime), self.position)
    if found is None:
        return None
    line, self.position = found
    return line


@TEXT_READER.method("ReadToEnd()", effect=True)
def _read_to_end(runtime: Runtime, self: Reader) -> str:
    text = self.content(runtime)[self.position :]
    self.position += len(text)
    return text


def split_line(text: str, position: int) -> tuple[str, int] | None:
    """The line at a position and where the next one starts; None at the end."""
    if position >= len(text):
        return None
    end = position
    while end < len(text) and text[end] not in "\r\n":
        end += 1
    after = end + (2 if text[end : end + 2] == "\r\n" else 1)
    return text[position:end], after


def _close_reader(runtime: Runtime, self: Reader) -> None:
    self.closed = True
    if self.stream is not None:
        self.stream.close(runtime)


TEXT_READER.method("void Close()", "void Dispose()", effect=True)(_close_reader)
STREAM_READER.prop("BaseStream", "System.IO.Stream", lambda self: self.stream)
_ENCODING = "System.Text.Encoding encoding"


def _reader_of(
    stream: Stream, encoding: Value = None, detect: bool = True, _size: int = 0, _leave: bool = False
) -> StreamReader:
    return StreamReader(None, stream, encoding or UTF8_BARE, detect=detect)


STREAM_READER.constructor("System.IO.Stream stream")(_reader_of)
STREAM_READER.constructor(f"System.IO.Stream stream, {_ENCODING}")(_reader_of)


def _reader_of_file(runtime: Runtime, path: str, encoding: Value = None, detect: bool = True) -> StreamReader:
    return _reader_of(open_file(runtime, path, "Open", READ), encoding, detect)


STREAM_READER.constructor("string path", effect=True)(_reader_of_file)


# -- writers


class Writer(Instance):
    """StreamWriter or StringWriter. Text goes to the stream at once; only the byte order mark waits for the first."""

    def __init__(self, stream: Stream | None, encoding: Encoding, *, leave_open: bool = False) -> None:
        self.stream = stream
        self.encoding = encoding
        self.leave_open = leave_open
        self.pieces: list[str] = []
        self.new_line = "\r\n"
        self.auto_flush = False
        self.closed = False
        self.started = False

    def put(self, runtime: Runtime, text: str) -> None:
        """Write text; it reaches the stream on Flush, Close, or at once with AutoFlush."""
        if self.closed:
            raise ObjectDisposedException(None, "Cannot write to a closed TextWriter.")
        self.pieces.append(text)
        if self.auto_flush:
            self.flush(runtime)

    def flush(self, runtime: Runtime) -> None:
        if self.stream is None:
            return
        text = "".join(self.pieces)
        self.pieces.clear()
        if not self.started and self.stream.position == 0 and self.encoding.bom:
            self.stream.write(runtime, self.encoding.bom)
        self.started = True
        if text:
            self.stream.write(runtime, self.encoding.encode(text))

    def close(self, runtime: Runtime) -> None:
        if not self.closed and self.stream is not None:
            if self.pieces or not self.started:
                self._finish(runtime)
            if not self.leave_open:
                self.stream.close(runtime)
        self.closed = True

    def _finish(self, runtime: Runtime) -> None:
        assert self.stream is not None
        if self.pieces or self.encoding.bom:
            self.flush(runtime)


class StreamWriter(Writer):
    """System.IO.StreamWriter."""


TEXT_WRITER = dotnet("System.IO.TextWriter", kind="abstract", interfaces=[IDISPOSABLE])
STREAM_WRITER = dotnet("System.IO.StreamWriter", StreamWriter, base=TEXT_WRITER)
STREAM_WRITER.prop("BaseStream", "System.IO.Stream", lambda self: self.stream)


def _put_line(runtime: Runtime, self: Writer, value: Value = "") -> None:
    self.put(runtime, dotnet_text(plain(value)) + self.new_line)


TEXT_WRITER.method(
    "void WriteLine()", "void WriteLine(string value)", "void WriteLine(object value)", effect=True
)(_put_line)
TEXT_WRITER.method("void Write(string format, params object[] arg)", effect=True)(
    lambda runtime, self, template, values: self.put(
        runtime, format_string(template, [plain(value) for value in values])
    )
)
TEXT_WRITER.method("void WriteLine(string format, params object[] arg)", effect=True)(
    lambda runtime, self, template, values: self.put(
        runtime, format_string(template, [plain(value) for value in values]) + self.new_line
    )
)
TEXT_WRITER.method("void Flush()", effect=True)(lambda runtime, self: self.flush(runtime))
for _name in _DISPOSABLE_NAMES:
    TEXT_WRITER.method(f"void {_name}()", effect=True)(lambda runtime, self: self.close(runtime))
