"""Flows that need more than pods: an account of a domain, a share, a volume. Without it a run leaves the flow out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from winboot.base.clean import clean
from winboot.config.node_spec import NodeSpec
from winboot.operations.verify import objects
from winboot.operations.verify.scene import NodeScene, Scene
from winboot.operations.verify.stage import Stage
from winboot.operations.verify.trials import Outcome, Trial

_TEXT = "winboot-verify"
_FILE = "C:\\data\\winboot-verify.txt"


@dataclass(frozen=True, slots=True)
class Workloads:
    """What the user gave for these flows; `images` by Windows release."""

    stage: Stage
    images: Mapping[str, str]
    storage_class: str
    share: str

    def missing(self, spec: NodeSpec) -> dict[str, str]:
        """Each flow that this node cannot try, with what it lacks."""
        lacks: dict[str, str] = {}
        if spec.gmsa is None or not spec.gmsa.accounts:
            lacks["gmsa"] = "the profile has no gmsa.accounts"
        elif self._account(spec) is None:
            lacks["gmsa"] = (
                f"no service account of namespace {self.stage.space} may use a gMSA; give its namespace with --namespace"
            )
        if not self.share:
            lacks["smb"] = "--share is missing"
        elif "gmsa" in lacks:
            lacks["smb"] = lacks["gmsa"]
        if not self.storage_class:
            lacks["volume"] = "--storage-class is missing"
        return lacks

    def trials(self, scene: Scene, node: NodeScene) -> Iterator[Trial]:
        """The flows of one node."""
        lacks, here = self.missing(node.spec), f"pods on {node.name}"
        if "gmsa" not in lacks:
            yield Trial("gmsa", node, here, "the domain", lambda: self._gmsa(node), at=node)
        if "smb" not in lacks:
            yield Trial("smb", node, here, self.share, lambda: self._smb(node), at=node)
        if "volume" not in lacks:
            other = next(iter(scene.partners(node)), node)
            yield Trial(
                "volume", node, here, f"pod on {other.name}", lambda: self._volume(node, other), at=node
            )

    def _account(self, spec: NodeSpec) -> tuple[str, str] | None:
        """The service account and the CredentialSpec that pods of the namespace may use."""
        for account in spec.gmsa.accounts if spec.gmsa is not None else ():
            for subject in account.subjects:
                namespace, _, name = subject.partition("/")
                if namespace == self.stage.space:
                    return name, account.spec
        return None

    def _pod(self, node: NodeScene, role: str) -> objects.Object:
        image = self.images.get(node.spec.machine.os, objects.IMAGES[node.spec.machine.os])
        return objects.windows_pod(node.spec, self.stage.space, role, image, pull=False)

    def _as_account(self, node: NodeScene, role: str) -> objects.Object:
        found = self._account(node.spec)
        assert found is not None
        return objects.account_pod(self._pod(node, role), *found)

    def _gmsa(self, node: NodeScene) -> Outcome:
        """Two at once: several containers with one account lose their trust on some builds (microsoft/Windows-Containers,
        issue 405). nltest prints its status by its constant, in every language."""
        assert node.spec.gmsa is not None
        pods = [self._as_account(node, f"account{number}") for number in (1, 2)]
        problem = self.stage.start(*pods)
        for pod in pods if not problem else ():
            code, said = self._run(pod, "nltest.exe", f"/sc_verify:{node.spec.gmsa.dns_name}")
            if code != 0 or "NERR_Success" not in said:
                problem = f"{pod['metadata']['name']}: {_last(said) or f'nltest ended with code {code}'}"
                break
        return Outcome(not problem, problem or "a secure channel in both", "other" if problem else "")

    def _smb(self, node: NodeScene) -> Outcome:
        pod = self._as_account(node, "account1")
        problem = self.stage.start(pod) or self._fails(pod, f"dir {self.share}")
        return Outcome(not problem, problem or "the list", "other" if problem else "")

    def _volume(self, node: NodeScene, other: NodeScene) -> Outcome:
        claim = objects.claim(self.stage.space, f"data-{node.name}", self.storage_class)
        name = str(claim["metadata"]["name"])
        writer = objects.volume_pod(self._pod(node, "writer"), name)
        reader = objects.volume_pod(self._pod(other, f"reader-of-{node.name}"), name)
        try:
            problem = self.stage.start(claim, writer) or self._fails(writer, f"echo {_TEXT}>{_FILE}")
            if not problem:
                self.stage.end(writer)
                problem = self.stage.start(reader) or self._fails(reader, f"type {_FILE}", _TEXT)
        finally:
            # A ReadWriteOnce claim belongs to one node: the next try needs it free.
            for pod in () if self.stage.keep else (writer, reader):
                self.stage.end(pod)
        return Outcome(not problem, problem or "the text", "other" if problem else "")

    def _fails(self, pod: objects.Object, line: str, text: str = "") -> str:
        """Why this line of cmd.exe failed in a pod, or did not print the text; else empty."""
        code, said = self._run(pod, "cmd.exe", "/c", line)
        return (
            "" if code == 0 and text in said else _last(said) or f"{line.split()[0]} ended with code {code}"
        )

    def _run(self, pod: objects.Object, *command: str) -> tuple[int, str]:
        ran = self.stage.bench.execute(self.stage.space, str(pod["metadata"]["name"]), command, timeout=60)
        return ran.code, ran.output + ran.errors


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return clean(lines[-1]) if lines else ""
