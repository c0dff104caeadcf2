"""`winboot manifests hook`: the roles are the recorded calls, the pod is a locked-down one, and the image's file fits."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.aws import AwsSite
from winboot_lab.cluster.cluster import LabCluster
from winboot_lab.cluster.identity import Identity
from winboot_lab.cluster.kubeconfig import kubeconfig

from tests.cloud.hook_bench import Bench, Tap, a_bench
from tests.cloud.test_hook_adversity import queue
from winboot.cli import run
from winboot.operations.hook_manifest import HookPod, hook_manifest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "hook"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/hooks"
ROLE = "arn:aws:iam::123456789012:role/winboot"
# Where each kind is created.
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}
Right = tuple[str, str, str]
# What every account may ask by the API server's own system:basic-user: what may I?
ANYONE: set[Right] = {("create", "authorization.k8s.io", "selfsubjectaccessreviews")}
# A signer is a name, which the API server asks for inside the approval.
SIGNER: set[Right] = {("approve", "certificates.k8s.io", "signers")}


@pytest.fixture
def bench(aws: AwsSite) -> Iterator[tuple[AwsSite, Bench]]:
    with a_bench(aws.folder, "pool.aws.yaml", regions=["eu-west-1"], cluster="prod") as made:
        aws.group("pool", aws.network())
        yield aws, made


def objects_of(pool: Path, **more: Any) -> list[dict[str, Any]]:
    text = hook_manifest(HookPod(pool, "registry.example/winboot:0.1.0", QUEUE, ROLE, **more))
    return list(yaml.safe_load_all(text))


def apply(bench: Bench, objects: list[dict[str, Any]]) -> None:
    """`kubectl apply`, and from now on the workers are that account."""
    for one in objects:
        if one["kind"] in PATHS:
            path = PATHS[one["kind"]].format(namespace=one["metadata"].get("namespace"))
            bench.admin("POST", path, one)
    account = next(one for one in objects if one["kind"] == "ServiceAccount")["metadata"]
    path = f"/api/v1/namespaces/{account['namespace']}/serviceaccounts/{account['name']}/token"
    token = bench.admin("POST", path, {"spec": {}})["status"]["token"]
    admin = yaml.safe_load((bench.folder / "kubeconfig").read_text(encoding="utf-8"))
    server = admin["clusters"][0]["cluster"]["server"]
    bench.kubeconfig = bench.folder / "hook.kubeconfig"
    written = kubeconfig(server, bench.lab.authority.pem, {"token": token})
    bench.kubeconfig.write_text(yaml.safe_dump(written), encoding="utf-8")


def recording(lab: LabCluster, account: str) -> set[Right]:
    """Every right that this account makes use of from now on."""
    used: set[Right] = set()
    plain: Callable[..., Any] = lab._authorize

    def authorize(who: Identity, target: Any, verb: str, *rest: Any) -> None:
        if who.name.endswith(f":{account}"):
            used.add((verb, target.kind.group, target.resource))
        plain(who, target, verb, *rest)

    lab._authorize = authorize  # type: ignore[method-assign]
    return used


def granted(objects: list[dict[str, Any]]) -> set[Right]:
    rules = [rule for one in objects for rule in one.get("rules", ())]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def a_pod(bench: Bench, node: str) -> None:
    """Something to evict."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop", "uid": "1"}
    body = {
        "metadata": {"name": "shop", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"nodeName": node, "containers": []},
    }
    bench.admin("POST", "/api/v1/namespaces/default/pods", body)


def test_the_roles_are_exactly_what_the_hook_asks_of_the_cluster(bench: tuple[AwsSite, Bench]) -> None:
    """A join, a drain with a pod to evict and a removal, as the account of the manifest, with RBAC enforced."""
    aws, made = bench
    objects = objects_of(made.pool)
    apply(made, objects)
    used = recording(made.lab, "winboot-hook")
    worker = made.worker(queue(aws, made))
    aws.scale("pool", 1)
    assert made.drive(worker) == ["continue"]
    a_pod(made, made.open_nodes()[0])
    aws.scale("pool", 0)
    assert made.drive(worker) == ["continue"], made.said(worker)

    assert used - ANYONE | SIGNER == granted(objects)


