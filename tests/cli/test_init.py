"""`winboot init`: from a kubeconfig and a few answers to files that check out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from winboot_lab.cluster import LabCluster
from winboot_lab.cluster.authority import load_certificate
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.server import ClusterServer
from winboot_lab.mirror import MirrorServer

from tests.join.fakes import FakeCluster, a_node
from winboot.base.errors import ClusterError, ClusterUnreachable
from winboot.cli import answer_checks, run
from winboot.cli.detect import doubts, found_in
from winboot.cli.init import profile_text
from winboot.config.compat.version import Version
from winboot.config.inventory import load_inventory
from winboot.remote.cluster.discovery import fetch_ca


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """An administrator's kubeconfig of a cluster that answers."""
    with ClusterServer(LabCluster()) as server:
        path = tmp_path / "kubeconfig"
        server.write_admin_kubeconfig(path)
        yield path


def an_init(kubeconfig: Path, folder: Path, mirror: str, *more: str) -> int:
    """Run init with everything it would ask for."""
    return run(
        [
            "init",
            "--kubeconfig",
            str(kubeconfig),
            "--host",
            "win-1=10.0.1.1,2022",
            "--host",
            "win-2=10.0.1.2,2025",
            "--user",
            r".\Administrator",
            "--mirror",
            mirror,
            "--folder",
            str(folder),
            *more,
        ]
    )


