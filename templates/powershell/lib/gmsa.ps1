# SUMMARY Reports whether this machine can get credentials of group managed service accounts.
# These are notices: a node carries other pods without them, and winboot changes none of it.

function Get-GmsaNotice {
    # A notice for each thing that a machine lacks whose pods are to run as accounts of Domain. Plugin: the CLSID, in braces, of a
    # Container Credential Guard plug-in, which takes the place of membership in the domain.
    param([string]$Domain, [string]$Plugin)
    if ($Plugin) { Get-CredentialPluginNotice -Plugin $Plugin } else { Get-MembershipNotice -Domain $Domain }
    # The controllers register the domain's name with their own addresses (learn.microsoft.com, LdapIpAddress record of Netlogon).
    # 88: Kerberos, 389: LDAP, 445: SMB.
    $silent = @(foreach ($port in @(88, 389, 445)) { if (-not (Test-Port -Name $Domain -Port $port)) { $port } })
    if ($silent) {
        New-Difference -Key 'gmsa:controllers' -What "gmsa: domain controllers of $Domain" -Is "silent on TCP $($silent -join ', ')" -Want 'an answer' -Policy
    }
    # Kerberos refuses tickets across five minutes (learn.microsoft.com, "Maximum tolerance for computer clock synchronization").
    $off = Get-ClockText
    if ($off) { New-Difference -Key 'gmsa:clock' -What 'gmsa: clock' -Is $off -Want 'within five minutes' -Policy }
}

function Get-MembershipNotice {
    # A notice where the machine is in no domain, in another one, or its domain does not trust it any more.
    param([string]$Domain)
    $system = Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'PartOfDomain', 'Domain'
    if (-not $system.PartOfDomain -or $system.Domain -ne $Domain) {
        $is = if ($system.PartOfDomain) { $system.Domain } else { 'none' }
        return (New-Difference -Key 'gmsa:domain' -What 'gmsa: domain of this machine' -Is $is -Want $Domain -Policy)
    }
    # It asks Netlogon of this machine, so a remote session without delegation may do so.
    if (-not (Test-ComputerSecureChannel)) {
        New-Difference -Key 'gmsa:channel' -What 'gmsa: secure channel to the domain' -Is 'broken' -Want 'in order' -Policy
    }
}

function Test-Port {
    # Whether a TCP connection to a name comes about within 3 seconds.
    param([string]$Name, [int]$Port)
    $client = New-TcpClient -Address $Name
    try { Test-TaskEnd -Task $client.ConnectAsync($Name, $Port) -Seconds 3 }
    catch [AggregateException] { $false }
    finally { $client.Close() }
}

function Get-CredentialPluginNotice {
    # A notice where the plug-in is not registered with Container Credential Guard and COM, or others may write its library
    # (learn.microsoft.com/windows/win32/api/ccgplugins/nn-ccgplugins-iccgdomainauthcredentials).
    param([string]$Plugin)
    $library = [Environment]::ExpandEnvironmentVariables("$(Read-Registry -Path "SOFTWARE\Classes\CLSID\$Plugin\InprocServer32" -Name '')")
    $is = if (-not (Test-RegistryKey -Path "SYSTEM\CurrentControlSet\Control\CCG\COMClasses\$Plugin")) { 'unknown to Container Credential Guard' }
    elseif (-not $library) { 'unknown to COM' }
    elseif (-not [IO.File]::Exists($library)) { "without its library $library" }
    else { Get-PathDoubt -Path $library -Program }
    if ($is) { New-Difference -Key 'gmsa:plugin' -What "gmsa: plug-in $Plugin" -Is $is -Want 'registered, and in a safe place' -Policy }
}
