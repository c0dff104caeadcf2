"""The story of `winboot cloud demo`: an Auto Scaling group goes from 0 to 3 to 1 without a command.

EC2, Auto Scaling and SQS are moto's server; behind each instance that the group starts is a Windows machine of the lab.
`winboot hook serve` runs as a process of its own, as it would in a cluster.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import typer
import yaml

from winboot_lab.aws import REGION, AwsSite
from winboot_lab.cli.staging import POLL_S, stage
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.moto_gaps import aws_site, serving
from winboot_lab.up import Lab, NodePlan

PATIENCE_S: Final = 600.0
SIZES: Final = (3, 1)


def play() -> int:
    """Play the story; 0 when it ended as it should."""
    with (
        tempfile.TemporaryDirectory(prefix="winboot-cloud-demo-") as folder,
        serving() as endpoint,
        aws_site(Path(folder), endpoint) as aws,
        Lab(nodes=[NodePlan("template", "2022", "10.0.250.10")]) as lab,
    ):
        pool = _stage(lab, aws, Path(folder))
        typer.echo("cloud demo: an Auto Scaling group of 0 machines, and a cluster without Windows nodes")
        typer.echo(f"\n# {pool.name}\n{pool.read_text(encoding='utf-8')}")
        with _hook(aws, pool) as process:
            good = all(_scaled(lab, aws, size, process) for size in SIZES)
            code = _ended(process, aws)
        answers = [result for _, result in aws.completed]
        refusals = [refusal for node in lab.nodes.values() for refusal in node.refusals]
    for refusal in refusals:
        typer.echo(f"the lab refused: {refusal}", err=True)
    typer.echo(f"\ncloud demo: {answers.count('CONTINUE')} of {len(answers)} machines answered with CONTINUE")
    typer.echo(f"cloud demo: the hook ended with {code}")
    return 0 if good and not refusals and code == 0 and answers == ["CONTINUE"] * 5 else 1


def _stage(lab: Lab, aws: AwsSite, folder: Path) -> Path:
    """The files that a person would write, the group, and what stands behind its instances."""
    files = folder / "files"
    stage(lab, files)
    lab.cluster.request(ADMIN, "POST", "/api/v1/namespaces", {"metadata": {"name": "winboot-system"}})
    pool = files / "pool.aws.yaml"
    wanted = {
        "regions": [REGION],
        "cluster": "prod",
        "profile": "profile.yaml",
        # The lab's machines are on loopback, each at a port of its own.
        "compose": {"address": "'127.0.0.1'", "port": "tags['winrm-port']"},
        "defaults": {
            "os": "2022",
            "connection": {
                "scheme": "http",
                "auth": "ntlm",
                "user": ".\\Administrator",
                "password": {"ec2_key": str(aws.key_file)},
                "poll_s": POLL_S,
            },
        },
    }
    pool.write_text(yaml.safe_dump(wanted, sort_keys=False), encoding="utf-8")
    aws.password = lab.password

    def started(instance: Any) -> None:
        name = f"ip-{instance.private_ip}".replace(".", "-")
        node = lab.add(NodePlan(name, "2022", instance.private_ip))
        instance.add_tags({"winrm-port": str(node.endpoint.http_port)})

    aws.launched = started
    aws.group("pool", aws.network())
    return pool


@contextmanager
def _hook(aws: AwsSite, pool: Path) -> Iterator[subprocess.Popen[str]]:
    """`winboot hook serve` as a process; the terminal shows its log as sentences."""
    words = ["hook", "serve", "--inventory", str(pool), "--queue", aws.queue(), "--port", "0"]
    typer.echo(f"# winboot {' '.join(words[:3])} {pool.name} --queue {aws.queue()}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "winboot", *words], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    told = threading.Thread(target=_tell, args=(process,), daemon=True)
    told.start()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        told.join(5)


def _tell(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        try:
            said = json.loads(line)
        except ValueError:
            typer.echo(line.rstrip())
            continue
        about = [
            str(said[key])
            for key in ("kind", "instance", "node", "result", "reason", "problem")
            if said.get(key)
        ]
        typer.echo(f"  hook: {said['message']}: {' '.join(about)}" if about else f"  hook: {said['message']}")


def _scaled(lab: Lab, aws: AwsSite, size: int, process: subprocess.Popen[str]) -> bool:
    """Set the group's size, and wait until its machines and the cluster's nodes are so many."""
    typer.echo(f"\n# the group is set to {size}")
    aws.scale("pool", size)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        states = list(aws.states("pool").values())
        if states == ["InService"] * size and len(_ready(lab)) == size:
            break
        time.sleep(0.2)
    else:
        return False
    for name in _ready(lab):
        typer.echo(f"  node {name}: Ready")
    return True


def _ready(lab: Lab) -> list[str]:
    """The Windows nodes that are Ready and take pods."""
    found = []
    for node in lab.cluster.request(ADMIN, "GET", "/api/v1/nodes").body["items"]:
        windows = node["metadata"].get("labels", {}).get("kubernetes.io/os") == "windows"
        ready = any(
            one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", ())
        )
        starting = any(one["key"] == "winboot.io/starting" for one in node["spec"].get("taints") or ())
        if windows and ready and not starting:
            found.append(node["metadata"]["name"])
    return sorted(found)


def _ended(process: subprocess.Popen[str], aws: AwsSite) -> int | None:
    """End the hook as Kubernetes would; a message wakes it from its long poll."""
    typer.echo("\n# SIGTERM")
    process.send_signal(signal.SIGTERM)
    aws.send({"Service": "AWS Auto Scaling", "Event": "autoscaling:TEST_NOTIFICATION"})
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        return None
