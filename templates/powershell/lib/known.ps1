# What only the node knows fills the places <<name>> of texts.

function Expand-Known {
    param([string]$Text)
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
    param([string]$Text)
    $filled = Expand-Known $Text
    if ($null -eq $filled) { Stop-Unknown }
    $filled
}

function Stop-Unknown {
    Stop-Step 'NotKnownYet' 'an address that this needs is not known yet: the node has no pod CIDR or no address'
}

function Get-Known {
    Get-Cached 'Known' { Read-Known }
}

function Get-Cached {
    # What Read answers, asked once; a failure, too, is the answer of this run until something was changed.
    param([string]$Name, $Read)
    if (-not $script:Run.Cache.ContainsKey($Name)) {
        try { $script:Run.Cache[$Name] = & $Read }
        catch { $script:Run.Cache[$Name] = $_ }
    }
    if ($script:Run.Cache[$Name] -is [Management.Automation.ErrorRecord]) { throw $script:Run.Cache[$Name] }
    $script:Run.Cache[$Name]
}

function Get-NodeIp {
    # The address that the kubelet goes by, and asks a certificate for; empty while the machine has none.
    $address = Get-Cached 'NodeAddress' { Get-NodeAddress }
    "$(Read-Member $address 'ip')"
}

function Read-Known {
    $known = @{}
    $address = Get-Cached 'NodeAddress' { Get-NodeAddress }
    if ($address) {
        $known.node_ip = $address.ip
        $known.node_subnet = "$(Get-NetworkBase $address.ip $address.prefix_length)/$($address.prefix_length)"
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
    # That of an endpoint which the owner of the network makes.
    param([string]$Place, $Known)
    foreach ($found in Get-HnsObject endpoints $Place) { return [string]$found.IPAddress }
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
    param([string]$Cidr, [string]$Address)
    $base, $length = $Cidr.Split('/')
    (Get-NetworkBase $Address $length) -eq (Get-NetworkBase $base $length)
}

function Get-NetworkBase {
    param([string]$Address, [int]$Length)
    $bytes = [Net.IPAddress]::Parse($Address).GetAddressBytes()
    for ($at = 0; $at -lt $bytes.Length; $at++) {
        $bits = [Math]::Max(0, [Math]::Min(8, $Length - 8 * $at))
        $bytes[$at] = [byte]($bytes[$at] -band (256 - [int][Math]::Pow(2, 8 - $bits)))
    }
    [Net.IPAddress]::new($bytes).ToString()
}

function Get-FileAbsence {
    param([string]$Path, [string]$Because)
    if ([IO.File]::Exists($Path)) { New-Difference -What "file ${Path}: $Because" -Is 'present' -Want $null }
}

function Get-RenderedFilesDifference {
    param($Files, [string]$Service = '')
    $disrupts = $Service -ne '' -and (Test-RestartDisruption $Service)
    foreach ($path in $Files.Keys | Sort-Object) { Get-FileDifference $path (Expand-Known $Files[$path]) -Disrupts:$disrupts }
}

function Set-RenderedFile {
    param($Files, [string]$Service = '')
    foreach ($path in $Files.Keys | Sort-Object) {
        if (-not (Get-RenderedFilesDifference @{ $path = $Files[$path] })) { continue }
        if ($Service -ne '') { Save-RestartNeed $Service }
        Set-FileText $path (Assert-Known $Files[$path])
    }
}

function Complete-Service {
    # A service as the steps describe it, its places filled and what it does not say set to what is usual. `unknown` lists
    # the members and parameters whose text has a place that cannot be filled before the join.
    param([hashtable]$Service)
    $complete = @{ start = 'auto'; depends = @(); environment = @(); parameters = @{} }
    $unknown = @()
    foreach ($name in $Service.Keys) {
        $complete[$name] = Complete-Value $Service[$name]
        if (-not (Test-KnownText -Text "$($Service[$name])")) { $unknown += $name }
    }
    foreach ($name in @($complete.parameters.Keys)) {
        if (-not (Test-KnownText -Text "$($complete.parameters[$name])")) { $unknown += $name }
        $complete.parameters[$name] = Complete-Value $complete.parameters[$name]
    }
    $complete.unknown = $unknown
    $complete
}

function Test-KnownText {
    # Whether every place <<name>> of the text can be filled now.
    param([string]$Text)
    $null -ne (Expand-Known $Text)
}

function Complete-Value {
    param($Value)
    if ($Value -is [array]) { return , [string[]]@($Value | ForEach-Object { Complete-Text $_ }) }
    if ($Value -is [string]) { return (Complete-Text $Value) }
    $Value
}

function Complete-Text {
    param([string]$Text)
    $filled = Expand-Known $Text
    if ($null -eq $filled) { return ($Text -replace '<<[a-z0-9_]+>>', (Get-UnknownText)) }
    $filled
}

function Get-ForeignFile {
    param([string]$Folder, $Own)
    if (-not [IO.Directory]::Exists($Folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Folder)) {
        if (-not $Own.ContainsKey($path) -and $path -match '\.(conf|conflist|json)$') { $path }
    }
}