def test_init_asks_the_cluster_and_the_mirror_and_writes_files_that_check_out(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version, network and pod CIDR are the cluster's; every download has its hash, and so has every program in it."""
    monkeypatch.setenv("WINBOOT_PASSWORD", "x")
    with MirrorServer() as mirror:
        # The lab's NSSM is not the one that winboot knows.
        assert an_init(kubeconfig, tmp_path / "out", mirror.url, "--renew") == 0
    profile = (tmp_path / "out" / "profile.yaml").read_text()
    assert 'version: "1.36.5"' in profile
    assert 'mode: "host-gw"' in profile
    assert "kubernetes-node-windows-amd64.tar.gz!kubernetes/node/bin/kubelet.exe" in profile
    assert (tmp_path / "out" / "ca.crt").read_text().startswith("-----BEGIN CERTIFICATE-----")

    assert run(["check", str(tmp_path / "out" / "inventory.yaml")]) == 0
    told = capsys.readouterr()
    assert "good" in told.out
    assert told.err.count("hashes were taken over plain HTTP") == 1


def test_init_names_the_download_that_failed(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Out of reach is 69, with the address and what else there is."""
    assert an_init(kubeconfig, tmp_path / "out", "http://127.0.0.1:9") == 69
    assert "127.0.0.1:9" in capsys.readouterr().err


def test_init_does_not_overwrite_what_is_there(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only --force does."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "profile.yaml").write_text("mine")

    assert an_init(kubeconfig, tmp_path / "out", "http://127.0.0.1:9") == 64
    assert (tmp_path / "out" / "profile.yaml").read_text() == "mine"
    assert "--force" in capsys.readouterr().err


def test_init_refuses_a_download_that_is_not_what_its_publisher_says(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mirror that gives other bytes than its own checksum is not pinned."""
    with MirrorServer() as mirror:
        mirror.mirror.faults.wrong.add("kubectl.exe")
        assert an_init(kubeconfig, tmp_path / "out", mirror.url) == 1
    assert "kubectl.exe: its sha256 is" in capsys.readouterr().err


def key_hash(pem: str) -> str:
    """What kubeadm prints after sha256:."""
    key = load_certificate(pem).public_key()
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


@pytest.fixture
def unfinished(kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an inventory whose profile misses its hashes and its CA, as a person wrote it."""
    monkeypatch.setenv("WINBOOT_PASSWORD", "x")
    folder = tmp_path / "out"
    assert an_init(kubeconfig, folder, "http://127.0.0.1:9", "--no-hashes") == 0
    profile = folder / "profile.yaml"
    pinned = f"  ca_hash: sha256:{key_hash((folder / 'ca.crt').read_text())}   # mine\n"
    profile.write_text(profile.read_text().replace("  ca: {file: ./ca.crt}\n", pinned))
    (folder / "ca.crt").unlink()
    return folder


def mirrored(folder: Path, url: str) -> Path:
    """The profile, with another mirror."""
    profile = folder / "profile.yaml"
    profile.write_text(profile.read_text().replace("http://127.0.0.1:9", url))
    return profile


def test_a_dry_run_of_init_shows_the_files_and_writes_none(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert an_init(kubeconfig, tmp_path / "out", "http://127.0.0.1:9", "--dry-run") == 0

    shown = capsys.readouterr().out
    assert all(word in shown for word in ("profile.yaml would have:", 'version: "1.36.5"', "win-2"))
    assert not (tmp_path / "out").exists()


def test_a_dry_run_of_init_without_options_shows_what_is_missing(
    unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MirrorServer() as mirror:
        before = mirrored(unfinished, mirror.url).read_text()

        assert run(["init", "--folder", str(unfinished), "--renew", "--dry-run"]) == 0

    shown = capsys.readouterr().out
    assert all(word in shown for word in ("the CA of the cluster", "artifacts.sha256", "would be complete"))
    assert (unfinished / "profile.yaml").read_text() == before
    assert not (unfinished / "ca.crt").exists()


def test_init_without_options_completes_what_is_there(
    unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CA and hashes are added, everything else stays; the second run adds nothing and fetches nothing."""
    with MirrorServer() as mirror:
        profile = mirrored(unfinished, mirror.url)
        before = profile.read_text()

        assert run(["init", "--folder", str(unfinished), "--renew"]) == 0

        after = profile.read_text()
        assert set(before.splitlines()) - set(after.splitlines()) <= {
            f"  sha256: {{}}{' ' * 27}# filled in by `winboot init`"
        }
        assert "   # mine" in after
        assert "kubernetes-node-windows-amd64.tar.gz!kubernetes/node/bin/kubelet.exe" in after
        assert (unfinished / "ca.crt").read_text().startswith("-----BEGIN CERTIFICATE-----")
    assert run(["check", str(unfinished / "inventory.yaml")]) == 0
    capsys.readouterr()

    assert run(["init", "-i", str(unfinished / "inventory.yaml")]) == 0
    assert "no value is missing" in capsys.readouterr().out
    assert profile.read_text() == after


def test_init_holds_what_it_fetches_against_what_is_pinned(
    unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another file under the same name is refused, and what was pinned stays."""
    with MirrorServer() as mirror:
        profile = mirrored(unfinished, mirror.url)
        pinned = '{"containerd/2.0.11/containerd-2.0.11-windows-amd64.tar.gz": "' + "ab" * 32 + '"}'
        profile.write_text(profile.read_text().replace("sha256: {}", f"sha256: {pinned}"))

        assert run(["init", "--folder", str(unfinished)]) == 1

    assert "--renew" in capsys.readouterr().err
    assert "ab" * 32 in profile.read_text()


def test_a_new_version_is_refused_until_its_hashes_are_pinned(
    unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The review's N1: `sed 's/version: 1.36.5/version: 1.36.9/'`, and check was good, plan found nothing to change."""
    inventory = str(unfinished / "inventory.yaml")
    with MirrorServer() as mirror:
        profile = mirrored(unfinished, mirror.url)
        assert run(["init", "-i", inventory, "--renew"]) == 0
        assert run(["check", inventory]) == 0
        profile.write_text(profile.read_text().replace('version: "1.36.5"', 'version: "1.36.9"'))
        capsys.readouterr()

        assert (run(["check", inventory]), run(["plan", "-i", inventory])) == (64, 64)
        told = capsys.readouterr().err
        assert "this is the hash of kubernetes 1.36.5, and 1.36.9 is wanted" in told
        assert "this is the hash of kubectl 1.36.5, and 1.36.9 is wanted" in told
        assert f"`winboot init --renew -i {inventory}`" in told

        assert run(["init", "-i", inventory, "--renew"]) == 0
        assert run(["check", inventory]) == 0


def test_renewing_removes_hashes_that_name_no_version(unfinished: Path) -> None:
    """A key without a version: the version of the pinned file is unknown."""
    with MirrorServer() as mirror:
        profile = mirrored(unfinished, mirror.url)
        old = '{"kubectl.exe": "' + "ab" * 32 + '", "a.zip!b.exe": "' + "cd" * 32 + '"}'
        profile.write_text(profile.read_text().replace("sha256: {}", f"sha256: {old}"))

        assert run(["init", "--folder", str(unfinished), "--renew"]) == 0

    assert "ab" * 32 not in profile.read_text() and "a.zip" not in profile.read_text()
    assert '"kubectl/1.36.5/kubectl.exe": ' in profile.read_text()
    assert run(["check", str(unfinished / "inventory.yaml")]) == 0


def test_init_finds_the_ca_by_the_hash_of_its_key(tmp_path: Path) -> None:
    """What the cluster shows without a login is believed only when its key has that hash."""
    cluster = LabCluster()
    with ClusterServer(cluster) as server:
        found = fetch_ca(server.url, key_hash(cluster.authority.pem))

        assert found.strip() == cluster.authority.pem.strip()
        with pytest.raises(ClusterError, match="a CA whose key does not match"):
            fetch_ca(server.url, "ab" * 32)


def test_a_server_that_shows_the_right_ca_must_be_one_of_its_servers(tmp_path: Path) -> None:
    """The CA's certificate is public: a server that shows it need not have its key."""
    real, other = LabCluster(), LabCluster()
    path = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    shown = other.request(ADMIN, "GET", path).body
    shown["data"] = real.request(ADMIN, "GET", path).body["data"]
    other.request(ADMIN, "PUT", path, shown)

    with (
        ClusterServer(other) as server,
        pytest.raises(ClusterUnreachable, match="certificate verify failed"),
    ):
        fetch_ca(server.url, key_hash(real.authority.pem))


def test_a_server_that_is_not_there_cannot_be_asked_for_its_ca() -> None:
    """The reason, and what to write instead."""
    with pytest.raises(ClusterUnreachable, match="did not answer with its CA") as caught:
        fetch_ca("https://127.0.0.1:9", "ab" * 32)

    assert "cluster.ca" in caught.value.hint


@pytest.mark.parametrize(
    "network", ["flannel:host-gw", "flannel:vxlan", "win-bridge", "win-overlay", "azure", "calico", "none"]
)
def test_what_init_writes_check_accepts(network: str, kubeconfig: Path, tmp_path: Path) -> None:
    """For every network that its help names."""
    folder = tmp_path / "new"
    more = ["--network", network, "--no-hashes", "--pod-cidr", "10.244.0.0/16", "--user", "a"]
    arguments = ["init", "--kubeconfig", str(kubeconfig), "--host", "win-1=10.0.1.1,2022", *more]

    assert run([*arguments, "--folder", str(folder)]) == 0
    assert run(["check", str(folder / "inventory.yaml")]) == 0


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--network", "cilium", "a cluster with Cilium alone has no network"),
        ("--network", "flannel:wireguard", "network.mode: 'wireguard'"),
        ("--server", "http://10.0.0.10:6443", "cluster.server"),
        ("--pod-cidr", "10.244.0.1/16", "did you mean '10.244.0.0/16'"),
        ("--kubernetes", "1.34", "has no patch number"),
        ("--host", "win-1=http://x,2022", "is a URL"),
        ("--host", "Win-1=10.0.1.1,2022", "has capital letters"),
        ("--host", "win-1=10.0.1.1,2016", "2019 | 2022 | 2025"),
        ("--mirror", "https://u:CANARY@m", "artifacts.source"),
    ],
)
def test_init_writes_nothing_that_check_would_refuse(
    option: str, value: str, says: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer that is wrong is named, and no file is left behind."""
    folder = tmp_path / "new"
    given = {"--network": "flannel:vxlan", "--pod-cidr": "10.244.0.0/16", "--host": "win-1=10.0.1.1,2022"}
    pairs = [word for pair in {**given, "--user": "a", option: value}.items() for word in pair]

    code = run(["init", "--kubeconfig", str(kubeconfig), "--no-hashes", "--folder", str(folder), *pairs])

    told = capsys.readouterr()
    assert code == 64
    assert says in told.err
    assert "CANARY" not in told.err + told.out
    assert not folder.exists()


def test_init_into_a_file_is_wrong_use(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the file and is not reported as a bug in winboot."""
    (tmp_path / "taken").write_text("", encoding="utf-8")
    more = ["--network", "flannel:vxlan", "--host", "win-1=10.0.1.1,2022", "--user", "a", "--no-hashes"]
    code = run(["init", "--kubeconfig", str(kubeconfig), "--folder", str(tmp_path / "taken"), *more])

    assert code == 64
    assert "cannot be written" in capsys.readouterr().err


def test_a_server_that_only_this_machine_reaches_is_warned_about(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As kind and tunnels write it."""
    more = ["--network", "flannel:vxlan", "--host", "win-1=10.0.1.1,2022", "--user", "a", "--no-hashes"]
    folder = str(tmp_path / "new")

    assert run(["init", "--kubeconfig", str(kubeconfig), "--folder", folder, *more]) == 0
    assert "which is this machine; give --server" in capsys.readouterr().err


def test_an_answer_is_judged_when_it_is_given_and_the_others_are_kept(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typing error cost all answers that came before it."""
    asked = []
    answers = {
        "kubeconfig": ["nowhere", str(kubeconfig)],
        "network": ["flanel:hostgw", "flannel:host-gw"],
        "pod CIDR": ["10.244.0.0", "10.244.0.0/33", "10.244.0.0/16"],
        "service CIDR": ["10.96.0.0/12"],
        "machine": [
            "win-1",
            "WIN_1 10.0.1.1 2022",
            "win-1 10.0.1.1 2016",
            "win-1 10.0.1.1 2022",
            "win-1 10.0.1.2 2022",
            "win-2 10.0.1.2 2025",
            "",
        ],
        "user for the login": [r".\Administrator"],
    }

    def prompt(what: str, **options: object) -> str:
        asked.append(key := what.partition(" (")[0])
        return answers[key].pop(0)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", prompt)
    monkeypatch.setattr("winboot.remote.cluster.lightkube.LightkubeCluster.config_map", lambda *_: None)

    assert run(["init", "--no-hashes", "--folder", str(tmp_path / "out")]) == 0

    told = capsys.readouterr()
    assert "did you mean 'flannel:host-gw'?" in told.err
    assert "'2016' is not one of" in told.err
    assert "win-1 has this name already" in told.err
    assert "version: " in told.err
    assert "(from the API server's /version)" in told.err
    assert [one for one in answers.values() if one] == []
    assert load_inventory(tmp_path / "out" / "inventory.yaml")["win-2"].os == "2025"


def test_machines_come_from_a_file(kubeconfig: Path, tmp_path: Path) -> None:
    """Forty machines were one line of a prompt."""
    listed = tmp_path / "hosts.txt"
    listed.write_text("".join(f"win-{n} 10.0.1.{n} 2022\n" for n in range(1, 41)), encoding="utf-8")
    options = [
        "--kubeconfig",
        str(kubeconfig),
        "--user",
        "a",
        "--no-hashes",
        "--folder",
        str(tmp_path / "out"),
    ]

    assert run(["init", "--hosts-file", str(listed), *options]) == 64
    assert not (tmp_path / "out").exists()
    assert run(["init", "--hosts-file", str(listed), *options, "--yes"]) == 0
    assert len(load_inventory(tmp_path / "out" / "inventory.yaml")) == 40


def test_kubeadms_own_settings_are_read(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster with another service CIDR got the default one without a word."""
    kept = {"ClusterConfiguration": "networking: {podSubnet: 10.1.0.0/16, serviceSubnet: 10.200.0.0/16}\n"}
    monkeypatch.setattr(
        "winboot.remote.cluster.lightkube.LightkubeCluster.config_map",
        lambda self, namespace, name: kept if name == "kubeadm-config" else None,
    )

    assert an_init(kubeconfig, tmp_path / "out", "https://mirror.example", "--no-hashes") == 0

    profile = (tmp_path / "out" / "profile.yaml").read_text(encoding="utf-8")
    assert 'service_cidr: "10.200.0.0/16"' in profile
    assert 'pod_cidr: "10.1.0.0/16"' in profile


def test_a_setting_of_several_lines_hides_nothing_of_kubeadm_and_flannel() -> None:
    """The whole ConfigMap was left out for it, without a word. flannel takes its backend in any spelling."""
    text = (
        "apiServer:\n  extraArgs:\n  - name: note\n    value: |\n      two\n      lines\n"
        "networking: {dnsDomain: corp.local, podSubnet: 10.1.0.0/16, serviceSubnet: 10.200.0.0/16}\n"
    )
    cluster = FakeCluster(
        net_conf={"Network": "10.1.0.0/16", "Backend": {"Type": "VXLAN"}},
        config_maps={"kubeadm-config": {"ClusterConfiguration": text}},
    )

    found = {key: said for key, (said, _) in found_in(cluster).items()}

    assert (found["service_cidr"], found["network"]) == ("10.200.0.0/16", "flannel:vxlan")


def test_each_answer_is_read_where_the_cluster_knows_it() -> None:
    """flannel's ConfigMap, kube-dns, ServiceCIDR, the Nodes and /version, each with its name."""
    cluster = FakeCluster(
        net_conf={"Network": "10.50.0.0/16", "Backend": {"Type": "vxlan"}},
        service_ips=("10.43.0.53",),
        specs={"ServiceCIDR": [{"name": "kubernetes", "cidrs": ["10.43.0.0/16"]}]},
        all_nodes=(replace(a_node(), pod_cidrs=("10.50.3.0/24",)),),
    )

    found = found_in(cluster)

    assert {key: said for key, (said, _) in found.items()} == {
        "version": str(cluster.version()),
        "network": "flannel:vxlan",
        "pod_cidr": "10.50.0.0/16",
        "service_cidr": "10.43.0.0/16",
        "dns_service_ip": "10.43.0.53",
        "node_pod_cidrs": "10.50.3.0/24",
        "pod_cidr_guess": "10.50.0.0/16",
    }
    wheres = {key: where for key, (_, where) in found.items()}
    assert wheres["pod_cidr"] == "flannel's ConfigMap kube-flannel/kube-flannel-cfg"
    assert wheres["dns_service_ip"] == "the Service kube-system/kube-dns"
    assert wheres["service_cidr"] == "the API's ServiceCIDR kubernetes"
    assert wheres["version"] == "the API server's /version"


def test_the_pods_network_is_guessed_by_the_nodes_and_said_to_be_a_guess() -> None:
    nodes = tuple(replace(a_node(), pod_cidrs=(f"10.42.{n}.0/24",)) for n in (7, 0))

    said, where = found_in(FakeCluster(all_nodes=nodes, net_conf=None))["pod_cidr_guess"]

    assert said == "10.42.0.0/16"
    assert where == "a guess: the pod CIDRs of the nodes, 10.42.7.0/24, 10.42.0.0/24"
    apart = tuple(replace(a_node(), pod_cidrs=(one,)) for one in ("10.42.0.0/24", "10.99.0.0/24"))
    assert "pod_cidr_guess" not in found_in(FakeCluster(all_nodes=apart))


def test_an_answer_that_the_cluster_shows_to_be_wrong_is_doubted() -> None:
    found = {
        "node_pod_cidrs": ("10.42.0.0/24", "the Nodes"),
        "dns_service_ip": ("10.43.0.10", "the Service"),
    }

    wrong = list(doubts({"pod_cidr": "10.244.0.0/16", "service_cidr": "10.96.0.0/12"}, found))

    assert ["--pod-cidr" in wrong[0], "--service-cidr" in wrong[1]] == [True, True]
    assert list(doubts({"pod_cidr": "10.42.0.0/16", "service_cidr": "10.43.0.0/16"}, found)) == []


def test_a_dns_service_at_another_place_than_the_tenth_is_written() -> None:
    answers = {
        "kubernetes": "1.36.4",
        "server": "https://10.0.0.1:6443",
        "kubeconfig": "/k",
        "context": "c",
        "pod_cidr": "10.42.0.0/16",
        "service_cidr": "10.43.0.0/16",
        "network": "flannel:host-gw",
        "mirror": None,
    }

    assert "dns_service_ip" not in profile_text({**answers, "dns_service_ip": "10.43.0.10"})
    text = profile_text({**answers, "dns_service_ip": "10.43.0.53", "dns_domain": "corp.local"})
    assert 'dns_service_ip: "10.43.0.53"' in text
    assert 'dns_domain: "corp.local"' in text


@pytest.mark.parametrize("which", ["profile", "inventory", "lines", "plan"])
def test_each_schema_is_a_json_schema(which: str, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is missing")

    assert run(["schema", which]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_the_schema_of_profiles_is_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    published = Path(__file__).parents[2] / "docs" / "schemas" / "profile.json"

    assert run(["schema", "profile"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(published.read_text(encoding="utf-8"))


def test_an_editor_finds_the_schemas_of_what_init_writes(kubeconfig: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert an_init(kubeconfig, out, "https://mirror.example", "--no-hashes") == 0

    for name in ("profile", "inventory"):
        first = (out / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0]
        assert json.loads((out / first.partition("$schema=")[2]).read_text(encoding="utf-8"))["$schema"]


@pytest.mark.parametrize(
    ("answer", "release"),
    [("1.36.5+rke2r1", "1.36.5"), ("v1.36.5-eks-1a2b3c", "1.36.5"), ("1.36.5-gke.1234000", "1.36.5")],
)
def test_a_distributions_build_is_answered_with_its_release(answer: str, release: str) -> None:
    """It is what `kubectl version` of RKE2, EKS and GKE prints; init itself takes the release of the cluster's answer."""
    assert answer_checks.version(answer).endswith(f"made from, {release}")
    assert str(Version.parse(answer).upstream) == release
    assert Version.parse("1.37.0-rc.1").upstream == Version.parse("1.37.0-rc.1")
