"""`winboot fleet render`: what a run by the cluster's own workers needs, as plain YAML for `kubectl apply`.

Namespace, account, roles for exactly the calls of a join and its claims, the files of the inventory in a ConfigMap, and an
Indexed Job: one index a shard, tried again where its pod is killed, given up where nodes failed or the budget was used up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from winboot.base import exits
from winboot.base.errors import ClusterRefused, UsageError
from winboot.operations.fleet.view import RunId
from winboot.operations.hook_manifest import NAMESPACE, USER
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import Need
from winboot.remote.manifests import yaml_text

Object = dict[str, Any]
NAME: Final = "winboot-fleet"
_ROLE: Final = "winboot:fleet"
_RBAC: Final = "rbac.authorization.k8s.io"
_CONFIG: Final = "/etc/winboot"
_SECRETS: Final = "/etc/winboot-secrets"
_STATE: Final = "/var/lib/winboot"
# A ConfigMap holds at most 1 MiB (kubernetes.io/docs/concepts/configuration/configmap).
_MOST: Final = 1_000_000
# How a worker ends where trying again would not help: nodes failed, something was left, the budget was used up, wrong use, no
# right. What else ends it (killed, no API server) is tried again.
GIVEN_UP: Final = (
    exits.NOT_DONE,
    exits.SOME_FAILED,
    exits.STOPPED_ITSELF,
    exits.USAGE,
    ClusterRefused.exit_code,
)
# https://kubernetes.io/docs/concepts/workloads/controllers/job: backoffLimitPerIndex is stable from 1.33 on, and
# podReplacementPolicy from 1.34 on.
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class FleetJob:
    """What differs from run to run. `words` are the options of the budget as they were given, `files` the inventory and all
    that it names, by their path from its folder."""

    inventory: str
    files: Mapping[str, str]
    image: str
    shards: int = 4
    workers: int = 8
    words: tuple[str, ...] = ()
    namespace: str = NAMESPACE
    name: str = ""
    attempt: int = 1

    @property
    def run(self) -> RunId:
        """The run: the same files and options are the same one, unless it was given a name."""
        if self.name:
            return RunId(self.name, self.attempt)
        said = json.dumps([dict(self.files), self.inventory, self.words], sort_keys=True)
        return RunId(hashlib.sha256(said.encode()).hexdigest()[:10], self.attempt)


def fleet_files(inventory: Path, others: Sequence[Path]) -> dict[str, str]:
    """The text of an inventory and of the files that it names, by their path from its folder. Raises UsageError for a file that
    lies elsewhere, and where they are more than a ConfigMap holds."""
    folder = inventory.parent.resolve()
    found: dict[str, str] = {}
    for file in (inventory, *others):
        whole = file.resolve()
        if not whole.is_relative_to(folder):
            raise UsageError(
                f"{file} is not below the folder of {inventory}",
                hint="The workers get that folder's files and no others: copy it there, and name it by its relative path.",
            )
        try:
            found[whole.relative_to(folder).as_posix()] = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read: {error}", hint="Name a text file.") from error
    if sum(len(text.encode()) for text in found.values()) > _MOST:
        raise UsageError(
            "the inventory and its files are more than the 1 MB that a ConfigMap holds",
            hint="Render a run for each of several inventories.",
        )
    return found


def fleet_manifest(job: FleetJob, *, mints: bool, drains: bool, only_job: bool = False) -> str:
    """The YAML text; with `only_job` the Job alone, for another try of a run whose other objects are there."""
    around = (
        () if only_job else (_object("v1", "Namespace", job.namespace, ""), *_account(job, mints, drains))
    )
    objects = [*around, *(() if only_job else (_config(job),)), _job(job)]
    run = job.run
    note = [
        f"Run {run.name}, try {run.attempt}: {job.shards} workers over the nodes of {job.inventory}.",
        f"Passwords of the inventory (variables) and files of secrets (below {_SECRETS}), before it:",
        f"kubectl -n {job.namespace} create secret generic {NAME} --from-literal=NAME=value --from-file=key.pem",
        f"Then `winboot fleet status {run.name}`; it needs Kubernetes 1.33 (retries for each index).",
        "One image for all workers: docs/examples/hook/Containerfile. In its pod winboot uses its service account,",
        "whatever the profile names as cluster.kubeconfig.",
    ]
    return "\n".join(f"# {line}" for line in note) + "\n" + yaml_text(objects)


def fleet_needs(*, mints: bool, drains: bool) -> tuple[tuple[str, tuple[Need, ...]], ...]:
    """The rights by the namespace that they hold in; empty for those of the whole cluster."""
    everywhere = (*rights.JOIN, *rights.PREFLIGHT, *(rights.DRAIN if drains else ()))
    tokens = (("kube-system", (*rights.TOKENS, *rights.HOUSEKEEPING)),) if mints else ()
    return (("", everywhere), *tokens, ("claims", (*rights.CLAIMS, *rights.ORDER)))


def _account(job: FleetJob, mints: bool, drains: bool) -> list[Object]:
    objects = [_object("v1", "ServiceAccount", NAME, job.namespace)]
    for where, needs in fleet_needs(mints=mints, drains=drains):
        space = job.namespace if where == "claims" else where
        kind, name = ("Role", NAME) if space else ("ClusterRole", _ROLE)
        objects.append({**_object(f"{_RBAC}/v1", kind, name, space), "rules": _rules(needs)})
        objects.append(
            {
                **_object(f"{_RBAC}/v1", f"{kind}Binding", name, space),
                "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": job.namespace}],
            }
        )
    return objects


def _rules(needs: Sequence[Need]) -> list[Object]:
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for need in needs:
        verbs.setdefault((need.group, need.resource, need.name), []).append(need.verb)
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": [which]} if which else {}),
            "verbs": list(dict.fromkeys(several)),
        }
        for (group, resource, which), several in verbs.items()
    ]


def _key(place: int, path: str) -> str:
    """A key of a ConfigMap has no folders in it; the place keeps two files of one name apart."""
    return f"{place}-{Path(path).name}"


def _config_name(job: FleetJob) -> str:
    return f"{NAME}-{job.run.name}"


def _config(job: FleetJob) -> Object:
    """What the workers read, frozen: a run has the files that it began with."""
    data = {_key(place, path): text for place, (path, text) in enumerate(job.files.items())}
    return {
        **_object("v1", "ConfigMap", _config_name(job), job.namespace),
        "immutable": True,
        "data": data,
    }


def _job(job: FleetJob) -> Object:
    run = job.run
    labels = {"app.kubernetes.io/name": NAME, "winboot.io/run": run.name}
    spec = {
        "completionMode": "Indexed",
        "completions": job.shards,
        "parallelism": job.shards,
        "backoffLimitPerIndex": _TRIES,
        "maxFailedIndexes": job.shards,
        # Never two pods of one index.
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailIndex",
                    "onExitCodes": {"containerName": "winboot", "operator": "In", "values": sorted(GIVEN_UP)},
                },
                # A pod that was evicted, or whose node went, costs no try.
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": {"metadata": {"labels": labels}, "spec": _pod(job)},
    }
    name = f"{NAME}-{run.name}-{run.attempt}"
    found = _object("batch/v1", "Job", name, job.namespace)
    found["metadata"]["labels"] = labels
    return {**found, "spec": spec}


def _pod(job: FleetJob) -> Object:
    items = [{"key": _key(place, path), "path": path} for place, path in enumerate(job.files)]
    return {
        "serviceAccountName": NAME,
        "restartPolicy": "Never",
        # SIGTERM: what is worked on ends at its next safe point.
        "terminationGracePeriodSeconds": 60,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(job)],
        "volumes": [
            {"name": "config", "configMap": {"name": _config_name(job), "items": items}},
            {"name": "secrets", "secret": {"secretName": NAME, "optional": True, "defaultMode": 0o440}},
            {"name": "state", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }


def _container(job: FleetJob) -> Object:
    run = job.run
    return {
        "name": "winboot",
        "image": job.image,
        "args": [
            *("fleet", "work", run.name, "--inventory", f"{_CONFIG}/{job.inventory}"),
            # The Job gives each pod the number of its index (JOB_COMPLETION_INDEX).
            *("--shard", "$(JOB_COMPLETION_INDEX)", "--shards", str(job.shards)),
            *("--attempt", str(run.attempt), "--namespace", job.namespace, "--workers", str(job.workers)),
            *job.words,
        ],
        "env": [
            {
                "name": "JOB_COMPLETION_INDEX",
                "valueFrom": {
                    "fieldRef": {
                        "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"
                    }
                },
            },
            {"name": "WINBOOT_STATE", "value": _STATE},
            {"name": "HOME", "value": "/tmp"},
        ],
        "envFrom": [{"secretRef": {"name": NAME, "optional": True}}],
        "resources": {"requests": {"cpu": "200m", "memory": "192Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "secrets", "mountPath": _SECRETS, "readOnly": True},
            {"name": "state", "mountPath": _STATE},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def _object(version: str, kind: str, name: str, namespace: str) -> Object:
    metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
