# Firewall rules: the registry tells them in milliseconds, Get-NetFirewallRule asks for each.

function Get-FirewallDifference {
    param([hashtable[]]$Rules)
    foreach ($rule in $Rules) {
        $text = Read-Registry 'SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules' $rule.name
        Compare-Wanted -What ('firewall rule ' + $rule.name) -Is (ConvertFrom-FirewallText $text) -Want (ConvertTo-FirewallShown $rule)
    }
    foreach ($name in @('DomainProfile', 'PrivateProfile', 'PublicProfile')) {
        # A Group Policy may say that local rules do not count; then ours are there and do nothing.
        if (0 -eq (Read-Registry "SOFTWARE\Policies\Microsoft\WindowsFirewall\$name" 'AllowLocalPolicyMerge')) {
            New-Difference -What "firewall ${name}: local rules" -Is 'ignored by Group Policy' -Want 'in force' -Policy
        }
    }
}

function ConvertTo-FirewallShown {
    param($Rule)
    '{0} {1} {2} from {3}' -f $Rule.direction, $Rule.protocol, $Rule.ports, (@($Rule.sources | ForEach-Object { ConvertTo-Prefix $_ } | Sort-Object) -join ',')
}

function ConvertFrom-FirewallText {
    # v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|RA4=10.0.0.0/255.0.0.0|...
    param([string]$Text)
    if (-not $Text) { return }
    $direction = 'in'
    $protocol = 'any'
    $ports = 'any'
    $sources = @()
    foreach ($field in $Text.Split('|')) {
        $name, $value = $field.Split('=')
        switch ($name) {
            'Action' { if ($value -ne 'Allow') { return "not allowing: $value" } }
            'Active' { if ($value -ne 'TRUE') { return 'inactive' } }
            'Dir' { $direction = $value.ToLowerInvariant() }
            'Protocol' { if ($value -eq '6') { $protocol = 'TCP' } elseif ($value -eq '17') { $protocol = 'UDP' } else { $protocol = $value } }
            { @('LPort', 'LPort2_10', 'RPort', 'RPort2_10') -contains $_ } { $ports = $value }
            { @('RA4', 'RA6', 'RA42', 'RA62') -contains $_ } { $sources += ConvertTo-Prefix $value }
        }
    }
    if ($sources.Count -eq 0) { $sources = @('Any') }
    "$direction $protocol $ports from $(@($sources | Sort-Object -Unique) -join ',')"
}

function ConvertTo-Prefix {
    # 10.0.0.0/255.0.0.0 as 10.0.0.0/8; a single address without a mask.
    param([string]$Text)
    $address, $mask = $Text.Split('/')
    if ($mask -match '^\d+\.\d+\.\d+\.\d+$') {
        $bits = 0
        foreach ($part in $mask.Split('.')) { $bits += ([Convert]::ToString([int]$part, 2) -replace '0', '').Length }
        $mask = [string]$bits
    }
    if (-not $mask -or $mask -eq '32') { return $address }
    "$address/$mask"
}

function Set-FirewallRules {
    param([hashtable[]]$Rules)
    foreach ($rule in $Rules) {
        if (@(Get-FirewallDifference @($rule) | Where-Object { -not $_.policy }).Count -eq 0) { continue }
        Save-FormerValue 'FirewallRule' $rule.name @{ name = $rule.name }
        if (@(Get-NetFirewallRule -Name $rule.name -ErrorAction SilentlyContinue).Count -gt 0) { Remove-NetFirewallRule -Name $rule.name }
        $direction = @{ in = 'Inbound'; out = 'Outbound' }[$rule.direction]
        $wanted = @{
            Name = $rule.name; DisplayName = ('Kubernetes node: ' + $rule.why); Group = 'winboot'; Direction = $direction
            Action = 'Allow'; Protocol = $rule.protocol; Enabled = 'True'; Profile = 'Any'
        }
        if ($rule.direction -eq 'in') { $wanted.LocalPort = $rule.ports } else { $wanted.RemotePort = $rule.ports }
        if ($rule.sources -notcontains 'Any') { $wanted.RemoteAddress = [string[]]@($rule.sources) }
        [void](New-NetFirewallRule @wanted)
    }
}

function Restore-FirewallRule {
    # The names are winboot's own, so there was no rule before.
    param([object]$Former)
    if (@(Get-NetFirewallRule -Name $Former.name -ErrorAction SilentlyContinue).Count -gt 0) { Remove-NetFirewallRule -Name $Former.name }
}
