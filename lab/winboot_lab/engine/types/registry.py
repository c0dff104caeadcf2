"""Microsoft.Win32.Registry and RegistryKey: keys as handles that read and write the machine's registry."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.convert import convert, to_string
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    DotNetException,
    InvalidOperationException,
    IOException,
    ObjectDisposedException,
    UnauthorizedAccessException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    INT32,
    INT64,
    NUMBER_CLASSES,
    STRING,
    Array,
    ByteArray,
    EnumValue,
    Instance,
    Int64,
    enum_value,
    plain,
    type_of,
)

Value = Any

KINDS = "Microsoft.Win32.RegistryValueKind"
_MISMATCH = (
    "The type of the value object did not match the specified RegistryValueKind or the object could not be properly "
    "converted."
)
HIVES = {
    "ClassesRoot": "HKEY_CLASSES_ROOT",
    "CurrentUser": "HKEY_CURRENT_USER",
    "LocalMachine": "HKEY_LOCAL_MACHINE",
    "Users": "HKEY_USERS",
    "CurrentConfig": "HKEY_CURRENT_CONFIG",
}


class RegistryKey(Instance):
    """An open key."""

    def __init__(self, name: str, *, writable: bool, view: str = "Default") -> None:
        self.name = name
        self.writable = writable
        self.view = view
        self.closed = False

    def check(self) -> None:
        if self.closed:
            raise ObjectDisposedException(self.name, "Cannot access a closed registry key.")

    def check_writable(self) -> None:
        self.check()
        if not self.writable:
            raise UnauthorizedAccessException("Cannot write to the registry key.")

    def sub(self, name: str) -> str:
        """The full name of a key inside this one."""
        path = "\\".join(part for part in name.split("\\") if part)
        return f"{self.name}\\{path}" if path else self.name

    def names(self, runtime: Any) -> list[str]:
        """The names of its values, in creation order."""
        self.check()
        return [str(record["name"]) for record in ask(runtime, "registry.values", key=self.name)]

    def __str__(self) -> str:
        return self.name


REGISTRY_KEY = dotnet("Microsoft.Win32.RegistryKey", RegistryKey)
REGISTRY = dotnet("Microsoft.Win32.Registry")


def registry_key(_scope: Any, name: str, *, writable: bool) -> RegistryKey:
    """A handle on a key that is there."""
    return RegistryKey(name, writable=writable)


# -- values


def value_of(record: Any, *, expand: bool = True) -> Value:
    """The machine's record of a value as RegistryKey.GetValue gives it."""
    kind, data = str(record["kind"]), record["value"]
    if kind == "DWord":
        return int(data)
    if kind == "QWord":
        return Int64(data)
    if kind == "MultiString":
        return Array(list(data), STRING)
    if kind == "ExpandString" and expand:
        return record["expanded"]
    return ByteArray(data) if isinstance(data, bytes) else data


def kind_for(value: Value) -> str:
    """The kind that SetValue takes when none is given."""
    bare = plain(value)
    if type(bare) is int:
        return "DWord"
    kind = type_of(bare)
    if kind.kind == "array":
        if isinstance(bare, ByteArray):
            return "Binary"
        if kind.element is STRING:
            return "MultiString"
        raise ArgumentException(
            f"RegistryKey.SetValue does not support arrays of type '{kind.short_name}'. Only Byte[] and String[] are "
            "supported."
        )
    return "String"


def data_for(value: Value, kind: str) -> Any:
    """A value as plain data of a kind, by .NET's conversions."""
    bare = plain(value)
    if kind in ("String", "ExpandString"):
        return to_string(bare)
    if kind == "MultiString":
        if type_of(bare).kind != "array" or getattr(bare, "element", None) is not STRING:
            raise ArgumentException(_MISMATCH)
        if any(item is None for item in bare):
            raise ArgumentException(
                "RegistryKey.SetValue does not allow a String[] that contains a null String reference."
            )
        return [str(item) for item in bare]
    if kind in ("Binary", "None"):
        if not isinstance(bare, ByteArray):
            raise ArgumentException(_MISMATCH)
        return bytes(bare)
    if kind not in ("DWord", "QWord"):
        raise ArgumentException("The specified RegistryValueKind is an invalid value.", "valueKind")
    return _whole(bare, kind)


