# Starts what serves a lab: the C# of the folder is compiled, its stand-ins take the names of the types they stand for. No .NET type
# that has a stand-in is named here: the engine remembers what a name meant.
param([Parameter(Mandatory = $true)][string]$Folder)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$source = @(foreach ($name in @('Bridge.cs', 'StandIns.cs')) { Get-Content -LiteralPath (Join-Path -Path $Folder -ChildPath $name) -Raw -Encoding UTF8 }) -join "`n"
$more = @{}
if ($PSVersionTable.PSEdition -ne 'Core') { $more.ReferencedAssemblies = @('System', 'System.Core') }
Add-Type -TypeDefinition $source -Language CSharp -IgnoreWarnings @more
[Lab.Wire]::Serve($Folder)
