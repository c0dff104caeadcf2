"""`winboot fleet`: what it renders, and a run of it on the lab's API.

The lab has no Job controller: `run_job` replaces it. It gives each index its number and runs the container's arguments
with the pod's service account.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.cli.staging import PASSWORD_VARIABLE, stage
from winboot_lab.cluster import ClusterPlan
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.rbac import rule_allows
from winboot_lab.up import Lab

from tests.cloud.test_hook_manifest import PATHS
from tests.config.certificates import made
from tests.config.scene import CA, GOOD
from winboot.cli import run
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import resolve
from winboot.operations.fleet.manifest import GIVEN_UP, fleet_files
from winboot.remote.cluster import kubeconfig
from winboot.remote.manifests import manifest

IMAGE = "registry.example/winboot:0.1.0"
PLACES = {
    **PATHS,
    "Namespace": "/api/v1/namespaces",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
}
# What every account may ask about itself (kubernetes.io/docs/reference/access-authn-authz/rbac, default roles).
OF_EVERYBODY = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")


def rendered(inventory: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """The objects of `fleet render`."""
    capsys.readouterr()
    assert run(["fleet", "render", "-i", str(inventory), "--image", IMAGE, *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(one for one in objects if one["kind"] == kind)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a lab, without one."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "not used")
    (tmp_path / "profiles").mkdir()
    (tmp_path / "ca.crt").write_text(CA, encoding="utf-8")
    (tmp_path / "profiles" / "site.yaml").write_text(GOOD.replace("ca.crt", "../ca.crt"), encoding="utf-8")
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        "defaults: {os: 2022, connection: {user: admin, password: {env: PASSWORD}}}\n"
        "groups: {windows: {profile: profiles/site.yaml, hosts: {win-1: {address: 10.0.1.1}, win-2: {address: 10.0.1.2}}}}\n",
        encoding="utf-8",
    )
    return inventory


def test_a_run_is_plain_yaml_with_an_indexed_job(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = rendered(site, capsys, "--shards", "6", "--max-failed", "2", "--canary", "10%")

    assert [one["kind"] for one in objects] == [
        *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"),
        *("Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("Role", "RoleBinding", "ConfigMap", "Job"),
    ]
    job = of_kind(objects, "Job")["spec"]
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 6, 6)
    assert (job["backoffLimitPerIndex"], job["podReplacementPolicy"]) == (3, "Failed")
    given_up, ignored = job["podFailurePolicy"]["rules"]
    assert given_up["onExitCodes"]["values"] == sorted(GIVEN_UP) == [2, 3, 4, 64, 77]
    assert ignored == {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    (container,) = job["template"]["spec"]["containers"]
    words = container["args"]
    assert words[:2] == ["fleet", "work"] and container["image"] == IMAGE
    assert words[-4:] == ["--canary", "10%", "--max-failed", "2"]
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_the_files_of_a_run_are_frozen_and_lie_as_they_lay(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = rendered(site, capsys)
    config, job = of_kind(objects, "ConfigMap"), of_kind(objects, "Job")

    volumes = {one["name"]: one for one in job["spec"]["template"]["spec"]["volumes"]}
    laid = {one["path"]: config["data"][one["key"]] for one in volumes["config"]["configMap"]["items"]}

    assert config["immutable"] is True
    assert laid == {
        path: (site.parent / path).read_text(encoding="utf-8")
        for path in ("inventory.yaml", "profiles/site.yaml", "ca.crt")
    }


def test_all_files_that_are_no_secret_travel_wherever_render_is_called_from(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An inventory is mostly named by a relative path; the profile and what it names lie in a folder."""
    monkeypatch.chdir(site.parent)
    (site.parent / "ca.crt").write_text(made("corp root").pem, encoding="utf-8")
    (site.parent / "profiles" / "look.ps1").write_text("'look'", encoding="utf-8")
    (site.parent / "profiles" / "change.ps1").write_text("'change'", encoding="utf-8")
    (site.parent / "known_hosts").write_text("# none\n", encoding="utf-8")
    profile = site.parent / "profiles" / "site.yaml"
    profile.write_text(
        profile.read_text(encoding="utf-8")
        + "windows: {trust_roots: [{file: ../ca.crt}]}\n"
        + "steps: [{name: own-step, look: look.ps1, change: change.ps1}]\n",
        encoding="utf-8",
    )
    site.write_text(
        site.read_text(encoding="utf-8").replace(
            "connection: {",
            "connection: {transport: ssh, known_hosts: known_hosts, key: {file: /etc/winboot-secrets/key}, ",
        ),
        encoding="utf-8",
    )

    config = of_kind(rendered(Path(site.name), capsys), "ConfigMap")

    assert sorted(key.partition("-")[2] for key in config["data"]) == [
        *("ca.crt", "change.ps1", "inventory.yaml", "known_hosts", "look.ps1", "site.yaml")
    ]