def _whole(value: Value, kind: str) -> int:
    if not (type(value) in NUMBER_CLASSES or type(value) in (str, bool)):
        raise ArgumentException(_MISMATCH)
    if type(value) is str and not value.strip().lstrip("+-").isdigit():
        raise ArgumentException(_MISMATCH)
    try:
        return int(convert(value, INT32 if kind == "DWord" else INT64))
    except DotNetException as failure:
        raise ArgumentException(_MISMATCH) from failure


def store(runtime: Any, key: str, name: str, kind: str, data: Any) -> None:
    """Write a value; DWord and QWord go as the numbers they are."""
    ask(runtime, "registry.set", key=key, name=name, kind=kind, value=data)


# -- members of a key

REGISTRY_KEY.prop("SubKeyCount", "int", lambda runtime, self: len(_sub_names(runtime, self)), effect=True)
REGISTRY_KEY.prop("ValueCount", "int", lambda runtime, self: len(self.names(runtime)), effect=True)
REGISTRY_KEY.prop("Name", "string", lambda self: self.name)


# An open key is read for its rules as the session may: OpenSubKey asks for KEY_READ, which has READ_CONTROL in it
# (learn.microsoft.com/dotnet/api/microsoft.win32.registrykey.getaccesscontrol; winnt.h, KEY_READ).
@REGISTRY_KEY.method(
    "GetAccessControl()",
    "GetAccessControl(System.Security.AccessControl.AccessControlSections includeSections)",
    effect=True,
)
def _get_access(runtime: Runtime, self: RegistryKey, sections: EnumValue | None = None) -> Instance:
    from winboot_lab.engine.types.access import AUDIT, security_of

    self.check()
    if sections is not None and sections.number & AUDIT:
        raise Refusal("value", str(sections), "the lab hands out no audit entries")
    return security_of("RegistrySecurity", ask_one(runtime, "acl.get", path=self.name, kind="registry"))


@REGISTRY_KEY.method(
    "void SetAccessControl(System.Security.AccessControl.RegistrySecurity registrySecurity)", effect=True
)
def _set_access(runtime: Runtime, self: RegistryKey, security: Any) -> None:
    self.check_writable()
    # The object writes the sections that were changed in it, and no other (NativeObjectSecurity.Persist).
    if given := security.changes():
        ask(runtime, "acl.set", path=self.name, kind="registry", **given)


REGISTRY_KEY.method("ToString()")(str)


def _sub_names(runtime: Runtime, self: RegistryKey) -> list[str]:
    self.check()
    return [str(name) for name in ask(runtime, "registry.list", key=self.name)]


@REGISTRY_KEY.method("void Close()", "void Dispose()")
def _close(self: RegistryKey) -> None:
    if "\\" in self.name:
        self.closed = True


@REGISTRY_KEY.method("void Flush()")
def _flush(self: RegistryKey) -> None:
    self.check()


@REGISTRY_KEY.method("GetSubKeyNames()", effect=True)
def _get_sub_key_names(runtime: Runtime, self: RegistryKey) -> Array:
    return Array(_sub_names(runtime, self), STRING)


@REGISTRY_KEY.method("GetValueNames()", effect=True)
def _get_value_names(runtime: Runtime, self: RegistryKey) -> Array:
    return Array(self.names(runtime), STRING)


@REGISTRY_KEY.method(
    "GetValue(string name)",
    "GetValue(string name, object defaultValue, Microsoft.Win32.RegistryValueOptions options)",
    effect=True,
)
def _get_value(
    runtime: Runtime,
    self: RegistryKey,
    name: str | None,
    default: Value = None,
    options: EnumValue | None = None,
) -> Value:
    self.check()
    record = ask_one(runtime, "registry.get", key=self.name, name=name or "")
    # Kinds that it has no name for are taken for absent (referencesource: microsoft/win32/registrykey.cs, InternalGetValue).
    if record is None or str(record["kind"]) == "Unknown":
        return default
    return value_of(record, expand=options is None or options.number == 0)


