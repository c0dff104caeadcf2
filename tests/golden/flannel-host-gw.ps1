# winboot 0.1.0: makes the machine win-a1 the Kubernetes node win-a1.
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
# Steps, in this order, each with its reason:
#   node-preflight       a wrong build, a missing right or no way to the API server is found out before the first write
#   computer-name        logs, certificates and clones with one name are told apart by it; the kubelet is given the
#                        node's name as well
#   windows-features     containerd cannot start a container until the Containers feature is on and the machine has
#                        restarted
#   system-settings      a page file, the right time and updates at a chosen hour keep a node from failing in ways that
#                        are hard to find
#   dynamic-ports        each load-balanced service takes blocks of client ports; the default range is soon empty and
#                        touches NodePorts
#   directories          a folder made in time has its access rules before the first secret is in it
#   firewall-rules       the control plane reaches kubelet, and the other nodes reach the pods, only through ports that
#                        are open
#   postboot-task        a restart loses routes and leaves stale leases, and there may be no controller to fix them
#   log-rotation         the one log of containerd grows without end, and neither NSSM nor kube-log-runner deletes old
#                        ones: the disk fills
#   artifacts            a program is what its hash says, whatever its version string or its date may claim
#   containerd-config    containerd's defaults look for CNI files where there are none, and its pause image must have
#                        this Windows build
#   containerd           the kubelet starts no pod without a container runtime, and containerd writes no log unless it
#                        is given a file
#   pause-image          every pod needs it first; pulling it now shows a wrong registry, proxy or Windows build before
#                        any pod hangs
#   kubelet-credentials  the kubelet proves who it is by a client certificate; without a valid one it asks for it with a
#                        short-lived token
#   kubelet-config       several of the kubelet's defaults are for Linux and end it at once, or break each pod, on
#                        Windows
#   kubelet              the kubelet makes the machine a node; it must outlive logons, come back after a crash, and
#                        leave a log
#   registration         the network needs the pod CIDR that the cluster gives to the Node; logs and exec need the
#                        serving certificate
#   flanneld-config      flanneld reads its network from a file whose names must be those of the CNI configuration and
#                        of kube-proxy
#   flanneld             flanneld builds the pod network, keeps the routes to the other nodes, and renews its lease
#   pod-network          making an HNS network rewires the adapter: sessions drop, and a static address, DNS servers and
#                        routes can vanish
#   ipam-reservations    host-local would give a pod the address of the host's own endpoint, and after a hard restart it
#                        runs out of addresses
#   cni-config           a node is Ready as soon as this file is there, so it comes after the network it names
#   kube-proxy-config    kube-proxy must name the HNS network, the host's endpoint and the node exactly, or services
#                        fail on this node
#   kube-proxy           services have no address on this node without it; it starts after the HNS network that it
#                        programs
#
# What stays on this machine afterwards (what was there before is noted, so that an undo can put it back):
#   HNS networks        cbr0, External
#   Windows features    Containers
#   computer name       WIN-A1 (unless the machine is in a domain)
#   files               C:\ProgramData\containerd\certs.d\docker.io\hosts.toml, C:\Program Files\containerd\config.toml,
#                       C:\k\crictl.yaml, C:\etc\kubernetes\pki\ca.crt, C:\var\lib\kubelet\config.yaml,
#                       C:\etc\kube-flannel\net-conf.json, C:\k\flanneld.kubeconfig,
#                       C:\etc\cni\net.d\10-flannel.conflist, C:\k\kube-proxy.yaml, C:\k\kube-proxy.kubeconfig
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
#   scheduled tasks     \winboot\boot (at each start of the machine), \winboot\logs (every hour)
#   services            containerd, kubelet, flanneld, kube-proxy
#   state               C:\ProgramData\winboot (journal, former values, this script for the tasks)
#
# <<name>> in a text stands for a value that only this machine or its Node object has; Expand-Known fills it in:
#   <<node_ip>>       the address of this machine that reaches the API server
#   <<node_subnet>>   the network that this address is in
#   <<pod_cidr>>      the IPv4 network that the cluster gives to the pods of this node
#   <<pod_gateway>>   the first address of the pods' network: their gateway
#   <<pod_endpoint>>  the second: this machine's own endpoint
#
# Mode Look reports what differs and changes nothing; Change corrects it and looks again. Detached is for the task that
# goes on while the network is rewired, Rescue for the one that takes back what a killed Detached left, Boot for the one at
# each start of the machine.
# Secrets come beside this text, in the parameter Secrets. Everything this script says is JSON, one event a line.
param(
    [string]$Mode = 'Look',
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

function Compare-Wanted {
    # A difference (see New-Difference) where Is and Want are not shown alike; nothing where they are.
    param(
        [string]$What, [string]$Key = $What, [object]$Is, [object]$Want, [switch]$IgnoreCase,
        [switch]$Unknown, [switch]$Reboot, [switch]$Disrupts, [switch]$Disturbs
    )
    $isText = ConvertTo-Shown -Value $Is
    $wantText = ConvertTo-Shown -Value $Want
    # By ordinal: -ceq overlooks characters without width, such as U+200B, U+FEFF and NUL.
    $rule = if ($IgnoreCase) { [StringComparison]::OrdinalIgnoreCase } else { [StringComparison]::Ordinal }
    $same = ($null -eq $isText) -eq ($null -eq $wantText) -and [string]::Equals("$isText", "$wantText", $rule)
    if ($same -and -not $Unknown) { return }
    New-Difference -Key $Key -What $What -Is $isText -Want $wantText -Unknown:$Unknown -Reboot:$Reboot -Disrupts:$Disrupts -Disturbs:$Disturbs
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

# ---- secret.ps1

function Read-Secret {
    # A secret that was sent, as text. It goes into a file with its own access rules, and nowhere else.
    param([string]$Name)
    $pointer = [Runtime.InteropServices.Marshal]::SecureStringToGlobalAllocUnicode($script:Run.Secrets[$Name])
    try { [Runtime.InteropServices.Marshal]::PtrToStringUni($pointer) }
    finally { [Runtime.InteropServices.Marshal]::ZeroFreeGlobalAllocUnicode($pointer) }
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

function Get-ChosenStep {
    # All steps, or those that the controller names (--only, --skip). The text has all of them whatever is chosen,
    # because this machine keeps it for its boot task. Nothing where none of these is chosen.
    $chosen = [string]$script:Run.Facts.Steps
    $script:Run.Steps | Where-Object { $chosen -eq '' -or $chosen.Split(',') -contains $_.Name }
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

function Assert-Dependency {
    # Stops a step that needs one which failed or waits for a restart; returns nothing otherwise.
    param([hashtable]$Step)
    $unmet = @($Step['Needs'] | Where-Object { $_ -and $script:Run.Unmet.ContainsKey($_) })
    if (-not $unmet) { return }
    $names = $unmet -join ', '
    if (@($unmet | Where-Object { $script:Run.Unmet[$_] -ne 'PendingReboot' }).Count -gt 0) {
        Stop-Step -Id 'NeedsStep' -Message "it builds on a step that did not succeed: $names"
    }
    Stop-Step -Id 'PendingReboot' -Message "it continues after the restart of the machine; it builds on $names"
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

function Complete-Change {
    # Runs a step's change and looks again: only a second look that finds nothing makes the result `changed`. Returns
    # nothing.
    param([hashtable]$Step, [hashtable]$Result)
    $said = @(Invoke-Block -Step $Step -Block 'Change')
    $script:Run.Cache = @{}
    foreach ($thing in $said) { Receive-Said -Step $Step -Result $Result -Thing $thing }
    if ($Result.Detached) { return }
    # What takes effect with the restart still differs before it.
    $left = @(Read-Difference -Step $Step | Where-Object { -not $_.policy -and -not ($Result.Reboot -and $_.reboot) })
    if ($left) { Stop-Step -Id 'StillDifferent' -Message "after the change this is still different: $($left.what -join '; ')" }
    $Result.State = 'changed'
}

function Assert-Allowed {
    # Stops a change that would disturb the pods of a live node that is not drained, or that lacks a secret; returns
    # nothing otherwise.
    param([hashtable]$Step, [object[]]$Differences)
    $facts = $script:Run.Facts
    $rough = @($Differences | Where-Object { -not $_.policy -and ($_.reboot -or $_.disrupts -or $_.disturbs) })
    if ($facts.NodeIsLive -and -not $facts.Drained -and $rough.Count -gt 0) {
        Stop-Step -Id 'NeedsDrain' -Message "this would disturb a live node: $($rough.what -join '; ')"
    }
    $missing = @($Step['Secrets'] | Where-Object { $_ -and -not $script:Run.Secrets.ContainsKey($_) })
    if ($missing) {
        Stop-Step -Id 'SecretMissing' -Message "the change needs a secret that was not sent: $($missing -join ', ')"
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

function ConvertTo-TextSummary {
    # How a file's text is shown: its lines and the start of its hash; $null stays $null.
    param([object]$Text)
    if ($null -ne $Text) { '{0} lines, sha256 {1}' -f $Text.Split("`n").Count, (Get-TextHash -Text $Text).Substring(0, 12) }
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

function ConvertTo-Recovery {
    # The wanted recovery as the text that ConvertFrom-FailureAction makes of the one in force.
    param([hashtable]$Service)
    "$(@($Service.restart_ms | ForEach-Object { "restart/$_" }) -join ' ') reset=$($Service.reset_s)"
}

function Get-ServiceState {
    # Running, Stopped and so on; nothing where there is no such service. Names of this enumeration, never localized text.
    param([string]$Name)
    $found = @(Get-Service -Name $Name -ErrorAction SilentlyContinue)
    if ($found.Count -eq 1) { $found[0].Status.ToString() }
}

function Test-RestartDisruption {
    # Whether a restart of this service disturbs the network for a moment.
    # kube-proxy depends on the others: it stops with each of them, and programs all load balancers again when it starts.
    param([string]$Name)
    (Get-ServiceState -Name $Name) -eq 'Running' -and (Get-ServiceState -Name 'kube-proxy') -eq 'Running'
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

function Get-FileAbsence {
    # A difference where a file is there that must not be, with the reason in Because; nothing where it is absent.
    param([string]$Path, [string]$Because)
    if ([IO.File]::Exists($Path)) { New-Difference -Key "file:$Path" -What "file ${Path}: $Because" -Is 'present' -Want $null }
}

function Get-ForeignFile {
    # The CNI configurations in the folder that are not among Own. Nothing where there is none.
    param([string]$Folder, [hashtable]$Own)
    if (-not [IO.Directory]::Exists($Folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Folder)) {
        if (-not $Own.ContainsKey($path) -and $path -match '\.(conf|conflist|json)$') { $path }
    }
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

function Read-RegistryKind {
    # The kind of a value (DWord, String and so on); nothing where the key or the value is missing.
    param([string]$Path, [string]$Name)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    try { if ($null -ne $key.GetValue($Name)) { $key.GetValueKind($Name).ToString() } }
    finally { $key.Dispose() }
}

function Read-RegistryNote {
    # A value as a note keeps it: path, name, value (bytes as numbers) and kind; value and kind are null when it is absent.
    param([string]$Path, [string]$Name)
    $value = Read-Registry -Path $Path -Name $Name
    if ($value -is [byte[]]) { $value = [int[]]$value }
    @{ path = $Path; name = $Name; value = $value; kind = (Read-RegistryKind -Path $Path -Name $Name) }
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

# ---- manager.ps1

function Read-ServiceParameter {
    # A value below the service's Parameters key; nothing where it is missing, and a list as one object. What NSSM does
    # after an exit (AppExit) is the default value of a subkey.
    param([string]$Service, [string]$Name)
    $path = (Get-ServicePath -Name $Service) + '\Parameters'
    if ($Name -eq 'AppExit') { return (Read-Registry -Path "$path\AppExit" -Name '') }
    , (Read-Registry -Path $path -Name $Name)
}

function Test-NssmWanted {
    # Whether the profile wants the service to be run by NSSM: then it has values for it.
    param([hashtable]$Service)
    @($Service.parameters.Keys).Count -gt 0
}

function Test-NssmService {
    # Whether NSSM runs the service now. Its Application value is the program that NSSM starts.
    param([string]$Name)
    $null -ne (Read-ServiceParameter -Service $Name -Name 'Application')
}

function Set-ServiceParameter {
    # Writes the values that NSSM reads, or deletes all of them where the service is no longer to be run by NSSM.
    # Returns nothing. ExpandString is how NSSM stores its paths itself (set_expand_string in its registry.cpp).
    param([hashtable]$Service)
    $path = (Get-ServicePath -Name $Service.name) + '\Parameters'
    if (-not (Test-NssmWanted -Service $Service)) {
        if (Test-NssmService -Name $Service.name) { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree($path, $false) }
        return
    }
    foreach ($name in $Service.parameters.Keys) {
        $value = $Service.parameters[$name]
        $kind = if ($value -is [int]) { 'DWord' } elseif ($value -is [array]) { 'MultiString' } else { 'ExpandString' }
        if ($name -eq 'AppExit') { Write-Registry -Path "$path\AppExit" -Name '' -Value $value -Kind 'String' }
        else { Write-Registry -Path $path -Name $name -Value $value -Kind $kind }
    }
}

function Read-ParameterTree {
    # Every value of a key and of the keys below it, each as Read-RegistryNote gives it; nothing where the key is
    # missing.
    param([string]$Path)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    try {
        foreach ($name in $key.GetValueNames()) {
            Read-RegistryNote -Path $Path -Name $name
        }
        foreach ($name in $key.GetSubKeyNames()) { Read-ParameterTree -Path "$Path\$name" }
    }
    finally { $key.Dispose() }
}

# ---- preflight.ps1

function Assert-Preflight {
    # Stops the step where there is a fault, by the id of the first; the ids of all travel as the hint. Returns nothing
    # otherwise.
    param([object[]]$Problems)
    if ($Problems) { Stop-Step -Id $Problems[0].id -Message ($Problems.message -join '; ') -Hint ($Problems.id -join ' ') }
}

function New-Fault {
    # One reason why this machine does not fit.
    param([string]$Id, [string]$Message)
    [pscustomobject]@{ id = $Id; message = $Message }
}

function Test-Build {
    # Faults where this is another Windows than the inventory says.
    param([int]$Build)
    $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    $is = [int](Read-Registry -Path $version -Name 'CurrentBuildNumber')
    $kind = "$(Read-Registry -Path $version -Name 'InstallationType')"
    if ($is -ne $Build) { New-Fault -Id 'WrongBuild' -Message "Windows build $is, but the inventory says $Build" }
    if ($kind -notlike 'Server*') { New-Fault -Id 'NotServer' -Message "this is Windows $kind, not Windows Server" }
    if (-not [Environment]::Is64BitProcess) { New-Fault -Id 'Not64Bit' -Message 'this PowerShell is a 32-bit process' }
}

function Get-Revision {
    # The revision of this Windows build.
    [int](Read-Registry -Path 'SOFTWARE\Microsoft\Windows NT\CurrentVersion' -Name 'UBR')
}

function Test-Session {
    # A fault where the session has no rights of an administrator.
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $role = [Security.Principal.WindowsBuiltInRole]::Administrator
    if ([Security.Principal.WindowsPrincipal]::new($identity).IsInRole($role)) { return }
    New-Fault -Id 'NotAdministrator' -Message "$($identity.Name) has no administrator token here"
}

function Test-Space {
    # A fault where the system drive has too little space.
    param([int]$FreeGib)
    $drive = [IO.DriveInfo]::new([Environment]::SystemDirectory.Substring(0, 1))
    $free = [Math]::Floor($drive.AvailableFreeSpace / 1GB)
    if ($free -lt $FreeGib) { New-Fault -Id 'DiskSpace' -Message "$($drive.Name) has $free GiB free, $FreeGib are needed" }
}

function Get-ServicingState {
    # What Windows' own servicing is at, in words: it replaces files, stops services and may restart; empty when it rests.
    $servicing = 'SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\'
    $signs = @(
        if (Test-RegistryKey -Path "${servicing}RebootInProgress") { 'a restart of servicing is in progress' }
        if (Test-RegistryKey -Path "${servicing}PackagesPending") { 'packages are pending' }
        # It stays for some minutes after DISM, too.
        if ((Get-ServiceState -Name 'TrustedInstaller') -eq 'Running') { 'the Windows Modules Installer is running' }
    )
    $signs -join ', '
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

function Get-FolderAbove {
    # The folders above these, outermost first, without those that are in the list themselves. Nothing where there are
    # none.
    param([string[]]$Paths)
    $above = @($Paths | ForEach-Object { Get-ParentPath -Path $_ } | Sort-Object -Unique)
    $above | Where-Object { $Paths -notcontains $_ }
}

function Get-StrangeReplacer {
    # Who, besides administrators, owns a folder or may delete, rename or open up what is in it: SIDs, or null. 40: delete
    # children, 10000: delete, 40000: rules, 80000: owner, 10000000: everything.
    param([string]$Path)
    Get-StrangeWriter -Path $Path -Rights 0x100d0040 -Itself
}

function Get-StrangeEntry {
    # Files and folders below a path that somebody who is no administrator owns or may change: path, who, owned. None is
    # a link. Nothing where there is none.
    param([string]$Path)
    if (-not [IO.Directory]::Exists($Path)) { return }
    foreach ($entry in [IO.Directory]::GetFileSystemEntries($Path)) {
        if (Test-Link -Path $entry) {
            Stop-Step -Id 'FolderIsLink' -Message "$entry is a link to another place, and winboot follows none"
        }
        $who = Get-StrangeWriter -Path $entry
        if ($who) { @{ path = $entry; who = $who; owned = $null -ne (Get-StrangeOwner -Path $entry) } }
        if ([IO.Directory]::Exists($entry)) { Get-StrangeEntry -Path $entry }
    }
}

function Get-FolderDifference {
    # How the folders, those above them and what is in the watched ones differ from what is wanted.
    param([string[]]$Private, [string[]]$Readable, [string[]]$Ours, [string[]]$Watched)
    foreach ($path in $Private + $Readable) {
        Assert-NoLink -Path $path
        if (-not [IO.Directory]::Exists($path)) { New-Difference -Key "folder:$path" -What "folder $path" -Is $null -Want 'present' }
        elseif ($Private -contains $path) {
            Compare-Wanted -Key "rights:$path" -What "folder ${path}: others with rights" -Is (Get-Stranger -Path $path) -Want $null
            Compare-Wanted -Key "owner:$path" -What "folder ${path}: owner" -Is (Get-StrangeOwner -Path $path) -Want $null
        }
        else {
            $writers = Get-StrangeWriter -Path $path
            Compare-Wanted -Key "writers:$path" -What "folder ${path}: others who may write" -Is $writers -Want $null
        }
    }
    foreach ($path in Get-FolderAbove -Paths ($Private + $Readable)) {
        if (-not [IO.Directory]::Exists($path)) { continue }
        $what = "folder ${path}: others who may replace what is in it"
        Compare-Wanted -Key "replacers:$path" -What $what -Is (Get-StrangeReplacer -Path $path) -Want $null
    }
    foreach ($path in $Watched) {
        $strange = @(Get-StrangeEntry -Path $path | ForEach-Object { "$($_.path) ($($_.who))" }) -join ', '
        if ($strange) { New-Difference -Key "strange-files:$path" -What "folder ${path}: files of others" -Is $strange -Want $null }
    }
}

function Test-FolderOpen {
    # Whether others have more rights on a folder than its kind allows; Above are those that only lead to ours.
    param([string]$Path, [switch]$Private, [switch]$Above)
    if ($Above) { return $null -ne (Get-StrangeReplacer -Path $Path) }
    if ($Private) { return $null -ne (Get-Stranger -Path $Path) -or $null -ne (Get-StrangeOwner -Path $Path) }
    $null -ne (Get-StrangeWriter -Path $Path)
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

function Assert-SwitchableAdapter {
    # Stops the step where the adapter cannot carry a switch; returns nothing otherwise. HNS refuses the interface of a
    # Hyper-V switch (azure-container-networking, network_windows.go: "the hns calls fails if passed a vSwitch
    # interface"), and from Windows Server 2022 on Windows binds no switch to a team of the old kind (LBFO). The second
    # function of accelerated networking (SR-IOV) has no addresses, so the node's address is never on it.
    param([string]$Name)
    if ($Name -like 'vEthernet (*') {
        Stop-Step -Id 'AdapterRefused' -Message "the node's address is on $Name, an interface of a Hyper-V switch that is not of HNS"
    }
    $team = @(Get-NetAdapter -Name $Name -IncludeHidden -ErrorAction SilentlyContinue |
            Where-Object { [string]$_.ComponentID -eq 'COMPOSITEBUS\MS_IMPLAT_MP' })
    if ($team.Count -gt 0 -and [Environment]::OSVersion.Version.Build -ge 20348) {
        Stop-Step -Id 'AdapterRefused' -Message "the node's address is on $Name, a team of the kind LBFO, which carries no switch on this Windows"
    }
}

function ConvertTo-UplinkName {
    # A switch's interface is named after the adapter below it.
    param([string]$Name)
    if ($Name -match '^vEthernet \((.+)\)$' -and (Get-NetAdapter -Name $Matches[1] -IncludeHidden -ErrorAction SilentlyContinue)) {
        return $Matches[1]
    }
    $Name
}

function Get-UplinkName {
    # The adapter that an address is on, or that is below the switch it is on.
    param([object]$Address)
    ConvertTo-UplinkName -Name $Address.alias
}

# ---- firewall.ps1
# Rules are read from the registry, which takes milliseconds; Get-NetFirewallRule takes seconds.

function ConvertTo-Prefix {
    # An address and its mask as a prefix: 10.0.0.0/255.0.0.0 becomes 10.0.0.0/8; a single address has no mask.
    param([string]$Text)
    $address, $mask = $Text.Split('/')
    if ($mask -match '\.') {
        $bits = @($mask.Split('.') | ForEach-Object { [Convert]::ToString([int]$_, 2) }) -join ''
        $mask = [string]$bits.Replace('0', '').Length
    }
    if (-not $mask -or $mask -eq '32') { return $address }
    "$address/$mask"
}

function ConvertTo-FirewallShown {
    # A rule as people read it: direction, protocol, ports and sources.
    param([hashtable]$Rule)
    $sources = @($Rule.sources | ForEach-Object { ConvertTo-Prefix -Text $_ } | Sort-Object -Unique)
    "$($Rule.direction) $($Rule.protocol) $($Rule.ports) from $($sources -join ',')"
}

function ConvertFrom-FirewallText {
    # A rule as people read it, from its line in the registry; nothing where there is none. The line reads
    # v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|RA4=10.0.0.0/255.0.0.0|... with a field for each
    # port and each source (MS-GPFAS 2.2.2).
    param([string]$Text)
    if (-not $Text) { return }
    $rule = @{ direction = 'in'; protocol = 'any'; ports = @(); sources = @() }
    $narrowed = @()
    foreach ($field in $Text.Split('|')) {
        $name, $value = $field.Split('=')
        switch -Regex ($name) {
            '^Action$' { if ($value -ne 'Allow') { return "not allowing: $value" } }
            '^Active$' { if ($value -ne 'TRUE') { return 'inactive' } }
            '^Dir$' { $rule.direction = $value.ToLowerInvariant() }
            '^Protocol$' { $rule.protocol = $value -replace '^6$', 'TCP' -replace '^17$', 'UDP' }
            '^[LR]Port(2_10)?$' { $rule.ports += $value }
            '^RA[46]2?$' { $rule.sources += $value }
            # Somebody narrowed the rule: to profiles, own addresses, a program, a service, an interface, logins.
            '^(Profile|LA[46]2?|App|Svc|IF|IFType|LUAuth|RUAuth|RMauth|Security|Security2)$' { $narrowed += $field }
        }
    }
    if ($rule.sources.Count -eq 0) { $rule.sources = @('Any') }
    $rule.ports = if ($rule.ports) { @($rule.ports) -join ',' } else { 'any' }
    $shown = ConvertTo-FirewallShown -Rule $rule
    if ($narrowed) { return "$shown, only for $($narrowed -join ' ')" }
    $shown
}

function Get-FirewallDifference {
    # What differs of the rules, and which profiles ignore local rules by Group Policy.
    param([hashtable[]]$Rules)
    foreach ($rule in $Rules) {
        $text = Read-Registry -Path 'SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules' -Name $rule.name
        $is = ConvertFrom-FirewallText -Text $text
        $want = ConvertTo-FirewallShown -Rule $rule
        Compare-Wanted -Key "rule:$($rule.name)" -What "firewall rule $($rule.name)" -Is $is -Want $want
    }
    foreach ($name in @('DomainProfile', 'PrivateProfile', 'PublicProfile')) {
        if (0 -eq (Read-Registry -Path "SOFTWARE\Policies\Microsoft\WindowsFirewall\$name" -Name 'AllowLocalPolicyMerge')) {
            $what = "firewall ${name}: local rules"
            New-Difference -Key "firewall-profile:$name" -What $what -Is 'ignored by Group Policy' -Want 'in force' -Policy
        }
    }
}

function Restore-FirewallRule {
    # The names are winboot's own: there was no rule before.
    param([object]$Former)
    if (Get-NetFirewallRule -Name $Former.name -ErrorAction SilentlyContinue) { Remove-NetFirewallRule -Name $Former.name }
}

# ---- settings.ps1

function Get-PageFileDifference {
    # A difference where the page file is not as wanted. Without any, memory runs out in a crash: Windows has no
    # out-of-memory killer.
    param([object]$MiB)
    $is = ConvertTo-Shown -Value (Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management' -Name 'PagingFiles')
    if ($MiB -isnot [string]) {
        Compare-Wanted -Key 'page-file' -What 'page file' -Is $is -Want "C:\pagefile.sys $MiB $MiB" -IgnoreCase -Reboot
    }
    elseif (-not $is) { New-Difference -Key 'page-file' -What 'page file' -Is 'none' -Want '?:\pagefile.sys' -Reboot }
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

function Get-DoubtNotice {
    # A notice for each file that was taken for absent since the last call; nothing where all were believed.
    if (-not $script:Run.ContainsKey('Doubts')) { return }
    foreach ($path in $script:Run.Doubts.Keys | Sort-Object) {
        New-Difference -Key "doubt:$path" -What "file ${path}: taken for absent" -Is $script:Run.Doubts[$path] -Want 'ours alone' -Policy
    }
    $script:Run.Doubts = @{}
}

# ---- boot.ps1
# The task at each start of the machine.

function Get-BootScriptPath {
    # Where the script of the startup task is stored. Its name comes from its content: a cut between script and task
    # leaves the older pair, which still fits together.
    Get-StatePath -Name "boot-$((Get-TextHash -Text $script:Run.Text).Substring(0, 16)).ps1"
}

function New-BootTask {
    # The startup task, as an object that Set-Task registers. It has to be registered before an address can be lost.
    New-SystemTask -Path (Get-BootScriptPath) -Text $script:Run.Text -Arguments '-Mode Boot' -Seconds 2400 -Priority 4 `
        -Trigger (New-ScheduledTaskTrigger -AtStartup) `
        -Description 'winboot: after each start of this machine puts back what a Kubernetes node loses with it.'
}

function Remove-BootScript {
    # Stored scripts of the startup, all but one.
    param([string]$But = '')
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath), 'boot*.ps1')) {
        if ($path -ne $But) { Remove-File -Path $path }
    }
}

function Test-ServiceFallen {
    # Whether the control manager gave up on starting it: no answer in time (1053, 1070), or a dependency failed (1068).
    # After a crash (1067) it has recovery actions; what was never tried (1077) somebody is about to start.
    param([string]$Name)
    if ((Get-ServiceState -Name $Name) -ne 'Stopped') { return $false }
    $found = Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'ExitCode'
    $null -ne $found -and @(1053, 1068, 1070) -contains [int]$found.ExitCode
}

# ---- guard.ps1
# Puts back what the machine had while somebody makes a network on its adapter, and at each start what a cut left undone.

function Get-LastingRoute {
    # The routes of an interface that somebody set for good. Nothing where there is none. Those of a cloud's metadata service
    # (169.254...) are the image's: it sets them at each start, for that one or for good.
    param([object]$Interface)
    $Interface.routes | Where-Object { $_.persistent -and $_.prefix -notlike '169.254.*' }
}

function Test-OwnSetting {
    # Whether somebody set something on an interface that a switch can take from it.
    param([object]$Interface)
    @($Interface.addresses).Count -gt 0 -or @($Interface.dns).Count -gt 0 -or @(Get-LastingRoute -Interface $Interface).Count -gt 0
}

function ConvertTo-InterfaceText {
    # What somebody set on an interface, as one text to compare.
    param([object]$Interface)
    $addresses = @($Interface.addresses | ForEach-Object { "$($_.ip)/$($_.prefix_length)" } | Sort-Object)
    $routes = @(Get-LastingRoute -Interface $Interface | ForEach-Object { "$($_.prefix) via $($_.next_hop) at $($_.metric)" } | Sort-Object)
    "dhcp $($Interface.dhcp); $($addresses -join ' '); $($Interface.dns -join ' '); $($routes -join ', ')"
}

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

function Read-FormerService {
    # How a service is, as far as winboot changes it: the definition, and as they stand in the registry the values that
    # sc.exe cannot write back (actions of recovery that run a command or restart the machine, texts from a resource).
    param([string]$Name)
    $path = Get-ServicePath -Name $Name
    $former = @{
        name = $Name; exists = (Test-RegistryKey -Path $path); parameters = @()
        running = (Get-ServiceState -Name $Name) -eq 'Running'
    }
    if ($former.exists) {
        $former.definition = Read-Service -Name $Name
        $former.display = Read-Registry -Path $path -Name 'DisplayName'
        $former.groups = @((Read-Registry -Path $path -Name 'DependOnGroup') | Where-Object { $_ })
        $former.values = @(foreach ($value in @('Description', 'FailureActions', 'FailureActionsOnNonCrashFailures', 'DelayedAutostart')) {
                Read-RegistryNote -Path $path -Name $value
            })
        $former.parameters = @(Read-ParameterTree -Path "$path\Parameters")
    }
    $former
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

function Get-LookResult {
    # The result of looking at a step, as a table: ok, would-change, failed or blocked.
    param([hashtable]$Step)
    $result = New-Result
    try {
        Assert-Dependency -Step $Step
        $result.Differences = @(Read-Difference -Step $Step) + @(Get-DoubtNotice)
        # What a Group Policy sets is reported; it is not ours to change.
        if (@($result.Differences | Where-Object { -not $_.policy }).Count -gt 0) { $result.State = 'would-change' }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'LookFailed' }
    $result
}

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

function Remove-Folder {
    # Deletes a folder with all that is in it; an absent one is fine.
    param([string]$Path, [int]$Tries = 9)
    Invoke-Patient -File $Path -Tries $Tries -Work { if ([IO.Directory]::Exists($Path)) { [IO.Directory]::Delete($Path, $true) } }
}

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

function Wait-Task {
    # The result of a .NET task, or a TimeoutException.
    param([object]$Task, [int]$Seconds)
    if (-not (Test-TaskEnd -Task $Task -Seconds $Seconds)) { throw [TimeoutException]::new("no answer within $Seconds seconds") }
    $Task.Result
}

function Save-Body {
    # Writes what a server sends to a file. Less than 512 KB in a minute is no download: another attempt goes on where this
    # one ends. The journal has a sign of life every 10 seconds.
    param([string]$Url, [IO.Stream]$Body, [IO.Stream]$Target)
    $buffer = [byte[]]::new(81920)
    $minute = [Diagnostics.Stopwatch]::StartNew()
    $told = [Diagnostics.Stopwatch]::StartNew()
    $total = 0L
    $before = 0L
    while (($count = Wait-Task -Task $Body.ReadAsync($buffer, 0, $buffer.Length) -Seconds 60) -gt 0) {
        $Target.Write($buffer, 0, $count)
        $total += $count
        if ($told.Elapsed.TotalSeconds -ge 10) {
            [void](New-EventLine -Fields @{ event = 'download'; url = $Url; bytes = $total })
            $told.Restart()
        }
        if ($minute.Elapsed.TotalSeconds -lt 60) { continue }
        if ($total - $before -lt 512KB) { throw [TimeoutException]::new("$($total - $before) bytes came within a minute") }
        $before = $total
        $minute.Restart()
    }
}

function Receive-Rest {
    # Downloads what is still missing of a file, from a web address or from a path that Windows can open. Returns
    # nothing. An error is reported only at the Last attempt: until then the next one goes on from here.
    param([string]$Url, [string]$Path, [string]$Proxy, [switch]$Last)
    if ($Url -notmatch '^https?://') { Copy-WholeFile -From $Url -To $Path; return }
    # Where .NET names protocols itself it may leave out TLS 1.2. 0 lets Windows choose, TLS 1.3 included.
    $protocol = [Net.ServicePointManager]::SecurityProtocol
    if ([int]$protocol -ne 0) { [Net.ServicePointManager]::SecurityProtocol = $protocol -bor [Net.SecurityProtocolType]::Tls12 }
    $request = [Net.WebRequest]::Create($Url)
    if ($Proxy) { $request.Proxy = [Net.WebProxy]::new($Proxy) }
    if ([IO.File]::Exists($Path)) { $request.AddRange([IO.FileInfo]::new($Path).Length) }
    try {
        $response = Wait-Task -Task $request.GetResponseAsync() -Seconds 60
        try {
            # 206: the server resumes where we asked it to.
            $mode = if ([int]$response.StatusCode -eq 206) { 'Append' } else { 'Create' }
            $file = [IO.File]::Open($Path, $mode, 'Write')
            try { Save-Body -Url $Url -Body $response.GetResponseStream() -Target $file } finally { $file.Dispose() }
        }
        finally {
            # To close it alone would wait for what is still to come.
            $request.Abort()
            $response.Close()
        }
    }
    catch {
        if ($Last) { Stop-Step -Id 'DownloadFailed' -Message "${Url}: $($_.Exception.GetBaseException().Message)" }
        Start-Sleep -Seconds 2
    }
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

function Enable-OneFeature {
    # Turns one feature on without a restart, from Source where one is given.
    param([string]$Feature, [string]$Source)
    $wanted = @{ Online = $true; FeatureName = $Feature; All = $true; NoRestart = $true }
    if ($Source) { $wanted += @{ Source = $Source; LimitAccess = $true } }
    try { [void](Enable-WindowsOptionalFeature @wanted -WarningAction SilentlyContinue) }
    catch {
        switch ('{0:x8}' -f $_.Exception.HResult) {
            '800f081f' { Stop-Step -Id 'FeatureSource' -Message "the files of feature $Feature are not on this machine (0x800f081f)" }
            '800f0922' { Stop-Step -Id 'FeatureBlocked' -Message "feature $Feature could not be staged (0x800f0922)" }
        }
        throw
    }
}

# ---- former.ps1
# How a thing was before winboot first changed it.

function Get-FormerPath {
    # The file with the notes of a step, the current one unless it is named.
    param([string]$Step = $script:Run.Step)
    Get-StatePath -Name "former\$Step.jsonl"
}

# ---- logs.ps1

function ConvertTo-ListText {
    # Texts as a literal of PowerShell: an apostrophe is doubled.
    param([string[]]$Texts)
    "@($(@($Texts | ForEach-Object { "'$("$_".Replace("'", "''"))'" }) -join ', '))"
}

function New-LogTask {
    # The hourly task that runs this script.
    param([string]$Text)
    $trigger = New-ScheduledTaskTrigger -Once -At ([DateTime]::new(2020, 1, 1)) -RepetitionInterval ([TimeSpan]::FromHours(1))
    New-SystemTask -Path (Get-StatePath -Name 'logs.ps1') -Text $Text -Seconds 1800 -Trigger $trigger `
        -Description 'winboot: keeps the logs of the services of this Kubernetes node from filling the disk.'
}

# ---- certificate.ps1

function ConvertFrom-Pem {
    # The first certificate of a PEM text; $null when there is none, or one that is damaged.
    param([string]$Text)
    $match = [regex]::Match($Text, '-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----')
    if (-not $match.Success) { return $null }
    try {
        $bytes = [Convert]::FromBase64String($match.Groups[1].Value)
        # Of no bytes at all .NET makes an object without a certificate in it.
        if ($bytes.Length -eq 0) { return $null }
        [Security.Cryptography.X509Certificates.X509Certificate2]::new($bytes)
    }
    catch [FormatException], [Security.Cryptography.CryptographicException] { return $null }
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

# ---- ipam.ps1

function Get-StoreFile {
    # The files of an IPAM store that stand for an address. Nothing where there is none.
    param([string]$Store)
    if (-not [IO.Directory]::Exists($Store)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Store)) {
        # Colons of an IPv6 address are written as underscores.
        if ([IO.Path]::GetFileName($path) -match '^(\d+\.\d+\.\d+\.\d+|[0-9a-f]+_[0-9a-f_]+)$') { $path }
    }
}

function Get-StorePath {
    # The file that stands for an address in an IPAM store.
    param([string]$Store, [string]$Address)
    "$Store\$($Address.Replace(':', '_'))"
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

function New-HnsObject {
    # Makes an object and gives it as HNS has it.
    param([string]$Kind, [object]$Request)
    Invoke-HnsRequest -Method POST -Path "/$Kind/" -Request $Request
}

function Remove-HnsObject {
    # Removes the object with this id.
    param([string]$Kind, [string]$Id)
    [void](Invoke-HnsRequest -Method DELETE -Path "/$Kind/$Id")
}

# ---- task.ps1

function Get-TaskCommand {
    # The command line of a task; of an encoded one, which says nothing to a reader, its hash.
    param([object]$Task)
    $action = @($Task.Actions)[0]
    $arguments = "$(Read-Member -Object $action -Names 'Arguments')"
    if ($arguments -match '(?i)-EncodedCommand') { $arguments = "sha256 $(Get-TextHash -Text $arguments)" }
    "$(Read-Member -Object $action -Names 'Execute') $arguments"
}

function Get-TaskDifference {
    # How the registered task differs from the wanted one: command, priority, description, or that it is disabled.
    param([string]$Name, [object]$Task)
    $what = "task \winboot\${Name}:"
    $is = @{ Command = $null; Priority = $null; Description = $null }
    foreach ($found in Get-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -ErrorAction SilentlyContinue) {
        $is = @{
            Command     = Get-TaskCommand -Task $found
            Priority    = $found.Settings.Priority
            Description = $found.Description
        }
        if ($found.State.ToString() -eq 'Disabled') {
            New-Difference -Key "task:${Name}:state" -What "$what state" -Is 'Disabled' -Want 'Ready'
        }
    }
    Compare-Wanted -Key "task:${Name}:command" -What "$what command" -Is $is.Command -Want (Get-TaskCommand -Task $Task)
    # A missing task is one difference.
    if ($null -eq $is.Command) { return }
    Compare-Wanted -Key "task:${Name}:priority" -What "$what priority" -Is $is.Priority -Want $Task.Settings.Priority
    Compare-Wanted -Key "task:${Name}:description" -What "$what description" -Is $is.Description -Want $Task.Description
}

# ---- pod_network.ps1

function Get-ManagementAddress {
    # The address that HNS works with. On a bridge any other one of the same interface is as good: flanneld only finds the interface
    # by it (hostgw_windows.go, step 7). An overlay sends from it, so there it has to be the node's own.
    param([object]$Network)
    $is = "$(Read-Member -Object $Network -Names 'ManagementIP')"
    $node = Get-NodeAddress
    if ($Network.Type -ieq 'Overlay' -or -not $node -or $is -eq '') { return $is }
    if (Find-Address -Ip $is | Where-Object { $_.InterfaceIndex -eq $node.index -and (Test-UsableAddress -Address $_) }) {
        return $node.ip
    }
    $is
}

function Get-WantedCarrier {
    # The adapter that the node's address is on, below a switch if there is one.
    foreach ($address in Get-NodeAddress) { return (Get-UplinkName -Address $address) }
    # While Windows moves the address it is nowhere.
    if ($script:Run.ContainsKey('Carrier')) { return $script:Run.Carrier }
    Get-UnknownText
}

function Get-CarrierName {
    # The adapter that a network is on. Where a build of Windows does not name it, the management address leads to it.
    param([object]$Network)
    $told = "$(Read-Member -Object $Network -Names 'NetworkAdapterName')"
    if ($told -ne '') { return (ConvertTo-UplinkName -Name $told) }
    foreach ($found in Find-Address -Ip "$(Read-Member -Object $Network -Names 'ManagementIP')") {
        return (ConvertTo-UplinkName -Name $found.InterfaceAlias)
    }
    Get-WantedCarrier
}

function Get-NetworkVni {
    # The VNI of an overlay network as text.
    param([object]$Network)
    $policies = @(Read-Item -Object $Network -Name 'Subnets' | ForEach-Object { Read-Item -Object $_ -Name 'Policies' })
    @($policies | Where-Object { (Read-Member -Object $_ -Names 'Type') -eq 'VSID' } | ForEach-Object { $_.VSID }) -join ', '
}

function Assert-Uplink {
    # Stops before anything is cut where the adapter cannot carry the network.
    param([hashtable]$Wanted)
    $address = Get-NodeAddress
    if (-not $address) { Stop-Step -Id 'NoAddress' -Message 'this machine has no address that a network can be made on' }
    $uplink = Get-UplinkName -Address $address
    Assert-SwitchableAdapter -Name $uplink
    $networks = @(Get-HnsObject -Kind networks)
    # A Hyper-V switch may have the name of its adapter, as those of HNS do.
    if ($address.alias -ne $uplink -and -not ($networks | Where-Object { (Get-CarrierName -Network $_) -eq $uplink })) {
        Stop-Step -Id 'AdapterRefused' -Message "the node's address is on $($address.alias), an interface of a Hyper-V switch that is not of HNS"
    }
    # Networks of one adapter share its switch.
    foreach ($other in $networks) {
        if ($other.Name -eq $Wanted.name -or (Read-Member -Object $other -Names 'NetworkAdapterName') -ne $uplink -or $other.Type -ieq $Wanted.type) {
            continue
        }
        Stop-Step -Id 'NetworkConflict' -Message "the HNS network $($other.Name) on $uplink is of type $($other.Type); $($Wanted.name) beside it cannot be of type $($Wanted.type)"
    }
}

function Assert-Carrier {
    # A network on another adapter than the node's has to go again at once: HNS picks one where an agent names none
    # (azure-container-networking, network_windows.go).
    param([hashtable]$Wanted)
    $carrier = Get-WantedCarrier
    foreach ($network in Get-HnsObject -Kind networks -Name $Wanted.name) {
        $is = Get-CarrierName -Network $network
        if ($is -ne $carrier) {
            Stop-Step -Id 'WrongAdapter' -Message "the HNS network $($Wanted.name) was made on $is, and the node's address is on $carrier"
        }
    }
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

function Test-OtherAddress {
    # Whether somebody gave what carries today the addresses of this interface another one. With a lease the address may be any.
    param([object]$Was)
    $own = @($Was.addresses | ForEach-Object { $_.ip })
    $index = Find-Successor -Was $Was
    if ($own.Count -eq 0 -or $null -eq $index) { return $false }
    $others = @(Read-InterfaceAddress -Index $index |
            Where-Object { (Test-UsableAddress -Address $_) -and $own -notcontains $_.IPAddress })
    $others.Count -gt 0
}

function Test-MovedInterface {
    # Whether another interface carries now what this one carried, and nobody gave that one an address of its own.
    param([object]$Was)
    if (Test-CarryingInterface -Guid $Was.guid) { return $false }
    $null -ne (Find-Successor -Was $Was) -and -not (Test-OtherAddress -Was $Was)
}

function Add-GuardTrouble {
    # Notes why a round of the watch failed, each reason once. Returns nothing.
    param([System.Management.Automation.ErrorRecord]$Caught)
    $problem = ConvertTo-Problem -Caught $Caught -OtherwiseId 'BootFailed'
    $known = "Guard $($problem.id)"
    if ($script:Run.ContainsKey($known)) { return }
    $script:Run[$known] = $true
    [void](New-EventLine -Fields @{ event = 'boot-failed'; step = 'address-guard'; problem = $problem })
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

# ---- kube_proxy.ps1

function Assert-Network {
    # Stops the step where HNS does not have exactly one network of that name.
    param([string]$Name)
    if (@(Get-HnsObject -Kind networks -Name $Name).Count -eq 1) { return }
    Stop-Step -Id 'NoHnsNetwork' -Message "there is no HNS network $Name, which kube-proxy is to serve"
}

function Read-HttpStatus {
    # The status of an HTTP answer; nothing without an answer.
    param([string]$Url)
    $request = [Net.WebRequest]::Create($Url)
    $request.Timeout = 5000
    $request.Proxy = $null
    try { $response = $request.GetResponse() }
    catch [Net.WebException] {
        $response = $_.Exception.Response
        if ($null -eq $response) { return }
    }
    [int]$response.StatusCode
    $response.Close()
}

# ---- own_network.ps1
# HNS networks that winboot makes itself, in a detached run: where no agent makes them, and the first switch of Azure CNI.

function Connect-HostEndpoint {
    # Attaches an endpoint to the host. HNS refuses for some seconds after it made the network, or attaches and says that
    # it had been: flanneld tries again, too (flannel hostgw_windows.go; flannel-io/flannel#1112, #1391). Done is what
    # gives the host the address.
    param([string]$Id, [string]$Address)
    # Compartment 1 is the host's own.
    $hostSystem = @{ SystemType = 'Host'; CompartmentId = 1 }
    $attached = {
        if (Find-Address -Ip $Address) { return $true }
        try { [void](Invoke-HnsRequest -Method POST -Path "/endpoints/$Id/attach" -Request $hostSystem) }
        catch [InvalidOperationException] { return $false }
        $true
    }
    if (Wait-Until -Test $attached -Seconds 15) { return }
    # Once more, for its reason.
    [void](Invoke-HnsRequest -Method POST -Path "/endpoints/$Id/attach" -Request $hostSystem)
}

# ---- pod_network.ps1

function Restore-Uplink {
    # Puts back what the adapter lost while HNS works on it. Returns nothing. Put back at once, HNS still finds the
    # address.
    if ($script:Run.ContainsKey('Snapshot')) { [void](Invoke-NetworkRestore -Snapshot $script:Run.Snapshot) }
}

function Wait-NodeAddress {
    # Waits until the node's address is settled, or stops the step. HNS would take an unsettled address for good.
    $settled = {
        Restore-Uplink
        $address = Get-NodeAddress
        $script:Run['Settled'] = $address
        $null -ne $address -and $address.state -eq 'Preferred' -and $address.ip -notlike '169.254.*'
    }
    if (Wait-Until -Test $settled -Seconds 60) {
        $script:Run['Carrier'] = Get-UplinkName -Address $script:Run.Settled
        return $script:Run.Settled
    }
    Stop-Step -Id 'NoAddress' -Message ("this machine has no settled address after 60 seconds " + $script:Run['Trouble']).Trim()
}

# ---- ports.ps1

function Get-PortRange {
    # The range of client ports as start+count. Nothing where Windows does not say.
    param([string]$Protocol)
    $settings = if ($Protocol -eq 'tcp') { Get-NetTCPSetting | Where-Object { $_.DynamicPortRangeNumberOfPorts } }
    else { Get-NetUDPSetting }
    foreach ($one in $settings) { return "$($one.DynamicPortRangeStartPort)+$($one.DynamicPortRangeNumberOfPorts)" }
}

function Get-PortRangeDifference {
    # A difference where TCP or UDP clients take other ports.
    param([int]$Start, [int]$Count)
    foreach ($protocol in @('tcp', 'udp')) {
        Compare-Wanted -Key "ports:$protocol" -What "dynamic ports: $protocol" -Is (Get-PortRange -Protocol $protocol) -Want "$Start+$Count"
    }
}

# ---- surroundings.ps1

function Get-DiskEncryption {
    # Whether BitLocker protects the system drive: on, off or not installed.
    $of = @{ Namespace = 'root\cimv2\Security\MicrosoftVolumeEncryption'; ClassName = 'Win32_EncryptableVolume' }
    $drive = [Environment]::SystemDirectory.Substring(0, 2)
    $volumes = @(Get-CimInstance @of -ErrorAction SilentlyContinue | Where-Object { $_.DriveLetter -eq $drive })
    if (-not $volumes) { return 'not installed' }
    if ($volumes[0].ProtectionStatus -eq 1) { 'on' } else { 'off' }
}

function Get-ScanFilter {
    # The names of virus scanners' file filters, besides Defender's own, which has a step; nothing where there are none.
    # Such a filter may hold files of an image layer open.
    $path = 'SYSTEM\CurrentControlSet\Services'
    $services = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($path)
    foreach ($name in $services.GetSubKeyNames()) {
        try { $group = Read-Registry -Path "$path\$name" -Name 'Group' }
        catch [Security.SecurityException] { continue }
        if ($group -eq 'FSFilter Anti-Virus' -and $name -ne 'WdFilter') { $name }
    }
    $services.Dispose()
}

# ---- boot.ps1

function Invoke-BootWork {
    # One piece of work at the start of the machine. Returns nothing; why it failed is in the journal.
    param([string]$Name, [scriptblock]$Work)
    try { [void]@(& $Work) }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'BootFailed'
        [void](New-EventLine -Fields @{ event = 'boot-failed'; step = $Name; problem = $problem })
    }
}

# ---- foreign.ps1
# A node that somebody else made: it is named before the first write, and left alone unless it is to be adopted.

function Get-ForeignAgent {
    # Services of other tools that run a kubelet as their own child: RKE2 and K3s, k0s, and OpenShift's agent.
    # docs.rke2.io/install/windows, docs.k0sproject.io/stable/experimental-windows,
    # openshift/windows-machine-config-operator. Nothing where there is none.
    foreach ($name in @('rke2', 'k3s', 'k0sworker', 'windows-instance-config-daemon')) {
        if (Get-ServiceState -Name $name) { $name }
    }
}

# ---- hash.ps1
# Hashes of programs, remembered: reading hundreds of megabytes is most of what a look costs.

function Save-HashMemory {
    # Writes what is remembered for the next run. A look writes nothing.
    if ($script:Run.Mode -ne 'Change' -or -not $script:Run.ContainsKey('Hashes') -or -not $script:Run.HashesDiffer) { return }
    $files = @(foreach ($path in $script:Run.Hashes.Keys | Sort-Object) {
            @{ path = $path; mark = $script:Run.Hashes[$path].mark; sha256 = $script:Run.Hashes[$path].sha256 }
        })
    Write-StateJson -Name 'hashes.json' -Value @{ files = $files }
    $script:Run.HashesDiffer = $false
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

# ---- own_network.ps1

function Wait-ManagementAddress {
    # Waits until HNS has noted the machine's address in a new network: before that it refuses endpoints (flanneld waits,
    # too). Where it never does, the look after it says so.
    param([hashtable]$Wanted)
    $known = {
        Restore-Uplink
        $networks = @(Get-HnsObject -Kind networks -Name $Wanted.name)
        $networks.Count -gt 0 -and "$(Read-Member -Object $networks[0] -Names 'ManagementIP')" -ne ''
    }
    [void](Wait-Until -Test $known -Seconds 30)
}

# ---- preflight.ps1

function Test-Addressing {
    # Faults of the machine's addresses and of its way to the API server.
    $adapters = @(Get-DefaultRoute | ForEach-Object { $_.ifIndex } | Sort-Object -Unique)
    if ($adapters.Count -gt 1) {
        New-Fault -Id 'DefaultRoutes' -Message "default routes lead through $($adapters.Count) adapters"
    }
    $address = Get-NodeAddress
    if (-not $address) {
        New-Fault -Id 'NoAddress' -Message 'no IPv4 address of this machine can be the node address'
        return
    }
    if ($address.state -ne 'Preferred' -or $address.ip -like '169.254.*') {
        New-Fault -Id 'AddressState' -Message "the address $($address.ip) is $($address.state)"
    }
    if (Get-AddressTowardsServer) { return }
    New-Fault -Id 'NoServer' -Message "$($script:Node.server_host):$($script:Node.server_port) does not answer by TCP from this machine"
}

# ---- access.ps1

function Save-FormerAccess {
    # Notes owner and access rules, before they are changed.
    param([string]$Path)
    Save-FormerValue -Kind 'Access' -Key $Path -Value @{ path = $Path; sddl = (Get-AccessText -Path $Path) }
}

# ---- folders.ps1

function Protect-Path {
    # Takes the rights of others away, and notes how it was.
    param([string]$Path, [switch]$Readable)
    Save-FormerAccess -Path $Path
    Set-PrivateAccess -Path $Path -Readable:$Readable
}

# ---- access.ps1

function Save-SecretFile {
    # Notes a file that will hold a secret of ours: that there was none, or its text and access rules, kept where only SYSTEM
    # and Administrators can read them.
    param([string]$Path)
    if (Test-FormerNote -Kind 'File' -Key $Path) { return }
    if ([IO.File]::Exists($Path)) { Save-FormerAccess -Path $Path }
    Save-FormerFile -Path $Path
}

# ---- artifacts.ps1

function Get-ArtifactDifference {
    # A difference for each file of Artifacts that is missing or has another hash; nothing where all are right.
    # Where only the archive's hash is known, each file's own was noted when it was placed.
    param([hashtable[]]$Artifacts)
    foreach ($artifact in $Artifacts) {
        $noted = Read-PlacedHash -Artifact $artifact
        foreach ($member in $artifact.members) {
            $want = $member['sha256']
            if (-not $want) { $want = $noted[$member.to] }
            $is = Get-KnownHash -Path $member.to
            if ($want -and $is -eq $want) { continue }
            if (-not $want) { $want = "as in $($artifact.file) $($artifact.version)" }
            New-Difference -Key "file:$($member.to)" -What "file $($member.to): sha256" -Is $is -Want $want -Disturbs:($null -ne $is)
        }
    }
    Save-HashMemory
}

function Read-PlacedHash {
    # The hashes that were noted when the files of an artifact were placed, as a table of path and sha256. It is empty
    # where they came from another archive, so that a new version is never taken for the old one.
    param([hashtable]$Artifact)
    $hashes = @{}
    $noted = Read-StateJson -Name "placed-$($Artifact.name).json"
    if ($noted -and $noted.archive -eq $Artifact['sha256']) {
        foreach ($file in $noted.files) { $hashes[$file.destination] = $file.sha256 }
    }
    $hashes
}

function Install-Artifact {
    # Installs each artifact of which a file is missing or differs. Returns nothing.
    param([hashtable[]]$Artifacts)
    foreach ($artifact in $Artifacts) {
        if (Get-ArtifactDifference -Artifacts $artifact) { Install-OneArtifact -Artifact $artifact }
    }
}

function Install-OneArtifact {
    # Downloads an artifact, checks its hash, unpacks it and puts its files in their places. Returns nothing. An archive
    # that a cut run left behind is not downloaded again.
    param([hashtable]$Artifact)
    if (-not $Artifact['sha256']) { Stop-Step -Id 'HashMissing' -Message "no sha256 is known for $($Artifact.file)" }
    $folder = Get-StatePath -Name 'downloads'
    Set-PrivateFolder -Path $folder
    $archive = "$folder\$($Artifact.file)"
    if ((Get-PathHash -Path $archive) -ne $Artifact['sha256']) { Receive-Artifact -Artifact $Artifact -Path $archive }
    $unpacked = "$folder\$($Artifact.name)-unpacked"
    Remove-Folder -Path $unpacked
    [void][IO.Directory]::CreateDirectory($unpacked)
    $paths = @($Artifact.members | ForEach-Object { $_.path })
    if ($paths -contains $Artifact.file) { Copy-WholeFile -From $archive -To "$unpacked\$paths" }
    else {
        # A slow disk with a scanner on it unpacks a megabyte in a second.
        $seconds = 300 + [int]([IO.FileInfo]::new($archive).Length / 1MB)
        $arguments = @('-x', '-f', $archive, '-C', $unpacked) + $paths
        [void](Assert-Program -Path (Get-SystemProgram -Name 'tar.exe') -Arguments $arguments -Seconds $seconds)
    }
    $files = @(foreach ($member in $Artifact.members) { Install-Member -Member $member -Folder $unpacked })
    Write-StateJson -Name "placed-$($Artifact.name).json" -Value @{ archive = $Artifact['sha256']; files = $files }
    # All is in place: what a scanner still reads is deleted by a later run.
    try {
        Remove-Folder -Path $unpacked -Tries 4
        Remove-File -Path $archive -Tries 4
    }
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return }
}

function Install-Member {
    # Puts one unpacked file in its place, and notes first that the services running it have to restart. Returns its
    # path and hash as a table for the note.
    param([hashtable]$Member, [string]$Folder)
    $from = [IO.Path]::Combine($Folder, $Member.path.Replace('/', '\'))
    $hash = Get-PathHash -Path $from
    if ($Member['sha256'] -and $hash -ne $Member['sha256']) {
        Stop-Step -Id 'HashMismatch' -Message "$($Member.path) has sha256 $hash, expected $($Member['sha256'])"
    }
    if ((Get-PathHash -Path $Member.to) -ne $hash) {
        foreach ($service in $Member['services']) { Save-RestartNeed -Name $service }
        Save-FormerFile -Path $Member.to
        [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Member.to))
        Move-FileOver -From $from -To $Member.to
    }
    @{ destination = $Member.to; sha256 = $hash }
}

function Receive-Artifact {
    # Downloads an artifact to Path, or stops the step: nothing is unpacked that does not have the expected sha256.
    # Returns nothing.
    param([hashtable]$Artifact, [string]$Path)
    $want = $Artifact['sha256']
    $part = "$Path.part"
    for ($attempt = 1; ($hash = Get-PathHash -Path $part) -ne $want; $attempt++) {
        # The first two attempts resume what is there, the last two start over.
        if ($attempt -gt 2) { Remove-File -Path $part }
        if ($attempt -gt 4) { Stop-Step -Id 'HashMismatch' -Message "$($Artifact.url) has sha256 $hash, expected $want" }
        Receive-Rest -Url $Artifact.url -Path $part -Proxy $Artifact['proxy'] -Last:($attempt -eq 4)
    }
    Move-FileOver -From $part -To $Path
}

# ---- boot.ps1

function Get-BootTaskDifference {
    # The stored script, its task, and the record that it works from.
    Get-FileDifference -Path (Get-BootScriptPath) -Text (ConvertTo-ScriptFile -Text $script:Run.Text)
    Get-TaskDifference -Name 'boot' -Task (New-BootTask)
    Get-RecordDifference
}

function Set-BootTask {
    # What the task works from comes before the task.
    Save-FormerValue -Kind 'BootTask' -Key 'boot' -Value @{ name = 'boot' }
    Update-NetworkRecord
    Write-FileText -Path (Get-BootScriptPath) -Text (ConvertTo-ScriptFile -Text $script:Run.Text)
    Set-Task -Name 'boot' -Task (New-BootTask)
    Remove-BootScript -But (Get-BootScriptPath)
}

function Invoke-Boot {
    # What each start of the machine needs. Nothing that fails, and no file that somebody holds, keeps the rest from it:
    # this is when scanners and agents are busiest.
    Invoke-BootWork -Name '' -Work {
        Write-StateJson -Name 'boot.json' -Value @{ boot_id = (Get-BootId); stamp = (Get-BootStamp) } -Tries 4
    }
    Invoke-BootWork -Name '' -Work { New-EventLine -Fields @{ event = 'boot'; boot_id = (Get-BootId) } }
    # Before an agent that a cut left half way makes its network with nobody to watch.
    Invoke-BootWork -Name '' -Work { Complete-CutRun }
    Invoke-BootWork -Name '' -Work { Restore-Hold }
    Invoke-BootWork -Name '' -Work { Clear-OldFile }
    foreach ($step in $script:Run.Steps) { Invoke-BootWork -Name $step.Name -Work { Invoke-Block -Step $step -Block 'Boot' } }
    Invoke-BootWork -Name '' -Work { Watch-OwnService -Seconds 600 }
    Invoke-BootWork -Name '' -Work { Remove-StrayTask }
}

function Watch-OwnService {
    # For Seconds after a boot: starts those of our services that the control manager gave up on. It has 30 seconds of
    # patience with a service, and containerd reports itself only when it has looked at what every pod left behind (see
    # pkg/shim/util_windows.go of containerd); what depends on it is given up as well, and recovery actions do not help a
    # service that never ran. Ends when all run for a minute.
    param([int]$Seconds)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    $calm = [Diagnostics.Stopwatch]::StartNew()
    while ($watch.Elapsed.TotalSeconds -lt $Seconds -and $calm.Elapsed.TotalSeconds -lt 60) {
        if (@(Start-FallenService).Count -gt 0) { $calm.Restart() }
        Start-Sleep -Seconds 10
    }
    $late = @(Get-AwaitedService | ForEach-Object { "$($_): $(Get-ServiceState -Name $_)$(Get-ServiceEnd -Name $_)" })
    if ($late) {
        [void](New-EventLine -Fields @{ event = 'services-down'; services = $late; seconds = [int]$watch.Elapsed.TotalSeconds })
    }
}

function Start-FallenService {
    # Starts what can be started now, without waiting for it; emits the names of all that do not run yet. Each is
    # reported in the journal once.
    $awaited = @(Get-AwaitedService)
    $awaited
    Save-LateStart -Awaited $awaited
    if ($awaited.Count -eq 0) { return }
    # Whoever works on this machine starts services itself, in its own order and with a guard.
    $lock = Wait-Mutex -Seconds 0
    if (-not $lock) { return }
    try {
        foreach ($name in $awaited) {
            # What it depends on comes first.
            if (-not (Test-ServiceFallen -Name $name) -or (Get-ServiceDoubt -Name $name) -or @((Read-Service -Name $name).depends | Where-Object { $awaited -contains $_ })) {
                continue
            }
            if (-not $script:Run.ContainsKey("Fallen $name")) {
                $script:Run["Fallen $name"] = $true
                [void](New-EventLine -Fields @{ event = 'service-fallen'; service = $name; why = (Get-ServiceEnd -Name $name).Trim() })
            }
            Start-Unawaited -Path (Get-SystemProgram -Name 'sc.exe') -Arguments @('start', $name)
        }
    }
    finally { Exit-Run -Lock $lock }
}

function Save-LateStart {
    # Notes of each service that was awaited and runs now how long that took since it was first asked for.
    param([string[]]$Awaited)
    if (-not $script:Run.ContainsKey('Late')) { $script:Run.Late = @{} }
    $late = $script:Run.Late
    foreach ($name in @($late.Keys | Where-Object { $Awaited -notcontains $_ })) {
        # Of one that fell, the control manager had waited for half a minute before.
        $before = if ($script:Run.ContainsKey("Fallen $name")) { 31 } else { 0 }
        if ((Get-ServiceState -Name $name) -eq 'Running') { Save-SlowStart -Name $name -Seconds ($before + $late[$name].Elapsed.TotalSeconds) }
        $late.Remove($name)
    }
    foreach ($name in $Awaited) { if (-not $late.ContainsKey($name)) { $late[$name] = [Diagnostics.Stopwatch]::StartNew() } }
}

function Start-Unawaited {
    # Starts a program and does not wait: sc.exe may take 30 seconds, and the guard of the address must not.
    param([string]$Path, [string[]]$Arguments)
    (Start-Program -Path $Path -Arguments $Arguments).Dispose()
}

function Get-AwaitedService {
    # Our services that start with the machine and do not run yet. One that is disabled is held by somebody, or by a run
    # that was rolled back; one that a person stopped has no such exit code. Nothing when all run.
    foreach ($name in Get-OwnService) {
        if (@('auto', 'delayed-auto') -notcontains (Read-Service -Name $name).start) { continue }
        if ((Get-ServiceState -Name $name) -eq 'StartPending' -or (Test-ServiceFallen -Name $name)) { $name }
    }
}

function Get-OwnService {
    # The services that winboot made or changed, in the order of their steps: those that have a note.
    if (-not $script:Run.ContainsKey('OwnServices')) {
        $current = $script:Run.Step
        $script:Run.OwnServices = @(foreach ($step in $script:Run.Steps) {
                $script:Run.Step = $step.Name
                foreach ($line in Get-FormerLine) { if ($line.kind -eq 'Service') { $line.key } }
            })
        $script:Run.Step = $current
    }
    $script:Run.OwnServices
}

# ---- certificate.ps1

function Read-PemCertificate {
    # The first certificate of a PEM file; nothing where the file is missing, $null where it holds no certificate.
    param([string]$Path)
    $text = Read-FileText -Path $Path
    if ($null -ne $text) { ConvertFrom-Pem -Text $text }
}

function Test-CurrentCertificate {
    # Whether the file holds a certificate that has not expired. NotAfter is local time, and is compared with local
    # time.
    param([string]$Path)
    $certificate = Read-PemCertificate -Path $Path
    $null -ne $certificate -and $certificate.NotAfter -gt [DateTime]::Now
}

function Read-KubeconfigServer {
    # The API server that a kubeconfig names first, in YAML or JSON; an empty text where there is none.
    param([string]$Path)
    [regex]::Match("$(Read-FileText -Path $Path)", '(?m)^\s*"?server"?:\s*"?([^\s",]+)').Groups[1].Value
}

function Get-CredentialFault {
    # Why the kubelet cannot use the client certificate it has, in words; nothing where it can. The kubelet itself looks
    # at no more than the expiry before it leaves the bootstrap token alone (isClientConfigStillValid in its
    # certificate/bootstrap/bootstrap.go).
    param([hashtable]$Credential)
    $kubeconfig = Read-FileText -Path $Credential.kubeconfig
    if ($null -eq $kubeconfig) { return 'no kubeconfig' }
    if ((Read-KubeconfigServer -Path $Credential.kubeconfig) -cne $Credential.server) { return 'kubeconfig of another cluster' }
    # Same server, other CA: the cluster was created again.
    $ca = Get-PathHash -Path $Credential.ca_path
    if ($ca -and $ca -ne $Credential.ca_sha256) { return 'issued below another CA' }
    $certificate = Read-PemCertificate -Path $Credential.certificate
    if (-not $certificate) { return 'no client certificate' }
    $name = $certificate.GetNameInfo('SimpleName', $false)
    if ($name -cne "system:node:$($Credential.node)") { return "client certificate of $name" }
    if ($certificate.NotAfter -le [DateTime]::Now) { return 'client certificate has expired' }
}

function Get-CredentialDifference {
    # A difference where the kubelet's client certificate cannot be used; nothing where it can.
    # A bootstrap file of this very run is enough.
    param([hashtable]$Credential)
    $fault = Get-CredentialFault -Credential $Credential
    if (-not $fault -or ($script:Run.ContainsKey('Bootstrapped') -and [IO.File]::Exists($Credential.bootstrap_path))) { return }
    $want = "system:node:$($Credential.node), for $($Credential.server)"
    New-Difference -Key 'kubelet:client-certificate' -What 'kubelet client certificate' -Is $fault -Want $want
}

function Set-Credential {
    # Replaces credentials that cannot be used by a bootstrap kubeconfig with the token that was sent; the kubelet asks
    # for its certificate with it. Returns nothing.
    param([hashtable]$Credential)
    if ($null -eq (Get-CredentialFault -Credential $Credential)) { return }
    Stop-RunningService -Name 'kubelet'
    # Somebody else's keys come back with an undo; those of a kubelet of ours go with it. The note about ours comes after
    # theirs, so that an undo, which goes backwards, removes ours first.
    $ours = (Test-FormerNote -Kind 'KubeletKey' -Key $Credential.pki) -or (Test-FormerNote -Kind 'File' -Key $Credential.kubeconfig)
    if (-not $ours -and [IO.Directory]::Exists($Credential.pki)) {
        foreach ($path in [IO.Directory]::GetFiles($Credential.pki, 'kubelet-*')) { Save-SecretFile -Path $path }
    }
    Save-FormerValue -Kind 'KubeletKey' -Key $Credential.pki -Value @{ path = $Credential.pki }
    Save-SecretFile -Path $Credential.kubeconfig
    Remove-File -Path $Credential.kubeconfig
    if ([IO.Directory]::Exists($Credential.pki)) {
        foreach ($path in [IO.Directory]::GetFiles($Credential.pki, 'kubelet-*')) { Remove-File -Path $path }
    }
    $text = $Credential.bootstrap_text.Replace($Credential.token_place, (Read-Secret -Name $Credential.secret))
    Save-SecretFile -Path $Credential.bootstrap_path
    Write-FileText -Path $Credential.bootstrap_path -Text $text -Private
    $script:Run['Bootstrapped'] = $true
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

function Get-ImageDifference {
    # A difference where containerd does not have the image; nothing where it has. Image names are compared as
    # containerd lists them, with registry and tag.
    param([string]$Image)
    $listed = Invoke-Crictl -Arguments @('images', '--output', 'json')
    $tags = if ($listed) { (ConvertFrom-Json -InputObject $listed).images | ForEach-Object { $_.repoTags } }
    if (@($tags) -notcontains $Image) { New-Difference -Key "image:$Image" -What "image $Image" -Is $null -Want 'present' }
}

function Wait-Containerd {
    # Returns nothing when containerd answers, or stops the step. A running service does not answer at once: containerd
    # first looks at what every pod left behind.
    if (Wait-Until -Test { $null -ne (Invoke-Crictl -Arguments @('version')) } -Seconds 60) { return }
    Stop-Step -Id 'ContainerdSilent' -Message 'containerd does not answer after 60 seconds'
}

function Start-Crictl {
    # Runs crictl with our settings, and returns how it ended.
    param([string[]]$Arguments, [int]$Seconds)
    $config = $script:Node.crictl_config
    Invoke-Program -Path $script:Node.crictl -Arguments (@('--config', $config) + $Arguments) -Reads $config -Seconds $Seconds
}

function Install-Image {
    # Pulls an image, or stops the step with what crictl said. Returns nothing. crictl's own limit is 600 seconds: it
    # ends before Invoke-Program would end it, and says why.
    param([string]$Image)
    $ended = Start-Crictl -Arguments @('--timeout', '600s', 'pull', $Image) -Seconds 620
    if ($ended.ExitCode -ne 0) { Stop-Step -Id 'ImagePull' -Message "$Image cannot be pulled: $($ended.ErrorOutput.Trim())" }
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

# ---- drive.ps1

function Get-ChangeResult {
    # The result of changing a step where its look finds a difference, as a table; where it finds none, the result of
    # the look.
    param([hashtable]$Step)
    $result = Get-LookResult -Step $Step
    if ($result.State -eq 'ok' -and $Step.ContainsKey('Detached')) {
        [void]@(Read-UntoldRun -Step $Step.Name -Purpose @('Change', 'Undo'))
    }
    if ($result.State -ne 'would-change') { return $result }
    try {
        Assert-Allowed -Step $Step -Differences $result.Differences
        Complete-Change -Step $Step -Result $result
        if ($result.Reboot) { $script:Run.Unmet[$Step.Name] = 'PendingReboot' }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'ChangeFailed' }
    $result
}

# ---- detached.ps1

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

function Complete-CutRun {
    # At the start of the machine: a run that the restart cut off has ended, and its agent waits for the next guarded run.
    $script:Run['Cut'] = @()
    foreach ($status in Read-DetachedRun) {
        if ($status.state -ne 'running' -or $status.boot_id -eq (Get-BootId)) { continue }
        $script:Run.Cut += "detached\$($status.id)-network.snapshot"
        if ($status.purpose -eq 'Change') {
            Disable-NetworkAgent -Name $status.guard.agent -Why "a restart cut the run $($status.id) off"
        }
        # This is no failure: the next run continues.
        $status.told = $true
        Complete-DetachedRun -Status $status -Ended @{ State = 'failed'; Message = 'a restart cut it off' }
    }
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

function Restore-Hold {
    # Keeps an agent from starting that was kept from it before the start of the machine. Returns nothing.
    foreach ($hold in Get-Hold) { Disable-NetworkAgent -Name $hold.agent -Why $hold.why }
}

# ---- drive.ps1

function Invoke-Look {
    # What is fine goes out in one batch at the end: the fewest messages.
    $quiet = [Collections.Generic.List[string]]::new()
    try { $script:Run.Fence = Get-Fence } catch { New-FailedEnd -Caught $_; return }
    New-RunEvent
    foreach ($step in Get-ChosenStep) {
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = Get-LookResult -Step $step
        $line = New-StepEvent -Step $step -Result $result -Watch $watch
        if ($result.State -eq 'ok') { $quiet.Add($line) } else { $line }
    }
    $quiet.Add((New-EndEvent -Reason 'complete'))
    $quiet.ToArray()
}

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

function New-RunEvent {
    # The line of the first event: which machine this is, and which boot of it.
    $identity = Get-MachineIdentity
    New-EventLine -Fields @{
        event = 'run'; boot_id = $identity.BootId; smbios_uuid = $identity.Uuid; build = $identity.Build
        computer_name = $identity.Name; fence = $script:Run.Fence; node_ip = Get-NodeIp
    }
}

# ---- features.ps1

function Get-FeatureDifference {
    # Which features are not on. Asking DISM takes seconds; what stands there anyway is proof enough for Containers.
    param([string[]]$Features)
    foreach ($feature in $Features) {
        if ($feature -eq 'Containers' -and (Test-ContainerFeature)) { continue }
        $state = Get-FeatureState -Feature $feature
        if ($state -ne 'Enabled') { New-Difference -Key "feature:$feature" -What "feature $feature" -Is $state -Want 'Enabled' -Reboot }
        elseif ($feature -eq 'Containers' -and $script:Run.Mode -eq 'Change') {
            Write-StateJson -Name 'features.json' -Value @{ enabled = @($feature) }
        }
    }
}

function Test-ContainerFeature {
    # Whether Containers is on for certain: DISM has said so once, its services are there, nothing else that brings them
    # (Hyper-V, whose service is vmms) is, and no servicing waits for a restart, without which it does not go.
    $noted = @(Read-Item -Object (Read-StateJson -Name 'features.json') -Name 'enabled')
    if ($noted -notcontains 'Containers') { return $false }
    if (Test-RegistryKey -Path 'SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending') {
        return $false
    }
    $services = 'SYSTEM\CurrentControlSet\Services'
    (Test-RegistryKey -Path "$services\hns") -and (Test-RegistryKey -Path "$services\vmcompute") -and -not (Test-RegistryKey -Path "$services\vmms")
}

function Enable-Feature {
    # Turns the features on that are off, and asks for the restart.
    param([string[]]$Features, [string]$Source)
    foreach ($feature in $Features) {
        $state = Get-FeatureState -Feature $feature
        if ($null -eq $state) { Stop-Step -Id 'NoFeature' -Message "Windows knows no feature $feature" }
        if ($state -eq 'Enabled') { continue }
        Save-FormerValue -Kind 'Feature' -Key $feature -Value @{ name = $feature; state = $state }
        if ($state -ne 'EnablePending') { Enable-OneFeature -Feature $feature -Source $Source }
    }
    New-Reboot
}

# ---- file.ps1

function Get-PathHash {
    # SHA-256 of a file; nothing when it is absent or not believed (see Get-PathDoubt).
    param([string]$Path)
    if (-not (Test-OwnPath -Path $Path)) { return }
    $found = @{ Hash = $null }
    Invoke-Patient -File $Path -Work {
        $stream = Open-SharedFile -Path $Path
        try { $found.Hash = [Security.Cryptography.SHA256]::Create().ComputeHash($stream) } finally { $stream.Dispose() }
    }
    [BitConverter]::ToString($found.Hash).Replace('-', '').ToLowerInvariant()
}

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

function Get-FileDifference {
    # Text is null while it cannot be known. -ceq would pass over characters that have no width.
    param([string]$Path, [object]$Text, [switch]$Disrupts)
    $is = Read-FileText -Path $Path
    if ($null -ne $is -and $null -ne $Text -and $is.Equals($Text)) { return }
    New-Difference -Key "file:$Path" -What "file ${Path}: content" -Is (ConvertTo-TextSummary -Text $is) -Want (ConvertTo-TextSummary -Text $Text) `
        -Unknown:($null -eq $Text) -Disrupts:$Disrupts
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

function Test-FormerNote {
    # Whether a step, the current one unless it is named, has a note of this thing.
    param([string]$Kind, [string]$Key, [string]$Step = $script:Run.Step)
    foreach ($line in Get-FormerLine -Step $Step) { if ($line.kind -eq $Kind -and $line.key -eq $Key) { return $true } }
    $false
}

function Save-FormerValue {
    # Notes how a thing was, on the disk, before it is changed. Once: later ones would hold our own values.
    param([string]$Kind, [string]$Key, [object]$Value)
    if (Test-FormerNote -Kind $Kind -Key $Key) { return }
    $note = ConvertTo-Json -InputObject @{ kind = $Kind; key = $Key; value = $Value } -Depth 6 -Compress
    # On a line of its own, whatever became of the last one.
    Write-FileByte -Path (Get-FormerPath) -Bytes (ConvertTo-FileByte -Text "`n$note`n") -Mode 'Append'
}

# ---- foreign.ps1

function Test-ForeignService {
    # Whether a service of that name is there which winboot has neither made nor adopted.
    param([string]$Name, [string]$Description)
    $path = Get-ServicePath -Name $Name
    if (-not (Test-RegistryKey -Path $path) -or (Read-Registry -Path $path -Name 'Description') -ceq $Description) {
        return $false
    }
    -not (Test-FormerNote -Kind 'Service' -Key $Name -Step $Name)
}

function Get-ForeignTrace {
    # What kubeadm, AKS and EKS leave, and a kubeconfig of another cluster that winboot did not write. Nothing where
    # there is none.
    param([string]$Server)
    foreach ($path in @('C:\var\lib\kubelet\kubeadm-flags.env', 'C:\etc\kubernetes\kubelet.conf', 'C:\AzureData\CustomDataSetupScript.ps1',
            'C:\Program Files\Amazon\EKS\Start-EKSBootstrap.ps1')) {
        if ([IO.File]::Exists($path) -and -not (Test-FormerNote -Kind 'Service' -Key 'kubelet' -Step 'kubelet')) { $path }
    }
    $kubeconfig = $script:Node.kubeconfig
    $is = Read-KubeconfigServer -Path $kubeconfig
    if ($is -and $is -cne $Server -and -not (Test-FormerNote -Kind 'File' -Key $kubeconfig -Step 'kubelet-credentials')) {
        "$kubeconfig of $is"
    }
}

function Test-ForeignNode {
    # Faults for what makes this machine a node that is not winboot's. Services is a table of names and descriptions, as
    # winboot gives them; Server is the API server of the cluster to join.
    param([hashtable]$Services, [string]$Server)
    $agents = @(Get-ForeignAgent)
    # It starts its own kubelet again and again: there is nothing to adopt while it runs.
    foreach ($agent in $agents) {
        New-Fault -Id 'ForeignAgent' -Message "the service $agent makes this machine a node of another cluster"
    }
    if ($script:Run.Facts.Adopt -or $agents) { return }
    $found = @(
        foreach ($name in $Services.Keys | Sort-Object) {
            if (Test-ForeignService -Name $name -Description $Services[$name]) { "the service $name" }
        }
        Get-ForeignTrace -Server $Server
    )
    if ($found) {
        New-Fault -Id 'ForeignNode' -Message "this machine is a node that winboot did not make: $($found -join ', ')"
    }
}

# ---- file.ps1

function Save-FormerFile {
    # The copy first, then the note: with the note there is always a copy. Only once: a later one would be our own file.
    param([string]$Path)
    if (Test-FormerNote -Kind 'File' -Key $Path) { return }
    $former = @{ path = $Path; bytes = $null; kept = $null }
    if ([IO.File]::Exists($Path)) {
        if ([IO.FileInfo]::new($Path).Length -le 64KB) {
            # Nothing when it went away a moment ago: then there was no file.
            $content = Read-AnyFileByte -Path $Path
            if ($null -ne $content) { $former.bytes = [Convert]::ToBase64String($content) }
        }
        else {
            $former.kept = Get-StatePath -Name "former\files\$(Get-TextHash -Text $Path.ToLowerInvariant())"
            Copy-WholeFile -From $Path -To $former.kept
        }
    }
    Save-FormerValue -Kind 'File' -Key $Path -Value $former
}

function Set-FileText {
    # Writes a file after its former content was noted.
    param([string]$Path, [string]$Text)
    Save-FormerFile -Path $Path
    Write-FileText -Path $Path -Text $Text
}

# ---- folders.ps1

function Add-Folder {
    # Makes a folder that has its access rules from the first moment on.
    param([string]$Path, [switch]$Readable, [switch]$Ours)
    Save-FormerValue -Kind 'Folder' -Key $Path -Value @{ path = $Path; ours = [bool]$Ours; existed = $false }
    $security = [Security.AccessControl.DirectorySecurity]::new()
    $security.SetSecurityDescriptorSddlForm((Get-PrivateAccess -Folder -Readable:$Readable), 'Owner, Group, Access')
    [void][IO.Directory]::CreateDirectory($Path, $security)
}

function Remove-StrangeEntry {
    # What somebody else wrote into a watched folder would be run by SYSTEM: a file of his goes, and is kept for an undo.
    # A folder, or a file that he may only write to, gets the rules of all others there.
    param([object]$Entry, [switch]$Readable)
    if (-not $Entry.owned -or [IO.Directory]::Exists($Entry.path)) {
        Protect-Path -Path $Entry.path -Readable:$Readable
        return
    }
    Save-FormerAccess -Path $Entry.path
    Save-FormerFile -Path $Entry.path
    Remove-OldFile -Path $Entry.path
}

function Set-Folder {
    # Makes what is missing, and gives owner and access rules where others have too many rights.
    param([string[]]$Private, [string[]]$Readable, [string[]]$Ours, [string[]]$Watched)
    $wanted = $Private + $Readable
    foreach ($path in $wanted) { Assert-NoLink -Path $path }
    # A folder comes before those in it.
    foreach ($path in $wanted + @(Get-FolderAbove -Paths $wanted) | Sort-Object) {
        $closed = $Private -contains $path
        if (-not [IO.Directory]::Exists($path)) { Add-Folder -Path $path -Readable:(-not $closed) -Ours:($Ours -contains $path) }
        elseif (Test-FolderOpen -Path $path -Private:$closed -Above:($wanted -notcontains $path)) {
            Protect-Path -Path $path -Readable:(-not $closed)
        }
    }
    foreach ($path in $Watched) {
        foreach ($entry in Get-StrangeEntry -Path $path) {
            Remove-StrangeEntry -Entry $entry -Readable:($Private -notcontains $path)
        }
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

# ---- firewall.ps1

function Set-FirewallRule {
    # Makes the rules that are missing or differ (undone by Restore-FirewallRule).
    param([hashtable[]]$Rules)
    foreach ($rule in $Rules) {
        if (-not (Get-FirewallDifference -Rules $rule | Where-Object { -not $_.policy })) { continue }
        Save-FormerValue -Kind 'FirewallRule' -Key $rule.name -Value @{ name = $rule.name }
        Restore-FirewallRule -Former $rule
        $wanted = @{
            Name = $rule.name; DisplayName = "Kubernetes node: $($rule.why)"; Group = 'winboot'; Enabled = 'True'; Profile = 'Any'
            Direction = "$($rule.direction)bound"; Action = 'Allow'; Protocol = $rule.protocol
        }
        if ($rule.direction -eq 'in') { $wanted.LocalPort = $rule.ports } else { $wanted.RemotePort = $rule.ports }
        if ($rule.sources -notcontains 'Any') { $wanted.RemoteAddress = [string[]]$rule.sources }
        [void](New-NetFirewallRule @wanted)
    }
}

# ---- registry.ps1

function Set-RegistryValue {
    # Writes a value below HKEY_LOCAL_MACHINE and notes what was there.
    param([string]$Path, [string]$Name, [object]$Value, [string]$Kind = 'DWord')
    Save-FormerValue -Kind 'Registry' -Key "$Path\$Name" -Value (Read-RegistryNote -Path $Path -Name $Name)
    Write-Registry -Path $Path -Name $Name -Value $Value -Kind $Kind
}

# ---- state.ps1

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

# ---- naming.ps1

function Get-ComputerNameDifference {
    # A domain member is never renamed: its account would be left behind.
    param([string]$Want)
    $active = "$(Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName' -Name 'ComputerName')"
    if ($active -ieq $Want) { return }
    if ((Get-MachineIdentity).Domain) {
        New-Difference -Key 'computer-name' -What 'computer name' -Is "$active (domain member)" -Want $Want -Policy
    }
    else { New-Difference -Key 'computer-name' -What 'computer name' -Is $active -Want $Want -Reboot }
}

function Set-ComputerName {
    # Renames the machine and asks for the restart.
    param([string]$Name)
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    Save-FormerValue -Kind 'ComputerName' -Key 'name' -Value @{ name = (Read-Registry -Path "${names}ActiveComputerName" -Name 'ComputerName') }
    # One that waits for the restart would be refused a second time.
    if ((Read-Registry -Path "${names}ComputerName" -Name 'ComputerName') -ine $Name) {
        Rename-Computer -NewName $Name -Force -WarningAction SilentlyContinue
    }
    New-Reboot
}

# ---- preflight.ps1

function Get-PendingReboot {
    # Why a restart is pending that winboot did not ask for, in words; empty without one.
    $noted = Read-StateJson -Name 'reboot.json'
    if ($noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId) { return }
    $keys = 'SOFTWARE\Microsoft\Windows\CurrentVersion\'
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    $active = Read-Registry -Path "${names}ActiveComputerName" -Name 'ComputerName'
    $waiting = @(
        if (Test-RegistryKey -Path "${keys}Component Based Servicing\RebootPending") { 'servicing' }
        if (Test-RegistryKey -Path "${keys}WindowsUpdate\Auto Update\RebootRequired") { 'Windows Update' }
        if ($active -ine (Read-Registry -Path "${names}ComputerName" -Name 'ComputerName')) { 'a new computer name' }
    )
    $waiting -join ', '
}

function Get-PreflightNotice {
    # What is worth knowing and not winboot's to change: bad updates, a pending restart, other software, the clock.
    param([hashtable[]]$BadUpdates)
    $is = Get-Revision
    foreach ($update in $BadUpdates) {
        if ($is -lt $update.first -or $is -ge $update.fixed) { continue }
        New-Difference -Key "update:$($update.kb)" -What "Windows update $($update.kb)" -Is "revision ${is}: $($update.what)" `
            -Want "revision $($update.fixed) or later ($($update.fixed_kb))" -Policy
    }
    $pending = Get-PendingReboot
    if ($pending) { New-Difference -Key 'pending-restart' -What 'pending restart' -Is $pending -Want $null -Policy }
    $patching = Get-ServicingState
    if ($patching) { New-Difference -Key 'servicing' -What 'servicing in progress' -Is $patching -Want $null -Policy }
    $docker = Get-ServiceState -Name 'docker'
    if ($docker) { New-Difference -Key 'docker' -What 'competing software: service docker' -Is $docker -Want $null -Policy }
    foreach ($network in Get-HnsObject -Kind networks -Name 'nat') {
        New-Difference -Key 'nat-network' -What 'competing software: HNS network nat' -Is $network.Type -Want $null -Policy
    }
    $year = [DateTime]::UtcNow.Year
    if ($year -lt 2025) { New-Difference -Key 'clock' -What 'clock' -Is "the year $year" -Want 'the time of day' -Policy }
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

# ---- surroundings.ps1

function Get-SurroundingNotice {
    # What around this machine can break a node and is not winboot's: encryption, hypervisor port, scanners, teams.
    param([bool]$OwnMacs)
    $encryption = Get-DiskEncryption
    if ($encryption -ne 'on') {
        New-Difference -Key 'bitlocker' -What 'BitLocker' -Is $encryption -Want 'on: access rules keep no key on a copied disk' -Policy
    }
    # Pods on a bridge have MAC addresses of their own.
    $port = ''
    switch -Regex ((Get-MachineIdentity).Model) {
        'VMware' { $port = 'forged transmits, MAC address changes, and promiscuous mode or MAC learning accepted by the port group' }
        '^Virtual Machine' { $port = 'MacAddressSpoofing on, by Set-VMNetworkAdapter on the Hyper-V host' }
    }
    if ($OwnMacs -and $port) {
        New-Difference -Key 'hypervisor-port' -What 'hypervisor port: other MAC addresses' -Is 'not visible from inside' -Want $port -Policy
    }
    foreach ($name in Get-ScanFilter) {
        $what = "competing software: virus scanner $name"
        New-Difference -Key "scanner:$name" -What $what -Is 'present' -Want 'image layers left alone by it' -Policy
    }
    $teamed = @(Get-NetAdapter -InterfaceIndex (Get-NodeAddress).index -IncludeHidden |
            Where-Object { $_.InterfaceDescription -like '*Multiplexor*' })
    if ($teamed) {
        New-Difference -Key 'nic-team' -What 'competing software: NIC team' -Is 'LBFO' -Want 'one adapter: a virtual switch needs it' -Policy
    }
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

function Get-RecordDifference {
    # A record that is missing, cannot be read or is older than what somebody changed since. Interfaces of one team or switch share
    # a MAC address, and one that a switch took over has another GUID since: known is what the record has with this MAC and these
    # settings.
    if (-not (Get-NodeAddress)) { return }
    $known = @(Read-NetworkRecord | ForEach-Object { "$($_.mac) $(ConvertTo-InterfaceText -Interface $_)" })
    $what = 'record of the network settings'
    if ($known.Count -eq 0) { New-Difference -Key 'record' -What $what -Is $null -Want 'current'; return }
    foreach ($own in Get-OwnInterface) {
        $is = Read-InterfaceIdentity -Own $own
        if ($known -ccontains "$($is.mac) $(ConvertTo-InterfaceText -Interface $is)") { continue }
        New-Difference -Key "record:$($is.guid)" -What "${what}: $($is.name)" -Is 'older' -Want 'current'
    }
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

function Restore-StartRoute {
    # Routes that end with a start of the machine: that of a cloud's metadata service (169.254.169.254) is in no store, and those of an
    # interface end with its switch where that does not outlive the boot. They come back while the machine has the address they go out by.
    # With Ended only the latter.
    param([switch]$Ended)
    foreach ($was in Read-NetworkRecord) {
        $index = Find-Successor -Was $was
        if ($null -eq $index) { continue }
        $gone = -not (Test-CarryingInterface -Guid $was.guid)
        if ($Ended -and -not $gone) { continue }
        $routes = @($was.routes | Where-Object { $gone -or (-not $_.persistent -and (Test-CidrMember -Cidr '169.254.0.0/16' -Address $_.prefix.Split('/')[0])) })
        # Another way out is somebody's choice.
        if (@(Get-DefaultRoute).Count -gt 0) { $routes = @($routes | Where-Object { $_.prefix -ne '0.0.0.0/0' }) }
        $near = @(Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ } | ForEach-Object { "$($_.IPAddress)/$($_.PrefixLength)" })
        $routes = @($routes | Where-Object {
                $hop = $_.next_hop
                $hop -eq '0.0.0.0' -or $hop.Contains(':') -or ($near | Where-Object { Test-CidrMember -Cidr $_ -Address $hop })
            })
        Restore-InterfaceRoute -Was @{ routes = $routes } -Index $index
    }
}

function Update-NetworkRecord {
    # The record as somebody's changes have it. A run right after a start may be there before the startup task: what ended with that
    # start is no change of anybody's, and comes back first. Returns nothing.
    $known = Read-StateJson -Name 'network.json'
    if ($known -and (Read-Member -Object $known -Names 'boot_id') -ne (Get-BootId)) { Restore-StartRoute -Ended }
    Save-NetworkRecord
}

function Restore-BootNetwork {
    # At the start of the machine: an adapter that lost its address to a rewiring gets it back. The start may have cut a
    # run off between two addresses, or before routes and DNS servers: its interfaces get all of it back, also where
    # Windows dropped the switch and gave the adapter its address. What a person changed stays.
    $intact = {
        $lost = @(Get-LostInterface)
        $cut = @(Get-CutRecord | Where-Object { -not (Test-OtherAddress -Was $_) })
        $taken = @{ adapters = $lost + $cut }
        (Invoke-NetworkRestore -Snapshot $taken) -and $lost.Count -eq 0 -and -not (Get-MissingAddress -Snapshot $taken)
    }
    if (Wait-Until -Test $intact -Seconds 120 -Pause 2000) { Restore-StartRoute }
}

function Update-Snapshot {
    # How the interfaces are now. One that a switch took since it was known is as it was, and what took it is left out, until it has
    # all of it: it is one of Settled, or somebody gave it another address.
    param([object]$Known, [object[]]$Settled = @())
    $fresh = Read-NetworkSnapshot
    $here = @($fresh.adapters | ForEach-Object { $_.guid })
    $done = @($Settled | ForEach-Object { $_.guid })
    $kept = @($Known.adapters | Where-Object { $here -notcontains $_.guid } | Where-Object {
            $settled = $done -contains $_.guid -or (Test-OtherAddress -Was $_)
            -not $settled -or -not (Get-SuccessorGuid -Adapters $_ | Where-Object { $here -contains $_ })
        })
    $taken = @(Get-SuccessorGuid -Adapters $kept)
    $fresh.adapters = @($fresh.adapters | Where-Object { $taken -notcontains $_.guid }) + $kept
    $fresh
}

function Protect-Address {
    # Watches the interfaces while somebody makes a network on their adapter: what a switch takes from an interface is put
    # on its successor. It goes on until Awaited is false for two minutes, for Seconds at most. Returns nothing.
    param([scriptblock]$Awaited, [int]$Seconds)
    $known = Get-CurrentSnapshot
    if (-not ($known.adapters | Where-Object { Test-OwnSetting -Interface $_ })) { return }
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    $calm = [DateTime]::UtcNow.AddSeconds(120)
    for ($round = 0; [DateTime]::UtcNow -lt $until -and [DateTime]::UtcNow -lt $calm; $round++) {
        $waiting = $true
        try {
            $moved = @($known.adapters | Where-Object { Test-MovedInterface -Was $_ })
            $waiting = $moved.Count -gt 0
            if ($waiting) {
                Restore-NetworkSnapshot -Snapshot @{ adapters = $moved }
                if (-not (Get-MissingAddress -Snapshot @{ adapters = $moved })) { $known = Update-Snapshot -Known $known -Settled $moved }
            }
            elseif ($round % 5 -eq 0) {
                # The settings come first: where the rest of a round fails, they are known.
                $known = Update-Snapshot -Known $known
                $waiting = $true
                # What makes the network may be what did not start.
                [void]@(Start-FallenService)
                $script:Run.Cache = @{}
                $waiting = & $Awaited
            }
        }
        # HNS answers nobody for a while, or somebody holds a file: the next round may be the one that is needed.
        catch { Add-GuardTrouble -Caught $_ }
        if ($waiting) { $calm = [DateTime]::UtcNow.AddSeconds(120) }
        Start-Sleep -Seconds 2
    }
    Save-NetworkRecord
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

function Test-StopEndsPod {
    # Whether a stop of this service would end the pods of this machine.
    # NSSM stops a program by a Ctrl-C to every process on its console (kill_console of its process.cpp), and the shims of
    # containerd are on that console: with them all pods end, unless NSSM was told not to when it started containerd.
    param([string]$Name)
    if ($Name -ne 'containerd' -or (Get-ServiceState -Name $Name) -ne 'Running' -or -not (Test-NssmService -Name $Name)) {
        return $false
    }
    1 -ne (Read-ServiceParameter -Service $Name -Name 'AppStopMethodSkip') -or (Test-RestartNeed -Name $Name)
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

function Get-SlowStart {
    # How many seconds the last slow start of a service took; nothing when there was none since the machine started.
    param([string]$Name)
    $noted = Read-StateJson -Name "slow-$Name.json"
    if ($null -ne $noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId) { $noted.seconds }
}

function Get-ServiceDifference {
    # A difference for each part of a service that is not as Service wants it: its definition, what NSSM reads, and
    # whether it runs and runs with it. Nothing where all is right.
    param([hashtable]$Service)
    $name = $Service.name
    $flags = @{ Disrupts = (Test-RestartDisruption -Name $name); Disturbs = (Test-StopEndsPod -Name $name) }
    $is = Read-Service -Name $name
    $what = "service ${name}:"
    $unknown = $Service.unknown -contains 'command_line'
    Compare-Wanted -Key 'service:command-line' -What "$what command line" -Is $is.command_line -Want $Service.command_line -Unknown:$unknown @flags
    Compare-Wanted -Key 'service:start' -What "$what start type" -Is $is.start -Want $Service.start
    Compare-Wanted -Key 'service:depends' -What "$what depends on" -Is $is.depends -Want $Service.depends -IgnoreCase
    Compare-Wanted -Key 'service:account' -What "$what account" -Is $is.account -Want 'LocalSystem' -IgnoreCase @flags
    $unknown = $Service.unknown -contains 'environment'
    Compare-Wanted -Key 'service:environment' -What "$what environment" -Is $is.environment -Want $Service.environment -Unknown:$unknown @flags
    Compare-Wanted -Key 'service:recovery' -What "$what recovery" -Is $is.recovery -Want (ConvertTo-Recovery -Service $Service)
    # 0: only after a crash. A kubelet that is told to stop may end with an error.
    if ($null -ne $is.recovery) {
        Compare-Wanted -Key 'service:recovery-after-error' -What "$what recovery after a stop with an error" -Is $is.failure_flag -Want 0
    }
    foreach ($key in $Service.parameters.Keys | Sort-Object) {
        $value = Read-ServiceParameter -Service $name -Name $key
        $unknown = $Service.unknown -contains $key
        Compare-Wanted -Key "service:parameter:$key" -What "$what $key" -Is $value -Want $Service.parameters[$key] -Unknown:$unknown @flags
    }
    if (-not (Test-NssmWanted -Service $Service) -and (Test-NssmService -Name $name)) {
        New-Difference -Key 'service:nssm' -What "$what values of NSSM" -Is 'present' -Want $null @flags
    }
    if (Test-RestartNeed -Name $name) {
        New-Difference -Key 'service:in-use' -What "$what configuration in use" -Is 'older' -Want 'current' @flags
    }
    Compare-Wanted -Key 'service:state' -What "$what state" -Is (Get-ServiceState -Name $name) -Want 'Running'
    $slow = Get-SlowStart -Name $name
    if ($slow) { New-Difference -Key 'service:slow-start' -What "$what time to start" -Is "$slow seconds" -Want 'at most 30 seconds' -Policy }
}

function Save-FormerService {
    # Notes how a service was. Returns nothing. A step that has more to note takes this one first, and makes the service
    # last: as soon as that is there it may start at a boot, and then others' things cannot be told from its own.
    param([string]$Name)
    Save-FormerValue -Kind 'Service' -Key $Name -Value (Read-FormerService -Name $Name)
}

# ---- settings.ps1

function Set-PageFile {
    # Sets the page file and asks for the restart.
    param([object]$MiB)
    if (-not (Get-PageFileDifference -MiB $MiB)) { return }
    $value = if ($MiB -is [string]) { '?:\pagefile.sys' } else { "C:\pagefile.sys $MiB $MiB" }
    Set-RegistryValue -Path 'SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management' -Name 'PagingFiles' -Value @($value) -Kind 'MultiString'
    New-Reboot
}

# ---- pod_network.ps1

function Start-Rewiring {
    # Notes which networks were there before, and starts the guarded run.
    param([hashtable]$Wanted, [object]$Guard)
    Assert-Uplink -Wanted $Wanted
    foreach ($one in @($Wanted.first, $Wanted) | Where-Object { $_ }) {
        $existed = @(Get-HnsObject -Kind networks -Name $one.name).Count -gt 0
        Save-FormerValue -Kind 'PodNetwork' -Key $one.name -Value @{ name = $one.name; agent = $one.agent; existed = $existed }
    }
    # What its parts may take: the agent's end 120, load balancers and networks 180, an address 60, the first switch 180, the agent
    # and its network 240, and some air.
    Start-DetachedRun -Guard $Guard -Seconds 840
}

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

# ---- ipam.ps1

function Read-StoreEntry {
    # One entry of an IPAM store: its address, and who holds it on which interface.
    param([string]$Path)
    $lines = @("$(Read-FileText -Path $Path)" -split '\r?\n') + @('', '')
    @{ path = $Path; address = [IO.Path]::GetFileName($Path).Replace('_', ':'); owner = $lines[0]; interface = $lines[1] }
}

function Get-StaleEntry {
    # Reservations of pods that are gone: after a hard restart the plug-in is never asked to give addresses back.
    # containerd lists a sandbox seconds after its address is taken (sandbox_run.go: setupPodNetwork, StartSandbox,
    # sandboxStore.Add), so a reservation of the last ten minutes may be of a pod that is being created. Nothing where
    # there is none.
    param([string]$Store, [string[]]$Cidrs)
    $recent = [DateTime]::UtcNow.AddMinutes(-10)
    $sandboxes = $null
    foreach ($path in Get-StoreFile -Store $Store) {
        $entry = Read-StoreEntry -Path $path
        if (-not ($Cidrs | Where-Object { Test-CidrMember -Cidr $_ -Address $entry.address })) { $entry; continue }
        # A container id; anything else is somebody's reservation.
        if ($entry.owner -notmatch '^[0-9a-f]{64}$') { continue }
        if ([IO.File]::GetLastWriteTimeUtc($path) -gt $recent) { continue }
        # Without an answer nothing is known to be stale.
        if ($null -eq $sandboxes) { $sandboxes = @(Invoke-Crictl -Arguments @('pods', '--quiet', '--no-trunc')) }
        if ($sandboxes.Count -gt 0 -and $sandboxes[0] -notmatch $entry.owner) { $entry }
    }
}

# ---- logs.ps1

function Get-LogTaskDifference {
    # How script and task of the log rotation differ from what is wanted.
    param([string]$Text)
    Get-FileDifference -Path (Get-StatePath -Name 'logs.ps1') -Text (ConvertTo-ScriptFile -Text $Text)
    Get-TaskDifference -Name 'logs' -Task (New-LogTask -Text $Text)
}

function Set-LogTask {
    # Writes the script and registers the task.
    param([string]$Text)
    Save-FormerValue -Kind 'LogTask' -Key 'logs' -Value @{ name = 'logs' }
    Write-FileText -Path (Get-StatePath -Name 'logs.ps1') -Text (ConvertTo-ScriptFile -Text $Text)
    Set-Task -Name 'logs' -Task (New-LogTask -Text $Text)
}

# ---- hash.ps1

function Get-HashMemory {
    # The table of what is remembered: path to mark and sha256, read once a run.
    if (-not $script:Run.ContainsKey('Hashes')) {
        $script:Run.Hashes = @{}
        $script:Run.HashesDiffer = $false
        foreach ($one in Read-Item -Object (Read-StateJson -Name 'hashes.json') -Name 'files') {
            $script:Run.Hashes[$one.path] = @{ mark = $one.mark; sha256 = $one.sha256 }
        }
    }
    $script:Run.Hashes
}

# ---- layers.ps1

function Save-FormerLayer {
    # Notes that there were no layers below containerd's root yet: all that will be there may go with an undo.
    param([string]$Root)
    if (-not [IO.Directory]::Exists((Get-LayerStore -Root $Root))) {
        Save-FormerValue -Kind 'Layer' -Key $Root -Value @{ root = $Root }
    }
}

# ---- hash.ps1

function Get-KnownHash {
    # SHA-256 of a file, or nothing when it is absent or not believed. It is the remembered one while size and both times are what they were:
    # only administrators can write there, and a program that is put in the place of another brings times of its own.
    param([string]$Path)
    if (-not (Test-OwnPath -Path $Path)) { return }
    $file = [IO.FileInfo]::new($Path)
    $mark = "$($file.Length) $($file.LastWriteTimeUtc.Ticks) $($file.CreationTimeUtc.Ticks)"
    $memory = Get-HashMemory
    if ($memory.ContainsKey($Path) -and $memory[$Path].mark -eq $mark) { return $memory[$Path].sha256 }
    $hash = Get-PathHash -Path $Path
    if ($null -eq $hash) { return }
    $memory[$Path] = @{ mark = $mark; sha256 = $hash }
    $script:Run.HashesDiffer = $true
    $hash
}

# ---- ipam.ps1

function Get-ReservationDifference {
    # The reserved addresses that are missing, and those that pods left behind.
    param([string]$Store, [hashtable[]]$Reservations)
    foreach ($reservation in $Reservations) {
        $holder = "$($reservation.holder) $($reservation.interface)"
        $address = Expand-Known -Text $reservation.address
        $want = if ($address) { "${address}: $holder" }
        $is = $null
        if ($address -and [IO.File]::Exists((Get-StorePath -Store $Store -Address $address))) {
            $entry = Read-StoreEntry -Path (Get-StorePath -Store $Store -Address $address)
            $is = "${address}: $($entry.owner) $($entry.interface)"
        }
        Compare-Wanted -Key "reserved:$holder" -What "reserved address for $holder" -Is $is -Want $want -Unknown:(-not $address)
    }
    $cidrs = @(Get-PodCidr)
    if (-not $cidrs) { return }
    foreach ($entry in Get-StaleEntry -Store $Store -Cidrs $cidrs) {
        $holder = "$($entry.owner) $($entry.interface)"
        New-Difference -Key "leaked:$($entry.address)" -What "leaked address $($entry.address)" -Is $holder -Want $null
    }
}

function Set-Reservation {
    # Removes entries that no pod holds any more, and reserves the wanted addresses.
    param([string]$Store, [hashtable[]]$Reservations)
    [void](Assert-Known -Text '<<pod_cidr>>')
    [void][IO.Directory]::CreateDirectory($Store)
    # Nobody would want it back, so it is not noted.
    foreach ($entry in Get-StaleEntry -Store $Store -Cidrs @(Get-PodCidr)) { Remove-File -Path $entry.path }
    foreach ($reservation in $Reservations) {
        $address = Assert-Known -Text $reservation.address
        $path = Get-StorePath -Store $Store -Address $address
        if ([IO.File]::Exists($path) -and (Read-StoreEntry -Path $path).owner -match '^[0-9a-f]{64}$') {
            Stop-Step -Id 'AddressInUse' -Message "a pod has the address $address, which is kept for $($reservation.holder) $($reservation.interface)"
        }
        Set-FileText -Path $path -Text "$($reservation.holder)`r`n$($reservation.interface)"
    }
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

function Get-RenderedFilesDifference {
    # The files whose content is not the rendered one. Service: it reads them only when it starts.
    param([hashtable]$Files, [string]$Service = '')
    $disrupts = $Service -ne '' -and (Test-RestartDisruption -Name $Service)
    foreach ($path in $Files.Keys | Sort-Object) {
        Get-FileDifference -Path $path -Text (Expand-Known -Text $Files[$path]) -Disrupts:$disrupts
    }
}

function Set-RenderedFile {
    # Writes the files that differ, and notes that the service has to be restarted.
    param([hashtable]$Files, [string]$Service = '')
    foreach ($path in $Files.Keys | Sort-Object) {
        if (-not (Get-RenderedFilesDifference -Files @{ $path = $Files[$path] })) { continue }
        if ($Service -ne '') { Save-RestartNeed -Name $Service }
        Set-FileText -Path $path -Text (Assert-Known -Text $Files[$path])
    }
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

# ---- pod_network.ps1

function Get-NetworkFault {
    # How a network that is there differs. Nothing where all is as wanted.
    param([object]$Network, [hashtable]$Wanted, [string]$What, [string]$Key)
    $flags = @{ Disrupts = $true; Disturbs = $true }
    Compare-Wanted -Key "${Key}:type" -What "${What}: type" -Is $Network.Type -Want $Wanted.type -IgnoreCase @flags
    $is = @(Read-Item -Object $Network -Name 'Subnets' | ForEach-Object {
            "$(Read-Member -Object $_ -Names 'AddressPrefix') via $(Read-Member -Object $_ -Names 'GatewayAddress')"
        })
    $want = @($Wanted.subnets | ForEach-Object { Complete-Text -Text "$($_.prefix) via $($_.gateway)" })
    $unknown = @($Wanted.subnets | Where-Object { -not (Test-KnownText -Text "$($_.prefix) $($_.gateway)") }).Count -gt 0
    Compare-Wanted -Key "${Key}:subnets" -What "${What}: subnets" -Is $is -Want $want -Unknown:$unknown -IgnoreCase @flags
    Compare-Wanted -Key "${Key}:adapter" -What "${What}: adapter" -Is (Get-CarrierName -Network $Network) -Want (Get-WantedCarrier) @flags
    Compare-Wanted -Key "${Key}:management-address" -What "${What}: management address" -Is (Get-ManagementAddress -Network $Network) `
        -Want (Complete-Text -Text '<<node_ip>>') -Unknown:(-not (Test-KnownText -Text '<<node_ip>>')) @flags
    if ($Wanted.vni -ne 0) {
        Compare-Wanted -Key "${Key}:vni" -What "${What}: VNI" -Is (Get-NetworkVni -Network $Network) -Want $Wanted.vni @flags
    }
}

function Get-HnsNetworkDifference {
    # One HNS network: that it is there once, and as wanted. Key is the first part of the differences' keys.
    param([hashtable]$Wanted, [string]$Key)
    $networks = @(Get-HnsObject -Kind networks -Name $Wanted.name)
    $what = "HNS network $($Wanted.name)"
    if ($networks.Count -eq 1) { Get-NetworkFault -Network $networks[0] -Wanted $Wanted -What $what -Key $Key; return }
    $is = if ($networks.Count -gt 1) { "$($networks.Count) of that name" }
    New-Difference -Key "${Key}:present" -What $what -Is $is -Want $Wanted.type -Disrupts
}

function Get-ForwardingAddress {
    # The addresses whose interfaces have to forward packets to the pods. Nothing where there is none.
    param([hashtable]$Wanted)
    if ($Wanted.endpoint -eq '') { return }
    foreach ($text in @('<<pod_endpoint>>', '<<node_ip>>', $Wanted.endpoint_v6)) {
        $address = Expand-Known -Text $text
        if ($address) { $address }
    }
}

function Get-HostEndpointDifference {
    # What differs of the host's own endpoint in the pod network.
    param([hashtable]$Wanted)
    $what = "HNS endpoint $($Wanted.endpoint)"
    $endpoints = @(Get-HnsObject -Kind endpoints -Name $Wanted.endpoint)
    $address = Complete-Text -Text '<<pod_endpoint>>'
    $is = if ($endpoints) { "$(Read-Member -Object $endpoints[0] -Names 'IPAddress')" }
    Compare-Wanted -Key 'endpoint:address' -What $what -Is $is -Want $address -Unknown:(-not (Test-KnownText -Text '<<pod_endpoint>>')) -Disrupts
    if ($is -ne $address) { return }
    if (-not (Find-Address -Ip $address)) {
        New-Difference -Key 'endpoint:attached' -What "${what}: attached to the host" -Is 'no' -Want 'yes' -Disrupts
    }
    foreach ($one in Get-ForwardingAddress -Wanted $Wanted) {
        foreach ($interface in Find-Interface -Address $one) {
            Compare-Wanted -Key "forwarding:$one" -What "forwarding on the interface of $one" -Is $interface.Forwarding.ToString() -Want 'Enabled'
        }
    }
}

function Enable-Forwarding {
    # Turns forwarding on where it is off (undone by Restore-Forwarding).
    param([hashtable]$Wanted)
    foreach ($address in Get-ForwardingAddress -Wanted $Wanted) {
        foreach ($interface in Find-Interface -Address $address) {
            if ($interface.Forwarding.ToString() -ne 'Disabled') { continue }
            Save-FormerValue -Kind 'Forwarding' -Key $address -Value @{ address = $address }
            Set-NetIPInterface -InterfaceIndex $interface.InterfaceIndex -AddressFamily $interface.AddressFamily -Forwarding Enabled
        }
    }
}

function Test-WrongNetwork {
    # Whether the HNS network itself is missing or wrong. While the API server is away, what it alone knows is no fault.
    param([hashtable]$Wanted)
    @(Get-HnsNetworkDifference -Wanted $Wanted -Key 'network' | Where-Object { -not $_.unknown }).Count -gt 0
}

# ---- own_network.ps1

function New-NetworkRequest {
    # The request by which HNS makes the wanted network on the adapter Uplink.
    param([hashtable]$Wanted, [string]$Uplink)
    $subnets = foreach ($subnet in $Wanted.subnets) {
        $one = @{
            AddressPrefix  = Assert-Known -Text $subnet.prefix
            GatewayAddress = Assert-Known -Text $subnet.gateway
        }
        if ($Wanted.vni -ne 0) { $one.Policies = @(@{ Type = 'VSID'; VSID = $Wanted.vni }) }
        $one
    }
    @{ Name = $Wanted.name; Type = $Wanted.type; NetworkAdapterName = $Uplink; Subnets = @($subnets) }
}

function Set-HostEndpoint {
    # The host's endpoint in the pod network. It gets no gateway: the host has its own way out.
    param([hashtable]$Wanted)
    Wait-ManagementAddress -Wanted $Wanted
    $network = @(Get-HnsObject -Kind networks -Name $Wanted.name)[0]
    $address = Assert-Known -Text '<<pod_endpoint>>'
    $endpoint = $null
    foreach ($found in Get-HnsObject -Kind endpoints -Name $Wanted.endpoint) {
        if ($found.IPAddress -eq $address -and $found.VirtualNetwork -eq $network.ID) { $endpoint = $found; continue }
        Remove-HnsObject -Kind endpoints -Id $found.ID
    }
    if ($null -eq $endpoint) {
        $request = @{ Name = $Wanted.endpoint; VirtualNetwork = $network.ID; IPAddress = $address; GatewayAddress = '0.0.0.0' }
        if ($Wanted.endpoint_v6 -ne '') {
            $request.IPv6Address = Assert-Known -Text $Wanted.endpoint_v6
            $request.GatewayAddressV6 = '::'
        }
        $endpoint = New-HnsObject -Kind endpoints -Request $request
    }
    Connect-HostEndpoint -Id $endpoint.ID -Address $address
}

# ---- known.ps1

function Get-Known {
    # What only this machine and its Node object can tell: place to value.
    Get-Cached -Name 'Known' -Read { Read-Known }
}

# ---- pod_network.ps1

function Get-SubnetFileDifference {
    # A difference where flannel's file names another subnet than the Node has, or none.
    param([string]$Path)
    $match = [regex]::Match("$(Read-FileText -Path $Path)", '(?m)^FLANNEL_SUBNET=(\S+)')
    $is = if ($match.Success) { $match.Groups[1].Value }
    $known = Get-Known
    $want = $null
    if ($known.ContainsKey('pod_cidr')) { $want = "$($known.pod_gateway)/$($known.pod_cidr.Split('/')[1])" }
    Compare-Wanted -Key 'subnet-file' -What "file ${Path}: subnet" -Is $is -Want $want -Unknown:($null -eq $want) -Disrupts
}

function Get-PodNetworkDifference {
    # The HNS network, the host's endpoint and flannel's file, the first switch below, and an agent that is kept from starting.
    param([hashtable]$Wanted)
    Get-HnsNetworkDifference -Wanted $Wanted -Key 'network'
    if ($Wanted.endpoint -ne '') { Get-HostEndpointDifference -Wanted $Wanted }
    if ($Wanted.subnet_env -ne '') { Get-SubnetFileDifference -Path $Wanted.subnet_env }
    if ($Wanted.first) { Get-HnsNetworkDifference -Wanted $Wanted.first -Key 'first-switch' }
    if ($Wanted.agent -eq '') { return }
    foreach ($hold in Get-Hold) {
        New-Difference -Key 'agent:held' -What "service $($hold.agent): kept from starting" -Is $hold.why -Want $null
    }
}

function Test-PodNetwork {
    # Nothing is left that only making it anew can mend.
    param([hashtable]$Wanted)
    -not (Get-PodNetworkDifference -Wanted $Wanted | Where-Object { $_.disrupts })
}

function Wait-RunningAgent {
    # Gives an agent that runs the time to correct its network by itself.
    param([hashtable]$Wanted, [int]$Seconds)
    $clear = {
        $script:Run.Cache = @{}
        (Get-ServiceState -Name $Wanted.agent) -ne 'Running' -or (Test-RestartNeed -Name $Wanted.agent) -or (Test-PodNetwork -Wanted $Wanted)
    }
    [void](Wait-Until -Test $clear -Seconds $Seconds -Pause 2000)
}

function Wait-PodNetwork {
    # Returns when the network is as wanted, or stops the step with what is missing.
    param([hashtable]$Wanted, [int]$Seconds)
    $stands = {
        Restore-Uplink
        $script:Run.Cache = @{}
        Assert-Carrier -Wanted $Wanted
        Test-PodNetwork -Wanted $Wanted
    }
    if (Wait-Until -Test $stands -Seconds $Seconds) { return }
    $left = @(Get-PodNetworkDifference -Wanted $Wanted | Where-Object { $_.disrupts } |
            ForEach-Object { "$($_.what) is $(if ($_.is) { $_.is } else { 'missing' })" })
    Stop-Step -Id 'NoPodNetwork' -Message "not as wanted after $Seconds seconds: $($left -join '; ')"
}

# ---- own_network.ps1

function New-PodNetwork {
    # Makes the network and the host's endpoint in it, or corrects them, and waits until both are as wanted.
    param([hashtable]$Wanted, [int]$Seconds)
    $address = Wait-NodeAddress
    if (Test-WrongNetwork -Wanted $Wanted) {
        Remove-PodNetwork -Name $Wanted.name
        [void](New-HnsObject -Kind networks -Request (New-NetworkRequest -Wanted $Wanted -Uplink (Get-UplinkName -Address $address)))
    }
    if ($Wanted.endpoint -ne '') { Set-HostEndpoint -Wanted $Wanted }
    Wait-PodNetwork -Wanted $Wanted -Seconds $Seconds
}

# ---- known.ps1

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

# ---- kube_proxy.ps1

function Wait-KubeProxy {
    # A new start forgets an earlier network.
    param([string]$Name, [string]$Health, [int]$Seconds)
    if (Wait-Until -Test { (Read-HttpStatus -Url $Health) -eq 200 } -Seconds $Seconds) { return }
    Stop-RunningService -Name $Name
    Start-CurrentService -Name $Name
    if (Wait-Until -Test { (Read-HttpStatus -Url $Health) -eq 200 } -Seconds $Seconds) { return }
    Stop-Step -Id 'KubeProxyUnwell' -Message "kube-proxy runs but does not serve: $Health answers $(Read-HttpStatus -Url $Health)"
}

# ---- logs.ps1

function Invoke-LogRotation {
    # All that the task carries. Endless: logs whose writer never begins a new one. What another program holds open waits
    # for the next hour.
    param([string[]]$Logs, [string[]]$Endless, [long]$MaxBytes, [int]$MaxFiles)
    foreach ($path in $Logs) {
        $folder = [IO.Path]::GetDirectoryName($path)
        if (-not [IO.Directory]::Exists($folder)) { continue }
        # SYSTEM would cut off, or delete, what a link of somebody else leads to.
        $doubt = @(Get-FolderDoubt -Path $folder -Adding; Get-PathDoubt -Path $path) | Where-Object { $_ } | Select-Object -First 1
        if ($doubt) { Write-Warning -Message $doubt; continue }
        $stem = [IO.Path]::GetFileNameWithoutExtension($path)
        if ($Endless -contains $path -and [IO.File]::Exists($path) -and [IO.FileInfo]::new($path).Length -gt $MaxBytes) {
            try {
                # The writer keeps the file open: its text is copied and cut off. What it writes in between is lost, as with
                # copytruncate of logrotate ("some logging data might be lost", logrotate(8)).
                $file = [IO.File]::Open($path, 'Open', 'ReadWrite', 'ReadWrite')
                try {
                    # A zero byte: cut off before, and its writer does not append.
                    if ($file.ReadByte() -ne 0) {
                        $file.Position = 0
                        $stamp = [DateTime]::UtcNow.ToString('yyyyMMddTHHmmss', [Globalization.CultureInfo]::InvariantCulture)
                        $kept = [IO.File]::Create([IO.Path]::Combine($folder, "$stem-$stamp.log"))
                        try { $file.CopyTo($kept) } finally { $kept.Dispose() }
                        $file.SetLength(0)
                    }
                }
                finally { $file.Dispose() }
            }
            catch [IO.IOException], [UnauthorizedAccessException] { Write-Warning -Message $_.Exception.Message }
        }
        # Whoever begins a new log names the old one after its time: stem-20260102T030405.log, or with the time behind .log.
        $dated = "^$([regex]::Escape($stem))($([regex]::Escape([IO.Path]::GetExtension($path))))?[-.]\d{8}"
        $old = @([IO.Directory]::GetFiles($folder, "$stem*") | Where-Object { $_ -ne $path -and [IO.Path]::GetFileName($_) -match $dated } |
                Sort-Object -Property { [IO.File]::GetLastWriteTimeUtc($_) } -Descending | Select-Object -Skip $MaxFiles)
        foreach ($one in $old) {
            try { [IO.File]::Delete($one) }
            catch [IO.IOException], [UnauthorizedAccessException] { Write-Warning -Message $_.Exception.Message }
        }
    }
}

function Get-LogScript {
    # The text of the script that the log task runs: the function above, what it uses, and one call of it.
    param([string[]]$Logs, [string[]]$Endless, [long]$MaxBytes, [int]$MaxFiles)
    $functions = foreach ($name in @('Read-Access', 'Test-Trusted', 'Test-Link', 'Test-HardLink', 'Get-StrangeWriter', 'Get-StrangeReplacer',
            'Get-PathMemory', 'Get-FolderDoubt', 'Get-LinkDoubt', 'Read-PathDoubt', 'Get-PathDoubt', 'Invoke-LogRotation')) {
        "function $name {`n$((Get-Command -Name $name -CommandType Function).ScriptBlock)`n}`n"
    }
    $call = "Invoke-LogRotation -Logs $(ConvertTo-ListText -Texts $Logs) -Endless $(ConvertTo-ListText -Texts $Endless) -MaxBytes $MaxBytes -MaxFiles $MaxFiles"
    "$($functions -join '')$call`n"
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

function Get-RegistrationDifference {
    # What is missing until the node is registered: its Node, its pod network, its serving certificate.
    param([string]$ServingCertificate, [switch]$NeedsPodCidr)
    $node = Get-NodeObject
    $what = "node $($script:Node.node):"
    if (-not $node) { New-Difference -Key 'node:registered' -What "$what registered" -Is $null -Want 'yes' }
    else { Compare-Wanted -Key 'node:machine' -What "$what machine" -Is $node.SystemUuid -Want (Get-MachineIdentity).Uuid -IgnoreCase }
    if ($NeedsPodCidr -and -not (Get-PodCidr)) { New-Difference -Key 'node:pod-cidr' -What "$what pod CIDR" -Unknown }
    if ($ServingCertificate -and -not (Test-CurrentCertificate -Path $ServingCertificate)) {
        New-Difference -Key 'kubelet:serving-certificate' -What 'kubelet serving certificate' -Is $null -Want 'issued by the cluster'
    }
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

function Wait-Registration {
    # Returns when the node is registered; restarts the kubelet once where it lost its Node; then stops the step.
    param([string]$ClientCertificate, [string]$ServingCertificate, [switch]$NeedsPodCidr, [int]$Seconds)
    $wanted = @{ ServingCertificate = $ServingCertificate; NeedsPodCidr = $NeedsPodCidr }
    $registered = {
        $script:Run.Cache = @{}
        -not (Get-RegistrationDifference @wanted)
    }
    if (Wait-Until -Test $registered -Seconds 30 -Pause 2000) { return }
    # A kubelet cares for its Node and its serving certificate only when it starts.
    $lost = { $null -eq (Get-NodeObject) -or ($ServingCertificate -and -not (Test-CurrentCertificate -Path $ServingCertificate)) }
    $restart = { (Test-CurrentCertificate -Path $ClientCertificate) -and (& $lost) }
    if (Wait-Until -Test { (& $registered) -or (& $restart) } -Seconds ($Seconds - 30) -Pause 2000) {
        if (& $registered) { return }
        Stop-RunningService -Name 'kubelet'
        Start-CurrentService -Name 'kubelet'
        if (Wait-Until -Test $registered -Seconds ($Seconds - 30) -Pause 2000) { return }
    }
    $left = @(Get-RegistrationDifference @wanted)
    $message = "not there after $Seconds seconds: $(@($left | ForEach-Object { $_.what }) -join '; ')"
    if (-not (Test-CurrentCertificate -Path $ClientCertificate)) { Stop-Step -Id 'NoClientCertificate' -Message $message }
    if ($left.Count -eq 1 -and $left[0].key -eq 'kubelet:serving-certificate') {
        Stop-Step -Id 'ServingCsrPending' -Message $message
    }
    if ($left.Count -eq 1 -and $left[0].key -eq 'node:pod-cidr') { Stop-Step -Id 'NoPodCidr' -Message $message }
    Stop-Step -Id 'NotRegistered' -Message $message
}

# ---- pod_network.ps1

function Start-NetworkAgent {
    # Makes the first switch where there is one, on the adapter named, then lets the agent make its network with nothing to lose.
    param([hashtable]$Wanted, [int]$Seconds)
    Save-RestartNeed -Name 'kube-proxy'
    Disable-NetworkAgent -Name $Wanted.agent -Why 'a rewiring is under way'
    # The agent would keep one with the right subnet.
    if (Test-WrongNetwork -Wanted $Wanted) { Remove-PodNetwork -Name $Wanted.name }
    [void](Wait-NodeAddress)
    if ($Wanted.first) { New-PodNetwork -Wanted $Wanted.first -Seconds 120 }
    # Until this run has ended well the agent does not start by itself.
    Invoke-ServiceControl -Arguments @('config', $Wanted.agent, 'start=', 'demand')
    Start-CurrentService -Name $Wanted.agent
    Wait-PodNetwork -Wanted $Wanted -Seconds $Seconds
}

# ---- ports.ps1

function Set-PortRange {
    # Sets the range of client ports for TCP and UDP (undone by Restore-PortRange).
    param([int]$Start, [int]$Count)
    foreach ($protocol in @('tcp', 'udp')) {
        Save-FormerValue -Kind 'PortRange' -Key $protocol -Value @{ protocol = $protocol; range = (Get-PortRange -Protocol $protocol) }
        Write-PortRange -Protocol $protocol -Start $Start -Count $Count
    }
}

function Write-PortRange {
    # Sets the range for one protocol.
    param([string]$Protocol, [int]$Start, [int]$Count)
    $arguments = @('int', 'ipv4', 'set', 'dynamicportrange', $Protocol, "startport=$Start", "numberofports=$Count")
    [void](Assert-Program -Path (Get-SystemProgram -Name 'netsh.exe') -Arguments $arguments)
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

function Set-ServiceDefinition {
    # Makes or corrects a service. Returns nothing. It is not started here: Start-CurrentService does that.
    param([hashtable]$Service)
    $name = $Service.name
    if ($Service.unknown) { Stop-Unknown }
    Save-FormerService -Name $name
    # These take effect without a restart of the service.
    $light = @('service:state', 'service:start', 'service:depends', 'service:recovery', 'service:recovery-after-error')
    if (Get-ServiceDifference -Service $Service | Where-Object { $light -notcontains $_.key }) { Save-RestartNeed -Name $name }
    # When NSSM takes over, or no longer runs it, the old process would keep running.
    if ((Test-NssmWanted -Service $Service) -ne (Test-NssmService -Name $name)) { Stop-RunningService -Name $name }
    # The start type comes last: a service that is only half made must not start at a boot.
    $create = if (Test-RegistryKey -Path (Get-ServicePath -Name $name)) { @('config', $name) } else { @('create', $name, 'start=', 'demand') }
    $actions = @($Service.restart_ms | ForEach-Object { "restart/$_" }) -join '/'
    $depends = ConvertTo-DependList -Names $Service.depends
    Invoke-ServiceControl -Arguments ($create +
        @('binPath=', $Service.command_line, 'depend=', $depends, 'obj=', 'LocalSystem', 'DisplayName=', $Service.display))
    Invoke-ServiceControl -Arguments @('description', $name, $Service.description)
    Invoke-ServiceControl -Arguments @('failure', $name, 'reset=', $Service.reset_s, 'actions=', $actions)
    Invoke-ServiceControl -Arguments @('failureflag', $name, '0')
    Write-ServiceEnvironment -Name $name -Environment $Service.environment
    Set-ServiceParameter -Service $Service
    Invoke-ServiceControl -Arguments @('config', $name, 'start=', $Service.start)
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
Look = {
    Assert-Preflight -Problems @(
        Test-Build -Build 20348
        Test-Session
        Test-Space -FreeGib 20
        Test-Addressing
        Test-ForeignNode -Services $services -Server 'https://10.0.0.10:6443'
    )
    Get-PreflightNotice -BadUpdates $bad
    # Reported until the machine is a node, and not again at each join.
    if (-not $script:Run.Facts.NodeIsLive) { Get-SurroundingNotice -OwnMacs $true }
}
Change = {
    # A machine that does not fit fails in the look.
}
}

@{
Name = 'computer-name'
Needs = @('node-preflight')
Values = {
    $name = 'WIN-A1'
}
Look = {
    Get-ComputerNameDifference -Want $name
}
Change = {
    Set-ComputerName -Name $name
}
}

@{
Name = 'windows-features'
Needs = @('node-preflight')
Values = {
    $features = @('Containers')
    $source = $null
}
Look = {
    Get-FeatureDifference -Features $features
}
Change = {
    Enable-Feature -Features $features -Source $source
}
}

@{
Name = 'system-settings'
Needs = @('node-preflight')
Values = {
    $pageFile = 'system'
}
Look = {
    Get-PageFileDifference -MiB $pageFile
}
Change = {
    Set-PageFile -MiB $pageFile
}
}

@{
Name = 'dynamic-ports'
Needs = @('node-preflight')
Values = {
    # Load-balanced services take client ports in blocks of 64; NodePorts (30000-32767) stay outside.
    $ports = @{ Start = 33000; Count = 32536 }
}
Look = {
    Get-PortRangeDifference @ports
}
Change = {
    Set-PortRange @ports
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
Look = {
    Get-FolderDifference @folders
}
Change = {
    Set-Folder @folders
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
Look = {
    Get-FirewallDifference -Rules $rules
}
Change = {
    Set-FirewallRule -Rules $rules
}
}

@{
Name = 'postboot-task'
Needs = @('directories')
Values = {
}
Look = {
    Get-BootTaskDifference
}
Change = {
    Set-BootTask
}
Boot = {
    Restore-BootNetwork
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
Look = {
    Get-LogTaskDifference -Text (Get-LogScript @rotation)
}
Change = {
    Set-LogTask -Text (Get-LogScript @rotation)
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
Look = {
    Get-ArtifactDifference -Artifacts $artifacts
}
Change = {
    Install-Artifact -Artifacts $artifacts
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
Look = {
    Get-RenderedFilesDifference -Files $files -Service 'containerd'
    Get-RenderedFilesDifference -Files $mirrors
}
Change = {
    Set-RenderedFile -Files $files -Service 'containerd'
    Set-RenderedFile -Files $mirrors
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
Look = {
    Get-ServiceDifference -Service $service
}
Change = {
    # An undo needs the service to remove the layers, so it goes back after them.
    Save-FormerService -Name $service.name
    Save-FormerLayer -Root 'C:\ProgramData\containerd\root'
    Set-ServiceDefinition -Service $service
    Start-CurrentService -Name $service.name
    Wait-Containerd
}
}

@{
Name = 'pause-image'
Needs = @('containerd')
Values = {
    $image = 'registry.k8s.io/pause:3.10.2'
}
Look = {
    Get-ImageDifference -Image $image
}
Change = {
    Install-Image -Image $image
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
Look = {
    Get-CredentialDifference -Credential $credential
    Get-RenderedFilesDifference -Files $files -Service 'kubelet'
}
Change = {
    Set-Credential -Credential $credential
    Set-RenderedFile -Files $files -Service 'kubelet'
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
Look = {
    Get-RenderedFilesDifference -Files $files -Service 'kubelet'
}
Change = {
    Set-RenderedFile -Files $files -Service 'kubelet'
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
Look = {
    Get-ServiceDifference -Service $service
}
Change = {
    Set-ServiceDefinition -Service $service
    Start-CurrentService -Name $service.name
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
Look = {
    Get-RegistrationDifference @wanted
    if (Test-CurrentCertificate -Path $client) { Get-FileAbsence -Path $bootstrap -Because 'no longer needed' }
}
Change = {
    Wait-Registration @wanted -ClientCertificate $client -Seconds 300
    Remove-File -Path $bootstrap
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
Look = {
    Get-RenderedFilesDifference -Files $files -Service 'flanneld'
}
Change = {
    Set-RenderedFile -Files $files -Service 'flanneld'
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
Look = {
    # While its network is missing, or a failed rewiring keeps it from starting, the step pod-network starts it, guarded.
    $standing = (Test-PodNetwork -Wanted $network) -and -not (Get-Hold)
    $held = @('service:state', 'service:start', 'service:in-use')
    Get-ServiceDifference -Service $service | Where-Object { $standing -or $held -notcontains $_.key }
}
Change = {
    $standing = (Test-PodNetwork -Wanted $network) -and -not (Get-Hold)
    # Nobody but a guarded run lets it start before: at a restart it would make its network with nobody to watch.
    if (-not $standing) { $service.start = if (Get-Hold) { 'disabled' } else { 'demand' } }
    Set-ServiceDefinition -Service $service
    if ($standing) { Start-CurrentService -Name $service.name }
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
Look = {
    Get-PodNetworkDifference -Wanted $network
}
Change = {
    # Right after a restart the agent may only need a moment more.
    Wait-RunningAgent -Wanted $network -Seconds 30
    if ((Test-PodNetwork -Wanted $network) -and -not (Get-Hold)) { Enable-Forwarding -Wanted $network }
    else { Start-Rewiring -Wanted $network -Guard $guard }
}
Boot = {
    # The agent makes the network again where it is missing, as an overlay is after each restart; this may cost an address.
    Protect-Address -Awaited { -not (Test-PodNetwork -Wanted $network) } -Seconds 900
}
Detached = {
    Start-NetworkAgent -Wanted $network -Seconds 180
    Enable-Forwarding -Wanted $network
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
Look = {
    Get-ReservationDifference -Store $store -Reservations $reservations
}
Change = {
    Set-Reservation -Store $store -Reservations $reservations
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
Look = {
    Get-RenderedFilesDifference -Files $files
    foreach ($path in @(Get-ForeignFile -Folder $folder -Own $files)) { Get-FileAbsence -Path $path -Because 'another CNI configuration' }
}
Change = {
    Set-RenderedFile -Files $files
    foreach ($path in @(Get-ForeignFile -Folder $folder -Own $files)) {
        Save-FormerFile -Path $path
        Remove-File -Path $path
    }
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
Look = {
    Get-RenderedFilesDifference -Files $files -Service 'kube-proxy'
}
Change = {
    Set-RenderedFile -Files $files -Service 'kube-proxy'
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
Look = {
    Get-ServiceDifference -Service $service
    if ($running) { Compare-Wanted -Key 'kube-proxy:health' -What 'kube-proxy: health' -Is (Read-HttpStatus -Url $health) -Want 200 }
}
Change = {
    Assert-Network -Name $network
    Set-ServiceDefinition -Service $service
    Start-CurrentService -Name $service.name
    Wait-KubeProxy -Name $service.name -Health $health -Seconds 60
}
}

)
#endregion

# The text of this script, for the tasks that store it: from the file that a task runs, or as it came over the wire.
$text = if ($PSCommandPath) { [IO.File]::ReadAllText($PSCommandPath) } else { [string]$MyInvocation.MyCommand.ScriptBlock }
if ($Detached -ne '') { $Facts.Detached = $Detached }
$script:Run = New-Run -Mode $Mode -Id $RunId -Steps $steps -Secrets $Secrets -Facts $Facts -Text $text

switch ($Mode) {
    'Look' { Invoke-Look }
    'Change' { Invoke-Locked -Work { Invoke-Step -Steps @(Get-ChosenStep) -Drive { param($Step) Get-ChangeResult -Step $Step } } }
    'Boot' { Invoke-Boot }
    'Detached' { Invoke-Detached }
    'Rescue' { Invoke-Detached -Rescue }
    default { throw ('this script has no mode ' + $Mode) }
}
