# winboot 0.1.0: takes back from the machine win-a1 what winboot did to it.
#
# This script CANNOT RUN YET: `winboot init` still has to find out what is missing, and join refuses until then:
#   missing  artifacts.sha256: containerd/2.3.4/containerd-2.3.4-windows-amd64.tar.gz
#   missing  artifacts.sha256: kubernetes/1.36.4/kubernetes-node-windows-amd64.tar.gz
#   missing  artifacts.sha256: kubectl/1.36.4/kubectl.exe
#   missing  artifacts.sha256: crictl/1.36.0/crictl-v1.36.0-windows-amd64.tar.gz
#   missing  artifacts.sha256: cni-plugins/1.7.1/cni-plugins-windows-amd64-v1.7.1.tgz
#   missing  artifacts.sha256: flannel-cni/1.7.1-flannel1/cni-plugin-flannel-windows-amd64-v1.7.1-flannel1.tgz
#   missing  artifacts.sha256: flannel/0.27.4/flanneld.exe
#
# What each step changed on this machine is put back, in this order. The step was there because
#   kube-proxy           services have no address on this node without it; it starts after the HNS network that it
#                        programs
#   kube-proxy-config    kube-proxy must name the HNS network, the host's endpoint and the node exactly, or services
#                        fail on this node
#   cni-config           a node is Ready as soon as this file is there, so it comes after the network it names
#   ipam-reservations    host-local would give a pod the address of the host's own endpoint, and after a hard restart it
#                        runs out of addresses
#   pod-network          making an HNS network rewires the adapter: sessions drop, and a static address, DNS servers and
#                        routes can vanish
#   flanneld             flanneld builds the pod network, keeps the routes to the other nodes, and renews its lease
#   flanneld-config      flanneld reads its network from a file whose names must be those of the CNI configuration and
#                        of kube-proxy
#   registration         the network needs the pod CIDR that the cluster gives to the Node; logs and exec need the
#                        serving certificate
#   kubelet              the kubelet makes the machine a node; it must outlive logons, come back after a crash, and
#                        leave a log
#   kubelet-config       several of the kubelet's defaults are for Linux and end it at once, or break each pod, on
#                        Windows
#   kubelet-credentials  the kubelet proves who it is by a client certificate; without a valid one it asks for it with a
#                        short-lived token
#   pause-image          every pod needs it first; pulling it now shows a wrong registry, proxy or Windows build before
#                        any pod hangs
#   containerd           the kubelet starts no pod without a container runtime, and containerd writes no log unless it
#                        is given a file
#   containerd-config    containerd's defaults look for CNI files where there are none, and its pause image must have
#                        this Windows build
#   artifacts            a program is what its hash says, whatever its version string or its date may claim
#   log-rotation         the one log of containerd grows without end, and neither NSSM nor kube-log-runner deletes old
#                        ones: the disk fills
#   postboot-task        a restart loses routes and leaves stale leases, and there may be no controller to fix them
#   firewall-rules       the control plane reaches kubelet, and the other nodes reach the pods, only through ports that
#                        are open
#   directories          a folder made in time has its access rules before the first secret is in it
#   dynamic-ports        each load-balanced service takes blocks of client ports; the default range is soon empty and
#                        touches NodePorts
#   system-settings      a page file, the right time and updates at a chosen hour keep a node from failing in ways that
#                        are hard to find
#   windows-features     containerd cannot start a container until the Containers feature is on and the machine has
#                        restarted
#   computer-name        logs, certificates and clones with one name are told apart by it; the kubelet is given the
#                        node's name as well
#   node-preflight       a wrong build, a missing right or no way to the API server is found out before the first write
#
# What winboot made is taken away, and what it found is put back as it was noted:
#   HNS networks        cbr0, External
#   Windows features    Containers
#   computer name       WIN-A1 (unless the machine is in a domain)
#   files               C:\k\kube-proxy.yaml, C:\k\kube-proxy.kubeconfig, C:\etc\cni\net.d\10-flannel.conflist,
#                       C:\etc\kube-flannel\net-conf.json, C:\k\flanneld.kubeconfig, C:\var\lib\kubelet\config.yaml,
#                       C:\etc\kubernetes\pki\ca.crt, C:\ProgramData\containerd\certs.d\docker.io\hosts.toml,
#                       C:\Program Files\containerd\config.toml, C:\k\crictl.yaml
#   files with secrets  C:\k\kubeconfig, C:\var\lib\kubelet\pki\kubelet-*
#   firewall rules      winboot-kubelet (in, TCP 10250), winboot-kube-proxy-health (in, TCP 10256),
#                       winboot-node-ports-tcp (in, TCP 30000-32767), winboot-node-ports-udp (in, UDP 30000-32767)
#   folders             C:\k, C:\var\lib\kubelet\pki, C:\ProgramData\containerd, C:\ProgramData\containerd\certs.d,
#                       C:\ProgramData\containerd\root, C:\ProgramData\containerd\state, C:\var\lib\kubelet,
#                       C:\Program Files\containerd\bin, C:\opt\cni\bin, C:\etc\kubernetes\pki, C:\etc\cni\net.d,
#                       C:\etc\kube-flannel, C:\var\lib\cni, C:\var\lib\cni\networks, C:\run\flannel, C:\var\log\pods,
#                       C:\var\log\containers, C:\var\log\containerd, C:\var\log\kubelet, C:\var\log\flanneld,
#                       C:\var\log\kube-proxy
#   images              registry.k8s.io/pause:3.10.2
#   page file           one that Windows manages, where there is none
#   ports are open to   any address
#   ports of clients    33000-65535 (tcp and udp)
#   programs            C:\Program Files\containerd\bin\containerd.exe, C:\Program Files\containerd\bin\ctr.exe,
#                       C:\Program Files\containerd\bin\containerd-shim-runhcs-v1.exe, C:\k\kubelet.exe,
#                       C:\k\kube-proxy.exe, C:\k\kube-log-runner.exe, C:\k\kubectl.exe, C:\k\crictl.exe, C:\k\nssm.exe,
#                       C:\opt\cni\bin\win-bridge.exe, C:\opt\cni\bin\host-local.exe, C:\opt\cni\bin\flannel.exe,
#                       C:\k\flanneld.exe
#   scheduled tasks     \winboot\logs (every hour), \winboot\boot (at each start of the machine)
#   services            kube-proxy, flanneld, kubelet, containerd
#   state               C:\ProgramData\winboot (journal, former values, this script for the tasks)
#
# <<name>> in a text stands for a value that only this machine or its Node object has; Expand-Known fills it in:
#   <<node_ip>>       the address of this machine that reaches the API server
#   <<node_subnet>>   the network that this address is in
#   <<pod_cidr>>      the IPv4 network that the cluster gives to the pods of this node
#   <<pod_gateway>>   the first address of the pods' network: their gateway
#   <<pod_endpoint>>  the second: this machine's own endpoint
#
# Mode Undo puts back what was there before winboot first changed it, as it was noted then. Nothing else is touched.
# Secrets come beside this text, in the parameter Secrets. Everything this script says is JSON, one event a line.
param(
    [string]$Mode = 'Undo',
    [hashtable]$Secrets = @{},
    [string]$RunId = '',
    [hashtable]$Facts = @{},
    # Which detached run this is. A task starts this file with -File, which passes text alone.
    [string]$Detached = ''
)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
# Functions of modules obey the global preference only.
$global:ErrorActionPreference = 'Stop'
# Progress bars would be sent to the controller, and cost more than the work.
$ProgressPreference = 'SilentlyContinue'

$plan = @{
    Winboot = '0.1.0'
    Node    = 'win-a1'
    Profile = 'flannel-host-gw'
    Digest  = 'fe1a52156f822de54dde95d7ee8940745376fd5149c846ea2147f534e16d3621'
}

# What most steps have to know of this node.
$script:Node = @{ node = 'win-a1'; node_ip = ''; server_host = '10.0.0.10'; server_port = 6443; pod_cidrs = @('10.244.0.0/16')
    kubectl = 'C:\k\kubectl.exe'; kubeconfig = 'C:\k\kubeconfig'; crictl = 'C:\k\crictl.exe'; crictl_config = 'C:\k\crictl.yaml' }

#region Library: the functions that the steps below use, directly or through another, each after those that it calls.
# "# ---- name" is the file of templates/powershell/lib in winboot's repository that the functions below it are from.
# ---- difference.ps1

function Get-UnknownText {
    # How a value is shown that exists only after the join.
    '(known after join)'
}

function ConvertTo-Shown {
    # A value as the text that people read: a list with commas, true and false in lower case; $null stays $null.
    param([object]$Value)
    if ($null -eq $Value) { return $null }
    if ($Value -is [bool]) { return ([string]$Value).ToLowerInvariant() }
    if ($Value -is [array]) { return ($Value -join ', ') }
    [string]$Value
}

function New-Difference {
    # One thing that is not as wanted, as an object for Read-Difference. Key names it for code and is unique within a step
    # (`service:state`); What, Is and Want are for people and never decide anything. Unknown: what is wanted cannot be
    # known before the join. Reboot, Disrupts (the network for a moment), Disturbs (running pods) say what correcting it
    # costs; Policy: somebody else holds it, so it is reported and not changed.
    param(
        [string]$What, [string]$Key = $What, [object]$Is, [object]$Want,
        [switch]$Unknown, [switch]$Reboot, [switch]$Disrupts, [switch]$Disturbs, [switch]$Policy
    )
    if ($Unknown -and $null -eq $Want) { $Want = Get-UnknownText }
    [pscustomobject]@{
        kind = 'difference'; key = $Key; what = $What; is = ConvertTo-Shown -Value $Is; want = ConvertTo-Shown -Value $Want
        unknown = [bool]$Unknown; reboot = [bool]$Reboot; disrupts = [bool]$Disrupts; disturbs = [bool]$Disturbs; policy = [bool]$Policy
    }
}

function New-Reboot {
    # What a change emits when it takes effect only after a restart of the machine.
    [pscustomobject]@{ kind = 'reboot' }
}

function Stop-Step {
    # Ends the step with an error: an id, a message, and a hint where a step of the profile's own has one (the
    # controller has the hints for winboot's ids). The prefix of the error's id tells these errors from all others.
    param([string]$Id, [string]$Message, [string]$Hint = '')
    throw [Management.Automation.ErrorRecord]::new([InvalidOperationException]::new($Message), "winboot.$Id", 'InvalidOperation', $Hint)
}

function ConvertTo-Problem {
    # An error as the problem of a step: id, message, hint, and the position where it is not one of ours.
    param([object]$Caught, [string]$OtherwiseId)
    $problem = @{ id = $OtherwiseId; message = $Caught.Exception.GetBaseException().Message; hint = ''; position = '' }
    $at = $Caught.InvocationInfo
    if ($Caught.FullyQualifiedErrorId -like 'winboot.*') {
        $problem.id = $Caught.FullyQualifiedErrorId.Substring(8)
        $problem.hint = [string]$Caught.TargetObject
    }
    elseif ($at) { $problem.position = "line $($at.ScriptLineNumber), column $($at.OffsetInLine)" }
    $problem
}

function Wait-Until {
    # Runs Test every Pause milliseconds until it returns true or the seconds are over; returns which of the two.
    param([scriptblock]$Test, [int]$Seconds, [int]$Pause = 1000)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    while (-not (& $Test)) {
        if ([DateTime]::UtcNow -gt $until) { return $false }
        Start-Sleep -Milliseconds $Pause
    }
    $true
}

# ---- access.ps1
# Who may do what with files and folders. Only owner, group and access rules are read and written here, by .NET: Set-Acl writes every
# section of a descriptor, so it would take audit entries away that it has not read.

function Read-Access {
    # The security object of a file or folder, without its audit entries.
    param([string]$Path)
    if ([IO.Directory]::Exists($Path)) { return [IO.Directory]::GetAccessControl($Path, 'Owner, Group, Access') }
    [IO.File]::GetAccessControl($Path, 'Owner, Group, Access')
}

function Get-AccessText {
    # Owner, group and access rules of a file or folder, as SDDL.
    param([string]$Path)
    (Read-Access -Path $Path).GetSecurityDescriptorSddlForm('Owner, Group, Access')
}

function Set-AccessText {
    # Gives a file or folder this owner and these access rules, and nothing else.
    param([string]$Path, [string]$Sddl)
    if ([IO.Directory]::Exists($Path)) {
        $security = [Security.AccessControl.DirectorySecurity]::new()
        $security.SetSecurityDescriptorSddlForm($Sddl, 'Owner, Group, Access')
        [IO.Directory]::SetAccessControl($Path, $security)
        return
    }
    $security = [Security.AccessControl.FileSecurity]::new()
    $security.SetSecurityDescriptorSddlForm($Sddl, 'Owner, Group, Access')
    [IO.File]::SetAccessControl($Path, $security)
}

function Get-PrivateAccess {
    # The SDDL of what only SYSTEM and Administrators may write, and with -Readable everybody may read and run.
    param([switch]$Folder, [switch]$Readable)
    $inherit = if ($Folder) { 'OICI' } else { '' }
    $users = if ($Readable) { "(A;$inherit;0x1200a9;;;BU)" } else { '' }
    "O:BAG:SYD:P(A;$inherit;FA;;;SY)(A;$inherit;FA;;;BA)$users"
}

function Set-PrivateAccess {
    # Gives a file or folder these rules, and Administrators as the owner.
    param([string]$Path, [switch]$Readable)
    Set-AccessText -Path $Path -Sddl (Get-PrivateAccess -Folder:([IO.Directory]::Exists($Path)) -Readable:$Readable)
}

function Test-Trusted {
    # Whether an account may own or write what SYSTEM runs: SYSTEM, Administrators, Windows' own installer, the built-in
    # administrator, and whoever runs this, who is an administrator.
    param([string]$Sid)
    $installer = 'S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464'
    if (@('S-1-5-18', 'S-1-5-32-544', $installer) -contains $Sid -or $Sid -match '^S-1-5-21-[0-9-]+-500$') { return $true }
    $Sid -eq [Security.Principal.WindowsIdentity]::GetCurrent().User.Value
}

function Get-Stranger {
    # Who has any right on a path besides SYSTEM and Administrators: SIDs, or null.
    param([string]$Path)
    $rules = (Read-Access -Path $Path).GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])
    $found = @($rules | ForEach-Object { $_.IdentityReference.Value } | Where-Object { @('S-1-5-18', 'S-1-5-32-544') -notcontains $_ })
    if ($found) { @($found | Sort-Object -Unique) -join ', ' } else { $null }
}

function Get-StrangeOwner {
    # The SID of an owner who is no administrator, or null. An owner may always change the rules.
    param([string]$Path)
    $owner = (Read-Access -Path $Path).GetOwner([Security.Principal.SecurityIdentifier]).Value
    if (Test-Trusted -Sid $owner) { $null } else { $owner }
}

function Get-StrangeWriter {
    # Who, besides those that are trusted, owns a path or has one of these rights on it: SIDs, or null. The usual rights are
    # all that change something: write and append data (2, 4), extended attributes (10), children (40), attributes (100),
    # delete (10000), rules (40000), owner (80000), and the generic ones. Rules for children count as well, but for -Itself.
    param([string]$Path, [int]$Rights = 0x500d0156, [switch]$Itself)
    $security = Read-Access -Path $Path
    $found = @(
        $security.GetOwner([Security.Principal.SecurityIdentifier]).Value
        foreach ($rule in $security.GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])) {
            # CREATOR OWNER is whoever creates something, and nobody else may.
            if ($rule.AccessControlType -ne 'Allow' -or $rule.IdentityReference.Value -eq 'S-1-3-0') { continue }
            if ($Itself -and ([int]$rule.PropagationFlags -band [int][Security.AccessControl.PropagationFlags]::InheritOnly)) {
                continue
            }
            if ([int]$rule.FileSystemRights -band $Rights) { $rule.IdentityReference.Value }
        }
    )
    $strange = @($found | Where-Object { -not (Test-Trusted -Sid $_) } | Sort-Object -Unique)
    if ($strange) { $strange -join ', ' } else { $null }
}

function Test-Link {
    # Whether a path is a junction, a symbolic link or another reparse point.
    param([string]$Path)
    $there = [IO.Directory]::Exists($Path) -or [IO.File]::Exists($Path)
    $there -and ([int][IO.File]::GetAttributes($Path) -band [int][IO.FileAttributes]::ReparsePoint) -ne 0
}

