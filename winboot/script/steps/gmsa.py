"""Look whether the machine can get credentials of group managed service accounts; install the user's plug-in for them."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    if spec.gmsa is None:
        return {}
    guid, app, provider = spec.gmsa.plugin_guid, spec.gmsa.app_id, spec.gmsa.provider
    return {
        "domain": spec.gmsa.dns_name,
        # Two CredentialSpecs may name one account.
        "accounts": list(dict.fromkeys(one.name for one in spec.gmsa.accounts)),
        "plugin": f"{{{guid}}}" if guid else None,
        "app": f"{{{app}}}" if app else None,
        "provider": f"{{{provider}}}" if provider else None,
        "library": spec.paths.gmsa_plugin,
        "manifest": spec.paths.gmsa_events,
    }


GMSA = Step(
    name="gmsa",
    why="without a domain or a plug-in, pods with a managed service account get no Kerberos ticket (untested on a domain)",
    inputs=_inputs,
    needs=("windows-features", "artifacts"),
    wanted=lambda spec: spec.gmsa is not None,
)
