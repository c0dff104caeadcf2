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

function Read-RegistryNote {
    # A value as a note keeps it: path, name, value (bytes as numbers) and kind; value and kind are null when it is absent.
    param([string]$Path, [string]$Name)
    $value = Read-Registry -Path $Path -Name $Name
    if ($value -is [byte[]]) { $value = [int[]]$value }
    @{ path = $Path; name = $Name; value = $value; kind = (Read-RegistryKind -Path $Path -Name $Name) }
}

function Set-RegistryValue {
    # Writes a value below HKEY_LOCAL_MACHINE and notes what was there.
    param([string]$Path, [string]$Name, $Value, [string]$Kind = 'DWord')
    Save-FormerValue -Kind 'Registry' -Key "$Path\$Name" -Value (Read-RegistryNote -Path $Path -Name $Name)
    Write-Registry -Path $Path -Name $Name -Value $Value -Kind $Kind
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
    Write-Registry -Path $Former.path -Name $Former.name -Value $Former.value -Kind $Former.kind
}
