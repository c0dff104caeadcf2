"""Overloads of .NET Framework that the declared types do not have, by their numbers of arguments.

A call with such a number is refused. Without this, the lab would claim in PowerShell's name that there is no such overload.
`new` is the constructor; a method that is here for other numbers is named as it is there.
"""

from __future__ import annotations

from winboot_lab.engine import script_cmdlet as _script_cmdlet  # declares PSScriptCmdlet
from winboot_lab.engine.dotnet import Method, named

_LOADED = _script_cmdlet

_LEFT_OUT = {
    "System.Array": "GetValue:2,3 SetValue:3,4 LastIndexOf:3,4 Sort:3,4,5 BinarySearch:3,4,5 FindIndex:3,4 "
    "CreateInstance:3,4",
    "System.Char": "ToUpper:2 ToLower:2 GetNumericValue:2",
    "System.Collections.ArrayList": "IndexOf:3 CopyTo:4 LastIndexOf:2,3 Sort:3 GetEnumerator:2",
    "System.Collections.Generic.HashSet`1": "CopyTo:2,3",
    "System.Collections.Generic.List`1": "IndexOf:3 CopyTo:4 LastIndexOf:2,3 Sort:3 FindIndex:2,3 FindLastIndex:2,3 "
    "BinarySearch:2,4",
    "System.Collections.Generic.SortedSet`1": "CopyTo:2,3",
    "System.Collections.Hashtable": "new:2,3",
    "System.Collections.ObjectModel.Collection`1": "new:1",
    "System.Collections.Queue": "new:2",
    "System.Collections.Specialized.OrderedDictionary": "new:2",
    "System.Convert": "ChangeType:3 ToBase64String:4",
    "System.DateTime": "new:4,9",
    "System.DateTimeOffset": "new:8,9 TryParse:4 ParseExact:4",
    "System.Diagnostics.Process": "Start:4,5 GetProcessById:2 GetProcesses:1 GetProcessesByName:2",
    "System.Enum": "ToString:2",
    "System.Environment": "GetFolderPath:2 FailFast:2",
    "System.GC": "Collect:1,2,3,4",
    "System.Globalization.CultureInfo": "new:2 GetCultureInfo:2",
    "System.Guid": "new:4,11",
    "System.IO.DirectoryInfo": "Create:1 CreateSubdirectory:2",
    "System.IO.File": "Create:3",
    "System.IO.MemoryStream": "new:3,4,5",
    "System.IO.StreamReader": "new:5",
    "System.IO.StringWriter": "new:1,2",
    "System.Linq.Enumerable": "Sum:2 FirstOrDefault:2 Last:2 Max:2 Min:2 Average:2 Distinct:2 Union:3 Except:3 "
    "Intersect:3 SequenceEqual:3",
    "System.Management.Automation.ErrorDetails": "new:2,3,4",
    "System.Management.Automation.ErrorRecord": "new:2",
    "System.Management.Automation.PSCredential": "new:1",
    "System.Management.Automation.PSScriptCmdlet": "ShouldProcess:3,4 GetVariableValue:2",
    "System.Net.HttpWebRequest": "AddRange:2,3",
    "System.Net.IPAddress": "new:2",
    "System.Net.Mail.MailAddress": "new:2,3",
    "System.Net.Sockets.TcpClient": "new:2 Connect:1",
    "System.Net.WebProxy": "new:2,3,4",
    "System.Numerics.BigInteger": "new:1 Parse:2,3 TryParse:4",
    "System.Runtime.InteropServices.Marshal": "PtrToStringAnsi:2 PtrToStringAuto:2",
    "System.Security.AccessControl.RawSecurityDescriptor": "new:2,6",
    "System.Security.Cryptography.HashAlgorithm": "Create:0",
    "System.Security.Cryptography.MD5": "Create:1",
    "System.Security.Cryptography.RandomNumberGenerator": "Create:1 GetBytes:3",
    "System.Security.Cryptography.SHA1": "Create:1",
    "System.Security.Cryptography.SHA256": "Create:1",
    "System.Security.Cryptography.SHA384": "Create:1",
    "System.Security.Cryptography.SHA512": "Create:1",
    "System.Security.Cryptography.X509Certificates.X509Certificate2": "new:0 Export:2 ToString:1",
    "System.Security.Cryptography.X509Certificates.X509Store": "new:0",
    "System.Security.Principal.WindowsIdentity": "GetCurrent:1",
    "System.String": "IndexOf:4 LastIndexOf:3,4 IndexOfAny:3 LastIndexOfAny:2,3 Compare:5,6,7 CompareOrdinal:5 "
    "IsNormalized:1",
    "System.Text.Encoding": "GetBytes:3,5 GetByteCount:3 GetChars:3,5 GetCharCount:3 GetEncoding:3 Convert:5",
    "System.Text.RegularExpressions.Regex": "Match:3,4 Replace:4,5 Split:3,4 IsMatch:4 Matches:4",
    "System.Text.StringBuilder": "new:4 Append:3 Insert:3,4 Replace:4",
    "System.Text.UnicodeEncoding": "new:3",
    "System.Threading.Mutex": "OpenExisting:2 TryOpenExisting:3",
    "System.TimeSpan": "TryParse:3",
    "System.TimeZoneInfo": "ConvertTimeToUtc:2",
    "System.Tuple": "Create:8",
    "System.Type": "GetType:3,4,5,6 GetMethod:3,4,5 GetProperty:2,3,4,5,6 MakeArrayType:1",
    "System.Uri": "new:3",
    "System.UriBuilder": "new:5",
    "System.Xml.XmlDocument": "new:1 GetElementsByTagName:2 CreateElement:2,3 CreateAttribute:2,3",
    "System.Xml.XmlElement": "GetAttribute:2 HasAttribute:2 SetAttribute:3 RemoveAttribute:2 GetElementsByTagName:2",
    "Microsoft.Win32.RegistryKey": "OpenSubKey:3 CreateSubKey:3,4",
}


def declare() -> None:
    """Enter the table; the types must be there."""
    for type_name, text in _LEFT_OUT.items():
        kind = named(type_name)
        for part in text.split():
            name, _, counts = part.partition(":")
            numbers = frozenset(int(count) for count in counts.split(","))
            found = (
                [kind.constructors]
                if name == "new"
                else [
                    member
                    for table in (kind.members, kind.statics)
                    if isinstance(member := table.get(name.lower()), Method)
                ]
            )
            assert found, f"{type_name}.{name}"
            for method in found:
                method.left_out |= numbers
