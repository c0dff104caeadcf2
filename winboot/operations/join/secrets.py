"""The secrets of the steps that differ: read or made only when a change needs them, and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from winboot.base.errors import ClusterError, InvalidInput
from winboot.base.secret import Secret
from winboot.config.node_spec import NodeSpec
from winboot.remote.cluster.base import Token, Tokens
from winboot.remote.cluster.kubeconfig import Kubeconfig
from winboot.report.events import StepDone
from winboot.script.plan import Plan, make_plan
from winboot.script.steps import STEPS
from winboot.script.steps.kube_proxy_config import KUBECONFIG_SECRET, USER
from winboot.script.steps.texts import kubeconfig_text

# Long enough for a machine that restarts twice, short enough to be worth little when found.
TOKEN_LIFETIME: Final = timedelta(hours=2)
BOOTSTRAP: Final = "bootstrap-token"
# What a credential can be that travels: each way with the keys it has in a kubeconfig.
_CREDENTIALS: Final = (("token",), ("client-certificate-data", "client-key-data"))


@dataclass(frozen=True, slots=True)
class ChangeSecrets:
    """Name → value, as the script wants them, and the user that the bootstrap token among them speaks as."""

    values: Mapping[str, Secret]
    requestor: str | None = None


@contextmanager
def change_secrets(
    spec: NodeSpec,
    plan: Plan,
    differing: Sequence[StepDone],
    cluster: Tokens | None,
    note: Callable[[str], None],
    minted_one: Callable[[Token | None], None] = lambda token: None,
    run: str = "",
) -> Iterator[ChangeSecrets]:
    """The secrets that the differing steps ask for. A token that was minted here is deleted at the end.

    Another controller at the same node has a token of its own, which its kubelet may still need: only ours goes.
    `minted_one` receives that token, and its end; its id follows from the `run`. Raises InvalidInput where a
    reference cannot be read, ClusterError where no token can be made.
    """
    names = secret_names(spec, plan, differing)
    minted = (
        _mint(spec, cluster, run=run)
        if BOOTSTRAP in names and spec.cluster.bootstrap_token == "mint"
        else None
    )
    minted_one(minted)
    try:
        values = {name: _read(spec, name) for name in sorted(names) if minted is None or name != BOOTSTRAP}
        if minted is not None:
            values[BOOTSTRAP] = minted.value
        yield ChangeSecrets(values, _requestor(values.get(BOOTSTRAP)))
    finally:
        if cluster is not None and minted is not None:
            _forget(cluster, minted, note)
        minted_one(None)


def own_secrets(spec: NodeSpec, cluster: Tokens | None, lifetime: timedelta) -> Mapping[str, Secret]:
    """All secrets of a node's steps, for a machine that winboot does not reach later; a token that is minted lives so
    long.

    Raises InvalidInput where a reference cannot be read, ClusterError where no token can be made.
    """
    names = {
        secret for step in make_plan(spec, STEPS, only=(), skip=()).node_side for secret in step.secrets(spec)
    }
    values = {}
    for name in sorted(names):
        if name == BOOTSTRAP and spec.cluster.bootstrap_token == "mint":
            values[name] = _mint(spec, cluster, lifetime).value
        else:
            values[name] = _read(spec, name)
    return values


def secret_names(spec: NodeSpec, plan: Plan, differing: Sequence[StepDone]) -> set[str]:
    """The secrets that the differing steps ask for."""
    names = {step.step for step in differing}
    return {secret for step in plan.node_side if step.name in names for secret in step.secrets(spec)}


def _requestor(token: Secret | None) -> str | None:
    """https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/: the user of a token is its id."""
    return None if token is None else f"system:bootstrap:{token.reveal().partition('.')[0]}"


def _mint(
    spec: NodeSpec, cluster: Tokens | None, lifetime: timedelta = TOKEN_LIFETIME, run: str = ""
) -> Token:
    if cluster is None:
        raise InvalidInput(
            f"{spec.node.name}: winboot cannot mint a token, because the profile has no cluster.kubeconfig",
            hint="Set it, or give cluster.bootstrap_token as {env: NAME}, {file: PATH} or {command: [...]}.",
        )
    return cluster.mint_token(node=spec.node.name, lifetime=lifetime, run=run)


def _forget(cluster: Tokens, token: Token, note: Callable[[str], None]) -> None:
    """Delete a token. That it could not be must not hide how the change ended; it expires by itself."""
    try:
        cluster.forget_token(token.id)
    except ClusterError as error:
        note(
            f"the bootstrap token {token.id} was not deleted ({error.problem}); it expires at {token.expires:%H:%M} UTC"
        )


def _read(spec: NodeSpec, name: str) -> Secret:
    node = spec.node.name
    if name == BOOTSTRAP and spec.cluster.bootstrap_token != "mint":
        return spec.cluster.bootstrap_token.read(f"{node}: cluster.bootstrap_token")
    if name == KUBECONFIG_SECRET and spec.kube_proxy.kubeconfig is not None:
        where = f"{node}: kube_proxy.kubeconfig"
        return own_kubeconfig(spec.kube_proxy.kubeconfig.read(where), spec, where)
    for registry in spec.runtime.registries:
        if registry.secret == name and registry.credential is not None:
            return registry.credential.read(f"{node}: runtime.registries.{registry.host}.credential")
    raise InvalidInput(f"{node}: the profile has no reference for {name!r}", hint="Check the profile.")


def own_kubeconfig(kubeconfig: Secret, spec: NodeSpec, where: str) -> Secret:
    """What is written on the node for the credential of a kubeconfig; `where` names its origin in complaints.

    InvalidInput where its current user has no credential that can travel (a token, or certificate and key inline).
    """
    read = Kubeconfig.from_text(kubeconfig, where)
    user = read.user(None)
    if read.impersonation(None):
        raise InvalidInput(
            f"{where}: its user impersonates another user (key as); the node would get the wrong rights",
            hint="Give a kubeconfig of kube-proxy's own user.",
        )
    for names in _CREDENTIALS:
        found = {name: user[name] for name in names if isinstance(user.get(name), str) and user[name]}
        if len(found) == len(names):
            return Secret(kubeconfig_text(spec, user=USER, credential=found))
    raise InvalidInput(
        f"{where}: its user has no token and no certificate with its key in the file itself",
        hint="Files and login programs of this computer do not exist on the node; give a token, "
        "or client-certificate-data with client-key-data.",
    )
