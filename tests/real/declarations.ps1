# Compiles the C# of the library in the folder -Library, as the library does, and writes a line for each public method.
# PowerShell 7 compiles with its own Roslyn: there the language is held to C# 5, which is all that Windows PowerShell 5.1 has.
param([Parameter(Mandatory = $true)][string]$Library)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$text = foreach ($file in [IO.Directory]::GetFiles($Library, '*.ps1')) { [IO.File]::ReadAllText($file) }
. ([scriptblock]::Create($text -join "`n"))

$compiler = @{}
if ($PSVersionTable.PSEdition -eq 'Core') { $compiler.CompilerOptions = '-langversion:5' }
$declarations = [ordered]@{ Hns = Get-HnsDeclaration; Hcn = Get-HcnDeclaration; Layer = Get-LayerDeclaration; Entry = Get-EntryDeclaration }
foreach ($name in $declarations.Keys) {
    Add-Type -TypeDefinition $declarations[$name] -Language CSharp @compiler
    $type = "Winboot.$name" -as [type]
    foreach ($method in $type.GetMethods([Reflection.BindingFlags]'Public, Static, DeclaredOnly')) {
        $parameters = @($method.GetParameters() | ForEach-Object { "$($_.ParameterType.FullName) $($_.Name)" }) -join ', '
        "$($type.FullName).$($method.Name)($parameters)"
    }
}
