# What exists only on the node fills the places <<name>> of rendered texts.

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
    if (-not $script:Run.Cache.ContainsKey('Known')) { $script:Run.Cache['Known'] = Read-Known }
    $script:Run.Cache['Known']
}

function Read-Known {
    $known = @{}
    $address = Get-NodeAddress
    if ($null -ne $address) {
        $known.node_ip = $address.ip
        $base = Get-NetworkBase $address.ip $address.prefix_length
        $known.node_subnet = "$base/$($address.prefix_length)"
    }
    foreach ($cidr in Get-PodCidr) {
        $family = ''
        if ($cidr.Contains(':')) { $family = '_v6' }
        $known["pod_cidr$family"] = $cidr
        # HNS takes the first address as gateway; flanneld and win-bridge give the second to the host's own endpoint.
        $known["pod_gateway$family"] = Get-CidrAddress -Cidr $cidr -Offset 1
        $known["pod_endpoint$family"] = Get-CidrAddress -Cidr $cidr -Offset 2
        $known["pod_first$family"] = Get-CidrAddress -Cidr $cidr -Offset 3
    }
    # An overlay's kube-proxy answers from an address of its own.
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
    param([string]$Cidr, [int]$Offset)
    $bytes = [Net.IPAddress]::Parse($Cidr.Split('/')[0]).GetAddressBytes()
    for ($at = $bytes.Length - 1; $Offset -gt 0 -and $at -ge 0; $at--) {
        $Offset += $bytes[$at]
        $bytes[$at] = [byte]($Offset % 256)
        $Offset = [int][Math]::Floor($Offset / 256)
    }
    [Net.IPAddress]::new($bytes).ToString()
}

function Test-CidrMember {
    param([string]$Cidr, [string]$Address)
    $base, $length = $Cidr.Split('/')
    (Get-NetworkBase $Address $length) -eq (Get-NetworkBase $base $length)
}

function Get-NetworkBase {
    # The first address of the network of that length which an address lies in.
    param([string]$Address, [int]$Length)
    $bytes = [Net.IPAddress]::Parse($Address).GetAddressBytes()
    for ($at = 0; $at -lt $bytes.Length; $at++) {
        $bits = [Math]::Max(0, [Math]::Min(8, $Length - 8 * $at))
        $bytes[$at] = [byte]($bytes[$at] -band (256 - [int][Math]::Pow(2, 8 - $bits)))
    }
    [Net.IPAddress]::new($bytes).ToString()
}

function Get-RenderedFileDifference {
    param([string]$Path, [string]$Text, [switch]$Disrupts)
    $want = Expand-Known $Text
    if ($null -ne $want) { Get-FileDifference -Path $Path -Text $want -Disrupts:$Disrupts; return }
    New-Difference -What "file ${Path}: content" -Is (ConvertTo-TextSummary (Read-FileText $Path)) -Want '(known after join)' -Disrupts:$Disrupts
}

function Get-FileAbsence {
    param([string]$Path, [string]$Because)
    if ([IO.File]::Exists($Path)) { New-Difference -What "file ${Path}: $Because" -Is 'present' -Want $null }
}

function Get-RenderedFilesDifference {
    # Service is the one that must start anew to read them.
    param($Files, [string]$Service = '')
    $disrupts = $Service -ne '' -and (Test-RestartDisrupts $Service)
    foreach ($path in $Files.Keys | Sort-Object) {
        Get-RenderedFileDifference -Path $path -Text $Files[$path] -Disrupts:$disrupts
    }
}

function Set-RenderedFiles {
    # The service that reads them only at its start is noted for a restart before the first byte.
    param($Files, [string]$Service = '')
    foreach ($path in $Files.Keys | Sort-Object) {
        if (@(Get-RenderedFileDifference -Path $path -Text $Files[$path]).Count -eq 0) { continue }
        if ($Service -ne '') { Save-RestartNeed $Service }
        Set-FileText $path (Assert-Known $Files[$path])
    }
}

function Complete-Service {
    # With defaults, and every <<name>> filled in; what cannot be known yet reads (known after join).
    param($Service)
    $complete = @{ start = 'auto'; depends = @(); environment = @(); parameters = @{} }
    foreach ($name in $Service.Keys) { $complete[$name] = $Service[$name] }
    $complete.command_line = Complete-Text $complete.command_line
    $complete.environment = @($complete.environment | ForEach-Object { Complete-Text $_ })
    $parameters = @{}
    foreach ($name in $complete.parameters.Keys) {
        $value = $complete.parameters[$name]
        if ($value -is [string]) { $value = Complete-Text $value }
        elseif ($value -is [array]) { $value = [string[]]@($value | ForEach-Object { Complete-Text $_ }) }
        $parameters[$name] = $value
    }
    $complete.parameters = $parameters
    $complete
}

function Complete-Text {
    param([string]$Text)
    $filled = Expand-Known $Text
    if ($null -eq $filled) { return [regex]::Replace($Text, '<<[a-z0-9_]+>>', '(known after join)') }
    $filled
}

function Get-ForeignFile {
    # containerd takes the first valid one in the order of their names.
    param([string]$Folder, $Own)
    if (-not [IO.Directory]::Exists($Folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Folder)) {
        if (-not $Own.ContainsKey($path) -and $path -match '\.(conf|conflist|json)$') { $path }
    }
}
