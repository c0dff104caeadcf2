# winboot 0.1.0: takes back from the machine win-a1 what winboot did to it.
#
# This script CANNOT RUN YET: `winboot init` still has to find out what is missing, and join refuses until then:
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
# The settings are this machine's values and steps, down to "#region Library". The library behind it is the same text
# for every node of this winboot; its SHA-256 is the one above, and what is read of it once need not be read again.
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
#   kubelet-credentials  the kubelet proves its identity by a client certificate; without a valid one it requests one
#                        with a short-lived token
#   pause-image          every pod needs it first; pulling it now shows a wrong registry, proxy or Windows build before
#                        any pod hangs
#   containerd           the kubelet starts no pod without a container runtime, and containerd writes no log unless it
#                        is given a file
#   containerd-config    containerd's defaults look for CNI files in another folder, and its pause image must match this
#                        Windows build
#   artifacts            a program is what its hash says, whatever its version string or its date may claim
#   log-rotation         the one log of containerd grows without end, and neither NSSM nor kube-log-runner deletes old
#                        ones: the disk fills
#   postboot-task        a restart loses routes and leaves stale leases, and there may be no controller to fix them
#   firewall-rules       the control plane reaches kubelet, and the other nodes reach the pods, only through ports that
#                        are open
#   adoption             a node that another tool made keeps its name and certificate, and its services start again
#                        after an undo
#   directories          a folder made in time has its access rules before the first secret is in it
#   dynamic-ports        each load-balanced service takes blocks of client ports; the default range is soon empty and
#                        touches NodePorts
#   system-settings      a page file, the right time and updates at a chosen hour keep a node from failing in ways that
#                        are hard to find
#   windows-features     containerd cannot start a container until the Containers feature is on and the machine has
#                        restarted
#   computer-name        the name separates logs, certificates and clones; the kubelet receives the node's name as well
#   download-sources     a proxy, mirror or registry that does not answer is found out before the machine is renamed or
#                        restarted
#   node-preflight       a wrong build, a missing right or no way to the API server is found out before the first write
#
# winboot removes what it made, and puts back what it found and recorded:
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
#   folders             C:\k, C:\k\versions, C:\var\lib\kubelet\pki, C:\ProgramData\containerd,
#                       C:\ProgramData\containerd\certs.d, C:\ProgramData\containerd\root,
#                       C:\ProgramData\containerd\state, C:\var\lib\kubelet,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1, C:\k\versions\containerd-2.3.6,
#                       C:\Program Files\containerd, C:\Program Files\containerd\conf.d, C:\etc\kubernetes\pki,
#                       C:\etc\cni\net.d, C:\etc\kube-flannel, C:\var\lib\cni, C:\var\lib\cni\networks, C:\run\flannel,
#                       C:\var\log\pods, C:\var\log\containers, C:\var\log\containerd, C:\var\log\kubelet,
#                       C:\var\log\flanneld, C:\var\log\kube-proxy
#   images              registry.k8s.io/pause:3.10.2
#   page file           one that Windows manages, if the machine has none
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
#   scheduled tasks     \winboot\logs (every hour), \winboot\boot (at each start of the machine),
#                       \winboot\guard (while networks are made)
#   services            kube-proxy, flanneld, kubelet, containerd
#   state               C:\ProgramData\winboot (journal, former values, this script for the tasks)
#
# <<name>> in a text is a value that only this machine or its Node object has; Expand-Known fills it in:
#   <<pod_cidr>>     the IPv4 network that the cluster gives to the pods of this node
#   <<pod_gateway>>  the first address of the pods' network: their gateway
#
# Mode Look reports what would be put back, and changes nothing. Undo puts back what was there before winboot first changed
# it, as it was noted then; what is winboot's and was not noted goes only where the controller says so (Unnoted).
# Detached is for the task that takes a network back, Rescue for the task that corrects what a killed Detached left.
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
    Modes   = @('Look', 'Undo', 'Detached', 'Rescue')
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
# ---- node-preflight: a wrong build, a missing right or no way to the API server is found out before the first write
@{
Name = 'node-preflight'
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- download-sources: a proxy, mirror or registry that does not answer is found out before the machine is renamed or
# restarted
@{
Name = 'download-sources'
Needs = @('node-preflight')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- computer-name: the name separates logs, certificates and clones; the kubelet receives the node's name as well
@{
Name = 'computer-name'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- windows-features: containerd cannot start a container until the Containers feature is on and the machine has
# restarted
@{
Name = 'windows-features'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- system-settings: a page file, the right time and updates at a chosen hour keep a node from failing in ways that
# are hard to find
@{
Name = 'system-settings'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- dynamic-ports: each load-balanced service takes blocks of client ports; the default range is soon empty and
# touches NodePorts
@{
Name = 'dynamic-ports'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- directories: a folder made in time has its access rules before the first secret is in it
@{
Name = 'directories'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- adoption: a node that another tool made keeps its name and certificate, and its services start again after an
# undo
@{
Name = 'adoption'
Needs = @('directories')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- firewall-rules: the control plane reaches kubelet, and the other nodes reach the pods, only through ports that
# are open
@{
Name = 'firewall-rules'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Ours = @{ rules = @('winboot-kubelet', 'winboot-kube-proxy-health', 'winboot-node-ports-tcp', 'winboot-node-ports-udp') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- postboot-task: a restart loses routes and leaves stale leases, and there may be no controller to fix them
@{
Name = 'postboot-task'
Needs = @('directories')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- log-rotation: the one log of containerd grows without end, and neither NSSM nor kube-log-runner deletes old ones:
# the disk fills
@{
Name = 'log-rotation'
Needs = @('directories')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- artifacts: a program is what its hash says, whatever its version string or its date may claim
@{
Name = 'artifacts'
Needs = @('directories')
Values = {
}
Ours = @{ files = @('C:\k\versions\containerd-2.3.6\containerd.exe', 'C:\k\versions\containerd-2.3.6\ctr.exe',
            'C:\k\versions\containerd-2.3.6\containerd-shim-runhcs-v1.exe', 'C:\k\versions\kubernetes-1.36.5\kubelet.exe',
            'C:\k\versions\kubernetes-1.36.5\kube-proxy.exe', 'C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe',
            'C:\k\versions\kubectl-1.36.5\kubectl.exe', 'C:\k\versions\crictl-1.36.0\crictl.exe',
            'C:\k\versions\nssm-2.24\nssm.exe', 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\win-bridge.exe',
            'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\host-local.exe',
            'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\flannel.exe',
            'C:\k\versions\flannel-0.28.9\flanneld.exe') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- containerd-config: containerd's defaults look for CNI files in another folder, and its pause image must match
# this Windows build
@{
Name = 'containerd-config'
Needs = @('artifacts', 'directories')
Values = {
}
Ours = @{ files = @('C:\Program Files\containerd\config.toml', 'C:\k\crictl.yaml') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- containerd: the kubelet starts no pod without a container runtime, and containerd writes no log unless it is
# given a file
@{
Name = 'containerd'
Needs = @('containerd-config', 'windows-features')
Values = {
}
Ours = @{ services = @('containerd') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- pause-image: every pod needs it first; pulling it now shows a wrong registry, proxy or Windows build before any
# pod hangs
@{
Name = 'pause-image'
Needs = @('containerd')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    # An image that was pulled harms nothing; the kubelet's own collection removes it.
}
}

# ---- kubelet-credentials: the kubelet proves its identity by a client certificate; without a valid one it requests one
# with a short-lived token
@{
Name = 'kubelet-credentials'
Needs = @('directories', 'computer-name', 'adoption')
Secrets = @('bootstrap-token')
Values = {
}
Ours = @{ files = @('C:\etc\kubernetes\pki\ca.crt', 'C:\k\kubeconfig') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kubelet-config: several of the kubelet's defaults are for Linux and end it at once, or break each pod, on Windows
@{
Name = 'kubelet-config'
Needs = @('directories')
Values = {
}
Ours = @{ files = @('C:\var\lib\kubelet\config.yaml') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kubelet: the kubelet makes the machine a node; it must outlive logons, come back after a crash, and leave a log
@{
Name = 'kubelet'
Needs = @('kubelet-config', 'kubelet-credentials', 'containerd', 'artifacts', 'firewall-rules')
Values = {
}
Ours = @{ services = @('kubelet') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- registration: the network needs the pod CIDR that the cluster gives to the Node; logs and exec need the serving
# certificate
@{
Name = 'registration'
Needs = @('kubelet')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    # Nothing of the machine was changed here; the Node object is the cluster's.
}
}

# ---- flanneld-config: flanneld reads its network from a file whose names must be those of the CNI configuration and of
# kube-proxy
@{
Name = 'flanneld-config'
Needs = @('directories')
Values = {
}
Ours = @{ files = @('C:\etc\kube-flannel\net-conf.json', 'C:\k\flanneld.kubeconfig') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- flanneld: flanneld builds the pod network, keeps the routes to the other nodes, and renews its lease
@{
Name = 'flanneld'
Needs = @('flanneld-config', 'registration', 'artifacts')
Values = {
}
Ours = @{ services = @('flanneld') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- pod-network: making an HNS network rewires the adapter: sessions drop, and a static address, DNS servers and
# routes can vanish
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
    Get-RemovalDifference
}
Undo = {
    if (Get-OwnNetwork -Wanted $network) {
        # It would make the network again.
        Remove-Task -Name 'guard'
        Start-DetachedRun -Guard $guard -Seconds 480
    }
    else { Restore-FormerValue }
}
Detached = {
    Stop-PodNetwork -Wanted $network
}
}

# ---- ipam-reservations: host-local would give a pod the address of the host's own endpoint, and after a hard restart
# it runs out of addresses
@{
Name = 'ipam-reservations'
Needs = @('registration', 'containerd')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- cni-config: a node is Ready as soon as this file is there, so it comes after the network it names
@{
Name = 'cni-config'
Needs = @('registration', 'ipam-reservations', 'pod-network')
Values = {
}
Ours = @{ files = @('C:\etc\cni\net.d\10-flannel.conflist') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kube-proxy-config: kube-proxy must name the HNS network, the host's endpoint and the node exactly, or services
# fail on this node
@{
Name = 'kube-proxy-config'
Needs = @('directories', 'registration', 'ipam-reservations', 'pod-network')
Values = {
}
Ours = @{ files = @('C:\k\kube-proxy.yaml', 'C:\k\kube-proxy.kubeconfig') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kube-proxy: services have no address on this node without it; it starts after the HNS network that it programs
@{
Name = 'kube-proxy'
Needs = @('kube-proxy-config', 'pod-network', 'artifacts', 'firewall-rules')
Values = {
}
Ours = @{ services = @('kube-proxy') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

)
#endregion

