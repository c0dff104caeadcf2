# SUMMARY Opens the mutex that lets one run at a time change this machine.

function Open-RunMutex {
    # The mutex, opened or made. Any user can be the first to make one of a known name, or an event or a semaphore; then it is
    # not used, and one takes its place whose name only administrators can read. The fence ends a run that still holds the other.
    try {
        $lock = New-PrivateMutex -Name 'Global\winboot'
        # An account that may not see its owner is not meant to have it.
        try { if (Test-Trusted -Sid $lock.GetAccessControl().GetOwner([Security.Principal.SecurityIdentifier]).Value) { return $lock } }
        catch [UnauthorizedAccessException] { $lock.Dispose() }
        $lock.Dispose()
    }
    # Another account's, or no mutex at all: .NET names ERROR_INVALID_HANDLE so (referencesource: system/threading/mutex.cs).
    catch [UnauthorizedAccessException], [Threading.WaitHandleCannotBeOpenedException] { $lock = $null }
    New-PrivateMutex -Name "Global\winboot-$(Get-MutexSuffix)"
}

function New-PrivateMutex {
    # A mutex that only SYSTEM and Administrators may open.
    param([string]$Name)
    $security = [Security.AccessControl.MutexSecurity]::new()
    $security.SetAccessRuleProtection($true, $false)
    foreach ($sid in @('S-1-5-18', 'S-1-5-32-544')) {
        $account = [Security.Principal.SecurityIdentifier]::new($sid)
        $security.AddAccessRule([Security.AccessControl.MutexAccessRule]::new($account, 'FullControl', 'Allow'))
    }
    $made = $false
    [Threading.Mutex]::new($false, $Name, [ref]$made, $security)
}

function Get-MutexSuffix {
    # Random text from the private state folder, written once.
    $path = Get-StatePath -Name 'mutex.txt'
    $suffix = Read-FileText -Path $path
    if (-not $suffix) {
        $suffix = [Guid]::NewGuid().ToString('N')
        Write-FileText -Path $path -Text $suffix -Private
    }
    $suffix
}
