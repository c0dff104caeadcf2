# What manages a service: the control manager itself, or NSSM, whose own values lie in the subkey Parameters. A service
# that changes its manager keeps its name, its dependents and its log, and nothing of the other manager stays.

function Read-ServiceParameter {
    # One of NSSM's values of a service. What happens after an exit is the default value of a subkey.
    param([string]$Service, [string]$Name)
    $path = (Get-ServicePath $Service) + '\Parameters'
    if ($Name -eq 'AppExit') { return (Read-Registry ($path + '\AppExit') '') }
    $value = Read-Registry $path $Name
    if ($value -is [array]) { return , $value }
    $value
}

function Set-ServiceParameters {
    # Writes NSSM's values, or removes what NSSM had where the control manager takes over.
    param([hashtable]$Service)
    $path = (Get-ServicePath $Service.name) + '\Parameters'
    if (-not (Test-NssmWanted $Service)) {
        if (Test-NssmService -Name $Service.name) { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree($path, $false) }
        return
    }
    foreach ($name in @($Service.parameters.Keys)) {
        $value = $Service.parameters[$name]
        if ($name -eq 'AppExit') { Write-Registry -Path ($path + '\AppExit') -Name '' -Value $value -Kind 'String'; continue }
        Write-Registry -Path $path -Name $name -Value $value -Kind (Get-ParameterKind $value)
    }
}

function Get-ParameterKind {
    # NSSM keeps numbers as DWord, lists as MultiString and texts as ExpandString.
    param([AllowNull()][object]$Value)
    if ($Value -is [int]) { return 'DWord' }
    if ($Value -is [array]) { return 'MultiString' }
    'ExpandString'
}

function Test-NssmWanted {
    param([hashtable]$Service)
    @($Service.parameters.Keys).Count -gt 0
}

function Test-NssmService {
    # True when a service has NSSM's values, whatever starts it.
    param([string]$Name)
    $null -ne (Read-ServiceParameter -Service $Name -Name 'Application')
}

function Read-ParameterTree {
    # All values below Parameters as plain tables, so that an undo can write them again.
    param([string]$Path)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if ($null -eq $key) { return }
    try {
        foreach ($name in $key.GetValueNames()) {
            $value = Read-Registry $Path $name
            if ($value -is [byte[]]) { $value = [int[]]$value }
            @{ path = $Path; name = $name; value = $value; kind = $key.GetValueKind($name).ToString() }
        }
        foreach ($name in $key.GetSubKeyNames()) { Read-ParameterTree -Path ($Path + '\' + $name) }
    }
    finally { $key.Dispose() }
}

function Restore-ServiceParameters {
    # Puts NSSM's values back as they were; removes ours where there were none.
    param([object]$Former)
    $path = (Get-ServicePath $Former.name) + '\Parameters'
    if (Test-NssmService -Name $Former.name) { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree($path, $false) }
    foreach ($one in @($Former.parameters)) { Write-Registry -Path $one.path -Name $one.name -Value $one.value -Kind $one.kind }
}
