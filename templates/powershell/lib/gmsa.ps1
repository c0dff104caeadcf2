# SUMMARY Looks whether this machine can get credentials of group managed service accounts.

function Test-Gmsa {
    # Faults of a machine whose pods are to run as accounts of Domain. Plugin: the CLSID, in braces, of a Container Credential Guard
    # plug-in, which takes the place of membership in the domain.
    param([string]$Domain, [string]$Plugin)
    if ($Plugin) { Test-CredentialPlugin -Plugin $Plugin } else { Test-Membership -Domain $Domain }
    Test-Controller -Domain $Domain
    # Kerberos refuses tickets across five minutes (learn.microsoft.com, "Maximum tolerance for computer clock synchronization").
    $off = Get-ClockText
    if ($off) { New-Fault -Id 'ClockOff' -Message "the machine's clock is $off, and Kerberos takes five minutes" }
}

function Test-Membership {
    # Faults where the machine is in no domain, in another one, or its domain does not trust it any more.
    param([string]$Domain)
    $system = Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'PartOfDomain', 'Domain'
    if (-not $system.PartOfDomain -or $system.Domain -ne $Domain) {
        $is = if ($system.PartOfDomain) { "a member of $($system.Domain)" } else { 'in no domain' }
        return (New-Fault -Id 'GmsaDomain' -Message "this machine is $is, and the accounts are of $Domain")
    }
    # It asks Netlogon of this machine, so a remote session without delegation may do so.
    if (-not (Test-ComputerSecureChannel)) {
        New-Fault -Id 'GmsaChannel' -Message "$Domain does not take this machine's password: the secure channel is broken"
    }
}

function Test-Controller {
    # A fault where no domain controller answers. The controllers register the domain's name with their own addresses
    # (learn.microsoft.com, LdapIpAddress record of Netlogon). 88: Kerberos, 389: LDAP, 445: SMB.
    param([string]$Domain)
    $silent = @(foreach ($port in @(88, 389, 445)) { if (-not (Test-Port -Name $Domain -Port $port)) { $port } })
    if ($silent) {
        New-Fault -Id 'GmsaController' -Message "no domain controller of $Domain answers on TCP $($silent -join ', ')"
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

function Test-CredentialPlugin {
    # Faults where the plug-in is not registered with Container Credential Guard and COM, or others may write its library
    # (learn.microsoft.com/windows/win32/api/ccgplugins/nn-ccgplugins-iccgdomainauthcredentials).
    param([string]$Plugin)
    if (-not (Test-RegistryKey -Path "SYSTEM\CurrentControlSet\Control\CCG\COMClasses\$Plugin")) {
        New-Fault -Id 'GmsaPlugin' -Message "Container Credential Guard has no plug-in $Plugin"
    }
    $library = Read-Registry -Path "SOFTWARE\Classes\CLSID\$Plugin\InprocServer32" -Name ''
    if (-not $library) { return (New-Fault -Id 'GmsaPlugin' -Message "COM has no class $Plugin") }
    $path = [Environment]::ExpandEnvironmentVariables("$library")
    if (-not [IO.File]::Exists($path)) { return (New-Fault -Id 'GmsaPlugin' -Message "the plug-in's library $path is missing") }
    $doubt = Get-PathDoubt -Path $path -Program
    if ($doubt) { New-Fault -Id 'GmsaPlugin' -Message "the plug-in's library $path is not believed: $doubt" }
}
