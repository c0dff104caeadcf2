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
        "Give the node an address on another adapter (node_ip in the inventory), or turn the team into one of the "
        "Hyper-V switch (SET) outside of this machine."
    ),
    "AddressState": "Wait for DHCP, or correct the address: HNS would keep this one.",
    "ChangeFailed": (
        "The message quotes Windows or the program; `winboot render` shows the script with the line that "
        "failed."
    ),
    "ContainerdSilent": (
        "Read its log (Docker's is in the event log Application): a key of its configuration that this version does not know "
        "ends it at once."
    ),
    "ClockOff": (
        "Set the clock (w32tm /resync /force, or Set-Date), give the machine a time source, and run the same command again. "
        "Certificates and tokens fail when clocks disagree."
    ),
    "DefaultRoutes": (
        "Write node_ip: ADDRESS for the host in the inventory, so that winboot knows the node's adapter, "
        "or keep the gateway on one adapter."
    ),
    "DetachedFailed": "Fix the cause, then run the same command again.",
    "DiskSpace": "Make room or extend the volume: a Server Core image alone takes 2 to 5 GB.",
    "DiskFull": "Make room on that volume, then run the same command again: finished steps stay done.",
    "MoveSpace": (
        "Delete images that pods do not need (`docker image prune -a`), extend the volume, set runtime.root to "
        "another drive, or add --purge, which deletes Docker's images before containerd pulls."
    ),
    "DownloadFailed": "Check that this node reaches the address, its proxy, or set artifacts.source to a mirror.",
    "FeatureBlocked": (
        "Restart the machine to finish pending servicing; free up space on C: and the system partition."
    ),
    "FeatureSource": (
        r"Set windows.features_source to a folder with sources\sxs of this build (a share needs SSH with a password), "
        "or allow Windows Update for repair content."
    ),
    "FileInUse": (
        "A virus scanner, a backup or a log shipper holds the file: exclude the folder there, and run the "
        "same command again."
    ),
    "ForeignAgent": (
        "Remove it with its own tool (rke2-uninstall.ps1, k0s reset, the operator), then run the same command again."
    ),
    "KubeadmConflict": (
        "`kubeadm upgrade node` or `kubeadm reset` ran on this node. Give the profile the version that the node is to have, "
        "and run `winboot join --adopt`; or run `winboot remove`, which gives the node back."
    ),
    "ForeignNode": (
        "To let winboot take it over, run the same command with --adopt, and with --drain if pods run there. The Node "
        "stays, and so does a valid certificate that kubeadm requested. winboot records services, kubeconfigs and keys first, "
        "and an undo restores them."
    ),
    "EphemeralDrive": (
        "Put runtime.root on a data disk, or set runtime.ephemeral: true: images are pulled again when the disk is empty."
    ),
    "FileSystem": (
        r"Give images a folder on an NTFS volume that is neither compressed nor encrypted (`compact /u /s:FOLDER`, "
        r"`cipher /d /s:FOLDER`), and run the same command again."
    ),
    "FirewallServiceOff": (
        "Set the start type of the services BFE and mpssvc to automatic (in the Group Policy that disables them, or Start = 2 "
        r"below HKLM\SYSTEM\CurrentControlSet\Services) and restart the machine. To let all traffic pass, turn off the "
        "profiles instead (Set-NetFirewallProfile -All -Enabled False): HNS and the firewall's cmdlets need the services."
    ),
    "FolderInUse": (
        "End the programs that have something open in it (Get-SmbOpenFile names those of shares), or "
        "restart the machine, and run the same command again. If the node itself runs from the folder, "
        "remove the user's rights there (icacls) and restart: that closes every open file."
    ),
    "FolderOpen": (
        "Remove that permission (see `icacls`; by default ordinary users do not have it), and run the "
        "same command again."
    ),
    "RegistryFile": (
        "Put the file there (the image, a step of your own, or group policy), or correct runtime.registries. "
        "containerd fails every pull from that registry without it."
    ),
    "PipeTaken": (
        "End that program (handle.exe or Process Explorer of Sysinternals names it by the pipe), check "
        "the account that runs it, and run the same command again."
    ),
    "PipeMissing": (
        "Read the service's log below C:\\var\\log: it may be no csi-proxy of version 1, or another program may "
        "have taken one of its pipes."
    ),
    "ProviderMissing": "Correct gmsa.plugin.events.provider: the manifest has the GUID in its element `provider`.",
    "ModuleMissing": "The module belongs to Windows: an image without it was made smaller. Take a complete one.",
    "RuleMissing": "The rule belongs to Windows. Restore the rule, or take storage.iscsi out of the profile.",
    "FolderTaken": (
        "Another account made the folder in the same moment as winboot. Run the same command again, which "
        "sets it aside, and check that account."
    ),
    "FolderIsLink": (
        "Find the link's owner (dir /AL /Q), move the link's target into a real folder, and run the same "
        "command again."
    ),
    "FlagRefused": (
        "Remove the flags from the profile, or choose a version that has them. `winboot compat learn "
        "NODE` writes the flags of this program for kubernetes.overlay."
    ),
    "FolderLeft": (
        "A process still uses it, or it holds image layers: restart the machine and run the same command again."
    ),
    "FormerLost": (
        "Restore the file from your backup, then delete the step's records in "
        r"C:\ProgramData\winboot\former."
    ),
    "LayerLeft": (
        "A container still uses them: restart the machine, which ends all containers, and run the same "
        "command again."
    ),
    "GateRefused": (
        "Remove the gates from featureGates in the profile, or choose a version that has them. `winboot "
        "compat learn NODE` writes the gates of this program for kubernetes.overlay."
    ),
    "HashMismatch": (
        "This is not the file that the profile describes: check version, mirror and proxy, "
        "or, after a change of version, run `winboot init --renew`."
    ),
    "HashMissing": "Run `winboot init`, or give it under artifacts.sha256 in the profile.",
    "artifact-source": (
        "From this machine, open the address in the message: check DNS, routes, firewall and `proxy`, or give a mirror in "
        "artifacts.source."
    ),
    "SecureBoot": (
        "Turn Secure Boot off in the machine's firmware, or choose a network without a test-signed driver; docs/networks.md "
        "compares them."
    ),
    "SeveralWays": (
        "Write the node's address into the inventory, for example node_ip: 10.0.1.11; winboot does not "
        "change the other adapter."
    ),
    "proxy": (
        "Check `proxy` in the profile: its name must resolve and its port answer from this machine, without a login. If it "
        "wants one (407), let it except this machine's address, or name mirrors in runtime.registries and artifacts.source."
    ),
    "registry": (
        "Check DNS, routes, firewall and `proxy` for this registry from this machine, or give a mirror in "
        "runtime.registries."
    ),
    "HnsHangs": (
        "Restart the machine; then HNS answers again. See the event log "
        "Microsoft-Windows-Host-Network-Service-Admin."
    ),
    "LastNetwork": (
        "Run winboot join: it makes the first network again under guard, and then the other one."
    ),
    "HnsRefused": "See the event log Microsoft-Windows-Host-Network-Service-Admin.",
    "ImagePull": (
        "Check the registry, its mirror in runtime.registries, the proxy, and that the image has this Windows build."
    ),
    "KubeProxyUnwell": (
        "See its log for the reason. Often it may not list endpoint slices: `winboot manifests rbac` "
        "prints the binding."
    ),
    "LookFailed": (
        "The message quotes Windows or the program; `winboot render` shows the script with the line that "
        "failed."
    ),
    "MachineHeld": "Wait until that run has ended, then run the same command again: it makes what is missing.",
    "NeedsRestart": "Run again without --no-restart when the machine may restart.",
    "NeedsDrain": (
        "Run again with --drain: winboot cordons and evicts first, and lifts its own cordon afterwards. Without "
        "cluster.kubeconfig, run `kubectl drain` yourself, then the same command, then `kubectl uncordon`."
    ),
    "NeedsStep": "Fix that step: the next run then applies this one, too.",
    "NetworkConflict": (
        "docs/networks.md lists which solution makes which network. Remove the node with its former profile "
        "(`winboot remove`), or uninstall the solution that made it. Delete it by hand "
        "(Get-HnsNetwork | Remove-HnsNetwork) only if no solution owns it."
    ),
    "NetworkLeft": (
        "Remove it with Get-HnsNetwork | Remove-HnsNetwork when no pod uses it; "
        "connections of the machine break for a moment."
    ),
    "NoAddress": (
        "Is the DHCP server reachable? Does the inventory name the right node_ip? "
        "An IPv6-only adapter cannot carry Windows pods."
    ),
    "NoClientCertificate": (
        "If the message names the machine's clock, set it first (w32tm /resync /force). "
        "If the kubelet log has Unauthorized, the bootstrap token is not valid: run the same command again for a new one. "
        "Else see its CSR (kubectl get csr): is it pending or denied? x509 in the log means the CA."
    ),
    "NoFeature": "Use the name that Get-WindowsOptionalFeature -Online lists.",
    "NoDrive": "Attach and format the volume, or correct the path in the profile, then run the same command again.",
    "NoHnsNetwork": (
        "The network solution makes it: look at the step before this one, or at the pods of its operator."
    ),
    "NodeNotReady": (
        "`kubectl describe node` shows the condition's reason; `winboot doctor` finds the cause on the machine. Without "
        "kube-proxy's and the network's rights the node does not become Ready: `winboot manifests rbac`."
    ),
    "NoNodeAddress": (
        "The kubelet reports an address only if the machine has it. Set node_ip of this host in the "
        "inventory to an address of the machine, and run the same command again."
    ),
    "NoPodCidr": "kube-controller-manager needs --allocate-node-cidrs=true and a --cluster-cidr with room.",
    "NoPodNetwork": (
        "The message quotes the agent's last log line; see its log for the rest. The agent needs the Node "
        "object with its pod CIDR, the rights of `winboot manifests rbac`, and a ready address on the "
        "adapter."
    ),
    "NoServer": "Check DNS, routes and firewalls between this node and the control plane.",
    "NodesForbidden": (
        "A node may read only itself unless the cluster lets it: `winboot manifests rbac` prints the role and its binding."
    ),
    "Not64Bit": "Use the 64-bit endpoint Microsoft.PowerShell.",
    "ProgramNotStarted": "Is it there, whole, and allowed to run (AppLocker, a scanner)? Then run the same command again.",
    "StoreFull": "Remove pods of this node, or give it a larger pod network, then run the same command again.",
    "NoMachineUuid": "Repair WMI (`winmgmt /verifyrepository`), then restart the machine.",
    "NoBootId": "Repair WMI (`winmgmt /verifyrepository`), then run the same command again.",
    "NotOurs": (
        "Find its owner (Get-Acl). The step `directories` removes other accounts' rights from the folder: "
        "run the same command again without --skip."
    ),
    "NotAdministrator": (
        "Use a domain account or the built-in Administrator, or set LocalAccountTokenFilterPolicy to 1."
    ),
    "NotKnownYet": (
        "Check that the Node object has spec.podCIDR (kube-controller-manager --allocate-node-cidrs=true)."
    ),
    "NotRegistered": "Read the kubelet log: an unknown flag or an unreachable cluster ends it at once.",
    "NotServer": "Kubernetes supports Windows Server only.",
    "OperatorMissing": "The network's operator brings it: look at the operator's pods or services.",
    "OtherNodeAddress": (
        "The machine's address has changed. Run `winboot join`: it restarts the kubelet with the new one. If the inventory "
        "names node_ip, correct it first."
    ),
    "PendingReboot": "Nothing to do: the run continues after the restart.",
    "PodLeft": (
        "A process still uses them: restart the machine, which ends all processes, and run the same "
        "command again."
    ),
    "ProgramFailed": "Run the program on the machine by hand; its own log may have the reason.",
    "ProgramHangs": "Run the program on the machine by hand and find out what it waits for.",
    "RolledBack": (
        "Run `winboot upgrade` to give the node the profile's versions, or set the node's versions in the "
        "profile."
    ),
    "RunFailed": "Run the same command again; if it fails again, report it with the node's journal.",
    "SecretMissing": "Check the references in the profile (env, file, command, mint).",
    "ServiceControl": (
        "Look the code up with `net helpmsg`. 1072: the service is marked for deletion; "
        "close services.msc and other tools that hold it."
    ),
    "ServiceState": "See the log of the service, and the System event log (Service Control Manager).",
    "ServingCsrPending": (
        "A request waits (kubectl get csr). winboot approves it if its credentials may update "
        "certificatesigningrequests/approval for the signer kubernetes.io/kubelet-serving."
    ),
    "StillDifferent": (
        "Another program on the machine reverts or refuses it: a Group Policy, an agent, or the service "
        "itself."
    ),
    "RegistryKind": (
        "Find the program that wrote it (regedit shows its kind), delete the value, and run the same "
        "command again."
    ),
    "UpdateMissing": "Install the current cumulative update and restart.",
    "WrongAdapter": (
        "winboot has restored everything. Get-HnsNetwork lists the machine's networks, and docs/networks.md "
        "lists the solution that makes each. Remove those that nothing uses, then run the same command again."
    ),
    "WrongBuild": "Set `os` of this host in the inventory to the machine's release.",
    "WrongVersion": (
        "Check what artifacts.source serves for this version, then renew the hashes: `winboot init "
        "--renew -i INVENTORY`."
    ),
}


def hint_for(problem: str, told: str) -> str:
    """The hint of a problem by its id: `told` where the script gave its own text, else the one of this table."""
    ids = told.split() or [problem]
    if any(one not in HINTS for one in ids):
        return told
    return " ".join(HINTS[one] for one in dict.fromkeys(ids))
