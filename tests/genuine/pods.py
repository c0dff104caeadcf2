"""The programs of a Job's pods, run by the test in a kubelet's place.

The Job controller makes the pods; no scheduler places them, and there is no image. Their container's arguments are winboot's.
Each runs here as a process with a token of the pod's own service account, and its end becomes the pod's status, as a
kubelet writes it. `python -m tests.genuine.pods FOLDER WORDS` is such a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.genuine.conftest import Genuine

_ROOT: Final = Path(__file__).parents[2]
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_LOOK_S: Final = 0.5


@dataclass
class Pod:
    """One pod, and its process. `disrupted`: it is ended by an eviction."""

    name: str
    index: int
    folder: Path
    process: subprocess.Popen[bytes]
    annotations: Mapping[str, str]
    disrupted: bool = False
    over: bool = False

    def told(self) -> str:
        """What it has written: its lines, and the journals of its nodes."""
        files = [self.folder / "log", *(self.folder / "state").rglob("*.jsonl")]
        return "".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


@dataclass
class Kubelet:
    """Runs the pods of a namespace while it lasts, with these variables (those of the Job's Secret)."""

    genuine: Genuine
    namespace: str
    folder: Path
    variables: Mapping[str, str]
    pods: list[Pod] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Kubelet:
        # What it shows to the API server lies in files: not in those of another thread.
        self.folder.mkdir()
        self.genuine = replace(self.genuine, folder=self.folder)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join()
        for pod in self.pods:
            if pod.process.poll() is None:
                pod.process.kill()
            pod.process.wait()

    def of(self, index: int) -> list[Pod]:
        """The pods of an index, the latest last."""
        return [pod for pod in list(self.pods) if pod.index == index]

    def evict(self, pod: Pod) -> None:
        """Like the drain of a node: the pod gets the condition DisruptionTarget, and its program gets SIGTERM."""
        pod.disrupted = True
        pod.process.terminate()

    def _run(self) -> None:
        known: set[str] = set()
        while not self._over.wait(_LOOK_S):
            pods = self.genuine.ask("GET", f"/api/v1/namespaces/{self.namespace}/pods").json()["items"]
            for one in pods:
                if one["metadata"]["uid"] not in known and one["status"]["phase"] == "Pending":
                    known.add(one["metadata"]["uid"])
                    self._begin(one)
            for pod in self.pods:
                code = pod.process.poll()
                if code is not None and not pod.over:
                    # Once: the Job controller waits from the end of a pod on.
                    pod.over = True
                    self._tell(pod, code)

    def _begin(self, pod: dict[str, Any]) -> None:
        name, space = pod["metadata"]["name"], pod["metadata"]["namespace"]
        annotations = pod["metadata"]["annotations"]
        (container,) = pod["spec"]["containers"]
        folder = self.folder / name
        folder.mkdir(parents=True)
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        self._mount(pod, folder / "config")
        self._account(pod, folder / "account")
        words = [
            word.replace("$(JOB_COMPLETION_INDEX)", annotations[_INDEX]).replace(
                mounts["config"], str(folder / "config")
            )
            for word in container["args"]
        ]
        host, _, port = self.genuine.url.removeprefix("https://").partition(":")
        variables = {
            **os.environ,
            **self.variables,
            "WINBOOT_STATE": str(folder / "state"),
            "HOSTNAME": name,
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
        }
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.genuine.pods", str(folder / "account"), *words],
                cwd=_ROOT,
                env=variables,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.pods.append(Pod(name, int(annotations[_INDEX]), folder, process, annotations))
        self._patch(space, name, {"phase": "Running"})

    def _mount(self, pod: dict[str, Any], folder: Path) -> None:
        """The ConfigMap of its volume, as the cluster has it."""
        config = next(one["configMap"] for one in pod["spec"]["volumes"] if one["name"] == "config")
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/{config['name']}"
        data = self.genuine.ask("GET", path).json()["data"]
        for item in config["items"]:
            file = folder / item["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(data[item["key"]], encoding="utf-8")

    def _account(self, pod: dict[str, Any], folder: Path) -> None:
        """A token as a kubelet asks for: of the pod's service account, bound to this pod."""
        metadata = pod["metadata"]
        path = (
            f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{pod['spec']['serviceAccountName']}"
        )
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": None, "boundObjectRef": bound, "expirationSeconds": 3600},
        }
        answer = self.genuine.ask("POST", f"{path}/token", body)
        assert answer.status_code == 201, answer.text
        folder.mkdir()
        (folder / "token").write_text(answer.json()["status"]["token"], encoding="utf-8")
        (folder / "ca.crt").write_text(self.genuine.authority.pem, encoding="utf-8")

    def _tell(self, pod: Pod, code: int) -> None:
        """How its container has ended. 128 and the signal where one has ended it, as a runtime says it."""
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        ended = {"exitCode": code if code >= 0 else 128 - code, "startedAt": now, "finishedAt": now}
        container = {
            "name": "winboot",
            "image": "winboot",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        status: dict[str, Any] = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "containerStatuses": [container],
        }
        if pod.disrupted:
            status["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
            ]
        self._patch(self.namespace, pod.name, status)

    def _patch(self, space: str, name: str, status: dict[str, Any]) -> None:
        self.genuine.ask(
            "PATCH",
            f"/api/v1/namespaces/{space}/pods/{name}/status",
            {"status": status},
            kind="application/merge-patch+json",
        )


def main(account: str, words: list[str]) -> int:
    """winboot, whose service account is mounted elsewhere."""
    from winboot.cli import run
    from winboot.remote.cluster import kubeconfig

    kubeconfig.SERVICE_ACCOUNT = Path(account)  # a path of the pod
    return run(words)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1], sys.argv[2:]))
