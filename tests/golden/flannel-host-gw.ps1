# winboot 0.1.0: makes the machine win-a1 the Kubernetes node win-a1.
#
# This script CANNOT RUN YET: run `winboot init` to find the missing values; until then join refuses.
#   missing  artifacts.sha256: containerd/2.3.6/containerd-2.3.6-windows-amd64.tar.gz
#   missing  artifacts.sha256: kubernetes/1.36.5/kubernetes-node-windows-amd64.tar.gz
#   missing  artifacts.sha256: kubectl/1.36.5/kubectl.exe
#   missing  artifacts.sha256: crictl/1.36.0/crictl-v1.36.0-windows-amd64.tar.gz
#   missing  artifacts.sha256: cni-plugins/1.9.1/cni-plugins-windows-amd64-v1.9.1.tgz
#   missing  artifacts.sha256: flannel-cni/1.9.1-flannel1/cni-plugin-flannel-windows-amd64-v1.9.1-flannel1.tgz
#   missing  artifacts.sha256: flannel/0.28.9/flanneld.exe
#
# Settings  2c208c39f905e9934ebfc1c4a8072083fa2619bee3dedc77acde1f0fd2d00214
# Library   <library>
# The settings are this machine's values and steps, down to "#region Library". The library after that line is the same
# text for every node of this winboot version. If you have reviewed a library with this SHA-256, skip it here.
#
# The steps in running order, each with its reason:
#   node-preflight       winboot finds a wrong build, a missing right or an unreachable API server before it changes
#                        anything
#   download-sources     winboot finds a proxy, mirror or registry that does not answer before it renames or restarts
#                        the machine
#   computer-name        the computer name distinguishes the logs and certificates of clones; the kubelet also gets the
#                        node's name
#   windows-features     containerd cannot start a container until the Containers feature is on and the machine has
#                        restarted
#   system-settings      wrong time, no page file or surprise updates make a node fail in ways that are hard to trace
#   dynamic-ports        each load-balanced service reserves client ports in blocks; the default range is small and
#                        overlaps the NodePorts
#   directories          each folder gets its access rules before a program writes the first secret into the folder
#   adoption             a node that another tool made keeps its name and certificate, and an undo starts its former
#                        services again
#   firewall-rules       the control plane connects to the kubelet, and other nodes connect to the pods, only through
#                        open ports
#   postboot-task        after a restart, routes are missing and address leases are stale; the machine repairs them
#                        without winboot's host
#   log-rotation         containerd's log has no size limit, and NSSM and kube-log-runner never delete old logs: the
#                        disk fills up
#   artifacts            only a program's hash proves which program it is; a version string or a date can be wrong
#   containerd-config    by default containerd reads CNI files from another folder, and the pause image must match this
#                        Windows build
#   containerd           the kubelet starts no pod without a container runtime, and containerd writes a log only if a
#                        log file is set
#   pause-image          every pod needs the pause image; an early pull finds a wrong registry, proxy or Windows build
#                        before a pod hangs
#   kubelet-credentials  the kubelet logs in with a client certificate; a kubelet without a valid one requests it with a
#                        short-lived token
#   kubelet-config       several defaults of the kubelet suit only Linux: on Windows they end the kubelet or break each
#                        pod
#   kubelet              the kubelet makes the machine a node; it must run without a logon, restart after a crash, and
#                        write a log
#   registration         the pod network needs the Node's pod CIDR, and `kubectl logs` and `kubectl exec` need the
#                        serving certificate
#   flanneld-config      flanneld reads its network from a file; the CNI configuration and kube-proxy must use the same
#                        network name
#   flanneld             flanneld makes the pod network, maintains the routes to other nodes, and renews the lease of
#                        its subnet
#   pod-network          a new HNS network rewires the adapter: connections break, and static address, DNS servers and
#                        routes can get lost
#   ipam-reservations    host-local could give a pod the host endpoint's address, and it keeps the addresses of pods
#                        lost in a restart
#   cni-config           the node becomes Ready when the CNI configuration exists, so winboot writes it after the pod
#                        network
#   kube-proxy-config    services fail on this node unless kube-proxy has the exact names of HNS network, host endpoint
#                        and node
#   kube-proxy           without kube-proxy, services are unreachable on this node; kube-proxy starts after its HNS
#                        network exists
#
# These objects stay on this machine. winboot records the former state, so that an undo can restore it:
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
#   folders             C:\k, C:\k\versions, C:\var\lib\kubelet\pki, C:\ProgramData\containerd,
#                       C:\ProgramData\containerd\certs.d, C:\ProgramData\containerd\root,
#                       C:\ProgramData\containerd\state, C:\var\lib\kubelet,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1, C:\k\versions\containerd-2.3.6,
#                       C:\Program Files\containerd, C:\Program Files\containerd\conf.d, C:\etc\kubernetes\pki,
#                       C:\etc\cni\net.d, C:\etc\kube-flannel, C:\var\lib\cni, C:\var\lib\cni\networks, C:\run\flannel,
#                       C:\var\log\pods, C:\var\log\containers, C:\var\log\containerd, C:\var\log\kubelet,
#                       C:\var\log\flanneld, C:\var\log\kube-proxy
#   images              registry.k8s.io/pause:3.10.2
#   page file           managed by Windows, if the machine has no page file
#   ports are open to   any address
#   ports of clients    33000-65535 (tcp and udp)
#   programs            C:\k\versions\containerd-2.3.6\containerd.exe, C:\k\versions\containerd-2.3.6\ctr.exe,
#                       C:\k\versions\containerd-2.3.6\containerd-shim-runhcs-v1.exe,
#                       C:\k\versions\kubernetes-1.36.5\kubelet.exe, C:\k\versions\kubernetes-1.36.5\kube-proxy.exe,
#                       C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe, C:\k\versions\kubectl-1.36.5\kubectl.exe,
#                       C:\k\versions\crictl-1.36.0\crictl.exe, C:\k\versions\nssm-2.24\nssm.exe,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\win-bridge.exe,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\host-local.exe,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\flannel.exe,
#                       C:\k\versions\flannel-0.28.9\flanneld.exe
#   scheduled tasks     \winboot\boot (at each start of the machine), \winboot\guard (while networks are made),
#                       \winboot\logs (every hour)
#   services            containerd, kubelet, flanneld, kube-proxy
#   state               C:\ProgramData\winboot (journal, former values, this script for the tasks)
#
# <<name>> is a value that the script reads from this machine or its Node object (function Expand-Known):
#   <<node_ip>>       this machine's address on the adapter that leads to the API server
#   <<node_subnet>>   the network of the address <<node_ip>>
#   <<pod_cidr>>      the IPv4 network of this node's pods, from the Node object
#   <<pod_gateway>>   the pods' gateway: the first address of <<pod_cidr>>
#   <<pod_endpoint>>  this machine's own endpoint: the second address of <<pod_cidr>>
#
# Mode Look reports what differs and changes nothing; Change corrects it and looks again. Detached is for the task that
# continues while the network is changed, Rescue for the task that takes back what a killed Detached left, Boot for the
# task at each start of the machine, Guard for the task that keeps the address while networks are made.
# Secrets come with this text, in the parameter Secrets. Everything this script says is JSON, one event a line.
param(
    [string]$Mode = 'Look',
    [hashtable]$Secrets = @{},
    [string]$RunId = '',
    [hashtable]$Facts = @{},
    # Which detached run this is. A task starts this file with -File, which passes text alone.
    [string]$Detached = '',
    # The whole text of this script, where a loader runs its parts.
    [string]$Whole = ''
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
    Digest  = '2c208c39f905e9934ebfc1c4a8072083fa2619bee3dedc77acde1f0fd2d00214'
    Library = '<library>'
    Modes   = @('Look', 'Change', 'Boot', 'Guard', 'Detached', 'Rescue')
}

