"""`winboot fleet render`: what a run by the cluster's own workers needs, as plain YAML for `kubectl apply`.

Namespace, account, roles for exactly the calls of a join and its claims, the files of the inventory in a ConfigMap,
and an Indexed Job. It has one index a shard, tried again where its pod is killed, given up where nodes failed or the
budget was used up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from winboot.base import exits
from winboot.base.errors import ClusterRefused, UsageError
from winboot.operations.fleet.view import RunId
from winboot.operations.worker_pod import (
    CLAIMS,
    CONFIG,
    NAMESPACE,
    SECRETS,
    Object,
    account_roles,
    container,
    pod_spec,
)
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import Need
from winboot.remote.manifests import named, yaml_text

NAME: Final = "winboot-fleet"
_ROLE: Final = "winboot:fleet"
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
                hint="The workers get only the files of this folder: copy the file into it, and give its relative path.",
            )
        try:
            found[whole.relative_to(folder).as_posix()] = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read: {error}", hint="Give a text file.") from error
    if sum(len(text.encode()) for text in found.values()) > _MOST:
        raise UsageError(
            "the inventory and its files are more than the 1 MB that a ConfigMap holds",
            hint="Render a run for each of several inventories.",
        )
    return found


def fleet_manifest(job: FleetJob, *, mints: bool, drains: bool, gmsa: bool, only_job: bool = False) -> str:
    """The YAML text; with `only_job` the Job alone, for another try of a run whose other objects are there."""
    around = (
        ()
        if only_job
        else (
            named("v1", "Namespace", job.namespace),
            named("v1", "ServiceAccount", NAME, namespace=job.namespace),
            *account_roles(NAME, _ROLE, job.namespace, fleet_needs(mints=mints, drains=drains, gmsa=gmsa)),
        )
    )
    objects = [*around, *(() if only_job else (_config(job),)), _job(job)]
    run = job.run
    note = [
        f"Run {run.name}, try {run.attempt}: {job.shards} workers over the nodes of {job.inventory}.",
        f"Passwords of the inventory (variables) and files of secrets (below {SECRETS}), before it:",
        f"kubectl -n {job.namespace} create secret generic {NAME} --from-literal=NAME=value --from-file=key.pem",
        f"Then `winboot fleet status {run.name}`; it needs Kubernetes 1.33 (retries for each index).",
        "One image for all workers: docs/examples/hook/Containerfile. In its pod winboot uses its service account,",
        "whatever the profile names as cluster.kubeconfig.",
    ]
    return "\n".join(f"# {line}" for line in note) + "\n" + yaml_text(objects)


def fleet_needs(*, mints: bool, drains: bool, gmsa: bool) -> tuple[tuple[str, tuple[Need, ...]], ...]:
    """The rights by the namespace that they hold in; empty for those of the whole cluster."""
    everywhere = (*rights.JOIN, *rights.preflight(gmsa=gmsa), *(rights.DRAIN if drains else ()))
    tokens = ((rights.SYSTEM, rights.TOKENS),) if mints else ()
    return (("", everywhere), *tokens, (CLAIMS, (*rights.CLAIMS, *rights.ORDER)))


def _key(place: int, path: str) -> str:
    """A key of a ConfigMap has no folders in it; the place keeps two files of one name apart."""
    return f"{place}-{Path(path).name}"


def _config_name(job: FleetJob) -> str:
    return f"{NAME}-{job.run.name}"


def _config(job: FleetJob) -> Object:
    """What the workers read, frozen: a run has the files that it began with."""
    data = {_key(place, path): text for place, (path, text) in enumerate(job.files.items())}
    return {
        **named("v1", "ConfigMap", _config_name(job), namespace=job.namespace),
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
    return {**named("batch/v1", "Job", name, namespace=job.namespace, **labels), "spec": spec}


def _pod(job: FleetJob) -> Object:
    items = [{"key": _key(place, path), "path": path} for place, path in enumerate(job.files)]
    config = {"name": _config_name(job), "items": items}
    # SIGTERM: what is worked on ends at its next safe point.
    return {**pod_spec(NAME, _container(job), config=config, grace_s=60), "restartPolicy": "Never"}


def _container(job: FleetJob) -> Object:
    run = job.run
    return container(
        "winboot",
        job.image,
        [
            *("fleet", "work", run.name, "--inventory", f"{CONFIG}/{job.inventory}"),
            # The Job gives each pod the number of its index (JOB_COMPLETION_INDEX).
            *("--shard", "$(JOB_COMPLETION_INDEX)", "--shards", str(job.shards)),
            *("--attempt", str(run.attempt), "--namespace", job.namespace, "--workers", str(job.workers)),
            *job.words,
        ],
        secret=NAME,
        fields={"JOB_COMPLETION_INDEX": "metadata.annotations['batch.kubernetes.io/job-completion-index']"},
        resources={"requests": {"cpu": "200m", "memory": "192Mi"}, "limits": {"memory": "1Gi"}},
    )