ANSIBLES = {
    "hosts.ini": "[linux]\ndb1 db_root_password=CANARY ansible_become_password=CANARY\n[win]\n"
    "win-1 ansible_host=10.0.1.1 other=CANARY\n[win:vars]\nansible_user=admin\nansible_port=5986\n"
    "ansible_connection=winrm\nwinboot_profile=profiles/site.yaml\nwinboot_os=2022\nwinboot_password_env=PASSWORD\n",
    "hosts.yaml": "all: {vars: {db_root_password: CANARY}, hosts: {win-1: {ansible_host: 10.0.1.1, ansible_user: admin,\n"
    "  ansible_port: 5986, winboot_profile: profiles/site.yaml, winboot_os: '2022', winboot_password_env: PASSWORD}}}\n",
}


@pytest.mark.parametrize("name", ANSIBLES)
def test_variables_of_other_programs_stay_where_they_are(
    name: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workers get what winboot has read, with the variables next to the inventory, and mean the same machines."""
    hosts = site.with_name(name)
    hosts.write_text(ANSIBLES[name], encoding="utf-8")
    (site.parent / "group_vars").mkdir()
    (site.parent / "group_vars" / "all.yaml").write_text(
        "{winboot_node_ip: 10.0.1.9, api_password: CANARY}\n", encoding="utf-8"
    )

    objects = rendered(hosts, capsys)

    assert "CANARY" not in str(objects)
    data = of_kind(objects, "ConfigMap")["data"]
    laid = tmp_path / "laid"
    for path in ("profiles/site.yaml", "ca.crt"):
        (laid / path).parent.mkdir(parents=True, exist_ok=True)
        (laid / path).write_text((site.parent / path).read_text(encoding="utf-8"), encoding="utf-8")
    (laid / "hosts.yaml").write_text(data["0-hosts.yaml"], encoding="utf-8")
    (there,), (here,) = load_inventory(laid / "hosts.yaml"), load_inventory(hosts)
    assert there.connection == here.connection
    assert (there.name, there.os, there.groups) == (here.name, here.os, here.groups)


def test_the_same_files_are_the_same_run_and_others_another(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def name(*words: str) -> str:
        return str(of_kind(rendered(site, capsys, *words), "Job")["metadata"]["name"])

    first = name()
    assert name() == first != name("--max-failed", "1")
    site.write_text(site.read_text(encoding="utf-8").replace("10.0.1.2", "10.0.1.3"), encoding="utf-8")
    assert name() != first
    assert name("--name", "patch-tuesday") == "winboot-fleet-patch-tuesday-1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("--image", ""), "--image is missing", id="no image"),
        pytest.param(("--canary", "many"), "--canary many", id="a word instead of a number"),
    ],
)
def test_wrong_words_are_reported_before_a_pod_meets_them(
    site: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    assert run(["fleet", "render", "-i", str(site), "--image", IMAGE, *words]) == 64
    assert says in capsys.readouterr().err


def test_a_file_elsewhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    inventory = tmp_path / "site" / "inventory.yaml"
    inventory.touch()

    with pytest.raises(Exception, match=r"other.yaml is not below the folder of"):
        fleet_files(inventory, [tmp_path / "site" / ".." / "other.yaml"])


class Stage:
    """A lab's API with the rendered objects, and a runner of its Job."""

    def __init__(self, lab: Lab, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lab, self.folder = lab, folder
        self.patch = monkeypatch

    def apply(self, objects: list[dict[str, Any]]) -> None:
        """`kubectl apply`."""
        # The lab's API server evaluates no CEL.
        for one in (one for one in objects if one["kind"] in PLACES):
            path = PLACES[one["kind"]].format(namespace=one["metadata"].get("namespace"))
            self.lab.cluster.request(ADMIN, "POST", path, one)

    def be_a_pod(self, account: dict[str, Any]) -> None:
        """From now on this process has that service account."""
        space, name = account["metadata"]["namespace"], account["metadata"]["name"]
        path = f"/api/v1/namespaces/{space}/serviceaccounts/{name}/token"
        token = self.lab.cluster.request(ADMIN, "POST", path, {"spec": {}}).body["status"]["token"]
        mounted = self.folder / "account"
        mounted.mkdir()
        (mounted / "token").write_text(token, encoding="utf-8")
        (mounted / "ca.crt").write_text(self.lab.cluster.authority.pem, encoding="utf-8")
        host, _, port = self.lab.server.url.removeprefix("https://").partition(":")
        self.patch.setattr(kubeconfig, "SERVICE_ACCOUNT", mounted)
        self.patch.setenv("KUBERNETES_SERVICE_HOST", host)
        self.patch.setenv("KUBERNETES_SERVICE_PORT", port)

    def run_job(self, objects: list[dict[str, Any]]) -> dict[int, int]:
        """In the place of the Job controller: each index once, one after the other; a mounted ConfigMap, and the exit codes."""
        job = of_kind(objects, "Job")["spec"]
        pod = job["template"]["spec"]
        (container,) = pod["containers"]
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        config = next(one["configMap"] for one in pod["volumes"] if one["name"] == "config")
        path = f"/api/v1/namespaces/winboot-system/configmaps/{config['name']}"
        data = self.lab.cluster.request(ADMIN, "GET", path).body["data"]
        mounted = self.folder / "mounted"
        for item in config["items"]:
            file = mounted / item["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(data[item["key"]], encoding="utf-8")
        found = {}
        for index in range(job["completions"]):
            words = [
                word.replace("$(JOB_COMPLETION_INDEX)", str(index)).replace(mounts["config"], str(mounted))
                for word in container["args"]
            ]
            found[index] = run([*words, "--every", "0.2"])
        return found


@pytest.mark.check
def test_a_run_on_the_labs_api_joins_its_nodes_with_the_rendered_rights_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv(PASSWORD_VARIABLE, "the lab sets it")
    with Lab(nodes=1, cluster=ClusterPlan(grant_nodes=False)) as lab:
        stage_ = Stage(lab, tmp_path, monkeypatch)
        (tmp_path / "site").mkdir()
        staged = stage(lab, tmp_path / "site")
        specs = [resolve(one.profile, one) for one in load_inventory(staged.inventory)]
        for one in yaml.safe_load_all(manifest("rbac", specs)):
            lab.cluster.request(ADMIN, "POST", PLACES[one["kind"]], one)
        objects = rendered(staged.inventory, capsys, "--shards", "2", "--max-failed", "0", "--name", "r1")
        stage_.apply(objects)
        assert run(["fleet", "status", "r1", "-i", str(staged.inventory)]) == 2
        stage_.be_a_pod(of_kind(objects, "ServiceAccount"))
        lab.cluster.audit = []

        codes = stage_.run_job(objects)

        audit = lab.cluster.audit
        asked = [
            action
            for who, action in audit
            if who.name.endswith(":winboot-fleet") and action.resource not in OF_EVERYBODY and not action.path
        ]
        rules = [
            (rule, one["metadata"].get("namespace", "")) for one in objects for rule in one.get("rules", ())
        ]
        assert codes == {0: 0, 1: 0}
        beyond = [
            action
            for action in asked
            if not any(rule_allows(rule, action) and space in ("", action.namespace) for rule, space in rules)
        ]
        assert beyond == []
        capsys.readouterr()
        assert run(["fleet", "status", "r1", "-i", str(staged.inventory), "-o", "json"]) == 0
        (row,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert (row["node"], row["wave"], row["state"], row["holder"]) == ("win-1", 1, "ok", "")
        node = lab.cluster.request(ADMIN, "GET", "/api/v1/nodes/win-1").body
        ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
        assert ready["status"] == "True"
        # Another try has nothing to do, and its Job is for that run.
        assert run(["fleet", "resume", "r1", "-i", str(staged.inventory), "--image", IMAGE]) == 0
        said = capsys.readouterr()
        assert "0 of 1 nodes are not finished" in said.err
        (again,) = yaml.safe_load_all(said.out)
        assert again["metadata"]["name"] == "winboot-fleet-r1-2"