function Get-ParentPath {
    # The folders above a path, without the root of the drive, outermost first. Nothing for the root.
    param([string]$Path)
    $parts = $Path.TrimEnd('\').Split('\')
    for ($count = 2; $count -lt $parts.Count; $count++) { $parts[0..($count - 1)] -join '\' }
}

function Assert-NoLink {
    # Ends the step when the path, or a folder above it, is a link: whoever made it decides where our files go.
    param([string]$Path)
    foreach ($part in @(Get-ParentPath -Path $Path) + $Path) {
        if (Test-Link -Path $part) {
            Stop-Step -Id 'FolderIsLink' -Message "$part is a link to another place, and winboot follows none"
        }
    }
}

function Set-PrivateFolder {
    # Makes the folder, for SYSTEM and Administrators alone.
    param([string]$Path)
    Assert-NoLink -Path $Path
    [void][IO.Directory]::CreateDirectory($Path)
    if ((Get-Stranger -Path $Path) -or (Get-StrangeOwner -Path $Path)) { Set-PrivateAccess -Path $Path }
}

function Restore-Access {
    # Puts owner and access rules back on what is still there.
    param([object]$Former)
    if (-not [IO.Directory]::Exists($Former.path) -and -not [IO.File]::Exists($Former.path)) { return }
    if (Test-Link -Path $Former.path) { return }
    if ((Get-AccessText -Path $Former.path) -cne $Former.sddl) { Set-AccessText -Path $Former.path -Sddl $Former.sddl }
}

# ---- drive.ps1

function New-Run {
    # What this run is and knows, as the table that all functions share as $script:Run. Facts is what the controller
    # found out; what it did not send is as in the table below.
    param([string]$Mode, [string]$Id, [hashtable[]]$Steps, [hashtable]$Secrets, [hashtable]$Facts, [string]$Text)
    $known = @{
        NodeIsLive = $false; Drained = $false; TakeOver = $false; Adopt = $false
        Holder = ''; Detached = ''; Purpose = ''; Steps = ''; Addresses = @()
    }
    foreach ($name in $Facts.Keys) { $known[$name] = $Facts[$name] }
    @{
        Mode = $Mode; Id = $Id; Steps = $Steps; Secrets = $Secrets; Facts = $known
        # A signed copy is the same text with a comment behind it.
        Text = ($Text -csplit "`r`n# SIG # Begin signature block`r`n")[0]
        # Steps not to build upon, with the id of the reason.
        Unmet = @{}
        # Answers that cost something: read once, forgotten after each change.
        Cache = @{}
        Step = ''; Fence = 0; Sequence = 0
        # Lines of the journal that could not be written yet.
        Journal = [Collections.Generic.List[string]]::new()
    }
}

function Invoke-Block {
    # Runs one block of a step after its Values; returns what the block returns, nothing where the step has no such
    # block.
    param([hashtable]$Step, [string]$Block)
    $script:Run.Step = $Step.Name
    if (-not $Step.ContainsKey($Block)) { return }
    # Values sets variables, whatever their names: in a scope without the typed ones of this function, and what runs after it
    # is kept where they cannot reach.
    $script:Run.Prepare = $Step.Values
    $script:Run.Action = $Step[$Block]
    & {
        . $script:Run.Prepare
        & $script:Run.Action
    }
}

function New-Result {
    # The result of a step before anything has happened, as a table.
    @{ State = 'ok'; Differences = @(); Problem = $null; Reboot = $false; Detached = $null }
}

function Set-Failure {
    # Writes an error into the result of a step, and remembers that nothing may build on this step. Returns nothing.
    # Blocked is what was not tried: it waits for another step, a drain or a restart.
    param([hashtable]$Step, [hashtable]$Result, [Management.Automation.ErrorRecord]$Caught, [string]$OtherwiseId)
    $Result.Problem = ConvertTo-Problem -Caught $Caught -OtherwiseId $OtherwiseId
    $Result.State = 'failed'
    if (@('NeedsStep', 'NeedsDrain', 'PendingReboot') -contains $Result.Problem.id) { $Result.State = 'blocked' }
    $script:Run.Unmet[$Step.Name] = $Result.Problem.id
}

function Receive-Said {
    # Writes what a change or an undo emitted into the result: a wanted restart or a detached run. Anything else is an
    # error of the step. Returns nothing.
    param([hashtable]$Step, [hashtable]$Result, [object]$Thing)
    $kind = ''
    if ($Thing -is [Management.Automation.PSCustomObject]) { $kind = $Thing.kind }
    switch ($kind) {
        'reboot' { $Result.Reboot = $true }
        'detached' { $Result.Detached = $Thing }
        default { throw "the step $($Step.Name) emitted something it must not: $Thing" }
    }
}

function Read-Difference {
    # The differences that a step's look emits, one by one; nothing where it finds none. Anything else in its output is
    # an error: a line that a program printed must not pass for "nothing differs".
    param([hashtable]$Step)
    $seen = @{}
    foreach ($thing in Invoke-Block -Step $Step -Block 'Look') {
        if ($thing -isnot [Management.Automation.PSCustomObject] -or $thing.kind -ne 'difference') {
            throw "the look of step $($Step.Name) emitted something that is no difference: $thing"
        }
        if ($seen.ContainsKey($thing.key)) { throw "the look of step $($Step.Name) names two differences alike: $($thing.key)" }
        $seen[$thing.key] = $true
        $thing
    }
}

function ConvertTo-AsciiJson {
    # A value as JSON on one line in which every character beyond ASCII is escaped: no code page on the way can change
    # it.
    param([object]$Value)
    $json = ConvertTo-Json -InputObject $Value -Depth 8 -Compress
    [regex]::Replace($json, '[^\x20-\x7e]', { param($match) '\u{0:x4}' -f [int][char]$match.Value })
}

# ---- file.ps1

function Get-TextHash {
    # The sha256 of a text in UTF-8, in lower case.
    param([string]$Text)
    $bytes = [Security.Cryptography.SHA256]::Create().ComputeHash([Text.Encoding]::UTF8.GetBytes($Text))
    [BitConverter]::ToString($bytes).Replace('-', '').ToLowerInvariant()
}

function Invoke-Patient {
    # Does Work, which opens, replaces, renames or deletes File. While another program (a virus scanner, a backup, an
    # indexer) has it open, this is tried again, after 50 ms and then twice as long each time: with 9 tries for 13
    # seconds. Then the problem names the file; .NET's own messages about Move and Replace do not.
    param([string]$File, [scriptblock]$Work, [int]$Tries = 9)
    for ($try = 1; $true; $try++) {
        try { return (& $Work) }
        catch [IO.IOException], [UnauthorizedAccessException] {
            $code = $_.Exception.GetBaseException().HResult -band 0xFFFF
            if (@(39, 112) -contains $code) {
                Stop-Step -Id 'DiskFull' -Message "$File cannot be written: there is not enough space on the disk"
            }
            # Sharing and lock violation; ReplaceFile could not remove the old file, or rename the new one.
            $held = @(32, 33, 1175, 1176) -contains $code
            # Also what Windows says for a moment of a file that is being deleted (5) or replaced (2).
            $perhaps = @(2, 5) -contains $code
            if (-not $held -and -not ($perhaps -and $try -lt 3)) { throw }
            if ($try -ge $Tries) {
                if (-not $held) { throw }
                Stop-Step -Id 'FileInUse' -Message "$File is held open by another program: $($_.Exception.GetBaseException().Message)"
            }
        }
        Start-Sleep -Milliseconds (50 * [Math]::Pow(2, $try - 1))
    }
}

function Open-SharedFile {
    # A stream to read a file with. Whoever wants to write, rename or delete it meanwhile may.
    param([string]$Path)
    [IO.FileStream]::new($Path, [IO.FileMode]::Open, [IO.FileAccess]::Read, [IO.FileShare]'ReadWrite, Delete')
}

function Read-AnyFileByte {
    # The content of a file as one byte[], whoever wrote it: to be kept, never to be believed. Nothing when it is absent.
    param([string]$Path)
    # Between the two halves of a replacement a file is absent for a moment, with its successor beside it.
    for ($try = 1; -not [IO.File]::Exists($Path); $try++) {
        if ($try -gt 10 -or -not [IO.File]::Exists("$Path.winboot-new")) { return }
        Start-Sleep -Milliseconds 50
    }
    $content = [IO.MemoryStream]::new()
    Invoke-Patient -File $Path -Work {
        $content.SetLength(0)
        $stream = Open-SharedFile -Path $Path
        try { $stream.CopyTo($content) } finally { $stream.Dispose() }
    }
    , $content.ToArray()
}

function Open-FlushedFile {
    # A stream to write a file with that keeps nothing back: what is on the disk survives a power cut. The enums are cast:
    # as texts they fit another constructor as well.
    param([string]$Path, [string]$Mode)
    [IO.FileStream]::new($Path, [IO.FileMode]$Mode, [IO.FileAccess]::Write, [IO.FileShare]::Read, 65536, [IO.FileOptions]::WriteThrough)
}

function Write-FileByte {
    # Writes a file whole (Mode Create) or adds to its end (Append). It is on the disk when this returns: what is changed
    # next must not survive a power cut that this does not.
    param([string]$Path, [byte[]]$Bytes, [string]$Mode = 'Create', [int]$Tries = 9)
    Invoke-Patient -File $Path -Tries $Tries -Work {
        $stream = Open-FlushedFile -Path $Path -Mode $Mode
        try {
            $stream.Write($Bytes, 0, $Bytes.Length)
            $stream.Flush($true)
        }
        finally { $stream.Dispose() }
    }
}

function ConvertTo-FileByte {
    # A text as UTF-8 without a byte order mark, as one byte[].
    param([string]$Text)
    , [Text.UTF8Encoding]::new($false).GetBytes($Text)
}

function Clear-ReadOnly {
    # Takes the read-only mark off a file: Windows neither replaces nor deletes one that has it. Returns nothing.
    param([string]$Path)
    if ([IO.File]::GetAttributes($Path) -band [IO.FileAttributes]::ReadOnly) { [IO.File]::SetAttributes($Path, 'Normal') }
}

function Remove-OldFile {
    # Deletes a file that was set aside. What still runs or is being read is on the list, and waits for Clear-OldFile.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path)) { return }
    try {
        Clear-ReadOnly -Path $Path
        [IO.File]::Delete($Path)
    }
    catch [IO.IOException], [UnauthorizedAccessException] { return }
}

function Complete-OldFile {
    # Whether the file of such a line is gone now.
    param([string]$Line)
    $path, $place = $Line.Split('|')
    if ([IO.File]::Exists($path) -and $place -and -not [IO.File]::Exists($place)) {
        try { [IO.File]::Move($path, $place) } catch [IO.IOException], [UnauthorizedAccessException] { return $false }
    }
    Remove-OldFile -Path $path
    -not [IO.File]::Exists($path)
}

# ---- service.ps1
# Read from the registry, written by sc.exe: the control manager keeps its own copy.

function Get-ServicePath {
    # The registry key of a service, below HKEY_LOCAL_MACHINE.
    param([string]$Name)
    "SYSTEM\CurrentControlSet\Services\$Name"
}

function ConvertFrom-FailureAction {
    # The recovery of a service as text: "restart/5000 restart/5000 reset=86400"; '' where it has none. The bytes are a
    # SERVICE_FAILURE_ACTIONS structure of winsvc.h.
    # Reset period, two unused, count, offset; then pairs of action (1: restart) and delay.
    param([object]$Bytes)
    $raw = [byte[]]@($Bytes)
    if ($raw.Length -lt 20) { return '' }
    # No more than there are bytes for, whatever the count says.
    $count = [Math]::Min([BitConverter]::ToInt32($raw, 12), [Math]::Floor(($raw.Length - 20) / 8))
    $actions = for ($index = 0; $index -lt $count; $index++) {
        $kind = [BitConverter]::ToInt32($raw, 20 + 8 * $index)
        if ($kind -eq 1) { $kind = 'restart' }
        "$kind/$([BitConverter]::ToInt32($raw, 24 + 8 * $index))"
    }
    "$($actions -join ' ') reset=$([BitConverter]::ToInt32($raw, 0))"
}

function Get-ServiceState {
    # Running, Stopped and so on; nothing where there is no such service. Names of this enumeration, never localized text.
    param([string]$Name)
    $found = @(Get-Service -Name $Name -ErrorAction SilentlyContinue)
    if ($found.Count -eq 1) { $found[0].Status.ToString() }
}

function ConvertTo-DependList {
    # What sc.exe takes for the services that one depends on.
    # sc.exe clears the list at a lone slash.
    param([string[]]$Names)
    $list = @($Names | Where-Object { $_ }) -join '/'
    if ($list) { $list } else { '/' }
}

function Get-ServiceEnd {
    # How a stopped service ended, for a message: " (exit code 1067)". Nothing of one that runs.
    param([string]$Name)
    $found = Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'State', 'ExitCode', 'ServiceSpecificExitCode'
    if (-not $found -or $found.State -ne 'Stopped' -or $found.ExitCode -eq 0) { return '' }
    # 1066: the service has a code of its own.
    if ($found.ExitCode -eq 1066) { return " (its own exit code $($found.ServiceSpecificExitCode))" }
    " (exit code $($found.ExitCode))"
}

function Wait-ServiceState {
    # Waits until a service is in that state.
    param([string]$Name, [string]$State, [int]$Seconds)
    if (Wait-Until -Test { (Get-ServiceState -Name $Name) -eq $State } -Seconds $Seconds -Pause 500) { return }
    $is = "$(Get-ServiceState -Name $Name)$(Get-ServiceEnd -Name $Name)"
    Stop-Step -Id 'ServiceState' -Message "service $Name is $is and not $State after $Seconds seconds"
}

function Test-AccountKnown {
    # Whether a service can have this account without a password: LocalSystem, or one of NT AUTHORITY and NT SERVICE.
    param([string]$Account)
    $Account -eq '' -or $Account -eq 'LocalSystem' -or $Account -like 'NT *'
}

# ---- network.ps1
# The machine's own interfaces: how they are, and how to put back what a virtual switch took from them.

function Find-Address {
    # The objects of one IP address; nothing where no interface has it.
    param([string]$Ip)
    if ($Ip -eq '') { return }
    Get-NetIPAddress -IPAddress $Ip -ErrorAction SilentlyContinue
}

function Test-SettledAddress {
    # Whether an interface has this address and uses it.
    param([string]$Ip)
    @(Find-Address -Ip $Ip | Where-Object { $_.AddressState.ToString() -eq 'Preferred' }).Count -gt 0
}

function Get-DefaultRoute {
    # The IPv4 default routes, the best one first. Nothing where there is none.
    @(Get-NetRoute -DestinationPrefix '0.0.0.0/0' -AddressFamily IPv4 -ErrorAction SilentlyContinue |
            Sort-Object -Property { $_.RouteMetric + $_.InterfaceMetric })
}

function Read-InterfaceAddress {
    # All address objects of one interface. Nothing where it has none.
    param([int]$Index)
    Get-NetIPAddress -InterfaceIndex $Index -ErrorAction SilentlyContinue
}

function Test-UsableAddress {
    # Whether an address object is one that others can reach the machine at.
    param([object]$Address)
    $Address.AddressFamily.ToString() -eq 'IPv4' -and $Address.AddressState.ToString() -eq 'Preferred' -and $Address.IPAddress -notlike '169.254.*'
}

function Find-PhysicalAdapter {
    # Names of the hardware adapters with this MAC address. Nothing where there is none.
    param([string]$Mac)
    @(Get-NetAdapter -IncludeHidden | Where-Object { $_.MacAddress -eq $Mac -and $_.HardwareInterface } | ForEach-Object { $_.Name })
}

function Read-Vlan {
    # The VLAN id that the driver tags with, as text; empty where it has none.
    param([string[]]$Names)
    if (-not $Names) { return '' }
    $found = @(Get-NetAdapterAdvancedProperty -Name $Names -RegistryKeyword 'VlanID' -ErrorAction SilentlyContinue)
    if (-not $found) { return '' }
    [string]@($found[0].RegistryValue)[0]
}

function Get-BaseName {
    # The name that an adapter and the interface of the switch on it share, as text.
    param([string]$Name)
    $Name -replace '^vEthernet \((.+)\)$', '$1'
}

# ---- known.ps1
# What only the node knows fills the places <<name>> of texts.

function Stop-Unknown {
    # Stops the step: something that it needs is known only after the join.
    Stop-Step -Id 'NotKnownYet' -Message 'an address that this needs is not known yet: the node has no pod CIDR or no address'
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

function Get-NetworkBase {
    # The first address of the network that an address is in, by the length of its prefix.
    param([string]$Address, [int]$Length)
    $bytes = [Net.IPAddress]::Parse($Address).GetAddressBytes()
    for ($at = 0; $at -lt $bytes.Length; $at++) {
        $bits = [Math]::Max(0, [Math]::Min(8, $Length - 8 * $at))
        $bytes[$at] = [byte]($bytes[$at] -band (256 - [int][Math]::Pow(2, 8 - $bits)))
    }
    [Net.IPAddress]::new($bytes).ToString()
}

function Test-CidrMember {
    # Whether the address is in the network.
    param([string]$Cidr, [string]$Address)
    $base, $length = $Cidr.Split('/')
    (Get-NetworkBase -Address $Address -Length $length) -eq (Get-NetworkBase -Address $base -Length $length)
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

# ---- registry.ps1
# Below HKEY_LOCAL_MACHINE.

function Read-Registry {
    # A value as it is stored, with its %names% not expanded: what is put back has to be what was there. Nothing where
    # the key or the value is missing; a list comes as one object.
    param([string]$Path, [string]$Name)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    try {
        $value = $key.GetValue($Name, $null, [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
        # An empty list must not look absent.
        if ($value -is [array]) { return , $value }
        $value
    }
    finally { $key.Dispose() }
}

function Test-RegistryKey {
    # Whether the key is there.
    param([string]$Path)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if ($key) { $key.Dispose() }
    $null -ne $key
}

function ConvertTo-SignedNumber {
    # A number of 32 bits as .NET reads and writes a DWord, which is signed: 0xFFFFFFFF is -1.
    param([object]$Value)
    if ([long]$Value -lt 0) { return [int]$Value }
    [BitConverter]::ToInt32([BitConverter]::GetBytes([uint32]$Value), 0)
}

function Write-Registry {
    # Writes a value and makes its key where it is missing; $null deletes the value. Returns nothing. The kind is always
    # given: left to itself .NET stores a long as a String, and never an ExpandString (RegistryKey.CalculateValueKind).
    param([string]$Path, [string]$Name, [object]$Value, [string]$Kind)
    if ($null -eq $Value) {
        $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path, $true)
        if (-not $key) { return }
        try { $key.DeleteValue($Name, $false) } finally { $key.Dispose() }
        return
    }
    switch ($Kind) {
        'MultiString' { $typed = [string[]]@($Value) }
        { @('Binary', 'None', 'Unknown') -contains $_ } { $typed = [byte[]]@($Value) }
        'DWord' { $typed = ConvertTo-SignedNumber -Value $Value }
        'QWord' { $typed = [long]$Value }
        default { $typed = [string]$Value }
    }
    [Microsoft.Win32.Registry]::SetValue("HKEY_LOCAL_MACHINE\$Path", $Name, $typed, $Kind)
}

function Restore-Registry {
    # Puts a former value back, or deletes one that was not there. Returns nothing.
    param([object]$Former)
    Write-Registry -Path $Former.path -Name $Former.name -Value $Former.value -Kind $Former.kind
}

# ---- manager.ps1

function Read-ServiceParameter {
    # A value below the service's Parameters key; nothing where it is missing, and a list as one object. What NSSM does
    # after an exit (AppExit) is the default value of a subkey.
    param([string]$Service, [string]$Name)
    $path = (Get-ServicePath -Name $Service) + '\Parameters'
    if ($Name -eq 'AppExit') { return (Read-Registry -Path "$path\AppExit" -Name '') }
    , (Read-Registry -Path $path -Name $Name)
}

function Test-NssmService {
    # Whether NSSM runs the service now. Its Application value is the program that NSSM starts.
    param([string]$Name)
    $null -ne (Read-ServiceParameter -Service $Name -Name 'Application')
}

function Restore-ServiceParameter {
    # Puts back the values below the service's Parameters key. Returns nothing. Other services keep values of their own
    # there, so the key is deleted only where it is NSSM's.
    param([object]$Former)
    $path = (Get-ServicePath -Name $Former.name) + '\Parameters'
    if (Test-NssmService -Name $Former.name) { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree($path, $false) }
    foreach ($one in $Former.parameters) { Write-Registry -Path $one.path -Name $one.name -Value $one.value -Kind $one.kind }
}

# ---- network.ps1

function Read-DnsServer {
    # The servers set by hand. What DHCP gave stands in another value (DhcpNameServer), and Get-DnsClientServerAddress
    # mixes the two. Nothing where there are none.
    param([string]$Guid)
    foreach ($stack in @('Tcpip', 'Tcpip6')) {
        $servers = "$(Read-Registry -Path "SYSTEM\CurrentControlSet\Services\$stack\Parameters\Interfaces\$Guid" -Name 'NameServer')"
        $servers.Split([char[]]@(',', ' '), [StringSplitOptions]::RemoveEmptyEntries)
    }
}

function Test-PodPrefix {
    # Whether a prefix lies in networks that are the pods' alone.
    param([string]$Prefix)
    $base, $length = $Prefix.Split('/')
    foreach ($cidr in $script:Node.pod_cidrs) {
        if ([int]$length -ge [int]$cidr.Split('/')[1] -and (Test-CidrMember -Cidr $cidr -Address $base)) { return $true }
    }
    $false
}

function Test-HostEndpoint {
    # Whether an interface is the host's endpoint in a pod network, which is HNS's: it has an address of the pods', or, where pods take
    # addresses of the nodes' network, the name that such endpoints have (<network>_ep in flannel, SDN's scripts and here).
    param([string]$Name, [object[]]$Addresses)
    if ($Name -like 'vEthernet (*_ep)*') { return $true }
    @($Addresses | Where-Object { $_.AddressFamily.ToString() -eq 'IPv4' -and (Test-PodPrefix -Prefix "$($_.IPAddress)/32") }).Count -gt 0
}

function Get-OwnInterface {
    # The interfaces that carry the machine's own IPv4: not the loopback, not one that a switch took over, not the
    # host's endpoint in the pod network. Nothing while there is none.
    foreach ($interface in Get-NetIPInterface -AddressFamily IPv4 -ConnectionState Connected -ErrorAction SilentlyContinue) {
        $adapter = @(Get-NetAdapter -InterfaceIndex $interface.InterfaceIndex -IncludeHidden -ErrorAction SilentlyContinue)
        if ($adapter.Count -eq 0) { continue }
        $own = @(Read-InterfaceAddress -Index $interface.InterfaceIndex)
        if (Test-HostEndpoint -Name $adapter[0].Name -Addresses $own) { continue }
        [pscustomobject]@{ adapter = $adapter[0]; interface = $interface; addresses = $own }
    }
}

function Read-KeptRoute {
    # The routes of one interface that somebody set, each as a table. Nothing where there is none.
    param([int]$Index)
    # A persistent copy of another would outlive who set it.
    $stored = @(Get-NetRoute -InterfaceIndex $Index -PolicyStore PersistentStore -ErrorAction SilentlyContinue)
    $persistent = @($stored | ForEach-Object { "$($_.DestinationPrefix) $($_.NextHop)" })
    $routes = @($stored | Where-Object { $_.NextHop -like '*:*' })
    $routes += @(Get-NetRoute -InterfaceIndex $Index -AddressFamily IPv4 -ErrorAction SilentlyContinue)
    foreach ($route in $routes) {
        $prefix = $route.DestinationPrefix
        if ($route.NextHop -eq '0.0.0.0' -and $route.Protocol.ToString() -ne 'NetMgmt') { continue }
        if ($prefix -eq '255.255.255.255/32' -or $prefix -like '224.*' -or (Test-PodPrefix -Prefix $prefix)) { continue }
        # What came with a lease comes back with it.
        if ($route.Protocol.ToString() -eq 'Dhcp') { continue }
        @{
            prefix = $prefix; next_hop = $route.NextHop; metric = [int]$route.RouteMetric
            persistent = $persistent -contains "$prefix $($route.NextHop)"
        }
    }
}

function Read-InterfaceIdentity {
    # Which interface it is, and the addresses, DNS servers and routes that somebody set on it.
    param([object]$Own)
    $guid = [string]$Own.adapter.InterfaceGuid
    $manual = @($Own.addresses | Where-Object { $_.PrefixOrigin.ToString() -eq 'Manual' })
    @{
        guid = $guid
        name = [string]$Own.adapter.Name
        mac = [string]$Own.adapter.MacAddress
        dhcp = $Own.interface.Dhcp.ToString() -eq 'Enabled'
        settled = @($Own.addresses | Where-Object { Test-UsableAddress -Address $_ }).Count -gt 0
        addresses = @($manual | ForEach-Object {
                @{
                    ip = $_.IPAddress; prefix_length = [int]$_.PrefixLength; skip_as_source = [bool]$_.SkipAsSource
                    settled = $_.AddressState.ToString() -eq 'Preferred'
                }
            })
        dns = @(Read-DnsServer -Guid $guid)
        routes = @(Read-KeptRoute -Index $Own.adapter.ifIndex)
    }
}

function Read-InterfaceSnapshot {
    # One interface as a table, for JSON.
    param([object]$Own)
    $adapter = $Own.adapter
    $at = @{ InterfaceIndex = [int]$adapter.ifIndex }
    $category = @(Get-NetConnectionProfile @at -ErrorAction SilentlyContinue | ForEach-Object { $_.NetworkCategory.ToString() })
    $bound = @(Get-NetAdapterBinding -Name $adapter.Name -ComponentID 'ms_tcpip6' -ErrorAction SilentlyContinue | Where-Object { $_.Enabled })
    $identity = Read-InterfaceIdentity -Own $Own
    $identity.metric = [int]$Own.interface.InterfaceMetric
    $identity.auto_metric = $Own.interface.AutomaticMetric.ToString() -eq 'Enabled'
    $identity.mtu = [int]$Own.interface.NlMtu
    $identity.suffix = "$(Get-DnsClient @at -ErrorAction SilentlyContinue | ForEach-Object { $_.ConnectionSpecificSuffix })"
    $identity.category = "$($category | Select-Object -First 1)"
    $identity.vlan = "$(Read-Vlan -Names (Find-PhysicalAdapter -Mac $adapter.MacAddress))"
    $identity.ipv6 = $bound.Count -gt 0
    $identity
}

# ---- program.ps1

function Join-Argument {
    # One command line of several arguments, quoted so that a program reads the same ones again. CommandLineToArgvW:
    # backslashes count only before a quotation mark, and are doubled there.
    param([string[]]$Arguments = @())
    $parts = foreach ($argument in $Arguments) {
        # An empty one is written as "", $null too: left out, it would give the option before it the next word as its value.
        if ($argument -and $argument -notmatch '[\s"]') { $argument; continue }
        '"' + ($argument -replace '(\\*)"', '$1$1\"' -replace '(\\+)$', '$1$1') + '"'
    }
    $parts -join ' '
}

function Get-ProgramEncoding {
    # What a program writes: Windows' own the code page of its consoles, all others UTF-8.
    param([string]$Path)
    $page = "$(Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\Nls\CodePage' -Name 'OEMCP')"
    if ($page -match '^\d+$' -and $Path -like "$([Environment]::SystemDirectory)\*") {
        return [Text.Encoding]::GetEncoding([int]$page)
    }
    [Text.UTF8Encoding]::new($false)
}

function Get-ProcessTree {
    # A process and all below it, as id and start time. The process itself is listed even when it has ended, so that its
    # children are found: this never returns nothing. A shim of containerd is left out: it holds a pod, and outlives
    # whoever started it.
    param([int]$Id)
    $all = @(Get-CimInstance -ClassName 'Win32_Process' -Property 'Name', 'ProcessId', 'ParentProcessId', 'CreationDate')
    $found = @($all | Where-Object { $_.ProcessId -eq $Id } | ForEach-Object { @{ Id = [int]$_.ProcessId; Started = $_.CreationDate } })
    if ($found.Count -eq 0) { $found = @(@{ Id = $Id; Started = [DateTime]::MinValue }) }
    for ($index = 0; $index -lt $found.Count; $index++) {
        $parent = $found[$index]
        # Windows gives ids again: a child is younger than its parent.
        $children = @($all | Where-Object {
                $_.ParentProcessId -eq $parent.Id -and $_.ProcessId -ne $parent.Id -and $_.CreationDate -ge $parent.Started -and
                $_.Name -notlike 'containerd-shim*'
            })
        foreach ($child in $children) { $found += @{ Id = [int]$child.ProcessId; Started = $child.CreationDate } }
    }
    $found
}

function Get-LivingProcess {
    # Those of a tree (see Get-ProcessTree) that still run. Nothing when all have ended.
    param([object[]]$Tree)
    foreach ($one in $Tree) {
        $now = Get-CimInstance -ClassName 'Win32_Process' -Filter "ProcessId=$($one.Id)" -Property 'ProcessId', 'CreationDate'
        if ($now -and $now.CreationDate -eq $one.Started) { $one }
    }
}

function Stop-ProcessTree {
    # Ends those of a tree that still run.
    param([object[]]$Tree)
    foreach ($one in @(Get-LivingProcess -Tree $Tree)) { Stop-Process -Id $one.Id -Force -ErrorAction SilentlyContinue }
}

function Stop-StartedProcess {
    # Ends a process that we started, and what that started.
    param([Diagnostics.Process]$Process)
    $tree = @(Get-ProcessTree -Id $Process.Id)
    if (-not $Process.HasExited) { $Process.Kill() }
    Stop-ProcessTree -Tree $tree
}

function Get-SystemProgram {
    # The full path of one of Windows' own programs. Never by the search path of a session: another program of that name
    # could be found first.
    param([string]$Name)
    "$([Environment]::SystemDirectory)\$Name"
}

# ---- task.ps1
# Scheduled tasks of SYSTEM in the folder \winboot. What they run is a script in the private state folder.

function Test-SignaturePolicy {
    # Whether a task of SYSTEM is refused an unsigned script file: a Group Policy decides, then the machine's own setting.
    # The scopes of a session and of its user do not reach a task.
    foreach ($scope in @('MachinePolicy', 'LocalMachine')) {
        $policy = "$(Get-ExecutionPolicy -Scope $scope)"
        if ($policy -ne 'Undefined') { return @('AllSigned', 'Restricted') -contains $policy }
    }
    # Undefined everywhere means RemoteSigned on Windows Server, and a file that was written here is not remote.
    $false
}

function ConvertTo-ScriptFile {
    # The text of a script file: with a byte order mark where Windows PowerShell would else read it in the ANSI code page.
    param([string]$Text)
    if ($Text -match '[^\x00-\x7f]') { "$([char]0xfeff)$Text" } else { $Text }
}

function New-ScriptLoader {
    # Text that reads a script file, refuses it with exit code 65 when it no longer holds this Text, and runs it. 66: it
    # could not be read, for five seconds; a scanner may hold it.
    param([string]$Path, [string]$Text, [string]$Arguments)
    @(
        "`$ErrorActionPreference = 'Stop'"
        "`$bytes = `$null"
        "for (`$try = 1; `$null -eq `$bytes; `$try++) {"
        "    try { `$bytes = [IO.File]::ReadAllBytes('$($Path.Replace("'", "''"))') }"
        "    catch [IO.IOException], [UnauthorizedAccessException] { if (`$try -ge 10) { exit 66 }; Start-Sleep -Milliseconds 500 }"
        '}'
        '$hash = [BitConverter]::ToString([Security.Cryptography.SHA256]::Create().ComputeHash($bytes)).Replace(''-'', '''')'
        "if (`$hash -ne '$(Get-TextHash -Text (ConvertTo-ScriptFile -Text $Text))') { exit 65 }"
        "& ([scriptblock]::Create([Text.Encoding]::UTF8.GetString(`$bytes).TrimStart([char]0xfeff))) $Arguments"
    ) -join "`n"
}

function Get-TaskArgument {
    # The arguments for powershell.exe. Whoever opens the task can read what it runs, unless a policy lets no unsigned script
    # file run: then a loader goes into the task that runs the script only while it is the very text that was stored.
    param([string]$Path, [string]$Text, [string]$Arguments)
    $common = '-NoLogo -NoProfile -NonInteractive'
    if (-not (Test-SignaturePolicy)) { return "$common -File `"$Path`" $Arguments".TrimEnd() }
    $loader = New-ScriptLoader -Path $Path -Text $Text -Arguments $Arguments
    "$common -EncodedCommand $([Convert]::ToBase64String([Text.Encoding]::Unicode.GetBytes($loader)))"
}

function New-SystemTask {
    # A task that runs a script of ours as SYSTEM: the object that Set-Task registers. Text is what the script holds.
    # Priority 7 is Windows' own default, below normal and with slow disk access; 4 is normal, for work that must not wait.
    param([string]$Path, [string]$Text, [string]$Arguments = '', [string]$Description, [int]$Seconds, [int]$Priority = 7, [object]$Trigger)
    $parts = @{
        Action      = New-ScheduledTaskAction -Execute (Get-SystemProgram -Name 'WindowsPowerShell\v1.0\powershell.exe') `
            -Argument (Get-TaskArgument -Path $Path -Text $Text -Arguments $Arguments)
        Principal   = New-ScheduledTaskPrincipal -UserId 'S-1-5-18' -LogonType ServiceAccount -RunLevel Highest
        Settings    = New-ScheduledTaskSettingsSet -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries -Priority $Priority `
            -ExecutionTimeLimit ([TimeSpan]::FromSeconds($Seconds))
        Description = $Description
    }
    if ($Trigger) { $parts.Trigger = $Trigger }
    $task = New-ScheduledTask @parts
    # No cmdlet has a parameter for it.
    $task.Author = 'winboot'
    $task
}

function Set-Task {
    # Registers the task, in the place of one of that name.
    param([string]$Name, [object]$Task)
    [void](Register-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -InputObject $Task -Force)
}

function Remove-Task {
    # Removes the task if it is there.
    param([string]$Name)
    if (Get-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -ErrorAction SilentlyContinue) {
        Unregister-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -Confirm:$false
    }
}

# ---- folders.ps1
# Folders: Private ones are for SYSTEM and Administrators alone, Readable ones can be read by everybody and written by these two.
# Ours are emptied by an undo. In Watched ones a file is run, or heeded, because it is there.

function Get-StrangeReplacer {
    # Who, besides administrators, owns a folder or may delete, rename or open up what is in it: SIDs, or null. 40: delete
    # children, 10000: delete, 40000: rules, 80000: owner, 10000000: everything.
    param([string]$Path)
    Get-StrangeWriter -Path $Path -Rights 0x100d0040 -Itself
}

function Restore-Folder {
    # A folder that winboot made goes when it is empty, or with all that its services wrote where nobody else does.
    param([object]$Former)
    if ($Former.existed -or -not [IO.Directory]::Exists($Former.path)) { return }
    $empty = [IO.Directory]::GetFileSystemEntries($Former.path).Count -eq 0
    if (-not $empty -and -not $Former.ours) { return }
    # Links are removed here, not followed.
    try { [IO.Directory]::Delete($Former.path, $true) }
    catch { Stop-Step -Id 'FolderLeft' -Message "$($Former.path) cannot be removed: $($_.Exception.GetBaseException().Message)" }
}

# ---- pod_network.ps1

function Get-AddressFamily {
    # IPv4 or IPv6.
    param([string]$Address)
    if ($Address.Contains(':')) { 'IPv6' } else { 'IPv4' }
}

function Find-Interface {
    # The IP interfaces that have the address. Nothing where there is none.
    param([string]$Address)
    $family = Get-AddressFamily -Address $Address
    foreach ($found in Find-Address -Ip $Address) {
        Get-NetIPInterface -InterfaceIndex $found.InterfaceIndex -AddressFamily $family -ErrorAction SilentlyContinue
    }
}

function Restore-Forwarding {
    # Turns forwarding off again.
    param([object]$Former)
    foreach ($interface in Find-Interface -Address $Former.address) {
        Set-NetIPInterface -InterfaceIndex $interface.InterfaceIndex -AddressFamily $interface.AddressFamily -Forwarding Disabled
    }
}

# ---- firewall.ps1
# Rules are read from the registry, which takes milliseconds; Get-NetFirewallRule takes seconds.

function Restore-FirewallRule {
    # The names are winboot's own: there was no rule before.
    param([object]$Former)
    if (Get-NetFirewallRule -Name $Former.name -ErrorAction SilentlyContinue) { Remove-NetFirewallRule -Name $Former.name }
}

# ---- state.ps1

function Get-StatePath {
    # A path in the folder where winboot keeps its state.
    param([string]$Name = '')
    [IO.Path]::Combine($env:ProgramData, 'winboot', $Name)
}

function Assert-OwnFolder {
    # Throws when the folder, or something in it, is a link or belongs to somebody who is no administrator.
    param([string]$Path)
    foreach ($one in @($Path) + [IO.Directory]::GetFileSystemEntries($Path)) {
        # Something may have gone since it was listed.
        $owner = $null
        try { $owner = Get-StrangeOwner -Path $one } catch [IO.FileNotFoundException] { continue }
        if ($owner) { throw "$one belongs to $owner, who is no administrator: see whose it is, and delete it" }
        if (Test-Link -Path $one) { throw "$one is a link to another place: see who made it, and delete it" }
    }
}

function Initialize-StateFolder {
    # Makes the state folder, for SYSTEM and Administrators alone. Any user may make folders below ProgramData, and junctions:
    # whoever made this one before would stay its owner, and could have put former values there.
    $path = (Get-StatePath).TrimEnd('\')
    if (Test-Link -Path $path) { throw "$path is a link to another place: see who made it, and delete it" }
    foreach ($name in @('', 'former', 'detached')) {
        $folder = (Get-StatePath -Name $name).TrimEnd('\')
        if ([IO.Directory]::Exists($folder)) { Assert-OwnFolder -Path $folder }
        Set-PrivateFolder -Path $folder
    }
}

function Remove-AtRestart {
    # Has files and folders deleted at the next start of the machine. Returns nothing. Windows deletes these files and
    # empty folders before anything opens them, as MoveFileEx arranges it: pairs of a name and nothing
    # (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw).
    param([string[]]$Path)
    $manager = 'SYSTEM\CurrentControlSet\Control\Session Manager'
    $pairs = @(Read-Registry -Path $manager -Name 'PendingFileRenameOperations' | Where-Object { $null -ne $_ })
    foreach ($one in $Path) { $pairs += @("\??\$one", '') }
    Write-Registry -Path $manager -Name 'PendingFileRenameOperations' -Value $pairs -Kind 'MultiString'
}

function Exit-Run {
    # Gives the mutex back.
    param([Threading.Mutex]$Lock)
    $Lock.ReleaseMutex()
    $Lock.Dispose()
}

# ---- file.ps1

function Add-OldFile {
    # A line for the list of files set aside: the file, and behind a bar the place it goes back to when that is empty.
    param([string]$Line)
    Write-FileByte -Path (Get-StatePath -Name 'old-files.txt') -Bytes (ConvertTo-FileByte -Text "$Line`n") -Mode 'Append'
}

function Remove-File {
    # Deletes a file; an absent one is fine. One that runs as a program is renamed, and goes when it has ended.
    param([string]$Path, [int]$Tries = 9)
    if (-not [IO.File]::Exists($Path)) { return }
    try {
        Invoke-Patient -File $Path -Tries $Tries -Work {
            Clear-ReadOnly -Path $Path
            [IO.File]::Delete($Path)
        }
    }
    catch [UnauthorizedAccessException] {
        $waiting = "$Path.winboot-old-$([Guid]::NewGuid().ToString('N'))"
        Add-OldFile -Line $waiting
        Invoke-Patient -File $Path -Tries $Tries -Work { [IO.File]::Move($Path, $waiting) }
    }
}

function Move-FileOver {
    # Puts the file From in the place of To. A program that runs cannot be overwritten, but renamed. After any failure
    # the old file is in its place again; after a power cut Clear-OldFile puts it there.
    param([string]$From, [string]$To, [int]$Tries = 9)
    if (-not [IO.File]::Exists($From)) { throw [IO.FileNotFoundException]::new("there is no file $From", $From) }
    if (-not [IO.File]::Exists($To)) {
        Invoke-Patient -File $From -Tries $Tries -Work { [IO.File]::Move($From, $To) }
        return
    }
    $old = "$To.winboot-old"
    Remove-OldFile -Path $old
    if ([IO.File]::Exists($old)) { $old = "$old-$([Guid]::NewGuid().ToString('N'))" }
    # The mark goes with the success: with it, a file whose place is empty is put back there.
    Add-OldFile -Line "$old|$To"
    Invoke-Patient -File $To -Tries $Tries -Work { [IO.File]::Move($To, $old) }
    try { Invoke-Patient -File $From -Tries $Tries -Work { [IO.File]::Move($From, $To) } }
    catch {
        Invoke-Patient -File $old -Work { [IO.File]::Move($old, $To) }
        throw
    }
    Remove-OldFile -Path $old
    if ([IO.File]::Exists($old)) { Add-OldFile -Line $old }
}

function Copy-WholeFile {
    # Copies a file; the copy is on the disk when this returns, under its name only when it is complete.
    param([string]$From, [string]$To)
    [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($To))
    $part = "$To.winboot-new"
    Invoke-Patient -File $From -Work {
        $source = Open-SharedFile -Path $From
        try {
            $target = Open-FlushedFile -Path $part -Mode 'Create'
            try {
                $source.CopyTo($target)
                $target.Flush($true)
            }
            finally { $target.Dispose() }
        }
        finally { $source.Dispose() }
    }
    Move-FileOver -From $part -To $To
}

function Write-FileText {
    # Writes a text file, with Private for SYSTEM and Administrators alone. Returns nothing. It is written beside and
    # renamed: a power cut leaves the old file or the new one.
    param([string]$Path, [string]$Text, [switch]$Private, [int]$Tries = 9)
    [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Path))
    $beside = "$Path.winboot-new"
    if ($Private) {
        Write-FileByte -Path $beside -Bytes ([byte[]]@()) -Tries $Tries
        Set-PrivateAccess -Path $beside
    }
    Write-FileByte -Path $beside -Bytes (ConvertTo-FileByte -Text $Text) -Tries $Tries
    # Replace is one step, but keeps the access rules of the old file.
    if ($Private -or -not [IO.File]::Exists($Path)) { Move-FileOver -From $beside -To $Path -Tries $Tries }
    else {
        Invoke-Patient -File $Path -Tries $Tries -Work {
            # After error 1176 of ReplaceFile the old file is gone and the new one still has its own name.
            if ([IO.File]::Exists($Path)) {
                Clear-ReadOnly -Path $Path
                [IO.File]::Replace($beside, $Path, [NullString]::Value)
            }
            else { [IO.File]::Move($beside, $Path) }
        }
    }
}

function Restore-File {
    # Puts back a file as it was before winboot, or takes away what was not there. The kept copy stays: this may be cut.
    param([object]$Former)
    if ($null -ne $Former.bytes) {
        $beside = $Former.path + '.winboot-new'
        Write-FileByte -Path $beside -Bytes ([Convert]::FromBase64String($Former.bytes))
        Move-FileOver -From $beside -To $Former.path
    }
    elseif ($null -eq $Former.kept) { Remove-File -Path $Former.path }
    elseif ([IO.File]::Exists($Former.kept)) { Copy-WholeFile -From $Former.kept -To $Former.path }
    else { Stop-Step -Id 'FormerLost' -Message "the copy of $($Former.path) as it was before winboot is missing: $($Former.kept)" }
}

# ---- trust.ps1
# Whose files and programs are. A look comes before anything is protected: an ordinary user may make C:\k, and what is in it.

function Get-PathMemory {
    # What was found out about paths, until something is changed: twenty files in a folder ask about it once.
    $run = Get-Variable -Name 'Run' -Scope 'Script' -ValueOnly -ErrorAction SilentlyContinue
    # The small scripts beside the main one have no run.
    if ($null -eq $run) { return @{} }
    if (-not $run.Cache.ContainsKey('Paths')) { $run.Cache.Paths = @{} }
    $run.Cache.Paths
}

function Get-FolderDoubt {
    # Why what is in a folder is not believed (see Get-PathDoubt): the folder or one above it is a link, or belongs to
    # somebody else, or others may replace what is in it, or with Adding add to it. Nothing where it is not there.
    param([string]$Path, [switch]$Adding)
    # Administrators alone rename or delete what others made in the root of a drive.
    if ("$Path".Length -le 3) { return }
    $memory = Get-PathMemory
    $key = "folder $Path|$Adding"
    if ($memory.ContainsKey($key)) { return $memory[$key] }
    $doubt = Get-FolderDoubt -Path ([IO.Path]::GetDirectoryName($Path))
    if (-not $doubt -and [IO.Directory]::Exists($Path)) {
        if (Test-Link -Path $Path) { $doubt = "$Path is a link" }
        else {
            $who = if ($Adding) { Get-StrangeWriter -Path $Path -Itself } else { Get-StrangeReplacer -Path $Path }
            if ($who) { $doubt = "$Path belongs to $who, or can be changed there" }
        }
    }
    $memory[$key] = $doubt
    $doubt
}

function Test-HardLink {
    # Whether a file has a second name. Get-Item of Windows PowerShell asks for the number of names (LinkType).
    param([string]$Path)
    $file = Get-Item -LiteralPath $Path -Force -ErrorAction SilentlyContinue
    $null -ne $file -and $file.LinkType -eq 'HardLink'
}

function Add-Doubt {
    # Notes for the report of the step that a file was taken for absent, and why. Returns nothing.
    param([string]$Path, [string]$Doubt)
    $run = Get-Variable -Name 'Run' -Scope 'Script' -ValueOnly -ErrorAction SilentlyContinue
    if ($null -eq $run) { return }
    if (-not $run.ContainsKey('Doubts')) { $run.Doubts = @{} }
    $run.Doubts[$Path] = $Doubt
}

# ---- boot.ps1
# The task at each start of the machine.

function Remove-BootScript {
    # Stored scripts of the startup, all but one.
    param([string]$But = '')
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath), 'boot*.ps1')) {
        if ($path -ne $But) { Remove-File -Path $path }
    }
}

# ---- guard.ps1
# Puts back what the machine had while somebody makes a network on its adapter, and at each start what a cut left undone.

function Test-CarryingInterface {
    # Whether this very interface is still there and carries IPv4: then nothing took its settings but a person.
    param([string]$Guid)
    foreach ($adapter in Get-NetAdapter -IncludeHidden | Where-Object { [string]$_.InterfaceGuid -eq $Guid }) {
        if (Get-NetIPInterface -InterfaceIndex $adapter.ifIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue) {
            return $true
        }
    }
    $false
}

# ---- layers.ps1
# Layers of container images: folders that Windows lets nobody but the host compute service remove (k3s-io/k3s#9296,
# microsoft/hcsshim#166). containerd's records of them go last: without these a new containerd begins to count at 1, where
# a layer still is, and can unpack nothing (microsoft/hcsshim#536).

function Get-LayerStore {
    # Where containerd's snapshotter for Windows has a folder for each layer.
    param([string]$Root)
    "$Root\io.containerd.snapshotter.v1.windows\snapshots"
}

function Get-LayerDeclaration {
    # The C# that calls computestorage.dll, which is part of Windows Server 2019 and later
    # (learn.microsoft.com/virtualization/api/hcs/reference/hcsdestroylayer; microsoft/hcsshim computestorage/storage.go).
    @'
    using System.Runtime.InteropServices;

    namespace Winboot
    {
        public static class Layer
        {
            [DllImport("computestorage.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HcsDestroyLayer(string layerPath);

            public static int Destroy(string layerPath)
            {
                return HcsDestroyLayer(layerPath);
            }
        }
    }
'@
}

function Import-Layer {
    # Compiles the declaration below, once in a session.
    if (-not ('Winboot.Layer' -as [type])) { Add-Type -TypeDefinition (Get-LayerDeclaration) -Language CSharp }
}

function Remove-Layer {
    # Removes one layer; gives its path with the reason if that fails. 0x80070002 and 3: it is gone.
    param([string]$Path)
    Import-Layer
    $result = '{0:x8}' -f [Winboot.Layer]::Destroy($Path)
    if (@('00000000', '80070002', '80070003') -notcontains $result) { "$Path (0x$result)" }
}

# ---- service.ps1

function Read-Service {
    # The definition of a service as a table; every member is $null where there is no such service.
    param([string]$Name)
    $path = Get-ServicePath -Name $Name
    $is = @{
        command_line = $null; start = $null; depends = $null; account = $null; environment = $null; recovery = $null
        failure_flag = $null
    }
    if (-not (Test-RegistryKey -Path $path)) { return $is }
    $is.command_line = Read-Registry -Path $path -Name 'ImagePath'
    $start = [int](Read-Registry -Path $path -Name 'Start')
    $is.start = @{ 0 = 'boot'; 1 = 'system'; 2 = 'auto'; 3 = 'demand'; 4 = 'disabled' }[$start]
    if ($start -eq 2 -and 1 -eq (Read-Registry -Path $path -Name 'DelayedAutoStart')) { $is.start = 'delayed-auto' }
    $is.depends = @((Read-Registry -Path $path -Name 'DependOnService') | Where-Object { $_ })
    $is.account = Read-Registry -Path $path -Name 'ObjectName'
    $is.environment = @((Read-Registry -Path $path -Name 'Environment') | Where-Object { $_ })
    $is.recovery = ConvertFrom-FailureAction -Bytes (Read-Registry -Path $path -Name 'FailureActions')
    $is.failure_flag = [int](Read-Registry -Path $path -Name 'FailureActionsOnNonCrashFailures')
    $is
}

function Write-ServiceEnvironment {
    # Writes the environment of a service, one name=value a line; an empty list deletes it. Returns nothing.
    # Machine variables would be seen only after a reboot.
    param([string]$Name, [string[]]$Environment)
    $lines = @($Environment | Where-Object { $_ })
    if ($lines.Count -eq 0) { $lines = $null }
    Write-Registry -Path (Get-ServicePath -Name $Name) -Name 'Environment' -Value $lines -Kind 'MultiString'
}

function Get-ServiceProcess {
    # The process of a service and all below it, as id and start time. Nothing of one that shares its process with others.
    param([string]$Name)
    if (([int](Read-Registry -Path (Get-ServicePath -Name $Name) -Name 'Type') -band 0x10) -eq 0) { return }
    $id = [int](Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'ProcessId').ProcessId
    if ($id -ne 0) { Get-ProcessTree -Id $id }
}

# ---- state.ps1

function Limit-Journal {
    # A journal that is full gives its name to the next.
    $path = Get-StatePath -Name 'journal.jsonl'
    if (-not [IO.File]::Exists($path) -or [IO.FileInfo]::new($path).Length -le 1MB) { return }
    $older = Get-StatePath -Name 'journal.1.jsonl'
    Remove-File -Path $older -Tries 1
    Invoke-Patient -File $path -Tries 1 -Work { [IO.File]::Move($path, $older) }
}

function Save-Journal {
    # Writes the lines that wait for the journal. It never ends a run.
    param([object]$Waiting, [int]$Tries)
    if ($Waiting.Count -eq 0 -or -not [IO.Directory]::Exists((Get-StatePath))) { return }
    try {
        # Whoever made the folder could lead these lines into another file.
        if ((Test-Link -Path (Get-StatePath).TrimEnd('\')) -or (Get-StrangeOwner -Path (Get-StatePath))) { return }
        Limit-Journal
        $text = ($Waiting -join "`n") + "`n"
        $path = Get-StatePath -Name 'journal.jsonl'
        Invoke-Patient -File $path -Tries $Tries -Work { [IO.File]::AppendAllText($path, $text) }
        $Waiting.Clear()
    }
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] {
        if ($Waiting.Count -gt 500) { $Waiting.RemoveAt(0) }
    }
}

function Write-Journal {
    # Adds a line to the journal. While the file is held or the disk is full, lines wait in Waiting for the next one.
    param([string]$Line, [object]$Waiting = [Collections.Generic.List[string]]::new())
    $Waiting.Add(('{{"at":"{0}","event":{1}}}' -f [DateTime]::UtcNow.ToString('o', [Globalization.CultureInfo]::InvariantCulture), $Line))
    # Once it could not be written, nobody waits for it again at each line.
    Save-Journal -Waiting $Waiting -Tries $(if ($Waiting.Count -eq 1) { 4 } else { 1 })
}

function Write-StateJson {
    # Keeps a value as a JSON file of the state folder.
    param([string]$Name, [object]$Value, [int]$Tries = 9)
    Write-FileText -Path (Get-StatePath -Name $Name) -Text (ConvertTo-Json -InputObject $Value -Depth 8 -Compress) -Tries $Tries
}

# ---- drive.ps1

function New-EventLine {
    # An event as one line of JSON, which is also kept in the journal unless this is a look.
    # ASCII only: no code page on the way can change it.
    param([hashtable]$Fields)
    $script:Run.Sequence++
    $all = [ordered]@{ v = 1; event = $Fields.event; seq = $script:Run.Sequence; run = $script:Run.Id }
    foreach ($name in $Fields.Keys | Sort-Object) { $all[$name] = $Fields[$name] }
    $line = ConvertTo-AsciiJson -Value $all
    if ($script:Run.Mode -ne 'Look') { Write-Journal -Line $line -Waiting $script:Run.Journal }
    $line
}

function New-StepEvent {
    # The line of a step's event, with its differences and its problem.
    param([hashtable]$Step, [hashtable]$Result, [Diagnostics.Stopwatch]$Watch)
    New-EventLine -Fields @{
        event = 'step'; step = $Step.Name; state = $Result.State; ms = [int]$Watch.ElapsedMilliseconds
        differences = [object[]]@($Result.Differences); problem = $Result.Problem
    }
}

function New-EndEvent {
    # The line of the last event, with the reason why this run ends.
    param([string]$Reason, [string]$Message = '')
    New-EventLine -Fields @{ event = 'done'; reason = $Reason; message = $Message }
}

function New-DetachedEvent {
    # The two lines that end this session while a detached run goes on.
    param([object]$Run, [string]$Step)
    New-EventLine -Fields @{ event = 'detached'; id = $Run.id; step = $Step; timeout_s = $Run.timeout_s }
    New-EndEvent -Reason 'detached'
}

# ---- network.ps1

function Invoke-Restore {
    # One write of a restore: what it was about goes to the journal, what went wrong to the run's trouble.
    param([string]$What, [int]$Index, [scriptblock]$Write)
    $told = @{ event = 'network-restored'; what = $What; interface = $Index; problem = '' }
    try { & $Write }
    catch {
        $told.problem = $_.Exception.GetBaseException().Message
        $script:Run['Trouble'] = "${What}: $($told.problem)"
    }
    # It is tried again every few seconds: only what is new is told.
    $key = "restore $What $($told.problem)"
    if ($told.problem -ne '' -and $script:Run.ContainsKey($key)) { return }
    $script:Run[$key] = $true
    [void](New-EventLine -Fields $told)
}

function Restore-InterfaceRoute {
    # Routes that are nowhere any more.
    param([object]$Was, [int]$Index)
    foreach ($route in $Was.routes) {
        if (Get-NetRoute -DestinationPrefix $route.prefix -ErrorAction SilentlyContinue | Where-Object { $_.NextHop -eq $route.next_hop }) {
            continue
        }
        $wanted = @{ DestinationPrefix = $route.prefix; InterfaceIndex = $Index; NextHop = $route.next_hop; RouteMetric = $route.metric }
        if (-not $route.persistent) { $wanted.PolicyStore = 'ActiveStore' }
        Invoke-Restore -What "route $($route.prefix) via $($route.next_hop)" -Index $Index -Write { [void](New-NetRoute @wanted) }
    }
}

function Restore-NameServer {
    # Puts back DNS servers that were set by hand, also beside DHCP, and the suffix. Returns nothing.
    param([object]$Was, [int]$Index)
    $at = @{ InterfaceIndex = $Index }
    $guid = @(Get-NetAdapter @at -IncludeHidden | ForEach-Object { [string]$_.InterfaceGuid })[0]
    $is = @(Read-DnsServer -Guid $guid) -join ' '
    if ($Was.dns -and $is -ne ($Was.dns -join ' ')) {
        Invoke-Restore -What "DNS servers $($Was.dns -join ', ')" -Index $Index -Write {
            Set-DnsClientServerAddress @at -ServerAddresses ([string[]]$Was.dns)
        }
    }
    $suffix = "$(Get-DnsClient @at -ErrorAction SilentlyContinue | ForEach-Object { $_.ConnectionSpecificSuffix })"
    if ($Was.suffix -ne '' -and $suffix -ne $Was.suffix) {
        Invoke-Restore -What "DNS suffix $($Was.suffix)" -Index $Index -Write { Set-DnsClient @at -ConnectionSpecificSuffix $Was.suffix }
    }
}

function Restore-Link {
    # The VLAN tag of the driver, and whether IPv6 is bound.
    param([object]$Was, [int]$Index)
    $physical = @(Find-PhysicalAdapter -Mac $Was.mac)
    if ($Was.vlan -ne '' -and (Read-Vlan -Names $physical) -ne $Was.vlan) {
        Invoke-Restore -What "VLAN $($Was.vlan)" -Index $Index -Write {
            Set-NetAdapterAdvancedProperty -Name $physical -RegistryKeyword 'VlanID' -RegistryValue $Was.vlan
        }
    }
    foreach ($adapter in Get-NetAdapter -InterfaceIndex $Index -IncludeHidden) {
        $bound = @{ Name = $adapter.Name; ComponentID = 'ms_tcpip6' }
        foreach ($binding in Get-NetAdapterBinding @bound -ErrorAction SilentlyContinue) {
            if ([bool]$binding.Enabled -ne $Was.ipv6) {
                Invoke-Restore -What "IPv6 $($Was.ipv6)" -Index $Index -Write { Set-NetAdapterBinding @bound -Enabled $Was.ipv6 }
            }
        }
    }
}

function Restore-InterfaceSetting {
    # Puts back metric, MTU and the network's category. Returns nothing.
    param([object]$Was, [int]$Index)
    $ipv4 = @{ InterfaceIndex = $Index; AddressFamily = 'IPv4' }
    $interface = @(Get-NetIPInterface @ipv4)[0]
    if (-not $Was.auto_metric -and [int]$interface.InterfaceMetric -ne $Was.metric) {
        Invoke-Restore -What "metric $($Was.metric)" -Index $Index -Write { Set-NetIPInterface @ipv4 -InterfaceMetric $Was.metric }
    }
    # A virtual adapter may not carry the jumbo frames of the one below it (9001 on AWS): then Windows refuses this one setting.
    if ([int]$interface.NlMtu -ne $Was.mtu) {
        Invoke-Restore -What "MTU $($Was.mtu)" -Index $Index -Write { Set-NetIPInterface @ipv4 -NlMtuBytes $Was.mtu }
    }
    if (@('Public', 'Private') -notcontains $Was.category) { return }
    foreach ($found in Get-NetConnectionProfile -InterfaceIndex $Index -ErrorAction SilentlyContinue) {
        if ($found.NetworkCategory.ToString() -eq $Was.category) { continue }
        Invoke-Restore -What "network category $($Was.category)" -Index $Index -Write {
            Set-NetConnectionProfile -InterfaceIndex $Index -NetworkCategory $Was.category
        }
    }
}

function Restore-Interface {
    # Puts back what one interface lost. Returns nothing. Addresses first, then the ways out; one setting that cannot be
    # put back does not keep the others from it.
    param([object]$Was, [int]$Index)
    foreach ($address in $Was.addresses) {
        if (Find-Address -Ip $address.ip) { continue }
        Invoke-Restore -What "address $($address.ip)" -Index $Index -Write {
            $wanted = @{
                InterfaceIndex = $Index; IPAddress = $address.ip; PrefixLength = $address.prefix_length
                SkipAsSource = $address.skip_as_source
            }
            [void](New-NetIPAddress @wanted)
        }
    }
    Restore-InterfaceRoute -Was $Was -Index $Index
    Restore-NameServer -Was $Was -Index $Index
    Restore-Link -Was $Was -Index $Index
    Restore-InterfaceSetting -Was $Was -Index $Index
}

# ---- artifacts.ps1

function Test-TaskEnd {
    # Whether a .NET task ends within Seconds; one that fails throws. It is waited for in slices: a stop of this script is
    # not heard within a call into .NET.
    param([object]$Task, [int]$Seconds)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    while (-not $Task.Wait(500)) {
        if ($watch.Elapsed.TotalSeconds -ge $Seconds) { return $false }
    }
    $true
}

# ---- detached.ps1
# Work that may cut its session: a task that puts back what the network lost.
# Seconds that its parts may take beside the work itself: the mutex, the watch after the work, the way back, the watch after that.
#   120 + 120 + 360 + 120 = 720

function Test-OuterAddress {
    # Whether an address is one of the machine's, and not the loopback.
    param([string]$Ip)
    $Ip -ne '' -and $Ip -notlike '127.*' -and $Ip -ne '::1' -and $null -ne (Find-Address -Ip $Ip)
}

function Complete-DetachedRun {
    # Notes how a run ended, once.
    param([object]$Status, [object]$Ended, [int]$Tries = 9)
    $Status.state = $Ended.State
    $Status.message = $Ended.Message
    $Status.ended = [DateTime]::UtcNow.Ticks
    Write-StateJson -Name "detached\$($Status.id).json" -Value $Status -Tries $Tries
}

function Test-StepStanding {
    # Whether nothing is left of the step that only another rewiring could correct. What the API server alone knows is no fault
    # while it is away.
    param([hashtable]$Step)
    $script:Run.Cache = @{}
    @(Read-Difference -Step $Step | Where-Object { $_.disrupts -and -not $_.unknown }).Count -eq 0
}

function Test-Listener {
    # Whether something answers at this very address: a listener on all addresses says nothing about one of them.
    param([string]$Ip, [int]$Port)
    $client = [Net.Sockets.TcpClient]::new()
    try { Test-TaskEnd -Task $client.ConnectAsync($Ip, $Port) -Seconds 3 }
    catch [AggregateException] { $false }
    finally { $client.Close() }
}

function Test-ReachedEndpoint {
    # Whether others reach the machine at this address and port.
    param([string]$Ip, [int]$Port)
    (Test-OuterAddress -Ip $Ip) -and (Test-Listener -Ip $Ip -Port $Port)
}

function Invoke-RollbackPart {
    # One part that fails or hangs does not keep the others from it.
    param([scriptblock]$Part)
    try { & $Part }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'DetachedFailed'
        [void](New-EventLine -Fields @{ event = 'rollback-trouble'; problem = $problem })
    }
}

# ---- network.ps1

function Connect-Server {
    # The local address of a connection to the API server, as text; nothing where there is none within 5 seconds. By TCP,
    # because clouds drop ICMP.
    $client = [Net.Sockets.TcpClient]::new()
    try {
        if (Test-TaskEnd -Task $client.ConnectAsync($script:Node.server_host, $script:Node.server_port) -Seconds 5) {
            $client.Client.LocalEndPoint.Address.ToString()
        }
    }
    catch [AggregateException] { return }
    finally { $client.Close() }
}

function Get-AddressTowardsServer {
    # The local address from which this machine reaches the API server, as text; nothing where it does not. A look asks
    # once: it changes nothing, and a server that is away costs seconds each time.
    if ($script:Run.Mode -ne 'Look') { return (Connect-Server) }
    Get-Cached -Name 'TowardsServer' -Read { Connect-Server }
}

function Find-NodeAddress {
    # That address, as it is now: the one given, else the one that reaches the API server, else the one on the default
    # route. Nothing where the machine has none.
    $ip = $script:Node.node_ip
    if (-not $ip) { $ip = Get-AddressTowardsServer }
    if (-not $ip) {
        $ip = @(Get-DefaultRoute | Select-Object -First 1 |
                ForEach-Object { Get-NetIPAddress -InterfaceIndex $_.ifIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue } |
                ForEach-Object { $_.IPAddress })[0]
        if (-not $ip) { return }
    }
    foreach ($found in Find-Address -Ip $ip | Select-Object -First 1) {
        $adapter = @(Get-NetAdapter -InterfaceIndex $found.InterfaceIndex -IncludeHidden -ErrorAction SilentlyContinue)
        [pscustomobject]@{
            ip = $ip; prefix_length = [int]$found.PrefixLength; state = $found.AddressState.ToString()
            index = [int]$found.InterfaceIndex; alias = $found.InterfaceAlias; mac = [string]($adapter | ForEach-Object { $_.MacAddress })
        }
    }
}

function Get-NodeAddress {
    # The node's address with its interface, as a table; nothing where the machine has none. A look asks once.
    if ($script:Run.Mode -ne 'Look') { return (Find-NodeAddress) }
    Get-Cached -Name 'Address' -Read { Find-NodeAddress }
}

# ---- features.ps1

function Get-FeatureState {
    # The state of a feature as DISM names it; nothing for one that this Windows does not know (0x800f080c).
    param([string]$Feature)
    try { foreach ($found in Get-WindowsOptionalFeature -Online -FeatureName $Feature) { $found.State.ToString() } }
    catch { if ('{0:x8}' -f $_.Exception.HResult -ne '800f080c') { throw } }
}

function Restore-Feature {
    # Turns a feature off that was off before.
    param([object]$Former)
    if ($Former.state -ne 'Disabled' -or (Get-FeatureState -Feature $Former.name) -ne 'Enabled') { return }
    [void](Disable-WindowsOptionalFeature -Online -FeatureName $Former.name -NoRestart -WarningAction SilentlyContinue)
    New-Reboot
}

# ---- former.ps1
# How a thing was before winboot first changed it.

function Get-FormerPath {
    # The file with the notes of a step, the current one unless it is named.
    param([string]$Step = $script:Run.Step)
    Get-StatePath -Name "former\$Step.jsonl"
}

function Test-FormerValue {
    # Whether the current step has any note.
    [IO.File]::Exists((Get-FormerPath))
}

function Clear-FormerValue {
    # Deletes the notes of the current step. Returns nothing.
    Remove-File -Path (Get-FormerPath)
}

# ---- logs.ps1

function Restore-LogTask {
    # Removes both.
    param([object]$Former)
    Remove-Task -Name $Former.name
    [IO.File]::Delete((Get-StatePath -Name 'logs.ps1'))
}

# ---- roots.ps1
# CA certificates in the machine's store of trusted roots: thumbprint, body (base64 of its bytes).

function Use-RootStore {
    # Runs Work with the machine's store of trusted roots, and closes it.
    param([ValidateSet('ReadOnly', 'ReadWrite')][string]$Access, [scriptblock]$Work)
    $store = [Security.Cryptography.X509Certificates.X509Store]::new('Root', 'LocalMachine')
    $store.Open($Access)
    try { & $Work $store } finally { $store.Close() }
}

function Restore-Root {
    # Takes a CA out again that winboot added.
    param([object]$Former)
    Use-RootStore -Access ReadWrite -Work {
        param($Store)
        foreach ($found in $Store.Certificates | Where-Object { $_.Thumbprint -eq $Former.thumbprint }) {
            $Store.Remove($found)
        }
    }
}

# ---- certificate.ps1

function Restore-KubeletKey {
    # Removes the keys and certificates that a kubelet of ours made, also where their folder was there before it.
    param([object]$Former)
    if (-not [IO.Directory]::Exists($Former.path)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Former.path, 'kubelet-*')) { Remove-File -Path $path }
}

# ---- defender.ps1
# Exclusions from Defender's scans, where the profile asks for them.

function Restore-Exclusion {
    # Takes back an exclusion that winboot added.
    param([object]$Former)
    if ((Get-ServiceState -Name 'WinDefend') -ne 'Running') { return }
    if ($null -ne $Former.process) { Remove-MpPreference -ExclusionProcess $Former.process }
    if ($null -ne $Former.path) { Remove-MpPreference -ExclusionPath $Former.path }
}

# ---- hns.ps1
# For writing Windows has no cmdlet.

function Get-HnsDeclaration {
    # The C# that calls HNS. It hangs at times, so the call has a thread that can be left behind, as in Azure's CNI (hnswrapper).
    @'
    using System;
    using System.Runtime.InteropServices;
    using System.Threading;

    namespace Winboot
    {
        public static class Hns
        {
            [DllImport("vmcompute.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HNSCall(string method, string path, string request, out string response);

            public static string Call(string method, string path, string request, int seconds)
            {
                string response = null;
                Exception failure = null;
                Thread call = new Thread(delegate()
                {
                    // What leaves a thread uncaught would end the process.
                    try
                    {
                        int result = HNSCall(method, path, request, out response);
                        if (response == null) { Marshal.ThrowExceptionForHR(result); }
                    }
                    catch (Exception caught) { failure = caught; }
                });
                call.IsBackground = true;
                call.Start();
                if (!call.Join(seconds * 1000)) { throw new TimeoutException(); }
                if (failure != null) { throw failure; }
                return response;
            }
        }
    }
'@
}

function Import-HnsDeclaration {
    # Compiles the declaration below, once in a session.
    if (-not ('Winboot.Hns' -as [type])) { Add-Type -TypeDefinition (Get-HnsDeclaration) -Language CSharp }
}

# ---- identity.ps1

function ConvertTo-BootId {
    # A GUID made of what is unique to one boot, and of this machine's own id.
    param([string]$Seed)
    $machine = Read-Registry -Path 'SOFTWARE\Microsoft\Cryptography' -Name 'MachineGuid'
    [Guid]::new((Get-TextHash -Text "$machine $Seed").Substring(0, 32)).ToString()
}

function Get-BootStamp {
    # When the System process (always 4) was created: once in a boot. A clock that is set later does not move it
    # (PsGetProcessCreateTimeQuadPart: "if the system time is changed, the value ... is unaffected").
    $system = Get-CimInstance -ClassName 'Win32_Process' -Filter 'ProcessId = 4' -Property 'CreationDate'
    if (-not $system -or -not $system.CreationDate) {
        Stop-Step -Id 'NoBootId' -Message 'neither the event log nor the System process says when this machine was started'
    }
    $system.CreationDate.ToUniversalTime().ToString('o')
}

# ---- node.ps1
# The Node object, by the kubelet's own credentials.

function Read-Member {
    # A member of an object, or of the object in it, by names; nothing where one is missing. A list comes as one
    # object.
    param([object]$Object, [string[]]$Names)
    foreach ($name in $Names) {
        if ($null -eq $Object) { return }
        $member = $Object.PSObject.Properties[$name]
        if (-not $member) { return }
        $Object = $member.Value
    }
    if ($Object -is [array]) { return , $Object }
    $Object
}

function Read-Item {
    # The items of a list in an object, one by one, without nulls.
    param([object]$Object, [string]$Name)
    # In parentheses: without them the loop runs once, with the whole list (a list comes out of the function as one object).
    foreach ($item in (Read-Member -Object $Object -Names $Name)) { if ($null -ne $item) { $item } }
}

# ---- hns.ps1

function ConvertFrom-HnsAnswer {
    # What a call of HNS gives, from the JSON of its answer: Success, Error and Output (hnsResponse of microsoft/hcsshim
    # internal/hns). A list comes as one object; nothing where there is no output.
    param([string]$Text, [string]$Call)
    $answer = ConvertFrom-Json -InputObject $Text
    if (-not (Read-Member -Object $answer -Names 'Success')) {
        Stop-Step -Id 'HnsRefused' -Message "HNS refused ${Call}: $(Read-Member -Object $answer -Names 'Error')"
    }
    Read-Member -Object $answer -Names 'Output'
}

function Invoke-HnsRequest {
    # One call of HNS; what it answers with. It fails after a minute without an answer.
    param([string]$Method, [string]$Path, [object]$Request = $null)
    Import-HnsDeclaration
    $body = if ($Request) { ConvertTo-Json -InputObject $Request -Depth 10 -Compress } else { '' }
    try { $text = [Winboot.Hns]::Call($Method, $Path, $body, 60) }
    catch [TimeoutException] { Stop-Step -Id 'HnsHangs' -Message "HNS has not answered $Method $Path within 60 seconds" }
    ConvertFrom-HnsAnswer -Text $text -Call "$Method $Path"
}

function Read-HnsKind {
    # All objects of a kind. A task has nobody who would break off a call that hangs: there each has a limit of its own.
    # Nothing where there is none.
    param([string]$Kind)
    if (@('Detached', 'Rescue', 'Boot') -contains $script:Run.Mode) {
        foreach ($found in Invoke-HnsRequest -Method GET -Path "/$Kind/") { $found }
        return
    }
    $commands = @{ networks = 'Get-HnsNetwork'; endpoints = 'Get-HnsEndpoint'; policylists = 'Get-HnsPolicyList' }
    # Community modules have commands of the same names.
    & ('HostNetworkingService\' + $commands[$Kind])
}

function Get-HnsObject {
    # The HNS objects of a kind (networks, endpoints, policylists), or those of one name. Nothing where there is none.
    param([string]$Kind, [string]$Name = '')
    # Persistent networks are there even while it does not run.
    if ((Get-ServiceState -Name 'hns') -eq 'Stopped' -and $script:Run.Mode -ne 'Look') { Start-Service -Name 'hns' }
    if ((Get-ServiceState -Name 'hns') -ne 'Running') { return }
    foreach ($found in Read-HnsKind -Kind $Kind) {
        # What kube-proxy makes for other nodes' pods needs no name.
        if ($Name -eq '' -or (Read-Member -Object $found -Names 'Name') -eq $Name) { $found }
    }
}

function Remove-HnsObject {
    # Removes the object with this id.
    param([string]$Kind, [string]$Id)
    [void](Invoke-HnsRequest -Method DELETE -Path "/$Kind/$Id")
}

# ---- pod_network.ps1

function Restore-PodNetwork {
    # The network went with the detached run before; one that was there before winboot stays.
    param([object]$Former)
    if ($Former.existed) { return }
    if (-not (Get-HnsObject -Kind networks -Name $Former.name)) { return }
    Stop-Step -Id 'NetworkLeft' -Message "the HNS network $($Former.name) is still there"
}

# ---- network.ps1

function Find-Successor {
    # The index of the interface that carries today what this one carried: itself, else the one that took its MAC
    # address over. Nothing where there is none.
    param([object]$Was)
    foreach ($address in $Was.addresses) {
        foreach ($found in Find-Address -Ip $address.ip) { return [int]$found.InterfaceIndex }
    }
    # A physical adapter below a switch, a member of a team and the virtual function of accelerated networking have the same MAC and no
    # IP; interfaces of the same team or switch have it too, and are themselves.
    $others = @(if ($Was -is [hashtable]) { $Was['siblings'] } else { Read-Item -Object $Was -Name 'siblings' })
    $usable = @(Get-NetAdapter -IncludeHidden | Where-Object {
            $_.MacAddress -eq $Was.mac -and $_.Status -eq 'Up' -and $others -notcontains [string]$_.InterfaceGuid -and
            (Get-NetIPInterface -InterfaceIndex $_.ifIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue)
        })
    $base = Get-BaseName -Name $Was.name
    $order = { if ([string]$_.InterfaceGuid -eq $Was.guid) { 0 } elseif ((Get-BaseName -Name $_.Name) -eq $base) { 1 } else { 2 } }
    foreach ($adapter in $usable | Sort-Object -Property $order | Select-Object -First 1) { [int]$adapter.ifIndex }
}

function Get-SuccessorGuid {
    # The GUIDs of the interfaces that carry today what those of a snapshot carried. Nothing where there is none.
    param([object[]]$Adapters)
    foreach ($was in $Adapters) {
        $index = Find-Successor -Was $was
        if ($null -ne $index) {
            Get-NetAdapter -InterfaceIndex $index -IncludeHidden -ErrorAction SilentlyContinue | ForEach-Object { [string]$_.InterfaceGuid }
        }
    }
}

function Restore-NetworkSnapshot {
    # Puts back what the interfaces of a snapshot lost; each write is in the journal. Returns nothing. What fails while
    # Windows moves an address succeeds a moment later.
    param([object]$Snapshot)
    $script:Run['Trouble'] = ''
    foreach ($was in $Snapshot.adapters) {
        $index = Find-Successor -Was $was
        if ($null -ne $index) { Restore-Interface -Was $was -Index $index }
    }
}

function Invoke-NetworkRestore {
    # Puts back what the interfaces of a snapshot lost; returns whether it came to its end. An interface may go while this works on it
    # (a switch takes its IP from an adapter at any moment): then the next try finds what came in its place.
    param([object]$Snapshot)
    try {
        Restore-NetworkSnapshot -Snapshot $Snapshot
        $true
    }
    catch {
        $script:Run['Trouble'] = $_.Exception.GetBaseException().Message
        $false
    }
}

# ---- guard.ps1

function Test-LostInterface {
    # Whether a switch took the addresses of an interface: it carries none any more, and its successor has no good one.
    param([object]$Was)
    if (@($Was.addresses).Count -eq 0 -or (Test-CarryingInterface -Guid $Was.guid)) { return $false }
    foreach ($address in $Was.addresses) { if (Find-Address -Ip $address.ip) { return $false } }
    $index = Find-Successor -Was $Was
    # Another address that works is somebody's choice.
    $null -eq $index -or @(Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ }).Count -eq 0
}

function Get-MissingAddress {
    # The first address of a snapshot that no interface uses any more, as text. Nothing when none is missing.
    param([object]$Snapshot)
    foreach ($was in $Snapshot.adapters) {
        foreach ($address in $was.addresses) {
            if ($address.settled -and -not (Test-SettledAddress -Ip $address.ip)) { return "the address $($address.ip)" }
        }
        # With DHCP the lease may be another one; an adapter that nobody rewired is not looked at.
        if (-not $was.settled -or @($was.addresses).Count -gt 0 -or (Test-CarryingInterface -Guid $was.guid)) { continue }
        $index = Find-Successor -Was $was
        if ($null -eq $index -or -not (Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ })) {
            return "the address of $($was.name)"
        }
    }
}

# ---- detached.ps1

function Get-ReachedEndpoint {
    # Where the controller comes in: own addresses, each with a port that something listens on now; nothing for port 0 (winboot runs
    # on the machine itself). Behind NAT, a tunnel or a jump host the address or port that was dialled is none of the machine's: what
    # did not answer before the rewiring is not asked for after it.
    param([int]$Port)
    if ($Port -eq 0) { return }
    # sshd names the connection: client, its port, own address, own port (w32-doexec.c of PowerShell/openssh-portable, setup_session_env).
    $words = "$($env:SSH_CONNECTION)".Split(' ')
    if ($words.Count -eq 4 -and (Test-ReachedEndpoint -Ip $words[2] -Port $words[3])) {
        return @{ ip = $words[2]; port = [int]$words[3] }
    }
    $own = @($script:Run.Facts.Addresses | Where-Object { Test-OuterAddress -Ip $_ })
    if ($own.Count -eq 0) { $own = @(Get-NodeAddress | ForEach-Object { $_.ip }) }
    foreach ($ip in $own) {
        # A port that is forwarded leads to one of WinRM's own.
        foreach ($one in @($Port, 5986, 5985)) {
            if (Test-Listener -Ip $ip -Port $one) { @{ ip = $ip; port = $one }; break }
        }
    }
}

function Get-MissingLink {
    # What keeps others from the machine: an address, the default route, or a listener on the address that the
    # controller came in by. Nothing when nothing is missing.
    param([object]$Snapshot)
    $missing = Get-MissingAddress -Snapshot $Snapshot
    if ($missing) { return $missing }
    if ($Snapshot.default_route -and @(Get-DefaultRoute).Count -eq 0) { return 'the default route' }
    foreach ($end in $Snapshot.reached) {
        if (-not (Test-Listener -Ip $end.ip -Port $end.port)) { return "the listener on $($end.ip), port $($end.port)" }
    }
}

function Wait-Network {
    # Names what could not be put back.
    param([object]$Snapshot)
    $intact = {
        (Invoke-NetworkRestore -Snapshot $Snapshot) -and -not (Get-MissingLink -Snapshot $Snapshot)
    }
    if (Wait-Until -Test $intact -Seconds 120 -Pause 3000) { return }
    $missing = Get-MissingLink -Snapshot $Snapshot
    if ($missing) { "$missing $($script:Run.Trouble)".Trim() }
}

# ---- known.ps1

function Get-NodeIp {
    # The address that the kubelet goes by, and asks a certificate for; empty while the machine has none.
    $address = Get-Cached -Name 'NodeAddress' -Read { Get-NodeAddress }
    "$(Read-Member -Object $address -Names 'ip')"
}

# ---- mutex.ps1
# The mutex that lets one run at a time change this machine.

function New-PrivateMutex {
    # A mutex that SYSTEM and Administrators may open, and nobody else.
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

# ---- naming.ps1

function Restore-ComputerName {
    # Gives the machine its former name back.
    param([object]$Former)
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    if ((Read-Registry -Path "${names}ActiveComputerName" -Name 'ComputerName') -ine $Former.name) {
        Rename-Computer -NewName $Former.name -Force -WarningAction SilentlyContinue
        New-Reboot
        return
    }
    # Rename-Computer refuses the name that the machine still has: the new one is taken back where it waits.
    $network = 'SYSTEM\CurrentControlSet\Services\Tcpip\Parameters'
    Write-Registry -Path "${names}ComputerName" -Name 'ComputerName' -Value $Former.name -Kind 'String'
    Write-Registry -Path $network -Name 'NV Hostname' -Value (Read-Registry -Path $network -Name 'Hostname') -Kind 'String'
}

# ---- boot.ps1

function Restore-BootTask {
    # Removes the startup task, the stored scripts and the tasks that detached runs left. Returns nothing.
    param([object]$Former)
    Remove-Task -Name $Former.name
    Remove-BootScript
    Remove-StrayTask
}

# ---- calico.ps1
# The network that Calico's agent makes, and the host's endpoint in it.

function Restore-CalicoNetwork {
    # The service is gone by now, and the switch below stays.
    param([object]$Former)
    if (-not $Former.existed) { Remove-PodNetwork -Name $Former.name }
}

# ---- containerd.ps1

function Invoke-Crictl {
    # What crictl prints; nothing where it or containerd is not there yet, or where it ends with an error.
    param([string[]]$Arguments, [int]$Seconds = 30)
    if ((Get-ServiceState -Name 'containerd') -ne 'Running') { return }
    if (-not (Test-OwnPath -Path $script:Node.crictl_config) -or -not (Test-OwnPath -Path $script:Node.crictl -Program)) { return }
    $ended = Start-Crictl -Arguments $Arguments -Seconds $Seconds
    if ($ended.ExitCode -eq 0) { $ended.Output }
}

function Start-Crictl {
    # Runs crictl with our settings, and returns how it ended.
    param([string[]]$Arguments, [int]$Seconds)
    $config = $script:Node.crictl_config
    Invoke-Program -Path $script:Node.crictl -Arguments (@('--config', $config) + $Arguments) -Reads $config -Seconds $Seconds
}

# ---- detached.ps1

function Start-DetachedRun {
    # Stores this script and starts it as a task of SYSTEM; Seconds is what the work itself may take.
    param([int]$Seconds = 300, [object]$Guard)
    Assert-NoFailure
    $run = $script:Run
    $id = "$($run.Step)-$([Guid]::NewGuid().ToString('N').Substring(0, 8))"
    $whole = $Seconds + 720
    $path = Get-StatePath -Name "detached\$id.ps1"
    Write-FileText -Path $path -Text (ConvertTo-ScriptFile -Text $run.Text)
    Write-StateJson -Name "detached\$id.json" -Value @{
        id = $id; step = $run.Step; state = 'running'; run = $run.Id; fence = $run.Fence; purpose = $run.Mode; guard = $Guard
        boot_id = (Get-MachineIdentity).BootId; timeout_s = $whole; message = ''; told = $false; ended = 0; hint = 'DetachedFailed'
        deadline = [DateTime]::UtcNow.AddSeconds($whole).Ticks; reached = @(Get-ReachedEndpoint -Port $Guard.management_port)
    }
    $common = @{ Path = $path; Text = $run.Text; Priority = 4 }
    # The second line: it finds the run still noted as running only when that one was killed.
    $late = New-ScheduledTaskTrigger -Once -At ([DateTime]::Now.AddSeconds($whole + 60))
    Set-Task -Name "detached-$id-rescue" -Task (New-SystemTask @common -Arguments "-Mode Rescue -Detached `"$id`"" -Seconds 900 -Trigger $late `
            -Description "winboot: puts the network back if the run for step $($run.Step) was killed; removes itself.")
    Set-Task -Name "detached-$id" -Task (New-SystemTask @common -Arguments "-Mode Detached -RunId `"$($run.Id)`" -Detached `"$id`"" -Seconds $whole `
            -Description "winboot: changes the network for step $($run.Step) and puts it back if that fails; removes itself.")
    Start-ScheduledTask -TaskName "detached-$id" -TaskPath '\winboot\'
    [pscustomobject]@{ kind = 'detached'; id = $id; timeout_s = $whole }
}

function Assert-NoFailure {
    # A failed one fails the step once; one that a restart cut off, or that ended well before this start, does not.
    foreach ($status in Read-UntoldRun -Step $script:Run.Step -Purpose $script:Run.Mode) {
        $over = [DateTime]::UtcNow.AddMinutes(-15).Ticks -gt [long]$status.ended -or $status.boot_id -ne (Get-MachineIdentity).BootId
        if ($status.state -eq 'running' -or ($status.state -eq 'done' -and $over)) { continue }
        if ($status.state -eq 'done') { $status.message = 'but the step is not as wanted' }
        Stop-Step -Id 'DetachedFailed' -Message "the detached run $($status.id) ended as $($status.state): $($status.message)" -Hint $status.hint
    }
}

function Read-UntoldRun {
    # The detached runs of a step that nobody has been told the end of, each once; nothing where there are none. Purpose
    # is the mode that started it.
    param([string]$Step, [string[]]$Purpose)
    foreach ($status in Read-DetachedRun -Step "$Step-") {
        if ($status.told -or $Purpose -notcontains $status.purpose) { continue }
        $status.told = $true
        Write-StateJson -Name "detached\$($status.id).json" -Value $status
        $status
    }
}

function Invoke-Detached {
    # The task's own work, or, with Rescue, what is left of a run that was killed.
    param([switch]$Rescue)
    $id = $script:Run.Facts.Detached
    $status = Read-StateJson -Name "detached\$id.json"
    $ended = @{ State = 'failed'; Message = '' }
    $lock = Wait-Mutex -Seconds 120
    try {
        try {
            if ($Rescue) { $ended = Invoke-Rescue -Status $status }
            else {
                if (-not $lock) { throw "the mutex stayed held by $(Get-HolderText)" }
                if ((Get-Fence) -ne $status.fence) { throw "superseded by $(Get-HolderText)" }
                $script:Run.Fence = $status.fence
                # That event is still on its way through the network.
                Start-Sleep -Seconds 2
                $ended = Invoke-Guarded -Status $status
            }
        }
        catch { $ended.Message = $_.Exception.GetBaseException().Message }
        # Two minutes of patience: nobody else can say how it ended.
        try { Complete-DetachedRun -Status $status -Ended $ended -Tries 12 }
        catch {
            # The run stays noted as running: its script and its rescue stay too, which settle it when the file is free.
            $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'DetachedFailed'
            [void](New-EventLine -Fields @{ event = 'detached-unsaved'; id = $id; state = $ended.State; problem = $problem })
            if (-not $Rescue) { return }
        }
    }
    finally { if ($lock) { Exit-Run -Lock $lock } }
    Remove-File -Path (Get-StatePath -Name "detached\$id.ps1") -Tries 4
    Remove-Task -Name "detached-$id-rescue"
    Remove-Task -Name "detached-$id"
}

function Invoke-Guarded {
    # The step's work under watch. Only what the node itself can see is a reason to go back: an API server that is away is none.
    param([object]$Status)
    $script:Run.Facts.Purpose = $Status.purpose
    $snapshot = Get-CurrentSnapshot
    $snapshot.reached = @($Status.reached)
    $snapshot.networks = @(Get-HnsObject -Kind networks | ForEach-Object { $_.ID })
    Write-StateJson -Name "detached\$($Status.id)-network.snapshot" -Value $snapshot
    $script:Run['Snapshot'] = $snapshot
    $step = @($script:Run.Steps | Where-Object { $_.Name -eq $Status.step })[0]
    $problem = $null
    try { [void]@(Invoke-Block -Step $step -Block 'Detached') }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'DetachedFailed'
        $Status.hint = "$($problem.id) DetachedFailed"
    }
    Complete-Guarded -Status $Status -Step $step -Snapshot $snapshot -Problem $problem
}

function Complete-Guarded {
    # What the work left: the machine as before and the network as wanted, or the way back.
    param([object]$Status, [hashtable]$Step, [object]$Snapshot, [object]$Problem)
    $message = ''
    if ($null -ne $Problem) { $message = $Problem.message }
    $lost = Wait-Network -Snapshot $Snapshot
    if ($lost -or ($null -ne $Problem -and $Problem.id -eq 'WrongAdapter')) {
        Undo-Rewiring -Guard $Status.guard -Snapshot $Snapshot
        $after = Wait-Network -Snapshot $Snapshot
        if ($after) { $after = "still lost: $after" }
        $lost = if ($lost) { "$lost was lost and the change taken back" } else { 'the change was taken back' }
        return @{ State = 'restored'; Message = @($lost, $message, $after | Where-Object { $_ }) -join '; ' }
    }
    $state = if ($null -eq $Problem) { 'done' } else { 'failed' }
    if ($Status.purpose -eq 'Change') {
        if (Test-StepStanding -Step $Step) { Enable-NetworkAgent -Name $Status.guard.agent }
        else { Disable-NetworkAgent -Name $Status.guard.agent -Why "the run $($Status.id) ended as ${state}: $message" }
    }
    Save-NetworkRecord
    @{ State = $state; Message = $message }
}

function Invoke-Rescue {
    # A run that was killed in the middle: back to what it had noted.
    param([object]$Status)
    if ($Status.state -ne 'running') { return @{ State = $Status.state; Message = $Status.message } }
    $script:Run.Facts.Purpose = $Status.purpose
    $snapshot = Read-StateJson -Name "detached\$($Status.id)-network.snapshot"
    Disable-NetworkAgent -Name $Status.guard.agent -Why "the run $($Status.id) was killed"
    if (-not $snapshot) { return @{ State = 'failed'; Message = 'killed before its work began' } }
    $lost = Wait-Network -Snapshot $snapshot
    if (-not $lost) { return @{ State = 'failed'; Message = 'killed' } }
    Undo-Rewiring -Guard $Status.guard -Snapshot $snapshot
    $after = Wait-Network -Snapshot $snapshot
    @{ State = 'restored'; Message = @("killed; $lost was lost and the change taken back", $after | Where-Object { $_ }) -join '; still lost: ' }
}

function Get-CutRecord {
    # The interfaces as the runs that this start cut off had found them. Nothing where none was cut off.
    if (-not $script:Run.ContainsKey('Cut')) { return }
    foreach ($name in $script:Run.Cut) { Read-NetworkRecord -Name $name }
}

function Remove-StrayTask {
    # Tasks of detached runs that are over; a restart or a kill keeps a run from removing its own.
    $running = @(Read-DetachedRun | Where-Object { $_.state -eq 'running' } |
            ForEach-Object { "detached-$($_.id)"; "detached-$($_.id)-rescue" })
    foreach ($task in Get-ScheduledTask -TaskPath '\winboot\' -ErrorAction SilentlyContinue) {
        if ($task.TaskName -like 'detached-*' -and $running -notcontains $task.TaskName) { Remove-Task -Name $task.TaskName }
    }
}

function Undo-Rewiring {
    # Takes away what the run made, agent first, load balancers before networks.
    param([object]$Guard, [object]$Snapshot)
    Invoke-RollbackPart -Part { Disable-NetworkAgent -Name $Guard.agent -Why 'the network was lost' }
    foreach ($name in $Guard.networks) {
        Invoke-RollbackPart -Part {
            if (Get-HnsObject -Kind networks -Name $name | Where-Object { $Snapshot.networks -notcontains $_.ID }) {
                Remove-PodNetwork -Name $name
            }
        }
    }
}

function Disable-NetworkAgent {
    # Keeps an agent from making the switch when nobody watches: noted, disabled and stopped. Only a guarded run enables it.
    param([string]$Name, [string]$Why)
    if ($Name -eq '' -or $null -eq (Get-ServiceState -Name $Name)) { return }
    $dependents = @(Get-StartingDependent -Name $Name)
    $since = [DateTime]::UtcNow.ToString('s') + 'Z'
    Write-StateJson -Name 'held.json' -Value @{ agent = $Name; why = $Why; since = $since; dependents = $dependents }
    Invoke-ServiceControl -Arguments @('config', $Name, 'start=', 'disabled')
    foreach ($one in $dependents) { Invoke-ServiceControl -Arguments @('config', $one.name, 'start=', 'demand') }
    Stop-RunningService -Name $Name
}

function Get-StartingDependent {
    # What starts with the machine and depends on the agent, as noted before or as it is: the control manager would
    # start the agent for it, also one that does not start by itself (a guarded run that a cut ends). Nothing where
    # there is none.
    param([string]$Name)
    $noted = @(Get-Hold | ForEach-Object { Read-Item -Object $_ -Name 'dependents' })
    if ($noted.Count -gt 0) { return $noted }
    $service = Read-Service -Name 'kube-proxy'
    if ($null -eq $service -or $service.depends -notcontains $Name -or @('auto', 'delayed-auto') -notcontains $service.start) {
        return
    }
    @{ name = 'kube-proxy'; start = $service.start }
}

function Enable-NetworkAgent {
    # After a guarded run: from now on it starts with the machine, and what depends on it.
    param([string]$Name)
    if ($Name -eq '' -or $null -eq (Get-ServiceState -Name $Name)) { return }
    $dependents = @(Get-Hold | ForEach-Object { Read-Item -Object $_ -Name 'dependents' })
    Invoke-ServiceControl -Arguments @('config', $Name, 'start=', 'auto')
    foreach ($one in $dependents) {
        if ($null -ne (Get-ServiceState -Name $one.name)) {
            Invoke-ServiceControl -Arguments @('config', $one.name, 'start=', $one.start)
        }
    }
    Remove-File -Path (Get-StatePath -Name 'held.json')
}

function Get-Hold {
    # Who is kept from starting, and why; nothing where nobody is.
    $hold = Read-StateJson -Name 'held.json'
    if ($hold -and (Read-Member -Object $hold -Names 'agent')) { $hold }
}

# ---- drive.ps1

function Invoke-Locked {
    # Runs Work under the machine's mutex and returns the lines of its events. What fails outside of a step is reported as
    # the end of the run.
    param([scriptblock]$Work)
    $lock = $null
    try {
        # Taking the mutex would supersede it.
        $running = Get-RunningDetached
        if (-not $running) { $lock = Enter-Run }
        New-RunEvent
        if ($running) { New-DetachedEvent -Run $running -Step $running.step; return }
        if (-not $lock) { New-EndEvent -Reason 'held' -Message (Get-HolderText); return }
        & $Work
        Clear-OldFile
        Save-Journal -Waiting $script:Run.Journal -Tries 6
    }
    catch { New-FailedEnd -Caught $_ }
    finally { if ($lock) { Exit-Run -Lock $lock } }
}

function New-FailedEnd {
    # The last event of a run that could not begin or go on, with the reason.
    param([Management.Automation.ErrorRecord]$Caught)
    $script:Run.Cache = @{}
    if ($script:Run.Sequence -eq 0) { New-RunEvent }
    $problem = ConvertTo-Problem -Caught $Caught -OtherwiseId 'RunFailed'
    New-EventLine -Fields @{ event = 'done'; reason = 'failed'; message = ''; problem = $problem }
}

function Invoke-Step {
    # Runs Drive for one step after the other and returns the lines of their events. At the end it asks for one restart
    # for all steps that need it. A run that took the machine over meanwhile ends this one before its next step.
    param([hashtable[]]$Steps, [scriptblock]$Drive)
    $rebooting = @()
    foreach ($step in $Steps) {
        if (-not (Test-Fence)) { New-EndEvent -Reason 'superseded' -Message (Get-HolderText); return }
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = & $Drive $step
        if ($result.Detached) { New-DetachedEvent -Run $result.Detached -Step $step.Name; return }
        if ($result.Reboot) { $rebooting += $step.Name }
        New-StepEvent -Step $step -Result $result -Watch $watch
    }
    if (-not $rebooting) { New-EndEvent -Reason 'complete'; return }
    Save-RebootMark -Steps $rebooting
    New-EventLine -Fields @{ event = 'reboot'; steps = $rebooting }
    New-EndEvent -Reason 'reboot'
}

function Invoke-Undo {
    # Puts back what was before, last step first, and leaves no trace of winboot when everything is back.
    $steps = @($script:Run.Steps) + @(Get-ForgottenStep)
    [array]::Reverse($steps)
    Invoke-Step -Steps $steps -Drive { param($Step) Get-UndoResult -Step $Step }
    if ([IO.Directory]::GetFiles((Get-StatePath -Name 'former'), '*.jsonl').Count -eq 0) {
        Clear-OldFile
        Remove-StateFolder
    }
}

function Get-ForgottenStep {
    # Steps that an older profile had and that left former values here. Nothing where there are none.
    $known = @($script:Run.Steps | ForEach-Object { $_.Name })
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath -Name 'former'), '*.jsonl')) {
        $name = [IO.Path]::GetFileNameWithoutExtension($path)
        if ($known -notcontains $name) {
            @{ Name = $name; Needs = @('directories'); Values = {}; Undo = { Restore-FormerValue } }
        }
    }
}

function Assert-NothingAbove {
    # An undo goes the other way: what builds on a step goes before it, or the step stays and so do its notes.
    param([hashtable]$Step)
    $above = @($script:Run.Steps) + @(Get-ForgottenStep) |
        Where-Object { $script:Run.Unmet.ContainsKey($_.Name) -and @($_['Needs']) -contains $Step.Name }
    if ($above) {
        Stop-Step -Id 'NeedsStep' -Message "what builds on it was not taken back: $(@($above | ForEach-Object { $_.Name }) -join ', ')"
    }
}

function Get-UndoResult {
    # The result of putting back what a step noted, as a table: changed where there were notes, ok where there were
    # none. The notes go last, so that an undo that is cut off is done again.
    param([hashtable]$Step)
    $result = New-Result
    try {
        $script:Run.Step = $Step.Name
        Assert-NothingAbove -Step $Step
        $hadFormer = Test-FormerValue
        foreach ($thing in Invoke-Block -Step $Step -Block 'Undo') {
            # What cannot be as it was.
            if ($thing -is [Management.Automation.PSCustomObject] -and $thing.kind -eq 'difference') { $result.Differences += $thing }
            else { Receive-Said -Step $Step -Result $result -Thing $thing }
        }
        if ($hadFormer -and $null -eq $result.Detached) {
            $result.State = 'changed'
            Clear-FormerValue
        }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'ChangeFailed' }
    $result
}

function New-RunEvent {
    # The line of the first event: which machine this is, and which boot of it.
    $identity = Get-MachineIdentity
    New-EventLine -Fields @{
        event = 'run'; boot_id = $identity.BootId; smbios_uuid = $identity.Uuid; build = $identity.Build
        computer_name = $identity.Name; fence = $script:Run.Fence; node_ip = Get-NodeIp
    }
}

# ---- excluded_ports.ps1
# Ports that Windows keeps from its clients.

function Get-ExcludedRange {
    # The ranges of ports that Windows keeps from clients, each as a table; nothing where there are none. Only netsh
    # knows them. A line that is two numbers is a range, in every language.
    param([string]$Protocol)
    $lines = (Invoke-ExcludedRange -Verb 'show' -Protocol $Protocol) -split '\r?\n'
    foreach ($line in $lines) {
        if ($line -match '^\s*(\d+)\s+(\d+)\s*\*?\s*$') { @{ first = [int]$Matches[1]; last = [int]$Matches[2] } }
    }
}

function Restore-ExcludedRange {
    # Gives back a range that winboot excluded.
    param([object]$Former)
    $same = { $_.first -eq $Former.first -and $_.last -eq $Former.last }
    if (-not (Get-ExcludedRange -Protocol $Former.protocol | Where-Object $same)) { return }
    [void](Invoke-ExcludedRange -Verb 'delete' -Protocol $Former.protocol -Range $Former)
}

function Invoke-ExcludedRange {
    # Runs netsh for excluded port ranges, and returns what it prints.
    param([string]$Verb, [string]$Protocol, [object]$Range)
    $arguments = @('int', 'ipv4', $Verb, 'excludedportrange', "protocol=$Protocol")
    if ($null -ne $Range) { $arguments += @("startport=$($Range.first)", "numberofports=$($Range.last - $Range.first + 1)") }
    Assert-Program -Path (Get-SystemProgram -Name 'netsh.exe') -Arguments $arguments
}

# ---- file.ps1

function Read-FileByte {
    # The content of a file as one byte[]; nothing when it is absent or not believed (see Get-PathDoubt).
    param([string]$Path)
    if ([IO.File]::Exists($Path) -and -not (Test-OwnPath -Path $Path)) { return }
    Read-AnyFileByte -Path $Path
}

function Read-FileText {
    # The text of a file; $null when there is none: without output the caller's [regex]::Match would get no text at all.
    # ReadAllText would drop a byte order mark, which JSON and TOML parsers stumble over.
    param([string]$Path)
    $bytes = Read-FileByte -Path $Path
    if ($null -eq $bytes) { return $null }
    [Text.Encoding]::UTF8.GetString($bytes)
}

function Get-OldFile {
    # The lines of that list, the last one for each file.
    $lines = [ordered]@{}
    foreach ($line in "$(Read-FileText -Path (Get-StatePath -Name 'old-files.txt'))".Split("`n")) {
        if ($line) { $lines[$line.Split('|')[0]] = $line }
    }
    $lines.Values
}

function Clear-OldFile {
    # Deletes what was set aside and puts back what a power cut left without a successor. Housekeeping: it never fails.
    $list = Get-StatePath -Name 'old-files.txt'
    try {
        $left = @(foreach ($line in Get-OldFile) { if (-not (Complete-OldFile -Line $line)) { $line } })
        if ($left) {
            Write-FileText -Path $list -Text (($left -join "`n") + "`n") -Tries 1
        }
        else {
            Remove-File -Path $list -Tries 1
        }
    }
    # The list itself is held, or the disk is full: what it names goes another time.
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return }
}

# ---- former.ps1

function Get-FormerLine {
    # The notes of a step, the current one unless it is named: kind, key and value each. What has another shape is none
    # of ours. Nothing where there are no notes.
    param([string]$Step = $script:Run.Step)
    foreach ($line in "$(Read-FileText -Path (Get-FormerPath -Step $Step))".Split("`n")) {
        # Half a line: the machine went down, and the change was not made.
        if (-not $line.EndsWith('}')) { continue }
        try { $note = ConvertFrom-Json -InputObject $line } catch [ArgumentException] { continue }
        if ($null -ne (Read-Member -Object $note -Names 'kind') -and $note.PSObject.Properties['value']) { $note }
    }
}

function Restore-FormerValue {
    # Puts back everything the current step has noted, last change first. Each kind has its function Restore-<Kind>;
    # the functions that save a kind name it, so that it is in this script whenever it is needed.
    $lines = @(Get-FormerLine)
    [array]::Reverse($lines)
    foreach ($line in $lines) {
        $restore = Get-Command -Name ('Restore-' + $line.kind) -CommandType Function
        & $restore -Former $line.value
    }
}

# ---- mutex.ps1

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

function Open-RunMutex {
    # The mutex, opened or made. Any user can be the first to make one of a known name; then it is not used, and one takes its
    # place whose name only administrators can read. The fence ends a run that still holds the other.
    try {
        $lock = New-PrivateMutex -Name 'Global\winboot'
        # Who may not see its owner is not meant to have it.
        try { if (Test-Trusted -Sid $lock.GetAccessControl().GetOwner([Security.Principal.SecurityIdentifier]).Value) { return $lock } }
        catch [UnauthorizedAccessException] { $lock.Dispose() }
        $lock.Dispose()
    }
    catch [UnauthorizedAccessException] { $lock = $null }
    New-PrivateMutex -Name "Global\winboot-$(Get-MutexSuffix)"
}

# ---- state.ps1

function Remove-StateFolder {
    # Deletes the state folder. What another program holds open goes with the next restart: no later run would do it.
    $folder = Get-StatePath
    if (-not [IO.Directory]::Exists($folder)) { return }
    $waiting = @(Get-OldFile | ForEach-Object { $_.Split('|')[0] })
    try { Invoke-Patient -File $folder -Work { [IO.Directory]::Delete($folder, $true) } }
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] {
        $left = [IO.Directory]::GetFileSystemEntries($folder, '*', 'AllDirectories')
        # What lies deeper goes first.
        $waiting += @($left | Sort-Object -Property Length -Descending) + $folder
    }
    if ($waiting) { Remove-AtRestart -Path $waiting }
}

function Read-StateJson {
    # A JSON file of the state folder as an object; nothing when it is absent or was cut off in mid-write.
    param([string]$Name)
    $text = Read-FileText -Path (Get-StatePath -Name $Name)
    if (-not $text) { return }
    try { ConvertFrom-Json -InputObject $text }
    catch [ArgumentException] { return }
}

function Get-Fence {
    # The number of the last run that changed this machine.
    $stored = Read-StateJson -Name 'fence.json'
    $fence = 0
    # Another version, or a hand, may have written a file of another shape.
    [void][int]::TryParse("$(Read-Member -Object $stored -Names 'fence')", [ref]$fence)
    $fence
}

function Test-Fence {
    # Whether this run is still the last one.
    (Get-Fence) -eq $script:Run.Fence
}

function Get-HolderText {
    # Who holds this machine, in words.
    $stored = Read-StateJson -Name 'fence.json'
    if (-not $stored) { return 'another process holds the winboot mutex' }
    "$(Read-Member -Object $stored -Names 'holder'), run $(Read-Member -Object $stored -Names 'run'), since $(Read-Member -Object $stored -Names 'since')"
}

function Save-Fence {
    # Notes this run as the last one, under the mutex.
    param([string]$Holder)
    $script:Run.Fence = (Get-Fence) + 1
    $now = [DateTime]::UtcNow.ToString('s') + 'Z'
    Write-StateJson -Name 'fence.json' -Value @{ fence = $script:Run.Fence; run = $script:Run.Id; holder = $Holder; since = $now }
}

function Wait-Mutex {
    # The mutex of winboot, taken; nothing where another process keeps it for so long.
    param([int]$Seconds)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    do {
        try {
            $lock = Open-RunMutex
            try { if ($lock.WaitOne(1000)) { return $lock } }
            catch [Threading.AbandonedMutexException] { return $lock }
            $lock.Dispose()
        }
        # Another account's, while it is held.
        catch [UnauthorizedAccessException] { Start-Sleep -Milliseconds 1000 }
    } while ([DateTime]::UtcNow -lt $until)
}

function Enter-Run {
    # Takes the mutex for this run; returns it, or nothing where another run keeps it.
    Initialize-StateFolder
    $facts = $script:Run.Facts
    # The older run sees that at its next step and lets go.
    if ($facts.TakeOver) { Save-Fence -Holder $facts.Holder }
    $lock = Wait-Mutex -Seconds $(if ($facts.TakeOver) { 300 } else { 20 })
    if (-not $lock) { return }
    try { Save-Fence -Holder $facts.Holder }
    catch {
        Exit-Run -Lock $lock
        throw
    }
    $lock
}

function Read-DetachedRun {
    # The notes of detached runs, of one step or of all. Nothing where there are none.
    param([string]$Step = '')
    $folder = Get-StatePath -Name 'detached'
    if (-not [IO.Directory]::Exists($folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($folder, "$Step*.json")) {
        $status = Read-StateJson -Name ('detached\' + [IO.Path]::GetFileName($path))
        if ($status) { $status }
    }
}

# ---- identity.ps1

function Get-BootId {
    # The id of the machine's current boot: a GUID as text, never empty. LastBootUpTime would move with the clock.
    # It comes from the record that the event log writes at each start.
    $filter = @{ LogName = 'System'; ProviderName = 'EventLog'; Id = 6005 }
    foreach ($started in Get-WinEvent -FilterHashtable $filter -MaxEvents 1 -ErrorAction SilentlyContinue) {
        return ConvertTo-BootId -Seed "$($started.RecordId) $($started.TimeCreated.ToUniversalTime().ToString('o'))"
    }
    # The log was cleared, or has been overwritten since: the startup task noted the id, if it ran in this boot.
    $stamp = Get-BootStamp
    $noted = Read-StateJson -Name 'boot.json'
    if ($noted -and "$(Read-Member -Object $noted -Names 'stamp')" -eq $stamp) { return [string]$noted.boot_id }
    ConvertTo-BootId -Seed $stamp
}

function Get-MachineIdentity {
    # Which machine this is: boot id, SMBIOS UUID, build, name, model, and whether a domain has it.
    if (-not $script:Run.ContainsKey('Identity')) {
        $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
        $system = Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'Model', 'PartOfDomain'
        $script:Run.Identity = @{
            BootId = Get-BootId
            # Kubelets before 1.31 (1.28.13, 1.29.8, 1.30.4) report this very value as systemUUID. Later ones read LastConfig of
            # SYSTEM\HardwareConfig, the UUID that Windows took from the same firmware table (kubernetes pull request 126012).
            Uuid   = [string](Get-CimInstance -ClassName 'Win32_ComputerSystemProduct' -Property 'UUID').UUID
            Build  = "$(Read-Registry -Path $version -Name 'CurrentBuildNumber').$(Read-Registry -Path $version -Name 'UBR')"
            Name   = [Environment]::MachineName
            Model  = [string]$system.Model
            Domain = [bool]$system.PartOfDomain
        }
    }
    $script:Run.Identity
}

# ---- state.ps1

function Save-RebootMark {
    # Notes that the pending restart is winboot's.
    param([string[]]$Steps)
    Write-StateJson -Name 'reboot.json' -Value @{ boot_id = (Get-MachineIdentity).BootId; steps = $Steps }
}

function Get-RunningDetached {
    # The detached run that goes on in this boot; nothing without one.
    foreach ($status in Read-DetachedRun) {
        $inTime = [DateTime]::UtcNow.Ticks -lt $status.deadline
        if ($status.state -eq 'running' -and $inTime -and $status.boot_id -eq (Get-MachineIdentity).BootId) { return $status }
    }
}

# ---- network.ps1

function Read-NetworkSnapshot {
    # Each interface that is up with its addresses, routes, DNS servers, VLAN, metric and what else a switch can take from it; and which
    # others have the same MAC address. What a switch takes while it is read is not in it.
    $read = @(Get-OwnInterface | ForEach-Object { Read-InterfaceSnapshot -Own $_ })
    $adapters = @($read | Where-Object { Test-CarryingInterface -Guid $_.guid })
    foreach ($one in $adapters) {
        $one.siblings = @($adapters | Where-Object { $_.mac -eq $one.mac -and $_.guid -ne $one.guid } | ForEach-Object { $_.guid })
    }
    @{ boot_id = (Get-BootId); default_route = @(Get-DefaultRoute).Count -gt 0; adapters = $adapters }
}

# ---- guard.ps1

function Save-NetworkRecord {
    # Notes how the interfaces are while the machine has its address: what a start of the machine may fall back on. A switch may take
    # the adapter meanwhile; what was read without the address is nothing to fall back on.
    $address = Get-NodeAddress
    if (-not $address -or $address.state -ne 'Preferred' -or $address.ip -like '169.254.*') { return }
    $snapshot = Read-NetworkSnapshot
    if ($snapshot.adapters | Where-Object { $_.name -eq $address.alias -and $_.settled }) { Write-StateJson -Name 'network.json' -Value $snapshot }
}

function Read-NetworkRecord {
    # The interfaces of the last record; nothing where there is none that can be read.
    param([string]$Name = 'network.json')
    $record = Read-StateJson -Name $Name
    foreach ($was in Read-Item -Object $record -Name 'adapters') { if (Read-Member -Object $was -Names 'guid') { $was } }
}

function Get-LostInterface {
    # What a rewiring before this start lost: known from the run that was cut off, else from the last record. Nothing
    # where none is lost.
    $known = @(Get-CutRecord)
    if ($known.Count -eq 0) { $known = @(Read-NetworkRecord) }
    $known | Where-Object { Test-LostInterface -Was $_ }
}

function Get-CurrentSnapshot {
    # How the interfaces are; those that lost their address as the last record knew them.
    $snapshot = Read-NetworkSnapshot
    $lost = @(Get-LostInterface)
    $here = @(Get-SuccessorGuid -Adapters $lost)
    $snapshot.adapters = @($snapshot.adapters | Where-Object { $here -notcontains $_.guid }) + $lost
    foreach ($was in $lost) {
        if ($was.routes | Where-Object { $_.prefix -eq '0.0.0.0/0' }) { $snapshot.default_route = $true }
    }
    $snapshot
}

# ---- service.ps1

function Save-RestartNeed {
    # Notes that a running service has to restart, with the boot it runs in. Returns nothing.
    # Noted before the first write: the run may die in between.
    param([string]$Name)
    if ((Get-ServiceState -Name $Name) -eq 'Running') {
        Write-StateJson -Name "restart-$Name.json" -Value @{ boot_id = (Get-MachineIdentity).BootId }
    }
}

function Test-RestartNeed {
    # Whether the service still runs with what it read before a change: noted, and not restarted since in this boot.
    param([string]$Name)
    $noted = Read-StateJson -Name "restart-$Name.json"
    $null -ne $noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId
}

function Save-SlowStart {
    # Notes a start that succeeded and took long, for the looks of this boot. Windows gives up on a service that does not
    # answer within 30 seconds (ServicesPipeTimeout), so the next start may fail.
    param([string]$Name, [int]$Seconds)
    if ($Seconds -le 30) { return }
    try { Write-StateJson -Name "slow-$Name.json" -Value @{ boot_id = (Get-MachineIdentity).BootId; seconds = $Seconds } -Tries 4 }
    # Not worth the failure of a start that succeeded.
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return }
}

# ---- pod_network.ps1

function Remove-PodNetwork {
    # Removes an HNS network with the load balancers on it. Returns nothing. Load balancers go first: 17763.1554
    # requires it (AgentBaker, cleanupnetwork.ps1), and some builds hang the other way round.
    param([string]$Name)
    $networks = @(Get-HnsObject -Kind networks -Name $Name)
    if (-not $networks) { return }
    # kube-proxy writes its rules again only when it starts.
    Save-RestartNeed -Name 'kube-proxy'
    foreach ($list in Get-HnsObject -Kind policylists) { Remove-HnsObject -Kind policylists -Id $list.ID }
    foreach ($network in $networks) { Remove-HnsObject -Kind networks -Id $network.ID }
}

function Get-OwnNetwork {
    # The names of those networks of the step that are there and were not before winboot. Nothing where there is none.
    param([hashtable]$Wanted)
    $notes = @(Get-FormerLine | Where-Object { $_.kind -eq 'PodNetwork' -and -not $_.value.existed } | ForEach-Object { $_.key })
    foreach ($one in @($Wanted, $Wanted.first) | Where-Object { $_ }) {
        if ($notes -contains $one.name -and @(Get-HnsObject -Kind networks -Name $one.name).Count -gt 0) { $one.name }
    }
}

function Stop-PodNetwork {
    # The detached part of an undo: the agent would only make the network again.
    param([hashtable]$Wanted)
    # Disabled first: after a cut it would make the network again at the next start.
    Disable-NetworkAgent -Name $Wanted.agent -Why 'its network is being removed'
    foreach ($name in Get-OwnNetwork -Wanted $Wanted) { Remove-PodNetwork -Name $name }
}

# ---- known.ps1

function Expand-Known {
    # The text with its places <<name>> filled; nothing while one of them is not known.
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
    # The text with its places filled, or the step stops.
    param([string]$Text)
    $filled = Expand-Known -Text $Text
    if ($null -eq $filled) { Stop-Unknown }
    $filled
}

function Test-KnownText {
    # Whether every place <<name>> of the text can be filled now.
    param([string]$Text)
    $null -ne (Expand-Known -Text $Text)
}

function Complete-Text {
    # The text with its places filled, or with words in the place of what is not known.
    param([string]$Text)
    $filled = Expand-Known -Text $Text
    if ($null -eq $filled) { return ($Text -replace '<<[a-z0-9_]+>>', (Get-UnknownText)) }
    $filled
}

function Complete-Value {
    # A text or a list of texts with its places filled for showing; any other value as it is. Nothing becomes nothing.
    param([object]$Value)
    if ($Value -is [array]) { return , [string[]]@($Value | ForEach-Object { Complete-Text -Text $_ }) }
    if ($Value -is [string]) { return (Complete-Text -Text $Value) }
    $Value
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

# ---- routes.ps1
# Routes to the pods of other nodes, from their Node objects: pod network and address of each. They are as current as
# the last run; nodes that come later are known from the next one on.

function Restore-PodRoute {
    # Takes winboot's route of a prefix away, and sets the one that was there before where there was one.
    param([object]$Former)
    foreach ($route in Get-NetRoute -DestinationPrefix $Former.prefix -ErrorAction SilentlyContinue) {
        if (@('0.0.0.0', '::') -contains $route.NextHop) { continue }
        Remove-NetRoute -DestinationPrefix $route.DestinationPrefix -NextHop $route.NextHop -Confirm:$false
    }
    $hop = Read-Member -Object $Former -Names 'hop'
    if (-not $hop) { return }
    # The adapter may have another name by now; then the route is on the one that has the node's address.
    $index = @(Find-Address -Ip (Assert-Known -Text '<<node_ip>>'))[0].InterfaceIndex
    foreach ($adapter in Get-NetAdapter -Name $Former.alias -IncludeHidden -ErrorAction SilentlyContinue) {
        $index = $adapter.ifIndex
    }
    [void](New-NetRoute -DestinationPrefix $Former.prefix -InterfaceIndex $index -NextHop $hop -RouteMetric $Former.metric)
}

# ---- known.ps1

function Get-Known {
    # What only this machine and its Node object can tell: place to value.
    Get-Cached -Name 'Known' -Read { Read-Known }
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

# ---- layers.ps1

function Restore-Layer {
    # Removes pods and images by the runtime while it runs, then what is left of the layers by the host compute service.
    param([object]$Former)
    [void](Invoke-Crictl -Arguments @('rmp', '--all', '--force') -Seconds 300)
    [void](Invoke-Crictl -Arguments @('rmi', '--all') -Seconds 600)
    Stop-RunningService -Name 'containerd'
    $store = Get-LayerStore -Root $Former.root
    if (-not [IO.Directory]::Exists($store)) { return }
    $failed = @(foreach ($layer in [IO.Directory]::GetDirectories($store)) { Remove-Layer -Path $layer })
    if ($failed) { Stop-Step -Id 'LayerLeft' -Message "layers of container images cannot be removed: $($failed -join ', ')" }
}

# ---- node.ps1

function Get-NodeObject {
    # What is used of the Node: PodCidrs and SystemUuid; nothing while there is no Node, or none that can be read.
    Get-Cached -Name 'Node' -Read { Read-NodeObject }
}

function Get-PodCidr {
    # The pod networks of this node, if the cluster has given it any. Nothing until then.
    foreach ($node in Get-NodeObject) { $node.PodCidrs }
}

function Invoke-Kubectl {
    # Runs kubectl with the kubelet's own credentials. A kubeconfig may name a program that kubectl starts.
    param([string[]]$Arguments, [int]$Seconds)
    $kubeconfig = $script:Node.kubeconfig
    Invoke-Program -Path $script:Node.kubectl -Arguments (@('--kubeconfig', $kubeconfig) + $Arguments) -Reads $kubeconfig -Seconds $Seconds
}

function Read-NodeObject {
    # What is used of the Node object: its pod networks and the UUID of its machine; nothing where the API server or the
    # kubelet's credentials do not give it. By one raw request: `kubectl get node` asks for all API groups first and
    # writes a cache into the user's profile.
    if (-not (Test-OwnPath -Path $script:Node.kubeconfig) -or -not (Test-OwnPath -Path $script:Node.kubectl -Program)) { return }
    $ended = Invoke-Kubectl -Arguments @('--request-timeout=10s', 'get', '--raw', "/api/v1/nodes/$($script:Node.node)") -Seconds 30
    # Refused credentials mean the same as none.
    if ($ended.ExitCode -ne 0) { return }
    # ConvertFrom-Json of 5.1 refuses an object with two names that differ by case alone, as labels may. Inside a JSON text a
    # quotation mark is escaped, so that no label or annotation can look like these two members.
    $cidrs = [regex]::Match($ended.Output, '"podCIDRs"\s*:\s*\[([^\]]*)\]').Groups[1].Value
    [pscustomobject]@{
        PodCidrs   = @([regex]::Matches($cidrs, '"([0-9A-Fa-f.:/]+)"') | ForEach-Object { $_.Groups[1].Value })
        SystemUuid = [regex]::Match($ended.Output, '"systemUUID"\s*:\s*"([^"\\]*)"').Groups[1].Value
    }
}

# ---- ports.ps1

function Write-PortRange {
    # Sets the range for one protocol.
    param([string]$Protocol, [int]$Start, [int]$Count)
    $arguments = @('int', 'ipv4', 'set', 'dynamicportrange', $Protocol, "startport=$Start", "numberofports=$Count")
    [void](Assert-Program -Path (Get-SystemProgram -Name 'netsh.exe') -Arguments $arguments)
}

function Restore-PortRange {
    # Puts the former range back.
    param([object]$Former)
    if ($null -eq $Former.range) { return }
    $parts = $Former.range.Split('+')
    Write-PortRange -Protocol $Former.protocol -Start ([int]$parts[0]) -Count ([int]$parts[1])
}

# ---- program.ps1

function Invoke-Program {
    # Runs a program to its end: exit code, output and error output. It has Seconds, and so has what it started, while that
    # keeps its output open; then all of it is ended. Waited for in slices: a stop of this script is not heard within a
    # call into .NET. Reads: the files that it takes its settings from.
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 60, [string[]]$Reads = @())
    $watch = [Diagnostics.Stopwatch]::StartNew()
    $process = Start-Program -Path $Path -Arguments $Arguments -Reads $Reads -Redirected
    $over = $false
    try {
        # Both at once: a program that fills one while we read the other would hang.
        $output = $process.StandardOutput.ReadToEndAsync()
        $errorOutput = $process.StandardError.ReadToEndAsync()
        $process.StandardInput.Close()
        while (-not $process.WaitForExit(500)) {
            if ($watch.Elapsed.TotalSeconds -gt $Seconds) {
                Stop-Step -Id 'ProgramHangs' -Message "$Path did not end within $Seconds seconds"
            }
        }
        $code = $process.ExitCode
        foreach ($reading in @($output, $errorOutput)) {
            while (-not $reading.Wait(500)) {
                if ($watch.Elapsed.TotalSeconds -gt $Seconds) {
                    Stop-Step -Id 'ProgramHangs' -Message "$Path ended, but what it started kept its output open for $Seconds seconds"
                }
            }
        }
        $over = $true
        [pscustomobject]@{ ExitCode = $code; Output = $output.Result; ErrorOutput = $errorOutput.Result }
    }
    finally {
        # Also when this script is stopped: what it started must not outlive it.
        if (-not $over) { Stop-StartedProcess -Process $process }
        $process.Dispose()
    }
}

# ---- service.ps1

function Invoke-ServiceControl {
    # Runs sc.exe, or stops the step with its exit code. Returns nothing. sc.exe is used because Set-Service of Windows
    # PowerShell 5.1 sets neither the program, nor what a service depends on, nor its recovery.
    param([string[]]$Arguments)
    $ended = Invoke-Program -Path (Get-SystemProgram -Name 'sc.exe') -Arguments $Arguments
    if ($ended.ExitCode -ne 0) {
        Stop-Step -Id 'ServiceControl' -Message "sc.exe $($Arguments[0]) $($Arguments[1]) ended with code $($ended.ExitCode)"
    }
}

function Stop-OneService {
    # Stops one service and waits for the end of its processes. Returns nothing. By sc.exe: Stop-Service would wait 30
    # seconds for a dependent and end by an unnamed time-out.
    param([string]$Name, [int]$Seconds)
    # One that is starting takes no stop (error 1061).
    [void](Wait-Until -Test { (Get-ServiceState -Name $Name) -ne 'StartPending' } -Seconds $Seconds -Pause 500)
    $stopped = { (Get-ServiceState -Name $Name) -eq 'Stopped' }
    if (& $stopped) { return }
    $tree = @(Get-ServiceProcess -Name $Name)
    $code = (Invoke-Program -Path (Get-SystemProgram -Name 'sc.exe') -Arguments @('stop', $Name)).ExitCode
    # 1061: it is stopping already; 1062: it has stopped meanwhile.
    $accepted = @(0, 1061, 1062) -contains $code
    if (-not $accepted -or -not (Wait-Until -Test $stopped -Seconds $Seconds -Pause 500)) {
        Stop-ProcessTree -Tree $tree
        if (-not (Wait-Until -Test $stopped -Seconds 10 -Pause 500)) {
            Stop-Step -Id 'ServiceState' -Message "service $Name is $(Get-ServiceState -Name $Name) and does not stop: sc.exe stop ended with code $code"
        }
    }
    # A process may outlive its service, and a program the process that started it: its port and its file stay in use.
    if (-not (Wait-Until -Test { -not (Get-LivingProcess -Tree $tree) } -Seconds $Seconds -Pause 300)) {
        Stop-ProcessTree -Tree $tree
    }
}

function Stop-RunningService {
    # Stops a service, after those that depend on it. Each has Seconds to stop and as many for its process to end.
    param([string]$Name, [int]$Seconds = 60)
    foreach ($service in Get-Service -Name $Name -ErrorAction SilentlyContinue) {
        foreach ($dependent in $service.DependentServices) { Stop-OneService -Name $dependent.Name -Seconds $Seconds }
        Stop-OneService -Name $Name -Seconds $Seconds
    }
}

# ---- program.ps1

function Assert-Program {
    # Runs a program and returns its output, or stops the step where it ends with another code than 0. The message has
    # 400 characters of what the program said at most: some print their whole help.
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 60)
    $ended = Invoke-Program -Path $Path -Arguments $Arguments -Seconds $Seconds
    if ($ended.ExitCode -eq 0) { return $ended.Output }
    $said = "$($ended.ErrorOutput) $($ended.Output)".Trim()
    if ($said.Length -gt 400) { $said = $said.Substring(0, 400) }
    Stop-Step -Id 'ProgramFailed' -Message "$Path ended with code $($ended.ExitCode): $said"
}

# ---- settings.ps1

function Restore-PowerPlan {
    # Puts the former power plan back.
    param([object]$Former)
    if ($Former.plan) {
        [void](Assert-Program -Path (Get-SystemProgram -Name 'powercfg.exe') -Arguments @('/setactive', $Former.plan))
    }
}

# ---- program.ps1

function Start-Program {
    # Starts a program whose owner is known, and does not wait: the process. Redirected: what it writes is read by the caller.
    param([string]$Path, [string[]]$Arguments = @(), [string[]]$Reads = @(), [switch]$Redirected)
    Assert-OwnProgram -Path $Path -Reads $Reads
    $start = [Diagnostics.ProcessStartInfo]@{
        FileName = $Path; Arguments = (Join-Argument -Arguments $Arguments); WorkingDirectory = [Environment]::SystemDirectory
        UseShellExecute = $false; CreateNoWindow = $true
    }
    if ($Redirected) {
        $start.RedirectStandardInput = $start.RedirectStandardOutput = $start.RedirectStandardError = $true
        $start.StandardOutputEncoding = $start.StandardErrorEncoding = Get-ProgramEncoding -Path $Path
    }
    [Diagnostics.Process]::Start($start)
}

# ---- service.ps1

function Start-CurrentService {
    # Starts a service, or starts it again when what it was started with has changed since.
    param([string]$Name)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    # NSSM calls paused what dies at once, and that cannot be started.
    if ((Test-RestartNeed -Name $Name) -or (Get-ServiceState -Name $Name) -eq 'Paused') { Stop-RunningService -Name $Name }
    if ((Get-ServiceState -Name $Name) -ne 'Running') {
        $doubt = Get-ServiceDoubt -Name $Name
        if ($doubt) { Stop-Step -Id 'NotOurs' -Message "service $Name is not started: $doubt" }
        $refused = @()
        Start-Service -Name $Name -ErrorAction SilentlyContinue -ErrorVariable refused
        if ($refused.Count -gt 0) {
            $why = $refused[0].Exception.GetBaseException().Message
            Stop-Step -Id 'ServiceState' -Message "service $Name does not start$(Get-ServiceEnd -Name $Name): $why"
        }
    }
    Wait-ServiceState -Name $Name -State 'Running' -Seconds 60
    Save-SlowStart -Name $Name -Seconds $watch.Elapsed.TotalSeconds
    Remove-File -Path (Get-StatePath -Name "restart-$Name.json")
}

function Restore-Service {
    # Puts a service back as it was, or deletes the one that was not there. Automatic comes last.
    param([object]$Former)
    Stop-RunningService -Name $Former.name
    $path = Get-ServicePath -Name $Former.name
    if (-not $Former.exists) {
        if (Test-RegistryKey -Path $path) { Invoke-ServiceControl -Arguments @('delete', $Former.name) }
        return
    }
    $was = $Former.definition
    $display = Read-Member -Object $Former -Names 'display'
    # A service without a display name is shown by its name.
    if (-not $display) { $display = $Former.name }
    # sc.exe knows a group by the plus before it.
    $depends = @($was.depends) + @((Read-Item -Object $Former -Name 'groups') | ForEach-Object { "+$_" })
    $depends = ConvertTo-DependList -Names $depends
    Invoke-ServiceControl -Arguments @('config', $Former.name, 'binPath=', $was.command_line, 'depend=', $depends, 'DisplayName=', $display)
    if ($was.account -like 'NT *') { Invoke-ServiceControl -Arguments @('config', $Former.name, 'obj=', $was.account) }
    # Windows forgot the password of any other account, and as LocalSystem its program would have rights that it never had.
    $known = Test-AccountKnown -Account "$($was.account)"
    Write-ServiceEnvironment -Name $Former.name -Environment $was.environment
    Restore-ServiceParameter -Former $Former
    Invoke-ServiceControl -Arguments @('config', $Former.name, 'start=', $(if ($known) { $was.start } else { 'disabled' }))
    # The control manager reads these from the registry when it needs them.
    foreach ($value in (Read-Item -Object $Former -Name 'values')) {
        Write-Registry -Path $value.path -Name $value.name -Value $value.value -Kind "$($value.kind)"
    }
    if (-not $known) {
        New-Difference -Key "service:account:$($Former.name)" -What "service $($Former.name): account" `
            -Is 'LocalSystem, and therefore disabled' -Want "$($was.account), with its password"
        return
    }
    if ($Former.running) { Start-CurrentService -Name $Former.name }
}

function Get-ServiceDoubt {
    # Why a program that a service runs is not started (see Get-PathDoubt); nothing where all are believed.
    param([string]$Name)
    $line = [Environment]::ExpandEnvironmentVariables("$(Read-Registry -Path (Get-ServicePath -Name $Name) -Name 'ImagePath')")
    $program = [regex]::Match($line, '^\s*(?:"([^"]+)"|(\S+))')
    foreach ($path in @("$($program.Groups[1])$($program.Groups[2])", "$(Read-ServiceParameter -Service $Name -Name 'Application')")) {
        if ($path -match '^[A-Za-z]:\\') { Get-PathDoubt -Path $path -Program }
    }
}

# ---- trust.ps1

function Get-PathDoubt {
    # Why a file is not read, or a program not started, in words: it or a folder above it is a link, or somebody who is no
    # administrator owns it, may write it or may put another in its place. Nothing where none of this is so, or nothing is
    # there. Beside a Program nobody may add anything: Windows looks for libraries in its folder first.
    # Every file that is read and every program that is started passes here (tests/steps/test_trust.py).
    param([string]$Path, [switch]$Program)
    $memory = Get-PathMemory
    $key = "$Path|$Program"
    if (-not $memory.ContainsKey($key)) { $memory[$key] = Read-PathDoubt -Path $Path -Program:$Program }
    $memory[$key]
}

function Get-LinkDoubt {
    # Why a link to a file is not followed; nothing where nobody but administrators can have made it and its end is believed.
    # The kubelet keeps its current certificates as such links (client-go: util/certificate/certificate_store.go, updateSymlink).
    param([string]$Path, [switch]$Program)
    $folder = [IO.Path]::GetDirectoryName($Path)
    $target = @((Get-Item -LiteralPath $Path -Force).Target | Where-Object { $_ })
    if ($Program -or $target.Count -ne 1 -or (Get-FolderDoubt -Path $folder -Adding)) { return "$Path is a link" }
    Get-PathDoubt -Path ([IO.Path]::GetFullPath([IO.Path]::Combine($folder, $target[0])))
}

function Read-PathDoubt {
    # Asks Windows for what Get-PathDoubt returns; nothing where there is no doubt.
    param([string]$Path, [switch]$Program)
    $folder = [IO.Path]::GetDirectoryName($Path)
    $doubt = Get-FolderDoubt -Path $folder -Adding:$Program
    if ($doubt -or -not [IO.File]::Exists($Path)) { return $doubt }
    if (Test-Link -Path $Path) { return (Get-LinkDoubt -Path $Path -Program:$Program) }
    $who = Get-StrangeWriter -Path $Path
    if ($who) { return "$Path belongs to $who, or can be written there" }
    # Its owner and rules are those of the other name, which whoever may add files here has chosen.
    if (-not $Program -and (Get-FolderDoubt -Path $folder -Adding) -and (Test-HardLink -Path $Path)) {
        "$Path is a second name of another file"
    }
}

function Test-OwnPath {
    # Whether a file is there and is believed; why it is not is told with the step.
    param([string]$Path, [switch]$Program)
    if (-not [IO.File]::Exists($Path)) { return $false }
    $doubt = Get-PathDoubt -Path $Path -Program:$Program
    if ($doubt) { Add-Doubt -Path $Path -Doubt $doubt }
    -not $doubt
}

function Assert-OwnProgram {
    # Stops the step where a program, or a file that it Reads as its settings, is not known to be an administrator's.
    # Windows' own programs are protected by Windows.
    param([string]$Path, [string[]]$Reads = @())
    $doubts = @(
        if ($Path -notlike "$([Environment]::SystemDirectory)\*") { Get-PathDoubt -Path $Path -Program }
        foreach ($one in $Reads) { Get-PathDoubt -Path $one }
    )
    if ($doubts) { Stop-Step -Id 'NotOurs' -Message "$Path is not started: $($doubts -join '; ')" }
}

#endregion

#region Steps, in their order. Each has its needs, the values it works with, and how to look and to change.
$steps = @(
@{
Name = 'node-preflight'
Values = {
    $bad = @(@{ first = 2582; fixed = 2762; kb = 'KB5040437'; fixed_kb = 'KB5044281'
            what = 'the update of July 2024 broke container networking' })
    # How winboot describes its own services: one of these names with another description is somebody else's.
    $services = @{ containerd = 'Runs containers for Kubernetes. Managed by winboot.'; kubelet = 'Kubernetes kubelet. Managed by winboot.'
        flanneld = 'flannel network agent. Managed by winboot.'; 'kube-proxy' = 'Kubernetes kube-proxy. Managed by winboot.' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'computer-name'
Needs = @('node-preflight')
Values = {
    $name = 'WIN-A1'
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'windows-features'
Needs = @('node-preflight')
Values = {
    $features = @('Containers')
    $source = $null
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'system-settings'
Needs = @('node-preflight')
Values = {
    $pageFile = 'system'
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'dynamic-ports'
Needs = @('node-preflight')
Values = {
    # Load-balanced services take client ports in blocks of 64; NodePorts (30000-32767) stay outside.
    $ports = @{ Start = 33000; Count = 32536 }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'directories'
Needs = @('node-preflight')
Values = {
    $folders = @{
        # For SYSTEM and Administrators alone: what is in them are keys, tokens, and the layers of all images.
        Private = @('C:\k', 'C:\var\lib\kubelet\pki', 'C:\ProgramData\containerd', 'C:\ProgramData\containerd\certs.d',
        'C:\ProgramData\containerd\root', 'C:\ProgramData\containerd\state')
        # Everybody may read these: pods do, and collectors of logs.
        Readable = @('C:\var\lib\kubelet', 'C:\Program Files\containerd\bin', 'C:\opt\cni\bin', 'C:\etc\kubernetes\pki', 'C:\etc\cni\net.d',
        'C:\etc\kube-flannel', 'C:\var\lib\cni', 'C:\var\lib\cni\networks', 'C:\run\flannel', 'C:\var\log\pods',
        'C:\var\log\containers', 'C:\var\log\containerd', 'C:\var\log\kubelet', 'C:\var\log\flanneld', 'C:\var\log\kube-proxy')
        # Written by the services of this node alone: an undo empties them.
        Ours = @('C:\var\lib\kubelet', 'C:\ProgramData\containerd', 'C:\var\lib\cni', 'C:\run\flannel', 'C:\var\log\pods',
        'C:\var\log\containers', 'C:\var\log\containerd', 'C:\var\log\kubelet', 'C:\var\log\flanneld', 'C:\var\log\kube-proxy')
        # A file in one of these is run, or heeded, because it is there: files of others are reported.
        Watched = @('C:\k', 'C:\ProgramData\containerd\certs.d', 'C:\Program Files\containerd\bin', 'C:\opt\cni\bin',
        'C:\etc\kubernetes\pki', 'C:\etc\cni\net.d', 'C:\etc\kube-flannel')
    }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'firewall-rules'
Needs = @('node-preflight')
Values = {
    $rules = @(@{ name = 'winboot-kubelet'; ports = '10250'; protocol = 'TCP'; direction = 'in'; sources = @('Any')
            why = 'logs, exec and metrics through the kubelet' },
        @{ name = 'winboot-kube-proxy-health'; ports = '10256'; protocol = 'TCP'; direction = 'in'; sources = @('Any')
            why = 'health checks of load balancers' },
        @{ name = 'winboot-node-ports-tcp'; ports = '30000-32767'; protocol = 'TCP'; direction = 'in'; sources = @('Any')
            why = 'NodePort services' },
        @{ name = 'winboot-node-ports-udp'; ports = '30000-32767'; protocol = 'UDP'; direction = 'in'; sources = @('Any')
            why = 'NodePort services' })
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'postboot-task'
Needs = @('directories')
Values = {
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'log-rotation'
Needs = @('directories')
Values = {
    $rotation = @{
        Logs = @('C:\var\log\containerd\containerd.log', 'C:\var\log\kubelet\kubelet.log', 'C:\var\log\flanneld\flanneld.log',
        'C:\var\log\kube-proxy\kube-proxy.log')
        # Written by programs that never start a new file by themselves.
        Endless = @('C:\var\log\containerd\containerd.log')
        MaxBytes = 52428800
        MaxFiles = 5
    }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'artifacts'
Needs = @('directories')
Values = {
    $artifacts = @(@{ name = 'containerd'; version = '2.3.4'
            url = 'https://github.com/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-windows-amd64.tar.gz'
            members = @(@{ path = 'bin/containerd.exe'; to = 'C:\Program Files\containerd\bin\containerd.exe'
                    services = @('containerd') },
                @{ path = 'bin/ctr.exe'; to = 'C:\Program Files\containerd\bin\ctr.exe' },
                @{ path = 'bin/containerd-shim-runhcs-v1.exe'
                    to = 'C:\Program Files\containerd\bin\containerd-shim-runhcs-v1.exe' }) },
        @{ name = 'kubernetes'; version = '1.36.4'; url = 'https://dl.k8s.io/v1.36.4/kubernetes-node-windows-amd64.tar.gz'
            members = @(@{ path = 'kubernetes/node/bin/kubelet.exe'; to = 'C:\k\kubelet.exe'; services = @('kubelet') },
                @{ path = 'kubernetes/node/bin/kube-proxy.exe'; to = 'C:\k\kube-proxy.exe'; services = @('kube-proxy') },
                @{ path = 'kubernetes/node/bin/kube-log-runner.exe'; to = 'C:\k\kube-log-runner.exe'
                    services = @('kubelet', 'kube-proxy') }) },
        @{ name = 'kubectl'; version = '1.36.4'; url = 'https://dl.k8s.io/v1.36.4/bin/windows/amd64/kubectl.exe'
            members = @(@{ path = 'kubectl.exe'; to = 'C:\k\kubectl.exe' }) },
        @{ name = 'crictl'; version = '1.36.0'
            url = 'https://github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-windows-amd64.tar.gz'
            members = @(@{ path = 'crictl.exe'; to = 'C:\k\crictl.exe' }) },
        @{ name = 'nssm'; version = '2.24'; url = 'https://nssm.cc/release/nssm-2.24.zip'
            sha256 = '727d1e42275c605e0f04aba98095c38a8e1e46def453cdffce42869428aa6743'
            members = @(@{ path = 'nssm-2.24/win64/nssm.exe'; to = 'C:\k\nssm.exe'; services = @('flanneld') }) },
        @{ name = 'cni-plugins'; version = '1.7.1'
            url = 'https://github.com/containernetworking/plugins/releases/download/v1.7.1/cni-plugins-windows-amd64-v1.7.1.tgz'
            members = @(@{ path = 'win-bridge.exe'; to = 'C:\opt\cni\bin\win-bridge.exe' },
                @{ path = 'host-local.exe'; to = 'C:\opt\cni\bin\host-local.exe' }) },
        @{ name = 'flannel-cni'; version = '1.7.1-flannel1'
            url = 'https://github.com/flannel-io/cni-plugin/releases/download/v1.7.1-flannel1/cni-plugin-flannel-windows-amd64-v1.7.1-flannel1.tgz'
            members = @(@{ path = 'flannel-amd64.exe'; to = 'C:\opt\cni\bin\flannel.exe' }) },
        @{ name = 'flannel'; version = '0.27.4'
            url = 'https://github.com/flannel-io/flannel/releases/download/v0.27.4/flanneld.exe'
            members = @(@{ path = 'flanneld.exe'; to = 'C:\k\flanneld.exe'; services = @('flanneld') }) })
    foreach ($artifact in $artifacts) {
        $artifact.file = [IO.Path]::GetFileName($artifact.url)
        $artifact.proxy = 'http://proxy.corp.example:3128'
    }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'containerd-config'
Needs = @('artifacts', 'directories')
Values = {
    $files = @{ 'C:\Program Files\containerd\config.toml' = 'version = 3
root = ''C:\ProgramData\containerd\root''
state = ''C:\ProgramData\containerd\state''
[grpc]
  address = ''\\.\pipe\containerd-containerd''
[plugins.''io.containerd.cri.v1.images'']
  snapshotter = ''windows''
[plugins.''io.containerd.cri.v1.images''.pinned_images]
  sandbox = ''registry.k8s.io/pause:3.10.2''
[plugins.''io.containerd.cri.v1.images''.registry]
  config_path = ''C:\ProgramData\containerd\certs.d''
[plugins.''io.containerd.cri.v1.runtime''.cni]
  bin_dirs = [''C:\opt\cni\bin'']
  conf_dir = ''C:\etc\cni\net.d''
[plugins.''io.containerd.cri.v1.runtime''.containerd]
  default_runtime_name = ''runhcs-wcow-process''
[plugins.''io.containerd.cri.v1.runtime''.containerd.runtimes.runhcs-wcow-process]
  runtime_type = ''io.containerd.runhcs.v1''
'
        'C:\k\crictl.yaml' = 'runtime-endpoint: npipe:////./pipe/containerd-containerd
image-endpoint: npipe:////./pipe/containerd-containerd
timeout: 10
' }
    # containerd reads these at every pull: no service has to restart for them.
    $mirrors = @{ 'C:\ProgramData\containerd\certs.d\docker.io\hosts.toml' = 'server = ''https://registry-1.docker.io''

[host.''https://mirror.corp.example'']
  capabilities = [''pull'', ''resolve'']
' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'containerd'
Needs = @('containerd-config', 'windows-features')
Values = {
    $service = Complete-Service -Service @{ name = 'containerd'; display = 'containerd'; description = 'Runs containers for Kubernetes. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900
        environment = @('HTTPS_PROXY=http://proxy.corp.example:3128', 'HTTP_PROXY=http://proxy.corp.example:3128',
            'NO_PROXY=localhost,127.0.0.1,10.0.0.10,10.244.0.0/16,10.96.0.0/12,.svc,.cluster.local,169.254.169.254,.corp.example')
        command_line = '"C:\Program Files\containerd\bin\containerd.exe" --config "C:\Program Files\containerd\config.toml" --log-level info --log-file C:\var\log\containerd\containerd.log --run-service' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'pause-image'
Needs = @('containerd')
Values = {
    $image = 'registry.k8s.io/pause:3.10.2'
}
Undo = {
    # An image that was pulled harms nobody; the kubelet's own collection removes it.
}
}

@{
Name = 'kubelet-credentials'
Needs = @('directories', 'computer-name')
Secrets = @('bootstrap-token')
Values = {
    $credential = @{ node = 'win-a1'; server = 'https://10.0.0.10:6443'; kubeconfig = 'C:\k\kubeconfig'
        certificate = 'C:\var\lib\kubelet\pki\kubelet-client-current.pem'; pki = 'C:\var\lib\kubelet\pki'
        ca_path = 'C:\etc\kubernetes\pki\ca.crt'; ca_sha256 = '9e1bbcbca4717b7be2d04e5c3b0c2bc986e54633725153fe917522c84649daac'
        bootstrap_path = 'C:\k\bootstrap-kubeconfig'
        bootstrap_text = '{
  "apiVersion": "v1",
  "kind": "Config",
  "clusters": [{"name": "cluster", "cluster": {"server": "https://10.0.0.10:6443", "certificate-authority": "C:\\etc\\kubernetes\\pki\\ca.crt"}}],
  "users": [{"name": "kubelet-bootstrap", "user": {"token": "<token>"}}],
  "contexts": [{"name": "node", "context": {"cluster": "cluster", "user": "kubelet-bootstrap"}}],
  "current-context": "node"
}
'
        token_place = '<token>'; secret = 'bootstrap-token' }
    $files = @{ 'C:\etc\kubernetes\pki\ca.crt' = '-----BEGIN CERTIFICATE-----
MIIBLTCB1KADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmt1YmVybmV0
ZXMwIBcNMjUwMTAxMDAwMDAwWhgPMjA1NTAxMDEwMDAwMDBaMBUxEzARBgNVBAMM
Cmt1YmVybmV0ZXMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASW6FCbetbbay2W
t/rHwJJgrppzImM7mh+BYeW+LtwBWrwYkYbhJwAbpw2LyNo1sCrBcc+3jwa666jh
VemwhYmXoxMwETAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIAQS
KvvQDzeguviLOenXxeGBqYcpppoBjY1m2JK4ZnKKAiEAlFrooYYxUzkjP6EPOZvG
c67lpvsqaTVQAeNNBKvnm4g=
-----END CERTIFICATE-----
' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'kubelet-config'
Needs = @('directories')
Values = {
    $files = @{ 'C:\var\lib\kubelet\config.yaml' = '{
  "apiVersion": "kubelet.config.k8s.io/v1beta1",
  "kind": "KubeletConfiguration",
  "authentication": {
    "anonymous": {"enabled": false},
    "webhook": {"enabled": true},
    "x509": {"clientCAFile": "C:\\etc\\kubernetes\\pki\\ca.crt"}
  },
  "authorization": {"mode": "Webhook"},
  "cgroupsPerQOS": false,
  "clusterDNS": ["10.96.0.10"],
  "clusterDomain": "cluster.local",
  "containerLogMaxFiles": 5,
  "containerLogMaxSize": "50Mi",
  "containerRuntimeEndpoint": "npipe:////./pipe/containerd-containerd",
  "enableSystemLogHandler": true,
  "enforceNodeAllocatable": [],
  "evictionHard": {"memory.available": "500Mi", "nodefs.available": "10%", "imagefs.available": "15%"},
  "maxParallelImagePulls": 5,
  "registerNode": true,
  "registerWithTaints": [
    {"key": "os", "value": "windows", "effect": "NoSchedule"},
    {"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"}
  ],
  "resolvConf": "",
  "rotateCertificates": true,
  "runtimeRequestTimeout": "10m0s",
  "serializeImagePulls": false,
  "serverTLSBootstrap": true,
  "systemReserved": {"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "1Gi"},
  "volumePluginDir": "C:\\usr\\libexec\\kubernetes\\kubelet-plugins\\volume\\exec",
  "maxPods": 110
}
' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'kubelet'
Needs = @('kubelet-config', 'kubelet-credentials', 'containerd', 'artifacts', 'firewall-rules')
Values = {
    $service = Complete-Service -Service @{ name = 'kubelet'; display = 'Kubernetes kubelet'; description = 'Kubernetes kubelet. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900; depends = @('containerd')
        environment = @('HTTPS_PROXY=http://proxy.corp.example:3128', 'HTTP_PROXY=http://proxy.corp.example:3128',
            'NO_PROXY=localhost,127.0.0.1,10.0.0.10,10.244.0.0/16,10.96.0.0/12,.svc,.cluster.local,169.254.169.254,.corp.example')
        command_line = '"C:\k\kube-log-runner.exe" -log-file=C:\var\log\kubelet\kubelet.log -log-file-size=50Mi -redirect-stderr=true C:\k\kubelet.exe --config=C:\var\lib\kubelet\config.yaml --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig --cert-dir=C:\var\lib\kubelet\pki --root-dir=C:\var\lib\kubelet --hostname-override=win-a1 --node-ip=<<node_ip>> --windows-service=true --v=2 --windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'registration'
Needs = @('kubelet')
Values = {
    $bootstrap = 'C:\k\bootstrap-kubeconfig'
    $client = 'C:\var\lib\kubelet\pki\kubelet-client-current.pem'
    $wanted = @{ ServingCertificate = 'C:\var\lib\kubelet\pki\kubelet-server-current.pem'; NeedsPodCidr = $true }
}
Undo = {
    # Nothing of the machine was changed here; the Node object is the cluster's.
}
}

@{
Name = 'flanneld-config'
Needs = @('directories')
Values = {
    $files = @{ 'C:\etc\kube-flannel\net-conf.json' = '{"Network": "10.244.0.0/16", "Backend": {"Type": "host-gw", "Name": "cbr0"}}
'
        'C:\k\flanneld.kubeconfig' = '{
  "apiVersion": "v1",
  "kind": "Config",
  "clusters": [{"name": "cluster", "cluster": {"server": "https://10.0.0.10:6443", "certificate-authority": "C:\\etc\\kubernetes\\pki\\ca.crt"}}],
  "users": [{"name": "flanneld", "user": {"client-certificate": "C:\\var\\lib\\kubelet\\pki\\kubelet-client-current.pem", "client-key": "C:\\var\\lib\\kubelet\\pki\\kubelet-client-current.pem"}}],
  "contexts": [{"name": "node", "context": {"cluster": "cluster", "user": "flanneld"}}],
  "current-context": "node"
}
' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'flanneld'
Needs = @('flanneld-config', 'registration', 'artifacts')
Values = {
    $network = @{ name = 'cbr0'; type = 'L2Bridge'; subnets = @(@{ prefix = '<<pod_cidr>>'; gateway = '<<pod_gateway>>' }); vni = 0
        endpoint = 'cbr0_ep'; endpoint_v6 = ''; subnet_env = 'C:\run\flannel\subnet.env'; agent = 'flanneld'
        first = @{ name = 'External'; type = 'L2Bridge'; subnets = @(@{ prefix = '192.168.255.0/30'; gateway = '192.168.255.1' })
            vni = 0; endpoint = ''; endpoint_v6 = ''; subnet_env = ''; agent = ''; first = $null } }
    $service = Complete-Service -Service @{ name = 'flanneld'; display = 'flannel network agent'; description = 'flannel network agent. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900; depends = @('kubelet'); command_line = 'C:\k\nssm.exe'
        parameters = @{ Application = 'C:\k\flanneld.exe'
            AppParameters = '--kube-subnet-mgr=1 --kubeconfig-file=C:\k\flanneld.kubeconfig --iface=<<node_ip>> --ip-masq=1 --net-config-path=C:\etc\kube-flannel\net-conf.json --healthz-port=8471'
            AppDirectory = 'C:\'; AppStdout = 'C:\var\log\flanneld\flanneld.log'; AppStderr = 'C:\var\log\flanneld\flanneld.log'
            AppRotateFiles = 1; AppRotateOnline = 1; AppRotateBytes = 52428800; AppRestartDelay = 10000; AppNoConsole = 1
            AppExit = 'Restart'; AppPriority = $null; AppEnvironment = $null; AppEnvironmentExtra = @('NODE_NAME=win-a1') } }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'pod-network'
Needs = @('flanneld-config', 'flanneld', 'registration', 'windows-features')
Values = {
    $network = @{ name = 'cbr0'; type = 'L2Bridge'; subnets = @(@{ prefix = '<<pod_cidr>>'; gateway = '<<pod_gateway>>' }); vni = 0
        endpoint = 'cbr0_ep'; endpoint_v6 = ''; subnet_env = 'C:\run\flannel\subnet.env'; agent = 'flanneld'
        first = @{ name = 'External'; type = 'L2Bridge'; subnets = @(@{ prefix = '192.168.255.0/30'; gateway = '192.168.255.1' })
            vni = 0; endpoint = ''; endpoint_v6 = ''; subnet_env = ''; agent = ''; first = $null } }
    $guard = @{ management_port = 5986; agent = 'flanneld'; networks = @('cbr0', 'External') }
}
Undo = {
    if (Get-OwnNetwork -Wanted $network) { Start-DetachedRun -Guard $guard -Seconds 480 }
    else { Restore-FormerValue }
}
Detached = {
    Stop-PodNetwork -Wanted $network
}
}

@{
Name = 'ipam-reservations'
Needs = @('registration', 'containerd')
Values = {
    $store = 'C:\var\lib\cni\networks\cbr0'
    $reservations = @(@{ address = '<<pod_gateway>>'; holder = 'winboot'; interface = 'gateway' },
        @{ address = '<<pod_endpoint>>'; holder = 'winboot'; interface = 'endpoint' })
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'cni-config'
Needs = @('registration', 'ipam-reservations', 'pod-network')
Values = {
    $folder = 'C:\etc\cni\net.d'
    $files = @{ 'C:\etc\cni\net.d\10-flannel.conflist' = '{
  "name": "cbr0",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "flannel",
      "capabilities": {"portMappings": true, "dns": true},
      "delegate": {
        "type": "win-bridge",
        "policies": [
          {
            "name": "EndpointPolicy",
            "value": {
              "Type": "OutBoundNAT",
              "Settings": {"Exceptions": ["10.244.0.0/16", "10.96.0.0/12", "<<node_subnet>>"]}
            }
          },
          {
            "name": "EndpointPolicy",
            "value": {"Type": "SDNRoute", "Settings": {"DestinationPrefix": "10.96.0.0/12", "NeedEncap": true}}
          },
          {
            "name": "EndpointPolicy",
            "value": {"Type": "SDNRoute", "Settings": {"DestinationPrefix": "<<node_ip>>/32", "NeedEncap": true}}
          }
        ],
        "loopbackDSR": true,
        "apiVersion": 2
      }
    }
  ]
}
' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'kube-proxy-config'
Needs = @('directories', 'registration', 'ipam-reservations', 'pod-network')
Values = {
    $files = @{ 'C:\k\kube-proxy.yaml' = '{
  "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
  "kind": "KubeProxyConfiguration",
  "clientConnection": {"kubeconfig": "C:\\k\\kube-proxy.kubeconfig"},
  "clusterCIDR": "10.244.0.0/16",
  "healthzBindAddress": "0.0.0.0:10256",
  "hostnameOverride": "win-a1",
  "metricsBindAddress": "127.0.0.1:10249",
  "mode": "kernelspace",
  "winkernel": {"enableDSR": true, "networkName": "cbr0", "rootHnsEndpointName": "cbr0_ep"}
}
'
        'C:\k\kube-proxy.kubeconfig' = '{
  "apiVersion": "v1",
  "kind": "Config",
  "clusters": [{"name": "cluster", "cluster": {"server": "https://10.0.0.10:6443", "certificate-authority": "C:\\etc\\kubernetes\\pki\\ca.crt"}}],
  "users": [{"name": "kube-proxy", "user": {"client-certificate": "C:\\var\\lib\\kubelet\\pki\\kubelet-client-current.pem", "client-key": "C:\\var\\lib\\kubelet\\pki\\kubelet-client-current.pem"}}],
  "contexts": [{"name": "node", "context": {"cluster": "cluster", "user": "kube-proxy"}}],
  "current-context": "node"
}
' }
}
Undo = {
    Restore-FormerValue
}
}

@{
Name = 'kube-proxy'
Needs = @('kube-proxy-config', 'pod-network', 'artifacts', 'firewall-rules')
Values = {
    $network = 'cbr0'
    $service = Complete-Service -Service @{ name = 'kube-proxy'; display = 'Kubernetes kube-proxy'; description = 'Kubernetes kube-proxy. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900; depends = @('kubelet', 'flanneld')
        command_line = '"C:\k\kube-log-runner.exe" -log-file=C:\var\log\kube-proxy\kube-proxy.log -log-file-size=50Mi -redirect-stderr=true C:\k\kube-proxy.exe --config=C:\k\kube-proxy.yaml --windows-service=true --v=2' }
    $running = (Get-ServiceState -Name $service.name) -eq 'Running'
    $health = 'http://127.0.0.1:10256/healthz'
}
Undo = {
    Restore-FormerValue
}
}

)
#endregion

# The text of this script, for the tasks that store it: from the file that a task runs, or as it came over the wire.
$text = if ($PSCommandPath) { [IO.File]::ReadAllText($PSCommandPath) } else { [string]$MyInvocation.MyCommand.ScriptBlock }
if ($Detached -ne '') { $Facts.Detached = $Detached }
$script:Run = New-Run -Mode $Mode -Id $RunId -Steps $steps -Secrets $Secrets -Facts $Facts -Text $text

switch ($Mode) {
    'Undo' { Invoke-Locked -Work { Invoke-Undo } }
    'Detached' { Invoke-Detached }
    'Rescue' { Invoke-Detached -Rescue }
    default { throw ('this script has no mode ' + $Mode) }
}
