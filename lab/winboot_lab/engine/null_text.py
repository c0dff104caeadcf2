"""What .NET's methods make of null where they want a string.

$null becomes '' on its way to a string parameter, so null arrives there in two ways only: [NullString]::Value, and the value
of a command without output. What is not listed is refused: nobody looked it up. The answers are those of the reference
source of .NET Framework 4.8 (and the same in .NET).
"""

from __future__ import annotations

from typing import Literal

from winboot_lab.engine.dotnet import DotNetType, Slot

Answer = Literal["taken", "throws", "unknown"]

# A line for each type: methods (a constructor is `new`), then the parameters that are not to be null.
_THROWS = """
System.Text.RegularExpressions.Regex: new match matches ismatch replace split escape unescape: input pattern replacement str
System.Net.IPAddress: parse: ipString
System.Guid: new parse: g input
System.Convert: frombase64string: s
System.IO.File: delete readalltext readallbytes readalllines writealltext writeallbytes appendalltext: path
System.IO.File: open openread openwrite opentext create getattributes getlastwritetime getlastwritetimeutc: path
System.IO.File: copy move: sourceFileName destFileName
System.IO.Directory: createdirectory delete getfiles getdirectories enumeratefiles enumeratedirectories: path
System.IO.Path: combine getfullpath: path path1 path2 path3 path4
System.Text.Encoding: getbytes getbytecount: s
System.String: startswith endswith contains indexof lastindexof insert: value
System.String: replace format: oldValue format
System.Environment: getenvironmentvariable setenvironmentvariable expandenvironmentvariables: variable name
Microsoft.Win32.RegistryKey: opensubkey createsubkey: name subkey
System.Uri: new: uriString
System.Int32: parse: s
System.Int64: parse: s
System.UInt32: parse: s
System.UInt64: parse: s
System.Double: parse: s
System.Version: new parse: version input
System.DateTime: parse parseexact: s
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


def _table(text: str) -> frozenset[tuple[str, str, str]]:
    rows = (line.split(":") for line in text.strip().splitlines())
    return frozenset(
        (kind, method, name)
        for kind, methods, names in rows
        for method in methods.split()
        for name in names.split()
    )


_THROWING, _TAKING = _table(_THROWS), _table(_TAKES)


def answer(owner: DotNetType | None, method: str, slot: Slot) -> Answer:
    """Does the method take null for that parameter, or throw ArgumentNullException with the parameter's name?"""
    if owner is None:
        return "unknown"
    if slot.type_name == "T":  # an element of a generic collection
        return "taken"
    for kind in owner.lineage():
        key = (kind.name, method.lower(), slot.name)
        if key in _THROWING:
            return "throws"
        if key in _TAKING:
            return "taken"
    return "unknown"