# What most steps have to know of this node.
$script:Node = @{ node = 'win-a1'; startup_taint = 'winboot.io/starting'; node_ip = ''; server_host = '10.0.0.10'; server_port = 6443
    pod_cidrs = @('10.244.0.0/16'); kubectl = 'C:\k\versions\kubectl-1.36.5\kubectl.exe'; kubeconfig = 'C:\k\kubeconfig'
    crictl = 'C:\k\versions\crictl-1.36.0\crictl.exe'; crictl_config = 'C:\k\crictl.yaml'; runtime = 'containerd'
    artifacts = @(@{ name = 'containerd'; version = '2.3.6'
            url = 'https://github.com/containerd/containerd/releases/download/v2.3.6/containerd-2.3.6-windows-amd64.tar.gz'
            members = @(@{ path = 'bin/containerd.exe'; to = 'C:\k\versions\containerd-2.3.6\containerd.exe'; asks = @('--version')
                    services = @('containerd') },
                @{ path = 'bin/ctr.exe'; to = 'C:\k\versions\containerd-2.3.6\ctr.exe' },
                @{ path = 'bin/containerd-shim-runhcs-v1.exe'
                    to = 'C:\k\versions\containerd-2.3.6\containerd-shim-runhcs-v1.exe' }) },
        @{ name = 'kubernetes'; version = '1.36.5'; url = 'https://dl.k8s.io/v1.36.5/kubernetes-node-windows-amd64.tar.gz'
            members = @(@{ path = 'kubernetes/node/bin/kubelet.exe'; to = 'C:\k\versions\kubernetes-1.36.5\kubelet.exe'
                    asks = @('--version'); services = @('kubelet')
                    takes = @{ arguments = @('--config=C:\var\lib\kubelet\config.yaml', '--bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig',
                            '--kubeconfig=C:\k\kubeconfig', '--cert-dir=C:\var\lib\kubelet\pki', '--root-dir=C:\var\lib\kubelet',
                            '--hostname-override=win-a1', '--node-ip=', '--windows-service=true', '--v=2',
                            '--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS') } },
                @{ path = 'kubernetes/node/bin/kube-proxy.exe'; to = 'C:\k\versions\kubernetes-1.36.5\kube-proxy.exe'
                    asks = @('--version'); services = @('kube-proxy')
                    takes = @{ arguments = @('--config=C:\k\kube-proxy.yaml', '--windows-service=true', '--v=2') } },
                @{ path = 'kubernetes/node/bin/kube-log-runner.exe'; to = 'C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe'
                    services = @('kubelet', 'kube-proxy') }) },
        @{ name = 'kubectl'; version = '1.36.5'; url = 'https://dl.k8s.io/v1.36.5/bin/windows/amd64/kubectl.exe'
            members = @(@{ path = 'kubectl.exe'; to = 'C:\k\versions\kubectl-1.36.5\kubectl.exe'; asks = @('version', '--client') }) },
        @{ name = 'crictl'; version = '1.36.0'
            url = 'https://github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-windows-amd64.tar.gz'
            members = @(@{ path = 'crictl.exe'; to = 'C:\k\versions\crictl-1.36.0\crictl.exe'; asks = @('--version') }) },
        @{ name = 'nssm'; version = '2.24'; url = 'https://nssm.cc/release/nssm-2.24.zip'
            sha256 = '727d1e42275c605e0f04aba98095c38a8e1e46def453cdffce42869428aa6743'
            members = @(@{ path = 'nssm-2.24/win64/nssm.exe'; to = 'C:\k\versions\nssm-2.24\nssm.exe'; services = @('flanneld') }) },
        @{ name = 'cni-plugins'; version = '1.9.1'
            url = 'https://github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-windows-amd64-v1.9.1.tgz'
            members = @(@{ path = 'win-bridge.exe'; to = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\win-bridge.exe' },
                @{ path = 'host-local.exe'; to = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\host-local.exe' }) },
        @{ name = 'flannel-cni'; version = '1.9.1-flannel1'
            url = 'https://github.com/flannel-io/cni-plugin/releases/download/v1.9.1-flannel1/cni-plugin-flannel-windows-amd64-v1.9.1-flannel1.tgz'
            members = @(@{ path = 'flannel-amd64.exe'; to = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\flannel.exe' }) },
        @{ name = 'flannel'; version = '0.28.9'
            url = 'https://github.com/flannel-io/flannel/releases/download/v0.28.9/flanneld.exe'
            members = @(@{ path = 'flanneld.exe'; to = 'C:\k\versions\flannel-0.28.9\flanneld.exe'; asks = @('--version')
                    services = @('flanneld') }) })
    keep_versions = 2 }

#region Steps, in their order. Each has its needs, the values it works with, and how to look and to change.
# The functions that they call are in the library below.
$steps = @(
# ---- node-preflight: winboot finds a wrong build, a missing right or an unreachable API server before it changes
# anything
@{
Name = 'node-preflight'
Values = {
    $bad = @(@{ first = 2582; fixed = 2762; kb = 'KB5040437'; fixed_kb = 'KB5044281'
            what = 'the update of July 2024 broke container networking' })
    # How winboot describes its own services: one of these names with another description is another tool's.
    $services = @{ containerd = 'Runs containers for Kubernetes. Managed by winboot.'; kubelet = 'Kubernetes kubelet. Managed by winboot.'
        flanneld = 'flannel network agent. Managed by winboot.'; 'kube-proxy' = 'Kubernetes kube-proxy. Managed by winboot.' }
}
Look = {
    Assert-NoFault -Problems @(
        Test-Build -Build 20348
        Test-Session
        Test-Clock
        # A live node has its networks: there it is a notice.
        if (-not $script:Run.Facts.NodeIsLive) { Test-FirewallService }
        Test-FileSystem -Root 'C:\ProgramData\containerd\root' -Layers 'C:\ProgramData\containerd\root\io.containerd.snapshotter.v1.windows\snapshots'
        Test-LastingDrive -Root 'C:\ProgramData\containerd\root'
        Test-Space -FreeGib @{ C = 20 }
        Test-MoveSpace -Root 'C:\ProgramData\containerd\root'
        Test-Addressing
        Test-ForeignNode -Services $services -Server 'https://10.0.0.10:6443'
    )
    Get-PreflightNotice -BadUpdates $bad
    # Reported until the machine is a node, and not again at each join.
    if (-not $script:Run.Facts.NodeIsLive) { Get-SurroundingNotice -OwnMacs $true }
}
}

# ---- download-sources: winboot finds a proxy, mirror or registry that does not answer before it renames or restarts
# the machine
@{
Name = 'download-sources'
Needs = @('node-preflight')
Values = {
    $sources = @(@{ registry = $false; title = 'the artifact source github.com'
            addresses = @(@{ url = 'https://github.com/containerd/containerd/releases/download/v2.3.6/containerd-2.3.6-windows-amd64.tar.gz'
                    proxy = 'http://proxy.corp.example:3128' }) },
        @{ registry = $false; title = 'the artifact source dl.k8s.io'
            addresses = @(@{ url = 'https://dl.k8s.io/v1.36.5/kubernetes-node-windows-amd64.tar.gz'
                    proxy = 'http://proxy.corp.example:3128' }) },
        @{ registry = $false; title = 'the artifact source nssm.cc'
            addresses = @(@{ url = 'https://nssm.cc/release/nssm-2.24.zip'; proxy = 'http://proxy.corp.example:3128' }) },
        @{ registry = $true; title = 'the registry registry.k8s.io'
            addresses = @(@{ url = 'https://registry.k8s.io/v2/'; proxy = 'http://proxy.corp.example:3128' }) },
        @{ registry = $true; title = 'the registry docker.io'
            addresses = @(@{ url = 'https://mirror.corp.example/v2/' },
                @{ url = 'https://registry-1.docker.io/v2/'; proxy = 'http://proxy.corp.example:3128' }) })
}
Look = {
    Assert-NoFault -Problems @(Test-Source -Sources $sources -Programs @(Get-Artifact | ForEach-Object { $_.members } | ForEach-Object { $_.to }))
}
}

# ---- computer-name: the computer name distinguishes the logs and certificates of clones; the kubelet also gets the
# node's name
@{
Name = 'computer-name'
Needs = @('node-preflight', 'download-sources')
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

# ---- windows-features: containerd cannot start a container until the Containers feature is on and the machine has
# restarted
@{
Name = 'windows-features'
Needs = @('node-preflight', 'download-sources')
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

# ---- system-settings: wrong time, no page file or surprise updates make a node fail in ways that are hard to trace
@{
Name = 'system-settings'
Needs = @('node-preflight', 'download-sources')
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

# ---- dynamic-ports: each load-balanced service reserves client ports in blocks; the default range is small and
# overlaps the NodePorts
@{
Name = 'dynamic-ports'
Needs = @('node-preflight', 'download-sources')
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

# ---- directories: each folder gets its access rules before a program writes the first secret into the folder
@{
Name = 'directories'
Needs = @('node-preflight', 'download-sources')
Values = {
    $folders = @{
        # For SYSTEM and Administrators alone: what is in them are keys, tokens, and the layers of all images.
        Private = @('C:\k', 'C:\k\versions', 'C:\var\lib\kubelet\pki', 'C:\ProgramData\containerd', 'C:\ProgramData\containerd\certs.d',
        'C:\ProgramData\containerd\root', 'C:\ProgramData\containerd\state')
        # Everybody may read these: pods do, and collectors of logs.
        Readable = @('C:\var\lib\kubelet', 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1', 'C:\k\versions\containerd-2.3.6',
        'C:\Program Files\containerd', 'C:\Program Files\containerd\conf.d', 'C:\etc\kubernetes\pki', 'C:\etc\cni\net.d',
        'C:\etc\kube-flannel', 'C:\var\lib\cni', 'C:\var\lib\cni\networks', 'C:\run\flannel', 'C:\var\log\pods',
        'C:\var\log\containers', 'C:\var\log\containerd', 'C:\var\log\kubelet', 'C:\var\log\flanneld', 'C:\var\log\kube-proxy')
        # Written by the services of this node alone: an undo empties them.
        Ours = @('C:\var\lib\kubelet', 'C:\ProgramData\containerd', 'C:\ProgramData\containerd\root', 'C:\var\lib\cni', 'C:\run\flannel',
        'C:\var\log\pods', 'C:\var\log\containers', 'C:\var\log\containerd', 'C:\var\log\kubelet', 'C:\var\log\flanneld',
        'C:\var\log\kube-proxy')
        # A file in one of these is run, or heeded, because it is there: files of others are reported.
        Watched = @('C:\k', 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1', 'C:\ProgramData\containerd\certs.d',
        'C:\k\versions\containerd-2.3.6', 'C:\Program Files\containerd\conf.d', 'C:\etc\kubernetes\pki', 'C:\etc\cni\net.d',
        'C:\etc\kube-flannel')
        # Filled by pods and images, with owners of their own: not looked through.
        Opaque = @('C:\var\lib\kubelet\pods\*\*', 'C:\ProgramData\containerd\root\*\snapshots\*')
    }
}
Look = {
    Get-FolderDifference @folders
}
Change = {
    Set-Folder @folders
}
}

# ---- adoption: a node that another tool made keeps its name and certificate, and an undo starts its former services
# again
@{
Name = 'adoption'
Needs = @('directories')
Values = {
    $node = @{ Credential = @{ node = 'win-a1'; server = 'https://10.0.0.10:6443'; kubeconfig = 'C:\k\kubeconfig'
        certificate = 'C:\var\lib\kubelet\pki\kubelet-client-current.pem'; pki = 'C:\var\lib\kubelet\pki'
        ca_path = 'C:\etc\kubernetes\pki\ca.crt'; ca_sha256 = '9e1bbcbca4717b7be2d04e5c3b0c2bc986e54633725153fe917522c84649daac' }; LeavesDocker = $true }
    $guard = @{ management_port = 5986; agent = ''; networks = @() }
}
Look = {
    Get-AdoptionDifference @node -Root 'C:\ProgramData\containerd\root'
}
Change = {
    Set-Adoption @node -Services @('containerd', 'kubelet', 'flanneld', 'kube-proxy')
    # HNS works on all networks at a time: none is removed from within this session.
    if ($node.LeavesDocker -and @(Get-DockerNetwork).Count -gt 0) { Start-DetachedRun -Guard $guard -Seconds 300 }
}
Detached = {
    Remove-DockerNetwork
}
}

# ---- firewall-rules: the control plane connects to the kubelet, and other nodes connect to the pods, only through open
# ports
@{
Name = 'firewall-rules'
Needs = @('node-preflight', 'download-sources')
Values = {
    $rules = @(@{ name = 'winboot-kubelet'; ports = '10250'; protocol = 'TCP'; direction = 'in'; sources = @('Any')
            why = 'logs, exec and metrics through the kubelet' },
        @{ name = 'winboot-kube-proxy-health'; ports = '10256'; protocol = 'TCP'; direction = 'in'; sources = @('Any')
            why = 'health checks of load balancers' },
        @{ name = 'winboot-node-ports-tcp'; ports = '30000-32767'; protocol = 'TCP'; direction = 'in'; sources = @('Any')
            why = 'NodePort services' },
        @{ name = 'winboot-node-ports-udp'; ports = '30000-32767'; protocol = 'UDP'; direction = 'in'; sources = @('Any')
            why = 'NodePort services' })
    $closed = @('winboot-antrea-agent', 'winboot-antrea-members', 'winboot-geneve', 'winboot-typha', 'winboot-vxlan')
}
Look = {
    Get-FirewallDifference -Rules $rules -Closed $closed
}
Change = {
    Set-FirewallRule -Rules $rules -Closed $closed
}
}

# ---- postboot-task: after a restart, routes are missing and address leases are stale; the machine repairs them without
# winboot's host
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

# ---- log-rotation: containerd's log has no size limit, and NSSM and kube-log-runner never delete old logs: the disk
# fills up
@{
Name = 'log-rotation'
Needs = @('directories')
Values = {
    $rotation = @{
        Functions = @('Read-Access', 'Test-Trusted', 'Get-UntrustedWriter', 'Get-AccessMemory', 'Find-UntrustedWriter', 'Test-Link',
        'Stop-Step', 'Invoke-WithRetry', 'Get-UntrustedReplacer', 'Get-UserLink', 'Get-LinkText', 'Test-HardLink', 'Read-Entry',
        'Get-EntryDeclaration', 'Invoke-LogRotation', 'Get-PathDoubt', 'Get-PathMemory', 'Read-PathDoubt', 'Get-LinkDoubt',
        'Get-LinkTarget', 'Get-FolderDoubt')
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

# ---- artifacts: only a program's hash proves which program it is; a version string or a date can be wrong
@{
Name = 'artifacts'
Needs = @('directories')
Values = {
    $artifacts = @(Get-Artifact)
    foreach ($artifact in $artifacts) { $artifact.proxy = 'http://proxy.corp.example:3128' }
}
Look = {
    Get-ArtifactDifference -Artifacts $artifacts
    Get-HeldDifference
}
Change = {
    Install-Artifact -Artifacts $artifacts
    if ($script:Run.Facts.Versions -ne 'hold') { Clear-HeldVersion }
}
}

# ---- containerd-config: by default containerd reads CNI files from another folder, and the pause image must match this
# Windows build
@{
Name = 'containerd-config'
Needs = @('artifacts', 'directories')
Values = {
    $files = @{ 'C:\Program Files\containerd\config.toml' = 'version = 3
imports = [''C:\Program Files\containerd\conf.d\*.toml'']
root = ''C:\ProgramData\containerd\root''
state = ''C:\ProgramData\containerd\state''
[grpc]
  address = ''\\.\pipe\containerd-containerd''
[plugins.''io.containerd.cri.v1.images'']
  snapshotter = ''windows''
  discard_unpacked_layers = true
[plugins.''io.containerd.cri.v1.images''.pinned_images]
  sandbox = ''registry.k8s.io/pause:3.10.2''
[plugins.''io.containerd.cri.v1.images''.registry]
  config_path = ''C:\ProgramData\containerd\certs.d''
[plugins.''io.containerd.cri.v1.runtime''.cni]
  bin_dirs = [''C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1'']
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
    # New nodes discard the layers that they have unpacked. A live node begins with it in a drain.
    $unasked = @{ Path = 'C:\Program Files\containerd\config.toml'
        Line = '  discard_unpacked_layers = true
' }
    $files = Select-LayerForm -Files $files @unasked
    $root = @{ Path = 'C:\Program Files\containerd\config.toml'; Root = 'C:\ProgramData\containerd\root' }
    # containerd reads these at every pull: no service has to restart for them.
    $mirrors = @{ 'C:\ProgramData\containerd\certs.d\docker.io\hosts.toml' = 'server = ''https://registry-1.docker.io''

[host.''https://mirror.corp.example'']
  capabilities = [''pull'', ''resolve'']
' }
    # Other installers' files here are laid over the file: they stay, and winboot shows which of its settings they change.
    $dropIns = @{ Folder = 'C:\Program Files\containerd\conf.d'
        Settings = @{ root = 'C:\ProgramData\containerd\root'; state = 'C:\ProgramData\containerd\state'
            'grpc.address' = '\\.\pipe\containerd-containerd'
            'io.containerd.server.v1.grpc.address' = '\\.\pipe\containerd-containerd'
            sandbox_image = 'registry.k8s.io/pause:3.10.2'; 'pinned_images.sandbox' = 'registry.k8s.io/pause:3.10.2'
            'registry.config_path' = 'C:\ProgramData\containerd\certs.d'; snapshotter = 'windows'
            'containerd.snapshotter' = 'windows'; 'containerd.default_runtime_name' = 'runhcs-wcow-process'
            'cni.bin_dir' = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1'
            'cni.bin_dirs' = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1'; 'cni.conf_dir' = 'C:\etc\cni\net.d' }
        Version = 3 }
}
Look = {
    Get-ImageRootDifference @root
    Get-RenderedFilesDifference -Files $files -Service 'containerd'
    Get-RenderedFilesDifference -Files $mirrors
    Get-LayerFormNotice -Files $files @unasked
    Get-DropInDifference @dropIns
}
Change = {
    Set-RenderedFile -Files $files -Service 'containerd'
    Set-RenderedFile -Files $mirrors
}
}

# ---- containerd: the kubelet starts no pod without a container runtime, and containerd writes a log only if a log file
# is set
@{
Name = 'containerd'
Needs = @('containerd-config', 'windows-features')
Values = {
    $service = Complete-Service -Service @{ name = 'containerd'; display = 'containerd'; description = 'Runs containers for Kubernetes. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900
        environment = @('HTTPS_PROXY=http://proxy.corp.example:3128', 'HTTP_PROXY=http://proxy.corp.example:3128',
            'NO_PROXY=localhost,127.0.0.1,10.0.0.10,10.244.0.0/16,10.96.0.0/12,.svc,.cluster.local,169.254.169.254,.corp.example')
        command_line = '"C:\k\versions\containerd-2.3.6\containerd.exe" --config "C:\Program Files\containerd\config.toml" --log-level info --log-file C:\var\log\containerd\containerd.log --run-service' }
}
Look = {
    Get-PipeDifference -Service $service.name -Path '\\.\pipe\containerd-containerd'
    Get-LayerDifference -Root 'C:\ProgramData\containerd\root'
    Get-FormerImageRootDifference -Root 'C:\ProgramData\containerd\root'
    Get-ShimDifference
    Get-ServiceDifference -Service $service
}
Change = {
    # An undo needs the service to remove the layers, so it goes back after them.
    Save-FormerService -Name $service.name
    Clear-UnknownLayer -Root 'C:\ProgramData\containerd\root'
    Clear-FormerImageRoot -Root 'C:\ProgramData\containerd\root'
    Save-FormerLayer -Root 'C:\ProgramData\containerd\root'
    Remove-FormerPod
    Set-ServiceDefinition -Service $service
    Assert-PipeFree -Service $service.name -Path '\\.\pipe\containerd-containerd'
    Start-CurrentService -Name $service.name
    Wait-Runtime
}
}

# ---- pause-image: every pod needs the pause image; an early pull finds a wrong registry, proxy or Windows build before
# a pod hangs
@{
Name = 'pause-image'
Needs = @('containerd')
Values = {
    $images = @('registry.k8s.io/pause:3.10.2')
}
Look = {
    Get-ImageDifference -Images $images
    Get-MovedImage -LeavesDocker $true | Where-Object { $images -notcontains $_ } |
        ForEach-Object { New-Difference -Key "moved:$_" -What "image $_ of this node's pods" -Is $null -Want 'pulled again' }
}
Change = {
    Get-MissingImage -Images $images | ForEach-Object { Install-Image -Image $_ }
    Install-MovedImage -LeavesDocker $true
}
}

# ---- kubelet-credentials: the kubelet logs in with a client certificate; a kubelet without a valid one requests it
# with a short-lived token
@{
Name = 'kubelet-credentials'
Needs = @('directories', 'computer-name', 'adoption')
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

# ---- kubelet-config: several defaults of the kubelet suit only Linux: on Windows they end the kubelet or break each
# pod
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
  "volumePluginDir": "C:\\var\\lib\\kubelet\\volumeplugins",
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

# ---- kubelet: the kubelet makes the machine a node; it must run without a logon, restart after a crash, and write a
# log
@{
Name = 'kubelet'
Needs = @('kubelet-config', 'kubelet-credentials', 'containerd', 'artifacts', 'firewall-rules')
Values = {
    $service = Complete-Service -Service @{ name = 'kubelet'; display = 'Kubernetes kubelet'; description = 'Kubernetes kubelet. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900; depends = @('containerd')
        environment = @('HTTPS_PROXY=http://proxy.corp.example:3128', 'HTTP_PROXY=http://proxy.corp.example:3128',
            'NO_PROXY=localhost,127.0.0.1,10.0.0.10,10.244.0.0/16,10.96.0.0/12,.svc,.cluster.local,169.254.169.254,.corp.example')
        command_line = '"C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe" -log-file=C:\var\log\kubelet\kubelet.log -log-file-size=50Mi -redirect-stderr=true C:\k\versions\kubernetes-1.36.5\kubelet.exe --config=C:\var\lib\kubelet\config.yaml --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig --cert-dir=C:\var\lib\kubelet\pki --root-dir=C:\var\lib\kubelet --hostname-override=win-a1 --node-ip=<<node_ip>> --windows-service=true --v=2 --windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS' }
}
Look = {
    Get-ServiceDifference -Service $service
}
Change = {
    Set-ServiceDefinition -Service $service
    Start-CurrentService -Name $service.name
}
}

# ---- registration: the pod network needs the Node's pod CIDR, and `kubectl logs` and `kubectl exec` need the serving
# certificate
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
    # A kubelet without a client certificate ends after 300 seconds at a look each 10 (kubernetes, pkg/kubelet/certificate/
    # transport.go); its service starts it again after 60 at most, and it registers within another 30.
    Wait-Registration @wanted -ClientCertificate $client -Seconds 400
    Remove-File -Path $bootstrap
}
}

# ---- flanneld-config: flanneld reads its network from a file; the CNI configuration and kube-proxy must use the same
# network name
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

# ---- flanneld: flanneld makes the pod network, maintains the routes to other nodes, and renews the lease of its subnet
@{
Name = 'flanneld'
Needs = @('flanneld-config', 'registration', 'artifacts')
Values = {
    $network = @{ name = 'cbr0'; type = 'L2Bridge'; subnets = @(@{ prefix = '<<pod_cidr>>'; gateway = '<<pod_gateway>>' }); empty = $false
        vni = 0; endpoint = 'cbr0_ep'; endpoint_v6 = ''; subnet_env = 'C:\run\flannel\subnet.env'; agent = 'flanneld'
        log = 'C:\var\log\flanneld\flanneld.log'
        first = @{ name = 'External'; type = 'L2Bridge'; subnets = @(@{ prefix = '192.168.255.0/30'; gateway = '192.168.255.1' })
            empty = $true; vni = 0; endpoint = ''; endpoint_v6 = ''; subnet_env = ''; agent = ''; log = ''; first = $null } }
    $service = Complete-Service -Service @{ name = 'flanneld'; display = 'flannel network agent'; description = 'flannel network agent. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900; depends = @('kubelet'); start = 'demand'
        command_line = 'C:\k\versions\nssm-2.24\nssm.exe'
        parameters = @{ Application = 'C:\k\versions\flannel-0.28.9\flanneld.exe'
            AppParameters = '--kube-subnet-mgr=1 --kubeconfig-file=C:\k\flanneld.kubeconfig --iface=<<node_ip>> --ip-masq=1 --net-config-path=C:\etc\kube-flannel\net-conf.json --healthz-port=8471'
            AppDirectory = 'C:\'; AppStdout = 'C:\var\log\flanneld\flanneld.log'; AppStderr = 'C:\var\log\flanneld\flanneld.log'
            AppRotateFiles = 1; AppRotateOnline = 1; AppRotateBytes = 52428800; AppRestartDelay = 10000; AppNoConsole = 1
            AppExit = 'Restart'; AppPriority = $null; AppEnvironment = $null; AppEnvironmentExtra = @('NODE_NAME=win-a1') } }
}
Look = {
    # While its network is missing, or a failed rewiring keeps it from starting, the step pod-network starts it, guarded.
    $standing = (Test-PodNetwork -Wanted $network) -and -not (Get-AgentHold)
    $held = @('service:state', 'service:start', 'service:in-use')
    Get-ServiceDifference -Service $service | Where-Object { $standing -or $held -notcontains $_.key }
}
Change = {
    $standing = (Test-PodNetwork -Wanted $network) -and -not (Get-AgentHold)
    # Only a guarded run lets it start before: at a restart it would make its network unwatched.
    if (-not $standing) { $service.start = if (Get-AgentHold) { 'disabled' } else { 'demand' } }
    Set-ServiceDefinition -Service $service
    if ($standing) { Start-CurrentService -Name $service.name }
}
}

# ---- pod-network: a new HNS network rewires the adapter: connections break, and static address, DNS servers and routes
# can get lost
@{
Name = 'pod-network'
Needs = @('flanneld-config', 'flanneld', 'registration', 'windows-features')
Values = {
    $network = @{ name = 'cbr0'; type = 'L2Bridge'; subnets = @(@{ prefix = '<<pod_cidr>>'; gateway = '<<pod_gateway>>' }); empty = $false
        vni = 0; endpoint = 'cbr0_ep'; endpoint_v6 = ''; subnet_env = 'C:\run\flannel\subnet.env'; agent = 'flanneld'
        log = 'C:\var\log\flanneld\flanneld.log'
        first = @{ name = 'External'; type = 'L2Bridge'; subnets = @(@{ prefix = '192.168.255.0/30'; gateway = '192.168.255.1' })
            empty = $true; vni = 0; endpoint = ''; endpoint_v6 = ''; subnet_env = ''; agent = ''; log = ''; first = $null } }
    $guard = @{ management_port = 5986; agent = 'flanneld'; networks = @('cbr0', 'External') }
}
Look = {
    Get-PodNetworkDifference -Wanted $network
}
Change = {
    # Right after a restart the agent may only need a moment more.
    Wait-RunningAgent -Wanted $network -Seconds 30
    if ((Test-PodNetwork -Wanted $network) -and -not (Get-AgentHold)) { Enable-Forwarding -Wanted $network }
    else { Start-Rewiring -Wanted $network -Guard $guard }
}
Guard = {
    Watch-Agent -Wanted $network -Dependents @('kube-proxy')
}
Detached = {
    Start-NetworkAgent -Wanted $network -Seconds 180
    Enable-Forwarding -Wanted $network
}
}

# ---- ipam-reservations: host-local could give a pod the host endpoint's address, and it keeps the addresses of pods
# lost in a restart
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

# ---- cni-config: the node becomes Ready when the CNI configuration exists, so winboot writes it after the pod network
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

# ---- kube-proxy-config: services fail on this node unless kube-proxy has the exact names of HNS network, host endpoint
# and node
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

# ---- kube-proxy: without kube-proxy, services are unreachable on this node; kube-proxy starts after its HNS network
# exists
@{
Name = 'kube-proxy'
Needs = @('kube-proxy-config', 'pod-network', 'artifacts', 'firewall-rules')
Values = {
    $network = 'cbr0'
    $service = Complete-Service -Service @{ name = 'kube-proxy'; display = 'Kubernetes kube-proxy'; description = 'Kubernetes kube-proxy. Managed by winboot.'
        restart_ms = @(10000, 30000, 60000); reset_s = 900; depends = @('kubelet', 'flanneld'); start = 'demand'
        command_line = '"C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe" -log-file=C:\var\log\kube-proxy\kube-proxy.log -log-file-size=50Mi -redirect-stderr=true C:\k\versions\kubernetes-1.36.5\kube-proxy.exe --config=C:\k\kube-proxy.yaml --windows-service=true --v=2' }
    $running = (Get-ServiceState -Name $service.name) -eq 'Running'
    $health = 'http://127.0.0.1:10256/healthz'
}
Look = {
    Get-ServiceDifference -Service $service
    if ($running -and (Test-HnsRestart -Name $service.name)) {
        New-Difference -Key 'kube-proxy:hns' -What 'kube-proxy: rules in HNS' -Is 'HNS started after kube-proxy' -Want 'written since'
    }
    if ($running) { Compare-Wanted -Key 'kube-proxy:health' -What 'kube-proxy: health' -Is (Read-HttpStatus -Url $health) -Want 200 }
}
Change = {
    Assert-Network -Name $network
    Set-ServiceDefinition -Service $service
    if (Test-HnsRestart -Name $service.name) { Stop-RunningService -Name $service.name }
    Start-CurrentService -Name $service.name
    Wait-KubeProxy -Name $service.name -Health $health -Seconds 60
}
Guard = {
    Watch-Proxy -Name $service.name
}
}

)
#endregion

