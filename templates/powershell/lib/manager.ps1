# SUMMARY Reads and sets NSSM's parameters of a service.

function Read-ServiceParameter {
    # A value below the service's Parameters key; nothing where it is missing, and a list as one object. What NSSM does
    # after an exit (AppExit) is the default value of a subkey.
    param([string]$Service, [string]$Name)
    $path = (Get-ServicePath -Name $Service) + '\Parameters'
    if ($Name -eq 'AppExit') { return (Read-Registry -Path "$path\AppExit" -Name '') }
    , (Read-Registry -Path $path -Name $Name)
}

function Set-ServiceParameter {
    # Writes the values that NSSM reads, or deletes all of them where the service is no longer to be run by NSSM.
    # Returns nothing. ExpandString is how NSSM stores its paths itself (set_expand_string in its registry.cpp).
    param([hashtable]$Service)
    $path = (Get-ServicePath -Name $Service.name) + '\Parameters'
    if (-not (Test-NssmWanted -Service $Service)) {
        if (Test-NssmService -Name $Service.name) { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree($path, $false) }
        return
    }
    foreach ($name in $Service.parameters.Keys) {
        $value = $Service.parameters[$name]
        $kind = if ($value -is [int]) { 'DWord' } elseif ($value -is [array]) { 'MultiString' } else { 'ExpandString' }
        if ($name -eq 'AppExit') { Write-Registry -Path "$path\AppExit" -Name '' -Value $value -Kind 'String' }
        else { Write-Registry -Path $path -Name $name -Value $value -Kind $kind }
    }
}

function Test-NssmWanted {
    # Whether the profile wants the service to be run by NSSM: then it has values for it.
    param([hashtable]$Service)
    @($Service.parameters.Keys).Count -gt 0
}

function Test-NssmService {
    # Whether NSSM runs the service now. Its Application value is the program that NSSM starts.
    param([string]$Name)
    $null -ne (Read-ServiceParameter -Service $Name -Name 'Application')
}

function Read-ParameterTree {
    # Every value of a key and of the keys below it, each as Read-RegistryNote gives it; nothing where the key is
    # missing.
    param([string]$Path)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    try {
        foreach ($name in $key.GetValueNames()) {
            Read-RegistryNote -Path $Path -Name $name
        }
        foreach ($name in $key.GetSubKeyNames()) { Read-ParameterTree -Path "$Path\$name" }
    }
    finally { $key.Dispose() }
}

function Restore-ServiceParameter {
    # Puts back the values below the service's Parameters key. Returns nothing. Other services keep values of their own
    # there, so the key is deleted only where it is NSSM's.
    param([object]$Former)
    $path = (Get-ServicePath -Name $Former.name) + '\Parameters'
    if (Test-NssmService -Name $Former.name) { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree($path, $false) }
    foreach ($one in $Former.parameters) { Write-Registry -Path $one.path -Name $one.name -Value $one.value -Kind $one.kind }
}
