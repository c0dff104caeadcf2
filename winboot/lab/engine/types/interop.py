"""System.Runtime.InteropServices.Marshal, as far as opening a SecureString needs it."""

from __future__ import annotations

from typing import Any

from winboot.lab.engine.dotnet import OBJECT, dotnet
from winboot.lab.engine.exceptions import ArgumentNullException
from winboot.lab.engine.values import Instance, SecureString

Value = Any


class NativeText(Instance):
    """An IntPtr to a copied secret; zeroed when it is freed."""

    def __init__(self, text: str) -> None:
        self.text: str | None = text


class Marshal(Instance):
    """A static class."""


POINTER = dotnet("System.IntPtr+Text", NativeText, base=OBJECT)
MARSHAL = dotnet("System.Runtime.InteropServices.Marshal", Marshal, base=OBJECT)


def _copy(secret: SecureString | None) -> NativeText:
    if secret is None:
        raise ArgumentNullException("s")
    return NativeText(secret.secret)


def _free(pointer: NativeText) -> None:
    pointer.text = None


for _name in ("SecureStringToGlobalAllocUnicode", "SecureStringToBSTR", "SecureStringToCoTaskMemUnicode"):
    MARSHAL.static_method(f"{_name}(System.Security.SecureString s)")(_copy)
for _name in ("ZeroFreeGlobalAllocUnicode", "ZeroFreeBSTR", "ZeroFreeCoTaskMemUnicode"):
    MARSHAL.static_method(f"void {_name}(object s)")(_free)
for _name in ("PtrToStringUni", "PtrToStringBSTR", "PtrToStringAuto"):
    MARSHAL.static_method(f"{_name}(object ptr)")(lambda pointer: pointer.text)
MARSHAL.refuses(
    "AllocHGlobal FreeHGlobal Copy ReadByte ReadInt16 ReadInt32 ReadInt64 WriteByte SizeOf PtrToStructure StructureToPtr "
    "GetLastWin32Error PtrToStringAnsi ReleaseComObject GetActiveObject SecureStringToGlobalAllocAnsi"
)
