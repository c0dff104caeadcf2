# Below HKEY_LOCAL_MACHINE.

function Read-Registry {
    param([string]$Path, [string]$Name)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    try {
        $value = $key.GetValue($Name, $null, [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
        # An empty list must not look absent.
        if ($value -is [array]) { return , $value }
        $value
    }
    finally { $key.Dispose() }
}

function Test-RegistryKey {
    param([string]$Path)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if ($key) { $key.Dispose() }
    $null -ne $key
}

function Read-RegistryKind {
    param([string]$Path, [string]$Name)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    try { if ($null -ne $key.GetValue($Name)) { $key.GetValueKind($Name).ToString() } }
    finally { $key.Dispose() }
}

function Set-RegistryValue {
    param([string]$Path, [string]$Name, $Value, [string]$Kind = 'DWord')
    $former = Read-Registry $Path $Name
    if ($null -ne $former -and $former -is [byte[]]) { $former = [int[]]$former }
    Save-FormerValue 'Registry' "$Path\$Name" @{
        path = $Path; name = $Name; value = $former; kind = (Read-RegistryKind $Path $Name)
    }
    Write-Registry $Path $Name -Value $Value -Kind $Kind
}

function Write-Registry {
    param([string]$Path, [string]$Name, $Value, [string]$Kind)
    if ($null -eq $Value) {
        $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path, $true)
        if (-not $key) { return }
        try { $key.DeleteValue($Name, $false) } finally { $key.Dispose() }
        return
    }
    switch ($Kind) {
        'MultiString' { $typed = [string[]]@($Value) }
        { @('Binary', 'None', 'Unknown') -contains $_ } { $typed = [byte[]]@($Value) }
        'DWord' { $typed = [int]$Value }
        'QWord' { $typed = [long]$Value }
        default { $typed = [string]$Value }
    }
    [Microsoft.Win32.Registry]::SetValue("HKEY_LOCAL_MACHINE\$Path", $Name, $typed, $Kind)
}

function Restore-Registry {
    param([object]$Former)
    Write-Registry $Former.path $Former.name -Value $Former.value -Kind $Former.kind
}
