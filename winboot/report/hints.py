"""The next step for each problem that a script on a node reports; the script need not carry it.

A script sends a problem's id and message. As the hint it may send the ids of several problems, since
the preflight finds all of them at once. A user's step may send its own text. docs/problems.md is
written from them (`python -m tools.pages`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HINTS: Final[Mapping[str, str]] = {
    "AddressInUse": "Delete that pod (or drain the node) and run the same command again.",
    "AdapterRefused": (
        "Give the node an address on another adapter (node_ip in the inventory), or replace the LBFO team with a "
        "Switch Embedded Team (SET)."
    ),
    "AddressState": "Wait for DHCP, or correct the address: HNS would keep the present address.",
    "ChangeFailed": (
        "The message quotes Windows or the program; `winboot render` prints the script with the failed line."
    ),
    "ContainerdSilent": (
        "Read its log (Docker writes to the event log Application). A configuration key that this version does not know "
        "makes it exit at once."
    ),
    "ClockOff": (
        "Set the clock (w32tm /resync /force, or Set-Date), give the machine a time source, and run the same command again. "
        "With a wrong clock, certificates and tokens are not valid."
    ),
    "DefaultRoutes": (
        "Write node_ip: ADDRESS for the host in the inventory, so that winboot knows the node's adapter, "
        "or keep the gateway on one adapter."
    ),
    "DetachedFailed": "Fix the cause, then run the same command again.",
    "DiskSpace": "Free disk space or extend the volume: a Server Core image alone takes 2 to 5 GB.",
    "DiskFull": "Free disk space on that volume, then run the same command again: winboot does not repeat finished steps.",
    "MoveSpace": (
        "Delete images that pods do not need (`docker image prune -a`), extend the volume, set runtime.root to "
        "another drive, or add --purge, which deletes Docker's images before containerd pulls."
    ),
    "DownloadFailed": "Check that this node can connect to the address and to the proxy, or set artifacts.source to a mirror.",
    "FeatureBlocked": (
        "Restart the machine to finish pending updates, and free disk space on C: and the system partition."
    ),
    "FeatureSource": (
        r"Set windows.features_source to a folder with sources\sxs of this build (a share needs SSH with a password), "
        "or allow downloads of features from Windows Update."
    ),
    "FileInUse": (
        "A virus scanner, a backup or a log shipper has the file open: exclude the folder in that program, and run "
        "the same command again."
    ),
    "ForeignAgent": (
        "Remove that service with its own tool (rke2-uninstall.ps1, k0s reset, the operator), then run the same command again."
    ),
    "KubeadmConflict": (
        "`kubeadm upgrade node` or `kubeadm reset` ran on this node. Set the node's version in the profile and run `winboot "
        "join --adopt`; or run `winboot remove`, which leaves the node to kubeadm."
    ),
    "ForeignNode": (
        "To let winboot take the node over, run the same command with --adopt, and with --drain if pods run there. The Node "
        "object and a valid certificate of kubeadm stay. winboot records services, kubeconfigs and keys first, and an undo "
        "restores them."
    ),
    "EphemeralDrive": (
        "Put runtime.root on a data disk, or set runtime.ephemeral: true: winboot pulls images again onto an emptied disk."
    ),
    "FileSystem": (
        r"Set runtime.root to a folder on an NTFS volume that is neither compressed nor encrypted (`compact /u "
        r"/s:FOLDER`, `cipher /d /s:FOLDER`), and run the same command again."
    ),
    "FirewallServiceOff": (
        "Set the start type of the services BFE and mpssvc to automatic (in the Group Policy that disables them, or Start = 2 "
        r"below HKLM\SYSTEM\CurrentControlSet\Services) and restart the machine. HNS and the firewall's cmdlets need them. "
        "To allow all traffic, turn off the firewall profiles instead (Set-NetFirewallProfile -All -Enabled False)."
    ),
    "FolderInUse": (
        "End the programs that have files open in the folder (Get-SmbOpenFile lists files open through shares), or "
        "restart the machine, and run the same command again. If the node's programs run from the folder, remove the "
        "account's rights there (icacls) and restart the machine."
    ),
    "FolderOpen": (
        "Remove that permission (see `icacls`; by default ordinary users do not have it), and run the "
        "same command again."
    ),
    "RegistryFile": (
        "Put the file at that path (by the machine's image, your own step, or group policy), or correct "
        "runtime.registries. Without the file, every pull from that registry fails."
    ),
    "PipeTaken": (
        "Find the program that serves the pipe (handle.exe or Process Explorer of Sysinternals), end it, check the "
        "account that ran it, and run the same command again."
    ),
    "PipeMissing": (
        "Read the service's log below C:\\var\\log: the program may not be csi-proxy 1.x, or another program may "
        "serve one of its pipes."
    ),
    "ProviderMissing": "Correct gmsa.plugin.events.provider: the manifest has the GUID in its element `provider`.",
    "ModuleMissing": "The module is a part of Windows that this machine's image lacks. Use a complete Windows image.",
    "RuleMissing": "The rule is a part of Windows. Restore the rule, or remove storage.iscsi from the profile.",
    "FolderTaken": (
        "Another account made the folder while winboot was making it. Check that account, and run the same command "
        "again: winboot renames the folder and makes its own."
    ),
    "FolderIsLink": (
        "Find the link's owner (dir /AL /Q), replace the link with a real folder, and run the same command again."
    ),
    "FlagRefused": (
        "Remove the flags from the profile, or choose a version that has them. `winboot compat learn NODE` writes "
        "the program's flags into a file for kubernetes.overlay."
    ),
    "FolderLeft": (
        "A process still uses the folder, or the folder holds image layers: restart the machine and run the same command again."
    ),
    "FormerLost": (
        "Restore the file from your backup, then delete the step's records in "
        r"C:\ProgramData\winboot\former."
    ),
    "LayerLeft": (
        "A container still uses these layers: restart the machine, which ends all containers, and run the same "
        "command again."
    ),
    "GateRefused": (
        "Remove the gates from featureGates in the profile, or choose a version that has them. `winboot compat learn "
        "NODE` writes the program's gates into a file for kubernetes.overlay."
    ),
    "HashMismatch": (
        "The downloaded file is not the file that the profile pins: check version, mirror and proxy. After a change "
        "of version, run `winboot init --renew`."
    ),
    "HashMissing": "Run `winboot init`, or write the file's SHA-256 under artifacts.sha256 in the profile.",
    "artifact-source": (
        "Open the address in the message from this machine: check DNS, routes, firewall and `proxy`, or set "
        "artifacts.source to a mirror."
    ),
    "SecureBoot": (
        "Turn Secure Boot off in the machine's firmware, or choose a network without a test-signed driver; docs/networks.md "
        "compares them."
    ),
    "SeveralWays": (
        "Write the node's address into the inventory, for example node_ip: 10.0.1.11; winboot does not change the "
        "other adapters."
    ),
    "proxy": (
        "Check `proxy` in the profile: this machine must resolve the proxy's name and connect to its port without a login. "
        "If the proxy wants a login (407), exempt this machine there, or set mirrors in runtime.registries and "
        "artifacts.source."
    ),
    "registry": (
        "On this machine, check DNS, routes, firewall and `proxy` for this registry, or set a mirror in "
        "runtime.registries."
    ),
    "HnsHangs": (
        "Restart the machine: then HNS answers again. See the event log "
        "Microsoft-Windows-Host-Network-Service-Admin."
    ),
    "LastNetwork": (
        "Run `winboot join`: it makes this network again, with a watchdog that restores the address, and then the pod network."
    ),
    "HnsRefused": "See the event log Microsoft-Windows-Host-Network-Service-Admin.",
    "ImagePull": (
        "Check the registry, its mirror in runtime.registries, the proxy, and that the image exists for this Windows build."
    ),
    "KubeProxyUnwell": (
        "See kube-proxy's log for the reason. A common reason is a missing right to list endpoint slices: `winboot "
        "manifests rbac` prints the binding."
    ),
    "LookFailed": (
        "The message quotes Windows or the program; `winboot render` prints the script with the failed line."
    ),
    "MachineHeld": "Wait until that run has ended, then run the same command again: it makes the missing pod network.",
    "NeedsRestart": "When the machine may restart, run the same command again without --no-restart.",
    "NeedsDrain": (
        "Run the same command again with --drain: winboot drains the node first and uncordons it afterwards. Without "
        "cluster.kubeconfig, run `kubectl drain` yourself, then the same command, then `kubectl uncordon`."
    ),
    "NeedsStep": "Fix the named step: the next run then applies this step, too.",
    "NetworkConflict": (
        "docs/networks.md lists the networks that each solution makes. Remove the node with its former profile "
        "(`winboot remove`), or uninstall the solution that made the network. Delete the network by hand "
        "(Get-HnsNetwork | Remove-HnsNetwork) only if no solution owns it."
    ),
    "NetworkLeft": (
        "When no pod uses the network, remove it with Get-HnsNetwork | Remove-HnsNetwork; this interrupts the "
        "machine's connections for a moment."
    ),
    "NoAddress": (
        "Is the DHCP server reachable? Does the inventory name the right node_ip? "
        "An IPv6-only adapter cannot carry Windows pods."
    ),
    "NoClientCertificate": (
        "If the message names the machine's clock, set the clock first (w32tm /resync /force). If the kubelet log has "
        "Unauthorized, the bootstrap token is not valid: run the same command again for a new token. If the log has x509, "
        "check the CA. Otherwise look for a pending or denied request (kubectl get csr)."
    ),
    "NoFeature": "Use a name that Get-WindowsOptionalFeature -Online lists.",
    "NoDrive": "Attach and format the volume, or correct the path in the profile, then run the same command again.",
    "NoHnsNetwork": (
        "The network solution makes this HNS network: look at the step before this one, or at the operator's pods."
    ),
    "NodeNotReady": (
        "`kubectl describe node` shows the condition's reason; `winboot doctor` finds the cause on the machine. "
        "kube-proxy and the network need rights in the cluster: `winboot manifests rbac` prints them."
    ),
    "NoNodeAddress": (
        "The kubelet reports only addresses that the machine has. Set node_ip of this host in the inventory to an "
        "address of the machine, and run the same command again."
    ),
    "NoPodCidr": "Start kube-controller-manager with --allocate-node-cidrs=true and a --cluster-cidr with free space.",
    "NoPodNetwork": (
        "The message quotes the last line of the network agent's log; read the whole log. The agent needs the Node "
        "object with its pod CIDR, the rights of `winboot manifests rbac`, and a ready address on the adapter."
    ),
    "NoServer": "Check DNS, routes and firewalls between this node and the control plane.",
    "NodesForbidden": (
        "By default a node may read only its own Node object: `winboot manifests rbac` prints the missing role and binding."
    ),
    "Not64Bit": "Use the 64-bit endpoint Microsoft.PowerShell.",
    "ProgramNotStarted": "Check that the file is complete and that neither AppLocker nor a virus scanner blocks it.",
    "StoreFull": "Remove pods from this node, or give the node a larger pod CIDR, then run the same command again.",
    "NoMachineUuid": "Repair WMI (`winmgmt /verifyrepository`), then restart the machine.",
    "NoBootId": "Repair WMI (`winmgmt /verifyrepository`), then run the same command again.",
    "NotOurs": (
        "Find the owner of the file (Get-Acl). The step `directories` removes other accounts' rights from the "
        "folder: run the same command again without --skip."
    ),
    "NotAdministrator": (
        "Use a domain account or the built-in Administrator, or set LocalAccountTokenFilterPolicy to 1."
    ),
    "NotKnownYet": (
        "Check that the Node object has spec.podCIDR: kube-controller-manager needs --allocate-node-cidrs=true."
    ),
    "NotRegistered": "Read the kubelet log: an unknown flag or an unreachable cluster makes the kubelet exit at once.",
    "NotServer": "Kubernetes supports Windows Server only.",
    "OperatorMissing": "The network's operator installs the missing parts: look at the operator's pods or services.",
    "OtherNodeAddress": (
        "The machine's address has changed. If the inventory has node_ip, correct it. Then run `winboot join`: it restarts "
        "the kubelet with the new address."
    ),
    "PendingReboot": "You need not do anything: the run continues after the restart.",
    "PodLeft": (
        "A process of these pods still runs: restart the machine, which ends all processes, and run the same command "
        "again."
    ),
    "ProgramFailed": "Run the program on the machine by hand; its own log may have the reason.",
    "ProgramHangs": "Run the program on the machine by hand, and find out why it does not end.",
    "RolledBack": (
        "Run `winboot upgrade` to give the node the profile's versions, or set the node's versions in the "
        "profile."
    ),
    "RunFailed": "Run the same command again; if it fails again, report it with the node's journal.",
    "SecretMissing": "Check the secret references in the profile (env, file, command, mint).",
    "ServiceControl": (
        "`net helpmsg CODE` explains the code. 1072 means that the service is marked for deletion: close "
        "services.msc and other tools that have the service open."
    ),
    "ServiceState": "See the log of the service, and the System event log (Service Control Manager).",
    "ServingCsrPending": (
        "Approve the pending request (kubectl get csr). winboot approves it if the kubeconfig's user may update "
        "certificatesigningrequests/approval for the signer kubernetes.io/kubelet-serving."
    ),
    "StillDifferent": (
        "Another program on the machine reverts or refuses the change: a Group Policy, an agent, or the service "
        "itself."
    ),
    "RegistryKind": (
        "Find the program that wrote the value (regedit shows its type), delete the value, and run the same command "
        "again."
    ),
    "UpdateMissing": "Install the current cumulative update and restart.",
    "WrongAdapter": (
        "winboot has restored the former state. Get-HnsNetwork lists the machine's networks, and docs/networks.md "
        "names the solution that makes each. Remove unused networks, then run the same command again."
    ),
    "WrongBuild": "Set `os` of this host in the inventory to the machine's release.",
    "WrongVersion": (
        "Check which file artifacts.source serves for this version, then renew the hashes: `winboot init --renew -i "
        "INVENTORY`."
    ),
}


def hint_for(problem: str, told: str) -> str:
    """The hint of a problem by its id: `told` where the script gave its own text, else the one of this table."""
    ids = told.split() or [problem]
    if any(one not in HINTS for one in ids):
        return told
    return " ".join(HINTS[one] for one in dict.fromkeys(ids))
