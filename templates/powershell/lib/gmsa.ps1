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
    # A notice where the machine is in no domain, in another one, or its domain does not trust it any more, or refuses it an account.
    param([string]$Domain, [string[]]$Accounts)
    $system = Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'PartOfDomain', 'Domain'
    if (-not $system.PartOfDomain -or $system.Domain -ne $Domain) {
        $is = if ($system.PartOfDomain) { $system.Domain } else { 'none' }
        return (New-Difference -Key 'gmsa:domain' -What 'gmsa: domain of this machine' -Is $is -Want $Domain -Policy)
    }
    # It asks Netlogon of this machine, so a remote session without delegation may do so.
    $is = try { if (Test-ComputerSecureChannel) { '' } else { 'broken' } }
    # Netlogon cannot verify it, for example where no controller answers: the cmdlet throws (its VerifySecureChannel).
    catch [InvalidOperationException] { "not verified: $($_.Exception.Message)" }
    if ($is) { New-Difference -Key 'gmsa:channel' -What 'gmsa: secure channel to the domain' -Is $is -Want 'in order' -Policy }
    Get-AccountNotice -Accounts $Accounts
}

function Get-AccountNotice {
    # A notice for each account whose password this machine could not read at its last start, or that was not tested then. Nothing
    # without the module that tests it.
    param([string[]]$Accounts)
    if (-not (Test-AccountModule)) { return }
    $noted = Read-StateJson -Name 'gmsa.json'
    $current = (Read-Member -Object $noted -Names 'boot_id') -eq (Get-MachineIdentity).BootId
    foreach ($name in $Accounts) {
        $is = if ($current) { "$(Read-Member -Object $noted -Names 'accounts', $name)" } else { '' }
        if ($is -eq 'True') { continue }
        # A computer gets tickets with its new groups when it restarts (learn.microsoft.com, gmsa-troubleshooting).
        $want = 'in PrincipalsAllowedToRetrieveManagedPassword, then a restart'
        if ($is -eq 'False') { $is = 'this machine may not read its password' }
        if (-not $is) { $is = 'not tested since the start of the machine'; $want = 'a test by the startup task' }
        New-Difference -Key "gmsa:account:$name" -What "gmsa: account $name" -Is $is -Want $want -Policy
    }
}

function Test-AccountModule {
    # Whether the feature RSAT-AD-PowerShell is there, with its module among those of Windows.
    [IO.Directory]::Exists((Get-ModulePath -Name 'ActiveDirectory'))
}

function Save-AccountTest {
    # Notes for each account whether this machine may read its password. SYSTEM asks the domain as the machine's account
    # (learn.microsoft.com/windows/win32/services/localsystem-account), which the domain authorizes. A remote session cannot ask: it has no
    # credentials for a second machine (learn.microsoft.com/powershell/scripting/security/remoting/ps-remoting-second-hop).
    param([string[]]$Accounts)
    if (-not (Test-AccountModule) -or -not (Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'PartOfDomain').PartOfDomain) { return }
    $found = @{}
    $until = [DateTime]::UtcNow.AddSeconds(60)
    foreach ($name in $Accounts) {
        # At the start of the machine the domain may not be reached yet.
        $test = { $found[$name] = Read-AccountAnswer -Name $name; $found[$name] -notlike 'error: *' }
        [void](Wait-Until -Test $test -Seconds ([Math]::Max(0, ($until - [DateTime]::UtcNow).TotalSeconds)) -Pause 5000)
    }
    Write-StateJson -Name 'gmsa.json' -Value @{ boot_id = (Get-BootId); accounts = $found }
}

function Read-AccountAnswer {
    # True or False as text, whether the account is ready for use on this machine, or error: and why the domain did not answer
    # (learn.microsoft.com/powershell/module/activedirectory/test-adserviceaccount).
    param([string]$Name)
    try { "$(Test-ADServiceAccount -Identity $Name -WarningAction SilentlyContinue)" }
    # Its types of errors are the module's own, and known only where it is loaded.
    catch { "error: $($_.Exception.Message)" }
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
    $library = Get-ClassLibrary -Path "SOFTWARE\Classes\CLSID\$Plugin\InprocServer32"
    $is = if (-not (Test-RegistryKey -Path "SYSTEM\CurrentControlSet\Control\CCG\COMClasses\$Plugin")) { 'unknown to Container Credential Guard' }
    elseif (-not $library) { 'unknown to COM' }
    elseif (-not [IO.File]::Exists($library)) { "without its library $library" }
    else { Get-PathDoubt -Path $library -Program }
    if ($is) { New-Difference -Key 'gmsa:plugin' -What "gmsa: plug-in $Plugin" -Is $is -Want 'registered, and in a safe place' -Policy }
}

