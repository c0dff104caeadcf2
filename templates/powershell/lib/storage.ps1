# SUMMARY Compares and sets what storage needs of Windows: services, firewall rules, modules.

function Get-StorageDifference {
    # A difference for each service that does not start with Windows and run, each rule that is not active, each absent module.
    param([string[]]$Services, [string[]]$Rules, [string[]]$Modules)
    foreach ($name in $Services) {
        Compare-Wanted -Key "service-start:$name" -What "service ${name}: start type" -Is (Read-Service -Name $name).start -Want 'auto'
        Compare-Wanted -Key "service-state:$name" -What "service ${name}: state" -Is (Get-ServiceState -Name $name) -Want 'Running'
    }
    foreach ($name in $Rules) {
        Compare-Wanted -Key "rule-active:$name" -What "firewall rule ${name}: active" -Is (Test-RuleActive -Name $name) -Want $true
    }
    foreach ($name in $Modules) {
        Compare-Wanted -Key "module:$name" -What "module ${name}: present" -Is ([IO.Directory]::Exists((Get-ModulePath -Name $name))) -Want $true
    }
}

function Get-ModulePath {
    # Where a module of Windows itself lies.
    param([string]$Name)
    "$([Environment]::SystemDirectory)\WindowsPowerShell\v1.0\Modules\$Name"
}

function Test-RuleActive {
    # Whether a rule is on; null where there is no such rule.
    param([string]$Name)
    $shown = Get-FirewallShown -Name $Name
    if ($shown) { $shown -ne 'inactive' } else { $null }
}

function Set-Storage {
    # Has the services start with Windows, starts them, and turns the rules on. Returns nothing.
    param([string[]]$Services, [string[]]$Rules, [string[]]$Modules)
    foreach ($name in $Modules) {
        if (-not [IO.Directory]::Exists((Get-ModulePath -Name $name))) {
            Stop-Step -Id 'ModuleMissing' -Message "Windows has no module $name, which its storage drivers load"
        }
    }
    foreach ($name in $Rules) {
        $active = Test-RuleActive -Name $name
        if ($active) { continue }
        if ($null -eq $active) { Stop-Step -Id 'RuleMissing' -Message "Windows has no firewall rule $name" }
        Assert-NoFault -Problems @(Test-FirewallService -Now)
        Save-FormerValue -Kind 'RuleActive' -Key $name -Value @{ name = $name }
        Enable-NetFirewallRule -Name $name
    }
    foreach ($name in $Services) {
        if (-not @(Get-StorageDifference -Services $name)) { continue }
        Save-FormerService -Name $name
        Invoke-ServiceControl -Arguments @('config', $name, 'start=', 'auto')
        Start-CurrentService -Name $name
    }
}

function Restore-RuleActive {
    # Turns a rule off that was off before.
    param([object]$Former)
    if (-not (Test-RuleActive -Name $Former.name)) { return }
    Assert-NoFault -Problems @(Test-FirewallService -Now)
    Disable-NetFirewallRule -Name $Former.name
}
