# What exists only on the node: its address, the subnet around it, and what follows from its pod CIDR. Texts are
# rendered with <<name>> in these places. Source says where to find them out: node, node_ip (or nothing), server_host,
# server_port, kubectl, kubeconfig, and where kube-proxy needs an address of its own vip_store (kept free there) or
# vip_endpoint (the HNS endpoint that has it).

function Expand-Known {
    # The text with every <<name>> filled in; nothing while one of them cannot be known yet.
    param([string]$Text, [hashtable]$Source)
    $names = @([regex]::Matches($Text, '<<([a-z0-9_]+)>>') | ForEach-Object { $_.Groups[1].Value } | Sort-Object -Unique)
    if ($names.Count -eq 0) { return $Text }
    $known = Get-Known -Source $Source
    foreach ($name in $names) {
        if (-not $known.ContainsKey($name)) { return }
        $Text = $Text.Replace('<<' + $name + '>>', $known[$name])
    }
    $Text
}

function Assert-Known {
    # The text filled in, or the end of the step when something in it does not exist yet.
    param([string]$Text, [hashtable]$Source)
    $filled = Expand-Known -Text $Text -Source $Source
    if ($null -eq $filled) {
        Stop-Step -Id 'NotKnownYet' -Message 'an address that this needs is not known yet: the node has no pod CIDR or no address' `
            -Hint 'Check that the Node object has spec.podCIDR (kube-controller-manager --allocate-node-cidrs=true).'
    }
    $filled
}

function Get-Known {
    # All of them by name; one that does not exist yet is not in the table.
    param([hashtable]$Source)
    if (-not $script:Run.Cache.ContainsKey('Known')) { $script:Run.Cache['Known'] = Read-Known -Source $Source }
    $script:Run.Cache['Known']
}

function Read-Known {
    param([hashtable]$Source)
    $known = @{}
    $address = Get-NodeAddress -NodeIp $Source.node_ip -ServerHost $Source.server_host -ServerPort $Source.server_port
    if ($null -ne $address) {
        $known.node_ip = $address.ip
        $number = ConvertTo-AddressNumber $address.ip
        $size = [long][Math]::Pow(2, 32 - $address.prefix_length)
        $known.node_subnet = '{0}/{1}' -f (ConvertFrom-AddressNumber ($number - $number % $size)), $address.prefix_length
    }
    foreach ($cidr in @(Get-PodCidr -Source $Source)) {
        $family = ''
        if ($cidr.Contains(':')) { $family = '_v6' }
        $known['pod_cidr' + $family] = $cidr
        # HNS takes the first address as gateway; flanneld and win-bridge give the second to the host's own endpoint.
        $known['pod_gateway' + $family] = Get-CidrAddress -Cidr $cidr -Offset 1
        $known['pod_endpoint' + $family] = Get-CidrAddress -Cidr $cidr -Offset 2
        $known['pod_first' + $family] = Get-CidrAddress -Cidr $cidr -Offset 3
    }
    Read-SourceVip -Source $Source -Known $known
    $known
}

function Read-SourceVip {
    # Adds the address that kube-proxy answers from on an overlay: that of an endpoint which the solution's owner makes,
    # or one that is kept free in the store.
    param([hashtable]$Source, [hashtable]$Known)
    if ($Source.ContainsKey('vip_endpoint')) {
        $found = @(Get-HnsObject -Kind endpoints -Name $Source.vip_endpoint)
        if ($found.Count -gt 0) { $Known.source_vip = [string]$found[0].IPAddress }
    }
    elseif ($Source.ContainsKey('vip_store') -and $Known.ContainsKey('pod_cidr')) {
        $Known.source_vip = Get-SourceVip -Store $Source.vip_store -Cidr $Known.pod_cidr
    }
}

function Get-CidrAddress {
    # The address so many places after the start of a network: 10.244.3.0/24 and 2 give 10.244.3.2.
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
    # True when an address lies in a network of its family.
    param([string]$Cidr, [string]$Address)
    $base, $length = $Cidr.Split('/')
    $network = [Net.IPAddress]::Parse($base).GetAddressBytes()
    $bytes = [Net.IPAddress]::Parse($Address).GetAddressBytes()
    if ($network.Length -ne $bytes.Length) { return $false }
    $bits = [int]$length
    for ($at = 0; $bits -gt 0; $at++) {
        $mask = 255
        if ($bits -lt 8) { $mask = 256 - [int][Math]::Pow(2, 8 - $bits) }
        if (($network[$at] -band $mask) -ne ($bytes[$at] -band $mask)) { return $false }
        $bits -= 8
    }
    $true
}

function ConvertTo-AddressNumber {
    param([string]$Address)
    $number = [long]0
    foreach ($byte in [Net.IPAddress]::Parse($Address).GetAddressBytes()) { $number = $number * 256 + $byte }
    $number
}

function ConvertFrom-AddressNumber {
    param([long]$Number)
    $parts = foreach ($size in 16777216, 65536, 256, 1) { [long][Math]::Floor($Number / $size) % 256 }
    $parts -join '.'
}

function Get-RenderedFileDifference {
    # Compares a text file whose text may hold what only this machine knows.
    param([string]$Path, [string]$Text, [hashtable]$Source, [switch]$Disrupts)
    $want = Expand-Known -Text $Text -Source $Source
    if ($null -ne $want) { Get-FileDifference -Path $Path -Text $want -Disrupts:$Disrupts; return }
    New-Difference -What ('file {0}: content' -f $Path) -Is (ConvertTo-TextSummary (Read-FileText $Path)) -Want '(known after join)' -Disrupts:$Disrupts
}

function Get-FileAbsence {
    # A file that must not be there.
    param([string]$Path, [string]$Because)
    if ([IO.File]::Exists($Path)) { New-Difference -What ('file {0}: {1}' -f $Path, $Because) -Is 'present' -Want $null }
}

function Get-RenderedFilesDifference {
    # Compares several files: path to text.
    param([hashtable]$Files, [hashtable]$Source, [switch]$Disrupts)
    foreach ($path in @($Files.Keys | Sort-Object)) {
        Get-RenderedFileDifference -Path $path -Text $Files[$path] -Source $Source -Disrupts:$Disrupts
    }
}

function Set-RenderedFiles {
    # Writes those that differ. The service that reads them only at its start is noted for a restart first.
    param([hashtable]$Files, [hashtable]$Source, [string]$Service = '')
    foreach ($path in @($Files.Keys | Sort-Object)) {
        if (@(Get-RenderedFileDifference -Path $path -Text $Files[$path] -Source $Source).Count -eq 0) { continue }
        if ($Service -ne '') { Save-RestartNeed -Name $Service }
        Set-FileText -Path $path -Text (Assert-Known -Text $Files[$path] -Source $Source)
    }
}

function Complete-Service {
    # The wanted service with every <<name>> filled in; what cannot be known yet reads (known after join).
    param([hashtable]$Service, [hashtable]$Source)
    $complete = $Service.Clone()
    $complete.command_line = Complete-Text -Text $Service.command_line -Source $Source
    $complete.environment = @($Service.environment | ForEach-Object { Complete-Text -Text $_ -Source $Source })
    $complete.parameters = @{}
    foreach ($name in @($Service.parameters.Keys)) {
        $value = $Service.parameters[$name]
        if ($value -is [string]) { $value = Complete-Text -Text $value -Source $Source }
        elseif ($value -is [array]) { $value = [string[]]@($value | ForEach-Object { Complete-Text -Text $_ -Source $Source }) }
        $complete.parameters[$name] = $value
    }
    $complete
}

function Complete-Text {
    param([AllowEmptyString()][string]$Text, [hashtable]$Source)
    $filled = Expand-Known -Text $Text -Source $Source
    if ($null -eq $filled) { return [regex]::Replace($Text, '<<[a-z0-9_]+>>', '(known after join)') }
    $filled
}

function Assert-ServiceKnown {
    # Ends the step when a part of the service's definition does not exist yet.
    param([hashtable]$Service, [hashtable]$Source)
    [void](Assert-Known -Text $Service.command_line -Source $Source)
    foreach ($value in @($Service.parameters.Values)) { [void](Assert-Known -Text ([string]$value) -Source $Source) }
}

function Get-ForeignFile {
    # The files of a folder that are not ours: containerd takes the first valid one in the order of their names.
    param([string]$Folder, [hashtable]$Own)
    if (-not [IO.Directory]::Exists($Folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Folder)) {
        if (-not $Own.ContainsKey($path) -and $path -match '\.(conf|conflist|json)$') { $path }
    }
}