def test_machines_that_join_by_themselves_need_less(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    objects = objects_of(made.pool, self_registering=True)
    apply(made, objects)
    used = recording(made.lab, "winboot-hook")
    work = made.work(Tap(), self_registering=True)
    worker = made.worker(queue(aws, made), work=work)
    aws.scale("pool", 1)
    (target,) = work.targets()
    # A Node of another name is looked for by its provider id, as long as none of this name is there.
    assert work.node_of(target) is None
    made.register(target.spec, target.member.identity.provider_id, "uuid")
    assert made.drive(worker) == ["continue"], made.said(worker)
    a_pod(made, made.open_nodes()[0])
    aws.scale("pool", 0)
    assert made.drive(worker) == ["continue"], made.said(worker)

    assert used - ANYONE | SIGNER == granted(objects)


def test_with_first_boot_it_joins_and_reports_and_remembers_and_is_reached(
    bench: tuple[AwsSite, Bench],
) -> None:
    _, made = bench
    text = hook_manifest(HookPod(made.pool, "registry.example/winboot:0.1.0", bootstrap=True))
    everything = list(yaml.safe_load_all(text))
    objects = {(one["kind"], one["metadata"]["name"]): one for one in everything}
    service = objects["Service", "winboot-first-boot"]["spec"]
    deployment = objects["Deployment", "winboot-hook"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]

    assert granted(objects_of(made.pool)) | {("create", "", "events")} == granted(everything)
    events = [one for one in everything if "events" in str(one.get("rules"))]
    assert [(one["kind"], one["metadata"]["namespace"]) for one in events] == [("Role", "default")]
    assert "0.0.0.0:9443" in container["args"] and "--queue" not in container["args"]
    assert {"name": "bootstrap", "containerPort": 9443} in container["ports"]
    assert service["ports"][0]["targetPort"] == "bootstrap"
    assert service["externalTrafficPolicy"] == "Local", "the endpoint sees each machine's own address"
    assert service["selector"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert {"name": "state", "persistentVolumeClaim": {"claimName": "winboot-hook"}} in pod["volumes"]
    assert ("PersistentVolumeClaim", "winboot-hook") in objects
    assert deployment["strategy"] == {"type": "Recreate"}


def ingress_of(objects: list[dict[str, Any]]) -> dict[int, list[Any]]:
    """The clients that the NetworkPolicy allows for each port; it must select the hook's pods."""
    spec = next(one["spec"] for one in objects if one["kind"] == "NetworkPolicy")
    pods = next(one["spec"]["template"] for one in objects if one["kind"] == "Deployment")
    assert spec["podSelector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    assert spec["policyTypes"] == ["Ingress"], "the hook calls clouds and machines anywhere"
    return {rule["ports"][0]["port"]: rule["from"] for rule in spec["ingress"]}


MONITORED = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def test_pods_reach_neither_the_endpoint_of_first_boot_nor_the_metrics(bench: tuple[AwsSite, Bench]) -> None:
    _, made = bench

    assert ingress_of(objects_of(made.pool)) == {9345: MONITORED}
    assert ingress_of(objects_of(made.pool, bootstrap=True)) == {
        9345: MONITORED,
        9443: [
            {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.244.0.0/16"]}},
            {"ipBlock": {"cidr": "::/0"}},
        ],
    }


def is_admitted(address: str, callers: list[Any]) -> bool:
    """Whether an ipBlock of these contains the address (Kubernetes API, networking.k8s.io/v1, IPBlock)."""
    one = ipaddress.ip_address(address)
    return any(
        one in ipaddress.ip_network(block["cidr"])
        and not any(one in ipaddress.ip_network(part) for part in block.get("except", ()))
        for block in (caller["ipBlock"] for caller in callers)
    )


DUAL = {"pod_cidr": "[10.244.0.0/16, 'fd00:99::/48']", "service_cidr": "[10.96.0.0/12, 'fd00:98::/108']"}


@pytest.mark.parametrize(
    ("profile", "networks"),
    [*((one.stem, {}) for one in sorted(ROOT.glob("profiles/*.yaml"))), ("none", DUAL)],
)
def test_the_policy_keeps_pods_out_or_the_head_says_that_it_does_not(
    bench: tuple[AwsSite, Bench], profile: str, networks: dict[str, str]
) -> None:
    """A NetworkPolicy cannot distinguish a pod from a machine in one network."""
    _, made = bench
    text = (ROOT / "profiles" / f"{profile}.yaml").read_text(encoding="utf-8")
    for name, value in networks.items():
        text = re.sub(f"{name}: .*", f"{name}: {value}", text)
    (made.folder / "profile.yaml").write_text(text, encoding="utf-8")
    manifest = hook_manifest(HookPod(made.pool, "winboot:0", QUEUE, ROLE, bootstrap=True))
    callers = ingress_of(list(yaml.safe_load_all(manifest)))[9443]
    address = {"azure": "10.240.7.7", "ovn-hybrid": "10.132.7.7"}.get(profile, "10.244.7.7")
    pods = [address, *(["fd00:99::7"] if networks else [])]

    assert {is_admitted(one, callers) for one in pods} == {profile == "azure"}
    assert ("does not keep pods from port 9443" in manifest) == (profile == "azure")
    assert is_admitted("192.0.2.11", callers) and is_admitted("2001:db8::11", callers)


def test_the_pod_has_no_root_and_nothing_to_write_to(bench: tuple[AwsSite, Bench]) -> None:
    _, made = bench
    (deployment,) = [one for one in objects_of(made.pool) if one["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = {one["name"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert writable == {"state", "tmp"}
    assert pod["terminationGracePeriodSeconds"] > 2400
    assert container["args"][:2] == ["hook", "serve"] and QUEUE in container["args"]


def test_the_command_line_in_the_manifest_is_one_that_the_hook_takes(
    bench: tuple[AwsSite, Bench], capsys: pytest.CaptureFixture[str]
) -> None:
    _, made = bench
    (deployment,) = [one for one in objects_of(made.pool) if one["kind"] == "Deployment"]
    words = deployment["spec"]["template"]["spec"]["containers"][0]["args"]

    assert run(["hook", "serve", "--help"]) == 0
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize(
    ("name", "options", "annotation", "labels"),
    [
        ("pool.aws.yaml", ["--queue", QUEUE], "eks.amazonaws.com/role-arn", set()),
        ("pool.azure.yaml", [], "azure.workload.identity/client-id", {"azure.workload.identity/use"}),
    ],
    ids=["aws", "azure"],
)
def test_the_account_has_the_identity_of_its_cloud(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    options: list[str],
    annotation: str,
    labels: set[str],
) -> None:
    from tests.config.scene import an_inventory

    an_inventory(tmp_path, "{}")
    (tmp_path / name).write_text("profile: profile.yaml\n", encoding="utf-8")
    words = ["manifests", "hook", "-i", str(tmp_path / name), "--image", "w:1", "--identity", "me", *options]

    assert run(words) == 0
    text = capsys.readouterr().out
    objects = {one["kind"]: one for one in yaml.safe_load_all(text)}
    assert objects["ServiceAccount"]["metadata"]["annotations"] == {annotation: "me"}
    found = set(objects["Deployment"]["spec"]["template"]["metadata"]["labels"])
    assert found - {"app.kubernetes.io/name"} == labels
    assert f"--from-file={name} --from-file=profile.yaml --from-file=ca.crt" in text


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["-i", "pool.aws.yaml", "--queue", QUEUE], "--image"),
        (["-i", "pool.aws.yaml", "--image", "w:1"], "--queue"),
        (["-i", "pool.azure.yaml", "--image", "w:1", "--queue", QUEUE], "--queue"),
        (["-i", "inventory.yaml", "--image", "w:1"], "static inventory"),
    ],
    ids=["no image", "no queue", "queue on azure", "static"],
)
def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str], words: list[str], missing: str) -> None:
    assert run(["manifests", "hook", *words]) == 64
    assert missing in capsys.readouterr().err


def test_the_list_of_manifests_has_the_hook(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["manifests"]) == 0
    assert any(line.startswith("hook ") for line in capsys.readouterr().out.splitlines())


# The image.


def pins(file: Path) -> dict[str, str]:
    found = re.findall(
        r"^([a-z0-9._-]+(?:\[[a-z,]+\])?)==(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE
    )
    return dict(found)


def test_the_images_packages_are_those_of_the_lock() -> None:
    whole, image = pins(ROOT / "requirements.lock"), pins(EXAMPLE / "requirements.lock")

    assert {"boto3", "azure-identity", "prometheus-client", "hatchling"} <= set(image)
    assert not {"moto", "pytest", "psrpcore"} & set(image)
    assert {name: version for name, version in image.items() if whole.get(name) != version} == {}


def test_the_image_has_a_pinned_base_no_root_and_every_file_that_it_copies() -> None:
    text = (EXAMPLE / "Containerfile").read_text(encoding="utf-8")
    (base,) = re.findall(r"^ARG BASE=(\S+)$", text, re.MULTILINE)

    assert re.fullmatch(r"[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}", base)
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.findall(r"^USER (\S+)$", text, re.MULTILINE) == ["65532:65532"]
    assert "--require-hashes" in text
    copied = [
        line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ") and "--from" not in line
    ]
    missing = [name for names in copied for name in names if not (ROOT / name).exists()]
    assert copied and missing == []
    packaged = {"winboot", "templates", "profiles", "inventories"}
    assert packaged <= {name for names in copied for name in names}
