# SUMMARY Reports whether this machine can get credentials of managed accounts; installs a plug-in.
# What the domain lacks is a notice: a node carries other pods without it, and winboot does not change it.

function Get-ReachNotice {
    # A notice where no controller of Domain answers, or the clock is off.
    param([string]$Domain)
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

function Get-PluginValue {
    # The registry values that make a library a COM class which Windows activates in a process of its own (dllhost.exe): path, name,
    # value, kind each (microsoft/Azure-Key-Vault-Plugin-gMSA src/CCGAKVPlugin/InstallPlugin.ps1; learn.microsoft.com/windows/win32/com,
    # DllSurrogate).
    param([string]$Plugin, [string]$App, [string]$Library)
    # O:BAG:BAD:(A;;0xb;;;SY)(A;;0xb;;;SU): SYSTEM and services run and start it on this machine, as that script has it.
    $access = [Convert]::FromBase64String('AQAEgEQAAABUAAAAAAAAABQAAAACADAAAgAAAAAAFAALAAAAAQEAAAAAAAUSAAAAAAAUAAsAAAABAQAAAAAABQYAAAABAgAAAAAABSAAAAAgAgAAAQIAAAAAAAUgAAAAIAIAAA==')
    $class = "SOFTWARE\Classes\CLSID\$Plugin"
    @{ path = "SOFTWARE\Classes\AppID\$App"; name = 'AccessPermission'; value = $access; kind = 'Binary' }
    @{ path = "SOFTWARE\Classes\AppID\$App"; name = 'LaunchPermission'; value = $access; kind = 'Binary' }
    @{ path = "SOFTWARE\Classes\AppID\$App"; name = 'DllSurrogate'; value = ''; kind = 'String' }
    @{ path = $class; name = 'AppID'; value = $App; kind = 'String' }
    @{ path = "$class\InprocServer32"; name = ''; value = $Library; kind = 'String' }
    @{ path = "$class\InprocServer32"; name = 'ThreadingModel'; value = 'Both'; kind = 'String' }
}

function Get-ClassPath {
    # Where Container Credential Guard looks for the classes that it may activate.
    'SYSTEM\CurrentControlSet\Control\CCG\COMClasses'
}

function Get-PluginDifference {
    # A difference for each value that COM lacks, and one where Container Credential Guard does not have the class.
    param([string]$Plugin, [object[]]$Values)
    foreach ($one in $Values) {
        Compare-Wanted -Key "gmsa:$($one.path)\$($one.name)" -What "gmsa: HKLM\$($one.path): $($one.name)" `
            -Is (Read-Registry -Path $one.path -Name $one.name) -Want $one.value
    }
    Compare-Wanted -Key 'gmsa:class' -What "gmsa: class $Plugin of Container Credential Guard" `
        -Is (Test-RegistryKey -Path "$(Get-ClassPath)\$Plugin") -Want $true
    Get-OpenKeyDifference
}

function Set-Plugin {
    # Registers the class with COM and Container Credential Guard. Returns nothing.
    param([string]$Plugin, [object[]]$Values)
    foreach ($one in Get-OpenKey) { Restore-KeyAccess -Former $one }
    foreach ($one in $Values) { Set-RegistryValue -Path $one.path -Name $one.name -Value $one.value -Kind $one.kind }
    $path = "$(Get-ClassPath)\$Plugin"
    if (Test-RegistryKey -Path $path) { return }
    $note = Read-RegistryNote -Path $path -Name ''
    $note.made = Get-MissingKey -Path $path
    Save-FormerValue -Kind 'CredentialClass' -Key $path -Value $note
    Invoke-ClassWork -Work { Write-Registry -Path $path -Name '' -Value '' -Kind 'String' }
}

function Restore-CredentialClass {
    # Deletes the class that a change registered.
    param([object]$Former)
    Invoke-ClassWork -Work { Restore-Registry -Former $Former }
}

function Invoke-ClassWork {
    # Does the work below COMClasses, as the owner of that key where Windows refuses it otherwise. Returns nothing. Microsoft documents
    # that administrators may write there (learn.microsoft.com, ICcgDomainAuthCredentials), but Microsoft's own installer takes the
    # ownership first (InstallPlugin.ps1, as above).
    param([scriptblock]$Work)
    try { & $Work }
    catch [UnauthorizedAccessException], [Security.SecurityException] { Invoke-OwnerWork -Key (Get-ClassPath) -Work $Work }
}
