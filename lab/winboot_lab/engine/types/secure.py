"""SecureString, PSCredential, NetworkCredential, and the Marshal functions that take a SecureString apart."""

from __future__ import annotations

from winboot_lab.engine.dotnet import VALUE_TYPE, DotNetType, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentNullException,
    ArgumentOutOfRangeException,
    InvalidOperationException,
    ObjectDisposedException,
    PSArgumentException,
    PSArgumentNullException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    PS_CREDENTIAL,
    SECURE_STRING,
    Byte,
    Instance,
    Int16,
    PSCredential,
    SecureString,
    Value,
)


def _live(self: SecureString) -> SecureString:
    if self.disposed:
        raise ObjectDisposedException("SecureString", "Cannot access a disposed object.")
    return self


def _writable(self: SecureString) -> SecureString:
    if _live(self).read_only:
        raise InvalidOperationException("Instance is read-only.")
    return self


SECURE_STRING.constructor("")(SecureString)
SECURE_STRING.prop("Length", "int", lambda self: len(_live(self).secret))


@SECURE_STRING.method("void AppendChar(char c)")
def _append(self: SecureString, letter: str) -> None:
    _writable(self).secret += str(letter)


@SECURE_STRING.method("void Clear()")
def _clear(self: SecureString) -> None:
    _writable(self).secret = ""


@SECURE_STRING.method("Copy()")
def _copy(self: SecureString) -> SecureString:
    return SecureString(_live(self).secret)


@SECURE_STRING.method("void MakeReadOnly()")
def _make_read_only(self: SecureString) -> None:
    _live(self).read_only = True


@SECURE_STRING.method("void Dispose()")
def _dispose(self: SecureString) -> None:
    self.secret = ""
    self.disposed = True


@SECURE_STRING.method("void RemoveAt(int index)")
def _remove(self: SecureString, index: int) -> None:
    if not 0 <= index < len(_writable(self).secret):
        raise ArgumentOutOfRangeException("index")
    self.secret = self.secret[:index] + self.secret[index + 1 :]


SECURE_STRING.method("IsReadOnly()")(lambda self: _live(self).read_only)
SECURE_STRING.refuses("InsertAt SetAt")

# -- credentials


class NetworkCredential(Instance):
    """System.Net.NetworkCredential."""

    def __init__(self, user_name: str = "", password: str = "", domain: str = "") -> None:
        self.user_name = user_name or ""
        self.password = password or ""
        self.domain = domain or ""


NETWORK = dotnet("System.Net.NetworkCredential", NetworkCredential)
NETWORK.constructor("")(NetworkCredential)
NETWORK.constructor("string userName, string password")(NetworkCredential)
NETWORK.constructor("string userName, string password, string domain")(NetworkCredential)
NETWORK.constructor("string userName, securestring password")(
    lambda user, password: NetworkCredential(user, "" if password is None else password.secret)
)
for _name, _attribute in (("UserName", "user_name"), ("Password", "password"), ("Domain", "domain")):
    NETWORK.prop(
        _name,
        "string",
        lambda self, _attribute=_attribute: getattr(self, _attribute),
        lambda self, value, _attribute=_attribute: setattr(self, _attribute, value or ""),
    )
NETWORK.prop("SecurePassword", "securestring", lambda self: SecureString(self.password))
NETWORK.refuses("GetCredential")


@PS_CREDENTIAL.constructor("string userName, securestring password")
def _credential(user: str | None, password: SecureString | None) -> PSCredential:
    if not user:
        raise PSArgumentException(
            'Cannot process argument because the value of argument "userName" is not valid. Change the value of the '
            '"userName" argument and run the operation again.'
        )
    if password is None:
        raise PSArgumentNullException(
            "password", 'Cannot process argument because the value of argument "password" is null.'
        )
    return PSCredential(user, password)


def _network(self: PSCredential) -> NetworkCredential:
    user, domain = self.user_name, ""
    if "\\" in user:
        domain, _, user = user.partition("\\")
    elif user.count("@") == 1:
        user, _, domain = user.partition("@")
    return NetworkCredential(user, self.password.secret, domain)


