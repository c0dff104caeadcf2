# SUMMARY Compares, writes and restores firewall rules.
# Rules are read from the registry, which takes milliseconds; Get-NetFirewallRule takes seconds.

function Get-FirewallDifference {
    # What differs of the rules, which of our own an earlier join opened and the profile no longer has, and which profiles ignore
    # local rules by Group Policy.
    param([hashtable[]]$Rules, [string[]]$Closed = @())
    foreach ($rule in $Rules) {
        $is = Get-FirewallShown -Name $rule.name
        $want = ConvertTo-FirewallShown -Rule $rule
        Compare-Wanted -Key "rule:$($rule.name)" -What "firewall rule $($rule.name)" -Is $is -Want $want
    }
    foreach ($name in $Closed) {
        Compare-Wanted -Key "rule:$name" -What "firewall rule $name" -Is (Get-FirewallShown -Name $name) -Want $null
    }
    foreach ($name in Get-PolicyProfile) {
        $what = "firewall ${name}: local rules"
        New-Difference -Key "firewall-profile:$name" -What $what -Is 'ignored by Group Policy' -Want 'in force' -Policy
    }
}

function Get-PolicyProfile {
    # The firewall profiles in which a Group Policy ignores local rules; nothing where none does.
    foreach ($name in @('DomainProfile', 'PrivateProfile', 'PublicProfile')) {
        if (0 -eq (Read-Registry -Path "SOFTWARE\Policies\Microsoft\WindowsFirewall\$name" -Name 'AllowLocalPolicyMerge')) { $name }
    }
}

function Get-FirewallShown {
    # A rule of this machine as people read it; nothing if none exists.
    param([string]$Name)
    $rules = 'SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules'
    ConvertFrom-FirewallText -Text (Read-Registry -Path $rules -Name $Name)
}

function ConvertTo-FirewallShown {
    # A rule as people read it: direction, protocol, ports and sources.
    param([hashtable]$Rule)
    $sources = @($Rule.sources | ForEach-Object { ConvertTo-Prefix -Text $_ } | Sort-Object -Unique)
    "$($Rule.direction) $($Rule.protocol) $($Rule.ports) from $($sources -join ',')"
}

function ConvertFrom-FirewallText {
    # A rule as people read it, from its line in the registry; nothing if none exists. The line reads
    # v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|RA4=10.0.0.0/255.0.0.0|... with a field for each
    # port and each source (MS-GPFAS 2.2.2).
    param([string]$Text)
    if (-not $Text) { return }
    $rule = @{ direction = 'in'; protocol = 'any'; ports = @(); sources = @() }
    $narrowed = @()
    foreach ($field in $Text.Split('|')) {
        $name, $value = $field.Split('=')
        switch -Regex ($name) {
            '^Action$' { if ($value -ne 'Allow') { return "not allowing: $value" } }
            '^Active$' { if ($value -ne 'TRUE') { return 'inactive' } }
            '^Dir$' { $rule.direction = $value.ToLowerInvariant() }
            '^Protocol$' { $rule.protocol = $value -replace '^6$', 'TCP' -replace '^17$', 'UDP' }
            '^[LR]Port(2_10)?$' { $rule.ports += $value }
            '^RA[46]2?$' { $rule.sources += $value }
            # An administrator narrowed the rule: to profiles, own addresses, a program, a service, an interface, logins.
            '^(Profile|LA[46]2?|App|Svc|IF|IFType|LUAuth|RUAuth|RMauth|Security|Security2)$' { $narrowed += $field }
        }
    }
    if ($rule.sources.Count -eq 0) { $rule.sources = @('Any') }
    $rule.ports = if ($rule.ports) { @($rule.ports) -join ',' } else { 'any' }
    $shown = ConvertTo-FirewallShown -Rule $rule
    if ($narrowed) { return "$shown, only for $($narrowed -join ' ')" }
    $shown
}

function ConvertTo-Prefix {
    # An address and its mask as a prefix: 10.0.0.0/255.0.0.0 becomes 10.0.0.0/8; a single address has no mask.
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
    # Makes the rules that are missing or differ (undone by Restore-FirewallRule), and removes our own that the profile dropped.
    param([hashtable[]]$Rules, [string[]]$Closed = @())
    foreach ($name in $Closed) { Restore-FirewallRule -Former @{ name = $name } }
    foreach ($rule in $Rules) {
        if (-not (Get-FirewallDifference -Rules $rule | Where-Object { -not $_.policy })) { continue }
        Save-FormerValue -Kind 'FirewallRule' -Key $rule.name -Value @{ name = $rule.name }
        Assert-NoFault -Problems @(Test-FirewallService -Now)
        Restore-FirewallRule -Former $rule
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
    # The names are winboot's own: there was no rule before. Get-NetFirewallRule shows none while the service does not run.
    param([object]$Former)
    if (-not (Get-FirewallShown -Name $Former.name)) { return }
    Assert-NoFault -Problems @(Test-FirewallService -Now)
    Remove-NetFirewallRule -Name $Former.name
}
