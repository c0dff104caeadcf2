# The registry tells the rules in milliseconds, Get-NetFirewallRule in seconds.

function Get-FirewallDifference {
    param($Rules)
    foreach ($rule in $Rules) {
        $text = Read-Registry 'SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules' $rule.name
        Compare-Wanted -What "firewall rule $($rule.name)" -Is (ConvertFrom-FirewallText $text) -Want (ConvertTo-FirewallShown $rule)
    }
    foreach ($name in @('DomainProfile', 'PrivateProfile', 'PublicProfile')) {
        if (0 -eq (Read-Registry "SOFTWARE\Policies\Microsoft\WindowsFirewall\$name" 'AllowLocalPolicyMerge')) {
            New-Difference -What "firewall ${name}: local rules" -Is 'ignored by Group Policy' -Want 'in force' -Policy
        }
    }
}

function ConvertTo-FirewallShown {
    param($Rule)
    $sources = @($Rule.sources | ForEach-Object { ConvertTo-Prefix $_ } | Sort-Object -Unique)
    "$($Rule.direction) $($Rule.protocol) $($Rule.ports) from $($sources -join ',')"
}

function ConvertFrom-FirewallText {
    # v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|RA4=10.0.0.0/255.0.0.0|...
    param([string]$Text)
    if (-not $Text) { return }
    $rule = @{ direction = 'in'; protocol = 'any'; ports = 'any'; sources = @() }
    foreach ($field in $Text.Split('|')) {
        $name, $value = $field.Split('=')
        switch -Regex ($name) {
            '^Action$' { if ($value -ne 'Allow') { return "not allowing: $value" } }
            '^Active$' { if ($value -ne 'TRUE') { return 'inactive' } }
            '^Dir$' { $rule.direction = $value.ToLowerInvariant() }
            '^Protocol$' { $rule.protocol = $value -replace '^6$', 'TCP' -replace '^17$', 'UDP' }
            '^[LR]Port(2_10)?$' { $rule.ports = $value }
            '^RA[46]2?$' { $rule.sources += $value }
        }
    }
    if ($rule.sources.Count -eq 0) { $rule.sources = @('Any') }
    ConvertTo-FirewallShown $rule
}

function ConvertTo-Prefix {
    # 10.0.0.0/255.0.0.0 as 10.0.0.0/8; a single address without a mask.
    param([string]$Text)
    $address, $mask = $Text.Split('/')
    if ($mask -match '\.') {
        $bits = @($mask.Split('.') | ForEach-Object { [Convert]::ToString([int]$_, 2) }) -join ''
        $mask = [string]$bits.Replace('0', '').Length
    }
    if (-not $mask -or $mask -eq '32') { return $address }
    "$address/$mask"
}

function Set-FirewallRule {
    param($Rules)
    foreach ($rule in $Rules) {
        if (-not (Get-FirewallDifference $rule | Where-Object { -not $_.policy })) { continue }
        Save-FormerValue 'FirewallRule' $rule.name @{ name = $rule.name }
        Restore-FirewallRule $rule
        $wanted = @{
            Name = $rule.name; DisplayName = "Kubernetes node: $($rule.why)"; Group = 'winboot'; Enabled = 'True'; Profile = 'Any'
            Direction = "$($rule.direction)bound"; Action = 'Allow'; Protocol = $rule.protocol
        }
        if ($rule.direction -eq 'in') { $wanted.LocalPort = $rule.ports } else { $wanted.RemotePort = $rule.ports }
        if ($rule.sources -notcontains 'Any') { $wanted.RemoteAddress = [string[]]$rule.sources }
        [void](New-NetFirewallRule @wanted)
    }
}

function Restore-FirewallRule {
    # The names are winboot's own: there was no rule before.
    param([object]$Former)
    if (Get-NetFirewallRule -Name $Former.name -ErrorAction SilentlyContinue) { Remove-NetFirewallRule -Name $Former.name }
}
