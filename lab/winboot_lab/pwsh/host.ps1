# Starts the server for a lab: compiles the folder's C#, whose stand-ins take the names of the types that they replace. This
# script names no .NET type that has a stand-in: the engine remembers what a name meant.
param([Parameter(Mandatory = $true)][string]$Folder)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$source = @(foreach ($name in @('Bridge.cs', 'StandIns.cs')) { Get-Content -LiteralPath (Join-Path -Path $Folder -ChildPath $name) -Raw -Encoding UTF8 }) -join "`n"
$more = @{}
if ($PSVersionTable.PSEdition -ne 'Core') { $more.ReferencedAssemblies = @('System', 'System.Core') }
Add-Type -TypeDefinition $source -Language CSharp -IgnoreWarnings @more
[Lab.Wire]::Serve($Folder)
