# SUMMARY Fills the places <<name>> of texts with values that only the node has.

function Expand-Known {
    # The text with its places <<name>> filled; nothing while one of them is not known.
    param([string]$Text)
    if (-not $Text.Contains('<<')) { return $Text }
    $names = @([regex]::Matches($Text, '<<([a-z0-9_]+)>>') | ForEach-Object { $_.Groups[1].Value } | Sort-Object -Unique)
    if ($names.Count -eq 0) { return $Text }
    $known = Get-Known
    foreach ($name in $names) {
        if (-not $known.ContainsKey($name)) { return }
        $Text = $Text.Replace("<<$name>>", $known[$name])
    }
    $Text
}

function Assert-Known {
    # The text with its places filled, or the step stops.
    param([string]$Text)
    $filled = Expand-Known -Text $Text
    if ($null -eq $filled) { Stop-Unknown }
    $filled
}

function Stop-Unknown {
    # Stops the step: something that it needs is known only after the join.
    Stop-Step -Id 'NotKnownYet' -Message 'an address that this needs is not known yet: the node has no pod CIDR or no address'
}

function Get-Known {
    # What only this machine and its Node object can report: place to value.
    Get-Cached -Name 'Known' -Read { Read-Known }
}

function Get-Cached {
    # What Read answers, asked once; a failure, too, is the answer of this run until something was changed.
    param([string]$Name, [scriptblock]$Read)
    if (-not $script:Run.Cache.ContainsKey($Name)) {
        try { $script:Run.Cache[$Name] = & $Read }
        catch { $script:Run.Cache[$Name] = $_ }
    }
    if ($script:Run.Cache[$Name] -is [Management.Automation.ErrorRecord]) { throw $script:Run.Cache[$Name] }
    $script:Run.Cache[$Name]
}

function Get-Fact {
    # What Ask finds on this machine, object by object; nothing where it finds none. A look changes nothing and asks once, for all
    # objects. Any other mode asks each time, by the narrower question Alone where there is one. Alone reads names of its caller, so
    # that no parameter here may have such a name.
    param([string]$Fact, [scriptblock]$Ask, [scriptblock]$Alone)
    if ($script:Run.Mode -ne 'Look') {
        if ($null -eq $Alone) { $Alone = $Ask }
        return (& $Alone)
    }
    (Get-Cached -Name $Fact -Read { @{ All = @(& $Ask) } }).All
}

function Get-NodeIp {
    # The address that the kubelet goes by, and asks a certificate for; empty while the machine has none.
    $address = Get-Cached -Name 'NodeAddress' -Read { Get-NodeAddress }
    "$(Read-Member -Object $address -Names 'ip')"
}

function Read-Known {
    # Asks the machine and the Node object for what Get-Known returns.
    $known = @{}
    $address = Get-Cached -Name 'NodeAddress' -Read { Get-NodeAddress }
    if ($address) {
        $known.node_ip = $address.ip
        $known.node_subnet = "$(Get-NetworkBase -Address $address.ip -Length $address.prefix_length)/$($address.prefix_length)"
    }
    foreach ($cidr in Get-PodCidr) {
        $family = if ($cidr.Contains(':')) { '_v6' } else { '' }
        $known["pod_cidr$family"] = $cidr
        # HNS takes the first as gateway; the second is the host's own endpoint.
        $offset = 0
        foreach ($name in @('pod_gateway', 'pod_endpoint', 'pod_first')) {
            $one = Get-CidrAddress -Cidr $cidr -Offset (++$offset)
            if ($null -ne $one) { $known["$name$family"] = $one }
        }
    }
    if ($script:Node.ContainsKey('vip_by')) {
        $vip = & $script:Node.vip_by -Place $script:Node.vip_place -Known $known
        if ($vip) { $known.source_vip = $vip }
    }
    $known
}

function Get-EndpointVip {
    # The address of an endpoint that the owner of the network makes; nothing while it is missing.
    param([string]$Place, [hashtable]$Known)
    foreach ($found in Get-HnsObject -Kind endpoints -Name $Place) { return (Read-Member -Object $found -Names 'IPAddress') }
}

function Get-CidrAddress {
    # The address so many after the first of a network, as text; $null when the network has none there.
    param([string]$Cidr, [int]$Offset)
    $bytes = [Net.IPAddress]::Parse($Cidr.Split('/')[0]).GetAddressBytes()
    [long]$carry = $Offset
    for ($at = $bytes.Length - 1; $carry -gt 0 -and $at -ge 0; $at--) {
        $carry += $bytes[$at]
        $bytes[$at] = [byte]($carry % 256)
        $carry = [long][Math]::Floor($carry / 256)
    }
    $address = [Net.IPAddress]::new($bytes).ToString()
    if ($carry -gt 0 -or -not (Test-CidrMember -Cidr $Cidr -Address $address)) { return $null }
    $address
}