function Get-ClassLibrary {
    # The library that a class registered below this key comes from, or ''. A class of .NET names the runtime without a folder, and its
    # own library in CodeBase where it is not in the assembly cache: an address without escapes (referencesource, mscorlib
    # RegistrationServices.cs: Assembly.CodeBase).
    param([string]$Path)
    $base = "$(Read-Registry -Path $Path -Name 'CodeBase')"
    if ($base) { return ($base -replace '^file:///').Replace('/', '\') }
    $library = [Environment]::ExpandEnvironmentVariables("$(Read-Registry -Path $Path -Name '')")
    if ($library -match '^[^\\]+$') { $library = Get-SystemProgram -Name $library }
    $library
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
    # A difference for each value that COM lacks, and one where Container Credential Guard does not have the class, or the account that
    # it runs as, perhaps a service's, does not read the library.
    param([string]$Plugin, [string]$Library, [object[]]$Values)
    Compare-Wanted -Key 'gmsa:library' -What "gmsa: library ${Library}: readable by services" -Is (Test-UserReadable -Path $Library) -Want $true
    foreach ($one in $Values) {
        Compare-Wanted -Key "gmsa:$($one.path)\$($one.name)" -What "gmsa: HKLM\$($one.path): $($one.name)" `
            -Is (Read-Registry -Path $one.path -Name $one.name) -Want $one.value
    }
    Compare-Wanted -Key 'gmsa:class' -What "gmsa: class $Plugin of Container Credential Guard" `
        -Is (Test-RegistryKey -Path "$(Get-ClassPath)\$Plugin") -Want $true
    Get-OpenKeyDifference
}

function Test-UserReadable {
    # Whether BUILTIN\Users may read and run a file, and with them each account that logged on.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path)) { return $false }
    $rules = [IO.File]::GetAccessControl($Path).GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])
    $read = [int][Security.AccessControl.FileSystemRights]::ReadAndExecute
    @($rules | Where-Object { $_.IdentityReference.Value -eq 'S-1-5-32-545' -and ([int]$_.FileSystemRights -band $read) -eq $read }).Count -gt 0
}

function Set-Plugin {
    # Registers the class with COM and Container Credential Guard. Returns nothing.
    param([string]$Plugin, [string]$Library, [object[]]$Values)
    # What was downloaded has the rules of the folder that it was downloaded to.
    Set-PrivateAccess -Path $Library -Readable
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

function Get-ProviderPath {
    # Where Windows keeps an event provider: the names of the files with its resources and with the texts of its events
    # (learn.microsoft.com/windows-hardware/drivers/develop/porting-inf-to-driver-package-isolation).
    param([string]$Provider)
    "SOFTWARE\Microsoft\Windows\CurrentVersion\WINEVT\Publishers\$Provider"
}

function Get-ProviderDifference {
    # A difference for each of those names that is not the plug-in's library.
    param([string]$Provider, [string]$Library)
    foreach ($name in @('ResourceFileName', 'MessageFileName')) {
        Compare-Wanted -Key "gmsa:provider:$name" -What "gmsa: event provider ${Provider}: $name" `
            -Is (Read-Registry -Path (Get-ProviderPath -Provider $Provider) -Name $name) -Want $Library -IgnoreCase
    }
}

function Set-Provider {
    # Registers the manifest's provider and logs. The manifest names the library in another folder (CCGAKVPluginEvents.man of
    # microsoft/Azure-Key-Vault-Plugin-gMSA: System32), which /rf and /mf replace (EventRegister User's Guide of
    # Microsoft.Diagnostics.Tracing). Returns nothing.
    param([string]$Provider, [string]$Library, [string]$Manifest)
    $path = Get-ProviderPath -Provider $Provider
    if (-not (Test-RegistryKey -Path $path)) {
        Save-FormerValue -Kind 'EventManifest' -Key $path -Value @{ path = $path; manifest = $Manifest }
        Invoke-EventTool -Arguments @('im', $Manifest, "/rf:$Library", "/mf:$Library")
        if (-not (Test-RegistryKey -Path $path)) {
            Invoke-EventTool -Arguments @('um', $Manifest)
            Stop-Step -Id 'ProviderMissing' -Message "the manifest $Manifest has no event provider $Provider"
        }
    }
    # Another program may have registered it, with its own library.
    foreach ($one in Get-ProviderDifference -Provider $Provider -Library $Library) {
        Set-RegistryValue -Path $path -Name ($one.key -replace '^gmsa:provider:') -Value $Library -Kind 'ExpandString'
    }
}

function Restore-EventManifest {
    # Takes the provider and its logs away. wevtutil needs the manifest for this.
    param([object]$Former)
    if (-not (Test-RegistryKey -Path $Former.path)) { return }
    $doubt = if ([IO.File]::Exists($Former.manifest)) { Get-PathDoubt -Path $Former.manifest } else { 'absent' }
    if ($doubt) {
        return (New-Difference -Key 'gmsa:manifest' -What "gmsa: event manifest $($Former.manifest)" -Is $doubt -Want 'there for wevtutil um')
    }
    Invoke-EventTool -Arguments @('um', $Former.manifest)
}

function Invoke-EventTool {
    # Registers (im) or removes (um) what a manifest names (learn.microsoft.com/windows-server/administration/windows-commands/wevtutil).
    param([string[]]$Arguments)
    [void](Assert-Program -Path (Get-SystemProgram -Name 'wevtutil.exe') -Arguments $Arguments)
}
