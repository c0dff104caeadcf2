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

    def __init__(self, text: str) -> None:
        self.text = text
        self.freed = False


INT_PTR = dotnet("System.IntPtr", Pointer, base=VALUE_TYPE, kind="value")
MARSHAL = dotnet("System.Runtime.InteropServices.Marshal", kind="static")


@MARSHAL.static_method("SecureStringToGlobalAllocUnicode(securestring s)")
def _to_pointer(secret: SecureString | None) -> Pointer:
    if secret is None:
        raise ArgumentNullException("s")
    return Pointer(_live(secret).secret)


@MARSHAL.static_method("PtrToStringUni(System.IntPtr ptr)")
def _from_pointer(pointer: Pointer) -> str:
    return _unfreed(pointer).text


@MARSHAL.static_method("void ZeroFreeGlobalAllocUnicode(System.IntPtr s)")
def _free(pointer: Pointer) -> None:
    _unfreed(pointer).text = ""
    pointer.freed = True


def _unfreed(pointer: Pointer) -> Pointer:
    if pointer.freed:
        raise Refusal("value", "System.IntPtr", "memory that was freed")
    return pointer