@REGISTRY_KEY.method("GetValueKind(string name)", effect=True)
def _get_kind(runtime: Runtime, self: RegistryKey, name: str | None) -> EnumValue:
    self.check()
    record = ask_one(runtime, "registry.get", key=self.name, name=name or "")
    if record is None:
        raise IOException("The specified registry key does not exist.", hresult=-2147024894)
    return enum_value(KINDS, str(record["kind"]))


@REGISTRY_KEY.method("OpenSubKey(string name)", "OpenSubKey(string name, bool writable)", effect=True)
def _open(runtime: Runtime, self: RegistryKey, name: str, writable: bool = False) -> RegistryKey | None:
    if name is None:
        raise ArgumentNullException("name")
    self.check()
    full = self.sub(name)
    found = ask_one(runtime, "registry.stat", key=full)
    return None if found is None else RegistryKey(full, writable=writable, view=self.view)


@REGISTRY_KEY.method(
    "OpenSubKey(string name, Microsoft.Win32.RegistryKeyPermissionCheck permissionCheck, "
    "System.Security.AccessControl.RegistryRights rights)",
    effect=True,
)
def _open_with(
    runtime: Runtime, self: RegistryKey, name: str, check: EnumValue, _rights: EnumValue
) -> RegistryKey | None:
    # The lab asks for the rights when something is written. 2: ReadWriteSubTree.
    opened: RegistryKey | None = _open(runtime, self, name, check.number == 2)
    return opened


@REGISTRY_KEY.method("void DeleteSubKey(string subkey, bool throwOnMissingSubKey)", effect=True)
def _delete_key(runtime: Runtime, self: RegistryKey, name: str, strict: bool = True) -> None:
    self.check_writable()
    full = self.sub(name)
    if ask_one(runtime, "registry.stat", key=full) is None:
        if strict:
            raise ArgumentException("Cannot delete a subkey tree because the subkey does not exist.")
        return
    if ask(runtime, "registry.list", key=full):
        raise InvalidOperationException(
            "Registry key has subkeys and recursive removes are not supported by this method."
        )
    ask(runtime, "registry.delete-key", key=full)


@REGISTRY_KEY.method("void DeleteSubKeyTree(string subkey, bool throwOnMissingSubKey)", effect=True)
def _delete_tree(runtime: Runtime, self: RegistryKey, name: str, strict: bool = True) -> None:
    self.check_writable()
    full = self.sub(name)
    if ask_one(runtime, "registry.stat", key=full) is None:
        if strict:
            raise ArgumentException("Cannot delete a subkey tree because the subkey does not exist.")
        return
    ask(runtime, "registry.delete-key", key=full, recurse=True)


@REGISTRY_KEY.method("void DeleteValue(string name, bool throwOnMissingValue)", effect=True)
def _delete_value(runtime: Runtime, self: RegistryKey, name: str | None, strict: bool = True) -> None:
    self.check_writable()
    if ask_one(runtime, "registry.get", key=self.name, name=name or "") is None:
        if strict:
            raise ArgumentException("No value exists with that name.")
        return
    ask(runtime, "registry.delete-value", key=self.name, name=name or "")


# -- Microsoft.Win32.Registry

for _name, _hive in HIVES.items():
    REGISTRY.static_field(_name, "Microsoft.Win32.RegistryKey", RegistryKey(_hive, writable=True))


def _key_name(name: str | None) -> str:
    if name is None:
        raise ArgumentNullException("keyName")
    head, _, rest = name.partition("\\")
    if head.upper() not in HIVES.values():
        raise ArgumentException("Registry key name must start with a valid base key name.", "keyName")
    return RegistryKey(head.upper(), writable=True).sub(rest)


@REGISTRY.static_method(
    "void SetValue(string keyName, string valueName, object value, Microsoft.Win32.RegistryValueKind valueKind)",
    effect=True,
)
def _static_set(
    runtime: Runtime, key: str, name: str | None, value: Value, kind: EnumValue | None = None
) -> None:
    full = _key_name(key)
    if plain(value) is None:
        raise ArgumentNullException("value")
    word = kind_for(value) if kind is None or str(kind) == "Unknown" else str(kind)
    data = data_for(value, word)
    ask(runtime, "registry.create", key=full)
    store(runtime, full, name or "", word, data)
