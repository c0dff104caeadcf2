"""`winboot check`: what it says of files that no other command could use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.scene import GOOD, an_inventory
from winboot.cli import run
from winboot.cli.check import is_inventory
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import resolve

HOSTS = "groups: {p: {profile: profile.yaml, os: '2022', hosts: {win-1: , win-2: }}}\n"
OWN_STEP = "steps: [{name: mine, look: look.ps1, change: look.ps1}]\n"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://10.0.0.10:6443', certificate-authority-data: TUlJQg==}}]
users: [{name: u, user: {token: t}}]
"""


def _checked(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and complaints of one check."""
    code = run(["check", str(path)])
    told = capsys.readouterr()
    return code, told.err + told.out


def test_a_good_inventory_is_good_but_for_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """join refuses downloads without a hash, so check says which have none, where they belong."""
    path = an_inventory(tmp_path, HOSTS)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG, encoding="utf-8")

    code, told = _checked(path, capsys)

    assert code == 0
    assert told.count("warning:") == 1
    assert "artifacts.sha256: no hash is pinned or known for" in told
    assert "profile.yaml:" in told


def test_a_hash_of_a_file_without_a_download_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typo in the key would leave the file without its pin."""
    profile = f"{GOOD}artifacts:\n  sha256:\n    kubectl/1.36.5/kubectll.exe: {'a' * 64}\n"
    code, told = _checked(an_inventory(tmp_path, HOSTS, profile), capsys)

    assert code == 0
    assert "profile.yaml:12:5: warning: artifacts.sha256.kubectl/1.36.5/kubectll.exe" in told
    assert "did you mean 'kubectl/1.36.5/kubectl.exe'" in told


PINS = [
    ("no version", "kubectl.exe", "a hash belongs to one version, and this key names none"),
    ("no version, in an archive", "a.tar.gz!b.exe", "NAME/VERSION/a.tar.gz!b.exe; `winboot init --renew -i "),
    ("another version", "kubectl/1.36.3/kubectl.exe", "the hash of kubectl 1.36.3, and 1.36.5 is wanted"),
]


@pytest.mark.parametrize(("key", "says"), [row[1:] for row in PINS], ids=[row[0] for row in PINS])
@pytest.mark.parametrize("command", ["check", "plan", "join", "repair", "render"])
def test_a_hash_that_is_not_of_the_wanted_version_is_refused_with_the_command_that_renews_it(
    command: str, key: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some publishers give each version's file the same name: the old programs would pass for the new ones."""
    profile = f"{GOOD}artifacts:\n  sha256:\n    {key}: {'a' * 64}\n"
    inventory = an_inventory(tmp_path, HOSTS, profile)

    assert run([command, str(inventory)] if command == "check" else [command, "-i", str(inventory)]) == 64
    told = capsys.readouterr().err
    assert f"profile.yaml:12:5: artifacts.sha256.{key}: " in told
    assert says in told
    assert f"`winboot init --renew -i {inventory}`" in told


def test_a_profile_alone_is_not_good_with_a_hash_of_any_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    an_inventory(tmp_path, HOSTS, f"{GOOD}artifacts:\n  sha256:\n    kubectl.exe: {'a' * 64}\n")

    code, told = _checked(tmp_path / "profile.yaml", capsys)

    assert (code, "this key names none" in told) == (64, True)


def test_the_hash_of_the_version_before_may_stay_beside_the_wanted_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A downgrade needs it again."""
    keys = "".join(f"    kubectl/1.36.{patch}/kubectl.exe: {'a' * 64}\n" for patch in (3, 5))
    code, told = _checked(an_inventory(tmp_path, HOSTS, f"{GOOD}artifacts:\n  sha256:\n{keys}"), capsys)

    assert code == 0
    assert "kubectl/1.36.3" not in told


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (None, 0, "there is no file"),
        ("", 64, "cluster.kubeconfig"),
        (KUBECONFIG.replace("current-context: a", "current-context: b"), 64, "cluster.kubeconfig"),
        (KUBECONFIG.replace("TUlJQg==", "'%%%'"), 64, "the CA of its context cannot be read"),
        (KUBECONFIG.replace("token: t", "auth-provider: {name: gcp}"), 64, "gke-gcloud-auth-plugin"),
        (KUBECONFIG.replace("token: t", "token: t, as-uid: '7'"), 64, "as-uid"),
        (KUBECONFIG.replace("6443',", "6443', proxy-url: 'socks5://p:1',"), 64, "proxy-url"),
        (
            KUBECONFIG.replace("certificate-authority-data: TUlJQg==", "insecure-skip-tls-verify: true"),
            0,
            "insecure-skip-tls-verify",
        ),
    ],
    ids=["missing", "empty", "no such context", "no CA", "auth-provider", "as-uid", "socks", "insecure"],
)
def test_a_kubeconfig_that_cannot_be_used_is_shown_at_its_place(
    content: str | None, code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing one is a warning: render does without."""
    path = an_inventory(tmp_path, HOSTS)
    if content is not None:
        (tmp_path / "kubeconfig").write_text(content, encoding="utf-8")

    found, told = _checked(path, capsys)

    assert found == code
    assert says in told
    assert "profile.yaml:6:" in told


@pytest.mark.parametrize(
    ("pem", "says"),
    [("", "does not contain a certificate"), ("\x00\x01", "does not contain a certificate")],
)
def test_a_ca_that_is_no_certificate_is_shown_at_its_place(
    pem: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the key that names the file."""
    path = an_inventory(tmp_path, HOSTS)
    (tmp_path / "ca.crt").write_text(pem, encoding="utf-8")

    code, told = _checked(path, capsys)

    assert code == 64
    assert says in told
    assert "profile.yaml:5:" in told


def test_hosts_of_one_kind_are_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thousand hosts cost little more than one: one script for each profile and Windows version."""
    hosts = ", ".join(f"win-{number}: " for number in range(40))
    text = (
        f"groups:\n  p: {{profile: profile.yaml, os: '2022', hosts: {{{hosts}}}}}\n"
        "  q: {profile: profile.yaml, os: '2025', hosts: {other: }}\n"
    )
    path = an_inventory(tmp_path, text, GOOD + OWN_STEP)
    (tmp_path / "look.ps1").write_text("# nothing differs\n", encoding="utf-8")
    checked: list[str] = []
    monkeypatch.setattr(
        "winboot.cli.own_steps.strict_check", lambda: lambda text, origin: checked.append(origin) or []
    )

    assert run(["check", str(path)]) == 0

    assert checked == [str(tmp_path / "look.ps1"), "win-0", "other"]


@pytest.mark.parametrize(
    ("words", "code", "level"), [((), 0, "warning: "), (("--strict",), 64, "")], ids=["default", "strict"]
)
def test_own_steps_are_named_as_unchecked_without_the_lab(
    words: tuple[str, ...],
    code: int,
    level: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = an_inventory(tmp_path, HOSTS, GOOD + OWN_STEP)
    (tmp_path / "look.ps1").write_text("Get-Nonsense\n", encoding="utf-8")
    monkeypatch.setattr("winboot.cli.own_steps.strict_check", lambda: None)

    assert run(["check", str(path), *words]) == code

    assert f"{level}steps: own steps not checked" in capsys.readouterr().err


def test_a_command_of_an_own_step_that_windows_lacks_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, HOSTS, GOOD + OWN_STEP)
    (tmp_path / "look.ps1").write_text("Get-Nonsense\n", encoding="utf-8")

    code, output = _checked(path, capsys)

    assert code == 64
    assert "Get-Nonsense is no cmdlet of Windows PowerShell 5.1" in output


@pytest.mark.parametrize(
    ("name", "text", "inventory"),
    [
        ("inventory.yaml", "", True),
        ("inventory.yaml", "all: {hosts: {a: {}}}", True),
        ("pool.yaml", "groups: {}", True),
        ("pool.yaml", GOOD, False),
        ("profile.yaml", "", False),
        ("inventory.yaml", "a: [", True),
    ],
)
def test_what_a_file_is_meant_to_be(name: str, text: str, inventory: bool, tmp_path: Path) -> None:
    """By its sections; where it has none that we know, by its name."""
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert is_inventory(tmp_path / name) is inventory


@pytest.mark.parametrize("command", ["check", "steps"])
def test_a_form_that_a_command_does_not_have_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Instead of a table that a program would choke on."""
    path = an_inventory(tmp_path, HOSTS)
    arguments = ["-i", str(path)] if command in ("check", "ping") else []

    assert run([command, *arguments, "-o", "junit"]) == 64
    assert "'junit' is not one of 'table', 'json'" in capsys.readouterr().err
    run([command, "--help"])
    assert "junit" not in capsys.readouterr().out


@pytest.mark.parametrize("target", ["file", "below"])
def test_a_folder_that_cannot_be_written_is_wrong_use(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in its place is an error of the user, not a bug in winboot."""
    path = an_inventory(tmp_path, HOSTS)
    (tmp_path / "taken").write_text("", encoding="utf-8")
    out = tmp_path / "taken" / ("" if target == "file" else "more")

    assert run(["render", "-i", str(path), "--out", str(out)]) == 64
    assert "cannot be written" in capsys.readouterr().err


def test_a_ca_of_another_cluster_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its key has another hash than cluster.ca_hash; nothing would be written to a node."""
    from winboot_lab.cluster import LabCluster

    path = an_inventory(
        tmp_path,
        HOSTS,
        GOOD.replace("ca: {file: ca.crt}", f"ca: {{file: ca.crt}}\n  ca_hash: sha256:{'0' * 64}"),
    )
    (tmp_path / "ca.crt").write_text(LabCluster().authority.pem, encoding="ascii")

    code, told = _checked(path, capsys)

    assert code == 64
    assert "not the one in cluster.ca_hash" in told


def test_a_ca_of_the_cluster_is_taken(tmp_path: Path) -> None:
    """The same hash as kubeadm prints it."""
    from winboot_lab.cluster import LabCluster

    from winboot.config.authority import key_hash

    pem = LabCluster().authority.pem
    profile = GOOD.replace("ca: {file: ca.crt}", f"ca: {{file: ca.crt}}\n  ca_hash: sha256:{key_hash(pem)}")
    path = an_inventory(tmp_path, HOSTS, profile)
    (tmp_path / "ca.crt").write_text(pem, encoding="ascii")

    machine = load_inventory(path)["win-1"]

    assert resolve(machine.profile, machine).cluster.ca_pem == pem
