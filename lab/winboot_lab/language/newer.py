"""What looks usual and is not there: types, members and variables that Windows PowerShell 5.1 lacks.

The .NET Framework below 5.1 stopped where .NET went on. Only what people reach for is listed; the point is
a good message before a node says "method not found".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Types by their last name in lower case, and what to write instead.
TYPES: Final[Mapping[str, str]] = {
    "semver": "[version]",
    "semanticversion": "[version]",
    "dateonly": "[datetime]",
    "timeonly": "[timespan]",
    "half": "[single]",
    "int128": "[bigint]",
    "uint128": "[bigint]",
    "ipnetwork": "own arithmetic on [ipaddress]",
    "jsondocument": "ConvertFrom-Json",
    "jsonserializer": "ConvertFrom-Json or ConvertTo-Json",
    "jsonnode": "ConvertFrom-Json",
    "operatingsystem.iswindows": "nothing: a node runs Windows",
    "validatenotnullorwhitespaceattribute": "[ValidateScript()]",
    "validatenotnullorwhitespace": "[ValidateNotNullOrEmpty()] or [ValidateScript()]",
    "argumentcompletions": "[ValidateSet()]",
    "psstyle": "nothing: a node has no terminal",
}

# Static members as type.member in lower case, the type by its last name.
STATIC_MEMBERS: Final[Mapping[str, str]] = {
    "convert.tohexstring": "[BitConverter]::ToString(…).Replace('-', '')",
    "convert.fromhexstring": "a loop over [Convert]::ToByte(…, 16)",
    "sha256.hashdata": "[Security.Cryptography.SHA256]::Create() and ComputeHash()",
    "sha1.hashdata": "[Security.Cryptography.SHA1]::Create() and ComputeHash()",
    "sha512.hashdata": "[Security.Cryptography.SHA512]::Create() and ComputeHash()",
    "md5.hashdata": "[Security.Cryptography.MD5]::Create() and ComputeHash()",
    "randomnumbergenerator.getbytes": "[Security.Cryptography.RandomNumberGenerator]::Create() and GetBytes()",
    "randomnumbergenerator.fill": "[Security.Cryptography.RandomNumberGenerator]::Create() and GetBytes()",
    "randomnumbergenerator.getint32": "Get-Random",
    "path.getrelativepath": "own code on full paths",
    "path.join": "[IO.Path]::Combine()",
    "path.trimendingdirectoryseparator": ".TrimEnd('\\')",
    "path.endsindirectoryseparator": ".EndsWith('\\')",
    "path.exists": "Test-Path or [IO.File]::Exists() and [IO.Directory]::Exists()",
    "file.writeallbytesasync": "[IO.File]::WriteAllBytes()",
    "file.readalltextasync": "[IO.File]::ReadAllText()",
    "file.appendallbytes": "a [IO.FileStream] with [IO.FileMode]::Append",
    "file.createsymboliclink": "New-Item -ItemType SymbolicLink",
    "math.clamp": "[Math]::Min([Math]::Max(…), …)",
    "environment.processid": "$PID",
    "environment.processpath": "[Diagnostics.Process]::GetCurrentProcess().Path",
    "environment.tickcount64": "[Diagnostics.Stopwatch]",
    "random.shared": "Get-Random",
    "datetime.unixepoch": "[datetime]::new(1970, 1, 1, 0, 0, 0, 'Utc')",
    "encoding.latin1": "[Text.Encoding]::GetEncoding('iso-8859-1')",
    "ipendpoint.parse": "[Net.IPEndPoint]::new([ipaddress]::Parse(…), …)",
    "ipendpoint.tryparse": "[ipaddress]::TryParse() and [Net.IPEndPoint]::new()",
    "string.contains": "-like or .IndexOf()",
    "array.fill": "a loop",
    "process.waitforexitasync": ".WaitForExit()",
    "runtimeinformation.runtimeidentifier": "nothing: a node runs Windows on amd64",
    "operatingsystem.iswindows": "nothing: a node runs Windows",
    "x509certificate2.createfrompem": "own code that reads the base64 between the marks",
    "x509certificate2.createfrompemfile": "own code that reads the base64 between the marks",
    "rsa.importfrompem": "a PFX file",
}

# Instance members that no type of 5.1 has, in lower case.
INSTANCE_MEMBERS: Final[Mapping[str, str]] = {
    "tryadd": "a test with ContainsKey() and Add()",
    "argumentlist.add": "the property Arguments with quoted text",
    "waitforexitasync": "WaitForExit()",
    "exportcertificatepem": "own code around [Convert]::ToBase64String()",
    "importfrompem": "a PFX file",
    "replacelineendings": "-replace '\\r?\\n', …",
    "asspan": "Substring()",
    "ensurecapacity": "nothing: it is only an optimisation",
}

# Variables in lower case.
VARIABLES: Final[Mapping[str, str]] = {
    "iswindows": "nothing: a node runs Windows",
    "islinux": "nothing: a node runs Windows",
    "ismacos": "nothing: a node runs Windows",
    "iscoreclr": "nothing: a node runs Windows PowerShell",
    "psstyle": "nothing: a node has no terminal",
    "psnativecommandargumentpassing": "quoting by the rules of CommandLineToArgvW",
    "psnativecommanduseerroractionpreference": "a look at $LASTEXITCODE",
    "enabledexperimentalfeatures": "nothing: 5.1 has no experimental features",
}
