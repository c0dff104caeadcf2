"""The first decoding of an API type, in many threads at once: once it ended the process with a SIGSEGV.

Each case is a process of its own, because a type is decoded for the first time only once in a process. The answers
come from a canned API server inside the client, so that nothing but client and decoder is at work.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from winboot.remote.cluster import decoding, lightkube

# One thread for each method that decodes, eight of each in all, let go together.
FIRST_CALLS = """
import sys, threading
from datetime import timedelta
from pathlib import Path

import httpx2

from winboot.remote.cluster.base import ExpectedNode, Need
from winboot.remote.cluster.lightkube import LightkubeCluster

if sys.argv[2] == "unprepared":
    import winboot.remote.cluster.lightkube
    winboot.remote.cluster.lightkube.prepare_types = lambda: None

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"x": "y"}}, "spec": {}, "status": {}}


def answer(request):
    path = request.url.path
    if path.endswith("/subjectaccessreviews"):
        return httpx2.Response(201, json={"spec": {}, "status": {"allowed": True}})
    if path.endswith("/version"):
        return httpx2.Response(200, json={"gitVersion": "v1.34.2"})
    if path.endswith("/nodes/n"):
        return httpx2.Response(200, json=NODE)
    if path.endswith("-cfg"):
        return httpx2.Response(200, json={"metadata": {}, "data": {"net-conf.json": "{}"}})
    if request.method == "POST":
        return httpx2.Response(201, json={"metadata": {"name": "made"}})
    return httpx2.Response(200, json={"metadata": {}, "items": []})


cluster = LightkubeCluster(Path(sys.argv[1]), transport=httpx2.MockTransport(answer))
calls = [
    lambda: cluster.node("n"),
    lambda: cluster.nodes(),
    lambda: cluster.settle_requests(ExpectedNode("n")),
    lambda: cluster.mint_token(node="n", lifetime=timedelta(hours=1)),
    lambda: cluster.drain("n", timeout=0, wait=lambda seconds: True),
    lambda: cluster.config_map("kube-flannel", "kube-flannel-cfg"),
    lambda: cluster.missing_rights({"x": [Need("get", "nodes")]}, "u", []),
    lambda: cluster.unselective_daemon_sets(),
]
barrier = threading.Barrier(8)
done = []


def first(call):
    barrier.wait()
    call()
    done.append(call)


for call in calls:
    threads = [threading.Thread(target=first, args=(call,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
assert len(done) == 8 * len(calls), len(done)
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "http://api.invalid"}}]
users: [{name: u, user: {token: t}}]
"""


def first_calls(folder: Path, how: str = "prepared") -> int:
    """The exit code of one process that makes every first call from eight threads; negative for a signal."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    command = [sys.executable, "-c", FIRST_CALLS, str(kubeconfig), how]
    return subprocess.run(command, check=False, timeout=120).returncode


def test_first_calls_from_eight_threads_end_without_a_signal(tmp_path: Path) -> None:
    """A quick sample; the nightly test has the hundreds."""
    assert [first_calls(tmp_path) for _ in range(6)] == [0] * 6


@pytest.mark.nightly
def test_hundreds_of_first_calls_end_without_a_signal(tmp_path: Path) -> None:
    """Without preparation about half of the processes die."""
    assert [first_calls(tmp_path) for _ in range(300)] == [0] * 300


def test_every_type_of_the_client_is_prepared() -> None:
    """A type that the client imports without preparation would bring the signal back."""
    from lightkube.core.resource import Resource
    from lightkube.generic_resource import Generic

    used = {
        value
        for value in vars(lightkube).values()
        # Generic resources are dictionaries: msgspec builds no type for them.
        if isinstance(value, type) and issubclass(value, Resource) and not issubclass(value, Generic)
    }
    assert len(used) >= 7
    assert used <= set(decoding.TYPES)
