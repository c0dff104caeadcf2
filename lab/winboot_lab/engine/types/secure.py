"""SecureString, PSCredential, NetworkCredential, and the Marshal functions that take a SecureString apart."""

from __future__ import annotations

from winboot_lab.engine.dotnet import VALUE_TYPE, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentNullException,
    InvalidOperationException,
    ObjectDisposedException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    SECURE_STRING,
    Instance,
    SecureString,
    Value,
)


def _live(self: SecureString) -> SecureString:
    if self.disposed:
        raise ObjectDisposedException("SecureString", "Cannot access a disposed object.")
    return self


SECURE_STRING.constructor("")(SecureString)


def _writable(self: SecureString) -> SecureString:
    if _live(self).read_only:
        raise InvalidOperationException("Instance is read-only.")
    return self


SECURE_STRING.constructor("")(SecureString)
SECURE_STRING.prop("Length", "int", lambda self: len(_live(self).secret))


@SECURE_STRING.method("void AppendChar(char c)")
def _append(self: SecureString, letter: str) -> None:
    _writable(self).secret += str(letter)


@SECURE_STRING.method("void Dispose()")
def _dispose(self: SecureString) -> None:
    self.secret = ""
    self.disposed = True


# -- credentials


class NetworkCredential(Instance):
    """System.Net.NetworkCredential: a way to read a SecureString."""

    def __init__(self, user_name: str, password: str) -> None:
        self.user_name = user_name
        self.password = password


NETWORK = dotnet("System.Net.NetworkCredential", NetworkCredential)
NETWORK.constructor("string userName, securestring password")(
    lambda user, password: NetworkCredential(user, "" if password is None else password.secret)
)
NETWORK.prop("Password", "string", lambda self: self.password)


# -- Marshal


class Pointer(Instance):
    """System.IntPtr to text that Marshal made; zeroed when it is freed."""

    def __init__(self, text: str, kind: str) -> None:
        self.text = text
        self.kind = kind
        self.freed = False


INT_PTR = dotnet("System.IntPtr", Pointer, base=VALUE_TYPE, kind="value")
ZERO = Pointer("", "")
MARSHAL = dotnet("System.Runtime.InteropServices.Marshal", kind="static")


def _to_pointer(kind: str) -> Value:
    def make(secret: SecureString | None) -> Pointer:
        if secret is None:
            raise ArgumentNullException("s")
        return Pointer(_live(secret).secret, kind)

    return make


_MAKERS = {
    "SecureStringToBSTR": "bstr",
    "SecureStringToGlobalAllocUnicode": "unicode",
    "SecureStringToCoTaskMemUnicode": "co-unicode",
    "SecureStringToGlobalAllocAnsi": "ansi",
    "SecureStringToCoTaskMemAnsi": "co-ansi",
}
for _name, _kind in _MAKERS.items():
    MARSHAL.static_method(f"{_name}(securestring s)")(_to_pointer(_kind))


def _from_pointer(*kinds: str) -> Value:
    def read(pointer: Pointer, length: int | None = None) -> Value:
        if pointer is ZERO:
            return None
        if pointer.freed or pointer.kind not in kinds:
            raise Refusal("value", "System.IntPtr", "memory that was freed, or of another kind")
        return pointer.text if length is None else pointer.text[:length]

    return read


_WIDE = ("bstr", "unicode", "co-unicode")
MARSHAL.static_method("PtrToStringUni(System.IntPtr ptr)")(_from_pointer(*_WIDE))
_FREERS = {
    "ZeroFreeBSTR": ("bstr",),
    "FreeBSTR": ("bstr",),
    "ZeroFreeGlobalAllocUnicode": ("unicode",),
    "ZeroFreeCoTaskMemUnicode": ("co-unicode",),
    "ZeroFreeGlobalAllocAnsi": ("ansi",),
    "ZeroFreeCoTaskMemAnsi": ("co-ansi",),
    "FreeHGlobal": ("unicode", "ansi"),
    "FreeCoTaskMem": ("co-unicode", "co-ansi"),
}


def _free(kinds: tuple[str, ...]) -> Value:
    def free(pointer: Pointer) -> None:
        if pointer is ZERO:
            return
        if pointer.freed or pointer.kind not in kinds:
            raise Refusal("value", "System.IntPtr", "memory freed twice, or by another function")
        pointer.text = ""
        pointer.freed = True

    return free


for _name, _kinds in _FREERS.items():
    MARSHAL.static_method(f"void {_name}(System.IntPtr s)")(_free(_kinds))


_SIZES = {"SByte": 1, "Byte": 1, "Int16": 2, "UInt16": 2, "Int32": 4, "UInt32": 4, "Int64": 8, "UInt64": 8}
_SIZES |= {"Single": 4, "Double": 8, "Decimal": 16, "Guid": 16, "IntPtr": 8, "Boolean": 4, "Char": 1}
