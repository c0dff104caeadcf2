"""What .NET's methods make of null where they want a string.

$null becomes '' on its way to a string parameter, so null arrives there in two ways only: [NullString]::Value, and the value
of a command without output. The lab refuses every other case: its source was not read.

The table follows the reference source of .NET Framework 4.8 (github.com/microsoft/referencesource):
- mscorlib: string.cs, number.cs, guid.cs, version.cs, convert.cs, datetimeparse.cs, environment.cs, io/file.cs,
  io/filestream.cs, io/directory.cs, io/path.cs, text/encoding.cs, text/stringbuilder.cs, microsoft/win32/registrykey.cs
- System: Regex.cs, IPAddress.cs, URI.cs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from winboot_lab.engine.dotnet import DotNetType, Slot

# mscorlib.txt: ArgumentNull_Generic, ArgumentNull_Path, ArgumentNull_FileName, ArgumentNull_String.
_TEXTS: Final = {
    "": "Value cannot be null.",
    "Path": "Path cannot be null.",
    "FileName": "File name cannot be null.",
    "String": "String reference not set to an instance of a String.",
}


@dataclass(frozen=True, slots=True)
class Throws:
    """The method throws ArgumentNullException: the parameter it names, which need not be its own, and what it says."""

    parameter: str
    message: str


# A line for each type: methods (a constructor is `new`), then the parameters that must not be null. After `=` follows the
# name that the exception gives instead, after `!` its text (a key of _TEXTS).
_THROWS = """
System.Text.RegularExpressions.Regex: new match matches ismatch replace split escape unescape: input pattern replacement str
System.Net.IPAddress: parse: ipString
System.Guid: new parse: g input
System.Convert: frombase64string: s
System.IO.File: delete readalltext readalllines writealltext appendalltext opentext: path
System.IO.File: getattributes getlastwritetime getlastwritetimeutc: path
System.IO.File: open openread openwrite create readallbytes writeallbytes: path!Path
System.IO.File: copy move: sourceFileName!FileName destFileName!FileName
System.IO.Directory: createdirectory delete getfiles getdirectories enumeratefiles enumeratedirectories: path
System.IO.Path: combine getfullpath: path path1 path2 path3 path4
System.Text.Encoding: getbytes: s!String
System.Text.Encoding: getbytecount: s
System.String: startswith endswith contains indexof lastindexof insert: value
System.String: replace format: oldValue format
System.Environment: getenvironmentvariable setenvironmentvariable expandenvironmentvariables: variable name
Microsoft.Win32.RegistryKey: opensubkey createsubkey: name subkey=name
System.Uri: new: uriString
System.Int32: parse: s=String
System.Int64: parse: s=String
System.UInt32: parse: s=String
System.UInt64: parse: s=String
System.Double: parse: s=value
System.Version: new parse: version=input input
System.DateTime: parse parseexact: s!String format!String
"""
_TAKES = """
System.String: replace: newValue
System.String: equals compareto: value a b strB
System.String: isnullorempty isnullorwhitespace: value
System.IO.File: exists: path
System.IO.File: writealltext appendalltext: contents
System.IO.Directory: exists: path
System.Environment: setenvironmentvariable: value
Microsoft.Win32.RegistryKey: getvalue: name
System.Text.StringBuilder: append appendline: value
"""


def _rows(text: str) -> list[tuple[str, str, str]]:
    rows = (line.split(":") for line in text.strip().splitlines())
    return [
        (kind, method, parameter.strip())
        for kind, methods, parameters in rows
        for method in methods.split()
        for parameter in parameters.split()
    ]


def _throwing(written: str) -> tuple[str, Throws]:
    """`s=String!Path` as the parameter and what is thrown for it."""
    names, _, text = written.partition("!")
    own, _, named = names.partition("=")
    return own, Throws(named or own, _TEXTS[text])


_THROWING: Final = {
    (kind, method, own): throws
    for kind, method, written in _rows(_THROWS)
    for own, throws in [_throwing(written)]
}
_TAKING: Final = frozenset(_rows(_TAKES))


def takes_null(owner: DotNetType | None, method: str, slot: Slot) -> bool | Throws | None:
    """True where the method takes null for that parameter, what it throws where not, None where its source was not read."""
    if owner is None:
        return None
    if slot.type_name == "T":  # an element of a generic collection
        return True
    for kind in owner.lineage():
        key = (kind.name, method.lower(), slot.name)
        if key in _THROWING:
            return _THROWING[key]
        if key in _TAKING:
            return True
    return None
