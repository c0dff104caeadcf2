# What the lab believes of Windows without a source (docs/unsourced.md). `make golden` writes this file.
function Get-HnsNetwork {
    # Windows' own command gives the same objects, and waits for them without end.
    Get-HnsObject -Kind networks
}

$more += @(
    @{ Name = 'unsourced-hns-versions'; Seconds = 10; Read = { Get-HnsNetwork | Select-Object -Property Name, Version } }
    @{ Name = 'unsourced-bitlocker-absent'; Seconds = 10; Read = { Get-WindowsFeature -Name BitLocker | Select-Object -Property InstallState } }
    @{ Name = 'unsourced-interface-registry'; Seconds = 10; Read = { Get-ChildItem -Path 'HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters' | Select-Object -ExpandProperty Name } }
    @{ Name = 'unsourced-delayed-start'; Seconds = 10; Read = { Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Control' | Select-Object -Property AutoStartDelay, ServicesPipeTimeout } }
    @{ Name = 'unsourced-service-events'; Seconds = 10; Read = { Get-WinEvent -FilterHashtable @{LogName = 'System'; ProviderName = 'Service Control Manager'; Id = 7031, 7034} -MaxEvents 5 -ErrorAction SilentlyContinue | Select-Object -Property Id, Properties } }
    @{ Name = 'unsourced-boot-events'; Seconds = 10; Read = { Get-WinEvent -FilterHashtable @{LogName = 'System'; Id = 12, 13, 41, 1074, 6005, 6006, 6008} -MaxEvents 20 | Select-Object -Property TimeCreated, ProviderName, Id } }
    @{ Name = 'unsourced-exclusions-of-policy'; Seconds = 10; Read = { Get-MpPreference | Select-Object -Property ExclusionPath, ExclusionProcess } }
    @{ Name = 'unsourced-firewall-rule-versions'; Seconds = 10; Read = { (Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules').'WINRM-HTTP-In-TCP' } }
    @{ Name = 'unsourced-rules-of-the-drive'; Seconds = 10; Read = { [IO.Directory]::GetAccessControl('C:\') | Select-Object -Property Sddl } }
    @{ Name = 'unsourced-rules-of-program-files'; Seconds = 10; Read = { [IO.Directory]::GetAccessControl('C:\Program Files') | Select-Object -Property Sddl } }
    @{ Name = 'unsourced-rules-of-the-registry'; Seconds = 10; Read = { [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey('SOFTWARE').GetAccessControl() | Select-Object -Property Sddl } }
    @{ Name = 'unsourced-services-of-windows'; Seconds = 10; Read = { Get-CimInstance -ClassName Win32_Service | Select-Object -Property Name, StartMode } }
    @{ Name = 'unsourced-version-in-the-registry'; Seconds = 10; Read = { Get-ItemProperty -Path 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion' | Select-Object -Property CurrentBuildNumber, UBR, ProductName, ReleaseId, DisplayVersion, InstallationType } }
    @{ Name = 'unsourced-time-without-a-domain'; Seconds = 10; Read = { Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Services\W32Time\Parameters' | Select-Object -Property Type, NtpServer } }
    @{ Name = 'unsourced-modules-of-storage'; Seconds = 10; Read = { Get-Item -Path 'C:\Windows\System32\WindowsPowerShell\v1.0\Modules\*' -Include iSCSI, SmbShare, Storage | Select-Object -ExpandProperty FullName } }
    @{ Name = 'unsourced-iscsi-rules-off'; Seconds = 10; Read = { Get-NetFirewallRule -Name MsiScsi-In-TCP, MsiScsi-Out-TCP | Select-Object -Property Name, Enabled } }
    @{ Name = 'unsourced-firewall-of-remote-management'; Seconds = 10; Read = { Get-NetFirewallRule -Name 'WINRM*' | Select-Object -Property Name, Enabled, Profile } }
    @{ Name = 'unsourced-automatic-page-file'; Seconds = 10; Read = { Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management' | Select-Object -Property PagingFiles } }
)