function Test-CidrMember {
    # Whether the address is in the network.
    param([string]$Cidr, [string]$Address)
    $base, $length = $Cidr.Split('/')
    (Get-NetworkBase -Address $Address -Length $length) -eq (Get-NetworkBase -Address $base -Length $length)
}

function Get-NetworkBase {
    # The first address of the network that an address is in, by the length of its prefix.
    param([string]$Address, [int]$Length)
    $bytes = [Net.IPAddress]::Parse($Address).GetAddressBytes()
    # The bytes before are of the network as a whole.
    for ($at = [int][Math]::Floor($Length / 8); $at -lt $bytes.Length; $at++) {
        $bits = [Math]::Max(0, [Math]::Min(8, $Length - 8 * $at))
        $bytes[$at] = [byte]($bytes[$at] -band (256 - [int][Math]::Pow(2, 8 - $bits)))
    }
    [Net.IPAddress]::new($bytes).ToString()
}

function Get-FileAbsence {
    # A difference where a file is there that must not be, with the reason in Because; nothing where it is absent.
    param([string]$Path, [string]$Because)
    if ([IO.File]::Exists($Path)) { New-Difference -Key "file:$Path" -What "file ${Path}: $Because" -Is 'present' -Want $null }
}

function Get-RenderedFilesDifference {
    # The files whose content is not the rendered one. Service: it reads them only when it starts.
    param([hashtable]$Files, [string]$Service = '')
    $disrupts = $Service -ne '' -and (Test-RestartDisruption -Name $Service)
    foreach ($path in $Files.Keys | Sort-Object) {
        Get-FileDifference -Path $path -Text (Expand-Known -Text $Files[$path]) -Disrupts:$disrupts
    }
}

function Set-RenderedFile {
    # Writes the files that differ, and notes that the service has to be restarted.
    param([hashtable]$Files, [string]$Service = '')
    foreach ($path in $Files.Keys | Sort-Object) {
        if (-not (Get-RenderedFilesDifference -Files @{ $path = $Files[$path] })) { continue }
        if ($Service -ne '') { Save-RestartNeed -Name $Service }
        Set-FileText -Path $path -Text (Assert-Known -Text $Files[$path])
    }
}

function Complete-Service {
    # A service as the steps describe it, its places filled and what it does not say set to what is usual. `unknown` lists
    # the members and parameters whose text has a place that cannot be filled before the join.
    param([hashtable]$Service)
    $complete = @{ start = 'auto'; depends = @(); environment = @(); parameters = @{} }
    $unknown = @()
    foreach ($name in $Service.Keys) {
        $complete[$name] = Complete-Value -Value $Service[$name]
        if (-not (Test-KnownText -Text "$($Service[$name])")) { $unknown += $name }
    }
    foreach ($name in @($complete.parameters.Keys)) {
        if (-not (Test-KnownText -Text "$($complete.parameters[$name])")) { $unknown += $name }
        $complete.parameters[$name] = Complete-Value -Value $complete.parameters[$name]
    }
    $complete.unknown = $unknown
    $complete
}

function Test-KnownText {
    # Whether every place <<name>> of the text can be filled now.
    param([string]$Text)
    $null -ne (Expand-Known -Text $Text)
}

function Complete-Value {
    # A text or a list of texts with its places filled for showing; any other value as it is. Nothing becomes nothing.
    param([object]$Value)
    if ($Value -is [array]) { return , [string[]]@($Value | ForEach-Object { Complete-Text -Text $_ }) }
    if ($Value -is [string]) { return (Complete-Text -Text $Value) }
    $Value
}

function Complete-Text {
    # The text with its places filled; words replace a place whose value is not known.
    param([string]$Text)
    $filled = Expand-Known -Text $Text
    if ($null -eq $filled) { return ($Text -replace '<<[a-z0-9_]+>>', (Get-UnknownText)) }
    $filled
}

function Get-ForeignFile {
    # The CNI configurations in the folder that are not among Own. Returns nothing if none exists.
    param([string]$Folder, [hashtable]$Own)
    if (-not [IO.Directory]::Exists($Folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Folder)) {
        if (-not $Own.ContainsKey($path) -and $path -match '\.(conf|conflist|json)$') { $path }
    }
}
