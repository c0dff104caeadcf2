"""What a cluster needs for group managed service accounts: CredentialSpecs, RBAC for pods, and the webhook's chart values.

Forms: deploy/gmsa-crd.yml and charts/gmsa/values.yaml of kubernetes-sigs/windows-gmsa (v0.13.0). winboot never prints
deploy-gmsa-webhook.sh: that script deletes the CRD, and with it all CredentialSpecs.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from winboot.base.errors import InvalidInput
from winboot.config.node_spec import NodeSpec
from winboot.config.node_spec.node import GmsaAccount, GmsaSpec

Object = dict[str, Any]
GROUP: Final = "windows.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"


def gmsa_of(specs: Sequence[NodeSpec]) -> GmsaSpec | None:
    """The accounts of these nodes; None where no profile names any. Raises InvalidInput where two profiles differ."""
    found = list(dict.fromkeys(spec.gmsa for spec in specs if spec.gmsa is not None))
    if len(found) > 1:
        raise InvalidInput(
            "the profiles of these nodes describe different group managed service accounts",
            hint="Limit the command to one group (-l), or write the same `gmsa:` in each profile.",
        )
    return found[0] if found else None


def credential_specs(specs: Sequence[NodeSpec]) -> list[Object]:
    """A GMSACredentialSpec for each account, and what lets the pods of its service accounts use it."""
    gmsa = gmsa_of(specs)
    if gmsa is None:
        return []
    return [one for account in gmsa.accounts for one in (_spec(gmsa, account), *_rbac(account))]


def _spec(gmsa: GmsaSpec, account: GmsaAccount) -> Object:
    directory: Object = {
        "GroupManagedServiceAccounts": [
            # Both scopes: without the DNS name Windows falls back to NTLM (Azure/aksArc, issue 382).
            {"Name": account.name, "Scope": gmsa.dns_name},
            {"Name": account.name, "Scope": gmsa.netbios_name},
        ]
    }
    if gmsa.plugin_guid is not None:
        directory["HostAccountConfig"] = {
            "PluginGUID": f"{{{gmsa.plugin_guid}}}",
            "PluginInput": account.plugin_input or "",
            "PortableCcgVersion": "1",
        }
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "GMSACredentialSpec",
        "metadata": {"name": account.spec},
        "credspec": {
            "ActiveDirectoryConfig": directory,
            "CmsPlugins": ["ActiveDirectory"],
            "DomainJoinConfig": {
                "DnsName": gmsa.dns_name,
                "DnsTreeName": gmsa.forest,
                "Guid": gmsa.guid,
                "MachineAccountName": account.name,
                "NetBiosName": gmsa.netbios_name,
                "Sid": gmsa.sid,
            },
        },
    }


def _rbac(account: GmsaAccount) -> list[Object]:
    """The webhook asks for the verb `use` in the pod's namespace (LocalSubjectAccessReview, admission-webhook/webhook.go)."""
    name = f"gmsa-{account.spec}"
    rule = {
        "apiGroups": [GROUP],
        "resources": ["gmsacredentialspecs"],
        "verbs": ["use"],
        "resourceNames": [account.spec],
    }
    subjects: dict[str, list[str]] = {}
    for one in account.subjects:
        namespace, _, short = one.partition("/")
        subjects.setdefault(namespace, []).append(short)
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    return [
        role,
        *(
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": namespace},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [
                    {"kind": "ServiceAccount", "name": one, "namespace": namespace} for one in names
                ],
            }
            for namespace, names in subjects.items()
        ),
    ]


def webhook_values(specs: Sequence[NodeSpec]) -> list[Object]:
    """Values for the chart charts/gmsa: with cert-manager, or with the user's own CA bundle and Secret."""
    gmsa = gmsa_of(specs)
    if gmsa is None:
        return []
    certificates: Object = {"certManager": {"enabled": not gmsa.ca_bundle}}
    if gmsa.ca_bundle:
        certificates["caBundle"] = base64.b64encode(gmsa.ca_bundle.encode()).decode()
        certificates["secretName"] = gmsa.secret
    return [{"certificates": certificates}]