PS_CREDENTIAL.prop("UserName", "string", lambda self: self.user_name)
PS_CREDENTIAL.prop("Password", "securestring", lambda self: self.password)
PS_CREDENTIAL.method("GetNetworkCredential()")(_network)
PS_CREDENTIAL.static_prop("Empty", PS_CREDENTIAL.name, lambda: None)
PS_CREDENTIAL.refuses("GetObjectData")

# -- Marshal


class Pointer(Instance):
    """System.IntPtr to text that Marshal made; zeroed when it is freed."""

    def __init__(self, text: str, kind: str) -> None:
        self.text = text
        self.kind = kind
        self.freed = False


INT_PTR = dotnet("System.IntPtr", Pointer, base=VALUE_TYPE, kind="value")
ZERO = Pointer("", "")
INT_PTR.static_prop("Zero", "System.IntPtr", lambda: ZERO)
INT_PTR.static_field("Size", "int", 8)
INT_PTR.refuses("ToInt32 ToInt64 ToPointer Add Subtract")
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
MARSHAL.static_method("StringToBSTR(string s)")(lambda text: Pointer(text, "bstr"))
MARSHAL.static_method("StringToHGlobalUni(string s)")(lambda text: Pointer(text, "unicode"))


def _from_pointer(*kinds: str) -> Value:
    def read(pointer: Pointer, length: int | None = None) -> Value:
        if pointer is ZERO:
            return None
        if pointer.freed or pointer.kind not in kinds:
            raise Refusal("value", "System.IntPtr", "memory that was freed, or of another kind")
        return pointer.text if length is None else pointer.text[:length]

    return read


_WIDE = ("bstr", "unicode", "co-unicode")
MARSHAL.static_method("PtrToStringBSTR(System.IntPtr ptr)")(_from_pointer("bstr"))
MARSHAL.static_method("PtrToStringUni(System.IntPtr ptr)")(_from_pointer(*_WIDE))
MARSHAL.static_method("PtrToStringUni(System.IntPtr ptr, int len)")(_from_pointer(*_WIDE))
MARSHAL.static_method("PtrToStringAuto(System.IntPtr ptr)")(_from_pointer(*_WIDE))
MARSHAL.static_method("PtrToStringAnsi(System.IntPtr ptr)")(_from_pointer("ansi", "co-ansi"))
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
MARSHAL.static_method("GetLastWin32Error()")(lambda: 0)


def _read_number(size: int, number: type[int]) -> Value:
    def read(pointer: Pointer, offset: int = 0) -> int:
        if pointer is ZERO or pointer.freed or pointer.kind not in _WIDE:
            raise Refusal("value", "System.IntPtr", "memory without text, or text of another kind")
        content = pointer.text.encode("utf-16-le", "surrogatepass")
        if pointer.kind == "bstr":  # its length in bytes stands before it
            content = len(content).to_bytes(4, "little") + content
            offset += 4
        content += b"\0\0"
        if not 0 <= offset <= len(content) - size:
            raise Refusal("value", "System.IntPtr", "memory outside of the text")
        return number(int.from_bytes(content[offset : offset + size], "little", signed=size > 1))

    return read


for _name, _size, _number in (("ReadByte", 1, Byte), ("ReadInt16", 2, Int16), ("ReadInt32", 4, int)):
    MARSHAL.static_method(f"{_name}(System.IntPtr ptr)", f"{_name}(System.IntPtr ptr, int ofs)")(
        _read_number(_size, _number)
    )
_SIZES = {"SByte": 1, "Byte": 1, "Int16": 2, "UInt16": 2, "Int32": 4, "UInt32": 4, "Int64": 8, "UInt64": 8}
_SIZES |= {"Single": 4, "Double": 8, "Decimal": 16, "Guid": 16, "IntPtr": 8, "Boolean": 4, "Char": 1}


@MARSHAL.static_method("SizeOf(type t)")
def _size_of(kind: DotNetType) -> int:
    size = _SIZES.get(kind.name.removeprefix("System."))
    if size is None:
        raise Refusal("member", "[Marshal]::SizeOf()", f"of {kind.name}")
    return size


MARSHAL.refuses(
    "AllocHGlobal Copy ReleaseComObject PtrToStructure StructureToPtr WriteInt32 ReadInt64 GetHRForException"
)
