"""Download the programs, check their hashes and put them in their places."""

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from typing import Any

import pytest
from winboot_lab.mirror import Mirror, program
from winboot_lab.programs.tar import Tar
from winboot_lab.windows.programs_api import Exit

from tests.steps.bench import Bench
from tests.steps.builders import a_spec, with_a_mirror
from tests.steps.library import call
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.artifacts import ARTIFACTS
from winboot.script.steps.programs import _matches, artifact_tables


def artifact(name: str) -> dict:
    return next(one for one in artifact_tables(a_spec()) if one["name"] == name)


def test_each_program_names_the_services_that_must_start_again_when_it_is_replaced():
    services = {member["to"]: member["services"] for member in artifact("kubernetes")["members"]}

    assert services[r"C:\k\versions\kubernetes-1.36.5\kubelet.exe"] == ["kubelet"]
    assert services[r"C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe"] == ["kubelet", "kube-proxy"]


def test_what_only_the_container_runtime_starts_restarts_nothing():
    shim = [member for member in artifact("containerd")["members"] if "shim" in member["to"]]

    assert ["services" in member for member in shim] == [False]


def test_downloads_take_the_proxy_of_the_profile():
    assert ARTIFACTS.inputs(a_spec())["proxy"] == "http://proxy.corp.example:3128"


@pytest.mark.parametrize(
    ("host", "entry", "covered"),
    [
        ("mirror.corp.example", ".corp.example", True),
        ("corp.example", ".corp.example", True),
        ("notcorp.example", ".corp.example", False),
        ("mirror.corp.example", "corp.example", True),
        ("10.0.0.7", "10.0.0.0/8", True),
        ("11.0.0.7", "10.0.0.0/8", False),
        ("10.0.0.7", "10.0.0.7", True),
        ("dl.k8s.io", "10.0.0.0/8", False),
    ],
)
def test_no_proxy_is_read_as_go_programs_read_it(host: str, entry: str, covered: bool):
    assert _matches(host, entry) is covered


STEP = "artifacts"
DOWNLOADS = r"C:\ProgramData\winboot\downloads"


class Site(Bench):
    """A machine that downloads from the lab's mirror."""

    def __init__(self) -> None:
        super().__init__(spec=with_a_mirror(a_spec()))
        self.mirror = Mirror()
        self.world.serve("mirror.lab", 80, self.mirror.handle)

    def hashes(self) -> dict[str, str]:
        """Each destination and the hash of what is there."""
        paths = [member.destination for one in self.spec.artifacts for member in one.members]
        return {path: hashlib.sha256(self.file(path) or b"").hexdigest() for path in paths}


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_bare_machine_lacks_every_program(site: Site):
    found = site.look(STEP).differences(STEP)

    assert found[r"file C:\k\versions\kubernetes-1.36.5\kubelet.exe: sha256"] == (
        None,
        f"as in kubernetes-node-windows-amd64.tar.gz {site.spec.kubernetes.version}",
    )
    assert len(found) == sum(len(one.members) for one in site.spec.artifacts)


def test_everything_is_placed_once(site: Site):
    assert site.run(STEP).states == {STEP: "changed"}
    asked = len(site.mirror.log)
    assert site.run(STEP).states == {STEP: "ok"}

    assert len(site.mirror.log) == asked, "nothing is downloaded twice"
    assert site.file(r"C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\flannel.exe") is not None


def test_nothing_of_a_download_stays_behind(site: Site):
    site.run(STEP)

    left = site.machine.console.invoke("file.list", {"path": r"C:\ProgramData\winboot\downloads"}).objects
    assert left == []


def test_a_program_that_was_replaced_is_seen_and_put_right(site: Site):
    site.run(STEP)
    right = site.hashes()
    site.machine.console.invoke(
        "file.write", {"path": r"C:\k\versions\kubectl-1.36.5\kubectl.exe", "content": b"something else"}
    )

    told = site.run(STEP)

    assert list(told.differences(STEP)) == [r"file C:\k\versions\kubectl-1.36.5\kubectl.exe: sha256"]
    assert told.states == {STEP: "changed"}
    assert site.hashes() == right


@pytest.mark.parametrize("pinned", [True, False], ids=["its own hash is known", "the archive's alone"])
def test_a_right_program_of_another_account_is_replaced_by_winboots_copy(site: Site, pinned: bool):
    """Its owner may have it open with the right to write, and no look can see a handle: the handle keeps the old file."""
    site.run("directories", STEP)
    kubelet, files = place_of(site, "kubelet"), site.machine.files
    if pinned:
        site.spec = with_hash(site.spec, kubelet, hashlib.sha256(site.file(kubelet) or b"").hexdigest())
    files.delete(r"C:\ProgramData\winboot\placed.json")
    before = files.need(kubelet)[1]

    found = site.look(STEP).differences(STEP)

    assert found.get(f"file {kubelet}: placed by") == (("somebody else", "winboot") if pinned else None)
    assert site.run("directories", STEP).states[STEP] == "changed"
    assert files.need(kubelet)[1] is not before
    assert site.look(STEP).states == {STEP: "ok"}
    assert files.list(r"C:\ProgramData\winboot\downloads") == []


def with_hash(spec: NodeSpec, place: str, sha256: str) -> NodeSpec:
    """The spec with the hash of one program."""
    artifacts = tuple(
        replace(
            one,
            members=tuple(
                replace(member, sha256=sha256) if member.destination == place else member
                for member in one.members
            ),
        )
        for one in spec.artifacts
    )
    return replace(spec, artifacts=artifacts)


def test_programs_of_a_running_node_stay_where_they_are_for_any_owner(site: Site):
    site.run("directories", STEP)
    site.machine.files.delete(r"C:\ProgramData\winboot\placed.json")
    service = r"SYSTEM\CurrentControlSet\Services\kubelet"
    call(
        site, f"Write-Registry -Path '{service}' -Name 'ImagePath' -Kind 'String' -Value 'C:\\k\\kubelet.exe'"
    )

    assert not [what for what in site.look(STEP).differences(STEP) if "placed by" in what]


def test_a_download_that_breaks_off_continues_where_it_ended(site: Site):
    url = next(one.url for one in site.spec.artifacts if one.name == "kubernetes")
    site.mirror.faults.breaks[url.rpartition("/")[2]] = 100

    assert site.run(STEP).states == {STEP: "changed"}
    ranges = [
        asked for path, asked in site.mirror.log if path.endswith("kubernetes-node-windows-amd64.tar.gz")
    ]
    assert ranges == ["", "bytes=100-"]


def test_a_server_that_does_not_resume_sends_all_of_it_and_the_first_part_is_not_kept(site: Site):
    """RFC 9110, 14.2: a server may ignore Range and answer 200."""
    url = next(one.url for one in site.spec.artifacts if one.name == "kubernetes")
    site.mirror.faults.breaks[url.rpartition("/")[2]] = 100
    site.mirror.faults.whole.add(url.rpartition("/")[2])

    assert site.run(STEP).states == {STEP: "changed"}
    assert [path for path, _ in site.mirror.log].count(url.partition(".lab")[2]) == 2


def test_files_of_another_archive_are_not_taken_for_those_of_this_one(site: Site):
    """Their hashes were noted when they were placed; the note is of one archive."""
    site.run(STEP)
    wanted = next(one for one in site.spec.artifacts if one.name == "kubernetes")
    other = replace(wanted, sha256="ab" * 32)
    site.spec = replace(
        site.spec, artifacts=tuple(other if one is wanted else one for one in site.spec.artifacts)
    )

    found = site.look(STEP).differences(STEP)

    assert set(found) == {f"file {member.destination}: sha256" for member in wanted.members}


def test_a_wrong_hash_is_refused_and_nothing_is_placed(site: Site):
    site.mirror.faults.wrong.add("kubectl.exe")

    told = site.run(STEP)

    assert told.step(STEP)["problem"]["id"] == "HashMismatch"
    assert site.file(r"C:\k\versions\kubectl-1.36.5\kubectl.exe") is None
    site.mirror.faults.wrong.clear()
    assert site.run(STEP).states == {STEP: "changed"}


def test_a_file_of_an_archive_with_another_hash_than_the_profile_says_is_not_placed(site: Site):
    """The archive is the expected one, and a file in it is not."""
    wanted = next(one for one in site.spec.artifacts if len(one.members) > 1)
    member = replace(wanted.members[0], sha256="ab" * 32)
    changed = replace(wanted, members=(member, *wanted.members[1:]))
    site.spec = replace(
        site.spec, artifacts=tuple(changed if one is wanted else one for one in site.spec.artifacts)
    )

    told = site.run(STEP)

    assert told.problem(STEP).id == "HashMismatch"
    assert site.file(member.destination) is None


def test_a_missing_file_names_its_address(site: Site):
    site.mirror.faults.missing.add("kubectl.exe")

    problem = site.run(STEP).step(STEP)["problem"]

    assert problem["id"] == "DownloadFailed"
    assert "kubectl.exe" in problem["message"]


def test_undo_removes_what_was_placed(site: Site):
    site.run(STEP)
    site.undo(STEP)

    assert site.file(r"C:\k\versions\kubernetes-1.36.5\kubelet.exe") is None


def test_undo_puts_back_a_program_that_was_there_before(site: Site):
    site.machine.console.invoke("file.make-directory", {"path": r"C:\k\versions\kubectl-1.36.5"})
    site.machine.console.invoke(
        "file.write", {"path": r"C:\k\versions\kubectl-1.36.5\kubectl.exe", "content": b"theirs" * 20000}
    )
    site.run(STEP)
    site.undo(STEP)

    assert site.file(r"C:\k\versions\kubectl-1.36.5\kubectl.exe") == b"theirs" * 20000


class _SlowTar(Tar):
    """A tar whose output is open for 310 seconds: a slow disk with a scanner on it."""

    def run(self, machine: Any, process: Any, argv: list[str], env: Any, stdin: bytes) -> Exit:
        return replace(super().run(machine, process, argv, env, stdin), lingers=310)


@pytest.mark.parametrize(("mebibytes", "problem"), [(1, "winboot.ProgramHangs"), (12, "")])
def test_a_larger_archive_has_more_time_to_be_unpacked(bench: Bench, mebibytes: int, problem: str):
    """300 seconds, and one more for each mebibyte."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("a.exe")
        member.size = mebibytes << 20
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    content = packed.getvalue()
    bench.write(r"C:\ProgramData\winboot\former\others.jsonl", b"")
    bench.write(r"C:\ProgramData\winboot\downloads\a.tar", content)
    bench.machine.programs.add("tar", _SlowTar())
    members = r"@(@{ path = 'a.exe'; to = 'C:\k\a.exe'; services = @() })"
    artifact = (
        f"file = 'a.tar'; name = 'a'; sha256 = '{hashlib.sha256(content).hexdigest()}'; members = {members}"
    )

    assert call(bench, f"Install-OneArtifact -Artifact @{{ {artifact} }}").id == problem
    assert (bench.file(r"C:\k\a.exe") is None) == bool(problem)


def test_without_a_hash_nothing_is_downloaded(site: Site):
    spec = site.spec
    site.spec = replace(spec, artifacts=tuple(replace(one, sha256=None) for one in spec.artifacts))

    problem = site.run(STEP, "directories").problem(STEP)

    assert problem.id == "HashMissing"
    assert problem.message.startswith("no sha256 is known for ")
    assert "winboot init" in problem.hint
    assert site.mirror.log == []


def test_a_download_that_dribbles_is_tried_again_and_then_named(site: Site):
    """A timeout for each read does not help against a server that always sends a little."""
    url = site.spec.artifacts[0].url
    site.world.slow(url, 100.0)
    site.world.damage(url, b"x" * 500_000)
    began = site.machine.time.seconds

    problem = site.run(STEP).problem(STEP)

    assert problem.id == "DownloadFailed"
    assert url in problem.message
    assert "came within a minute" in problem.message
    assert site.machine.time.seconds - began < 600


def test_a_long_download_gives_signs_of_life(site: Site):
    url = site.spec.artifacts[0].url
    site.world.slow(url, 20_000)
    site.world.damage(url, b"x" * 500_000)
    site.run(STEP)
    lines = (site.file(r"C:\ProgramData\winboot\journal.jsonl") or b"").decode().splitlines()

    told = [one["event"] for one in map(json.loads, lines) if one["event"]["event"] == "download"]
    assert len(told) >= 2
    assert told[0]["url"] == url


@pytest.mark.parametrize(("before", "after"), [("SystemDefault", "SystemDefault"), ("Tls", "Tls, Tls12")])
def test_where_windows_chooses_the_protocol_of_tls_it_continues_choosing(site: Site, before: str, after: str):
    """0 with TLS 1.2 added would be TLS 1.2 alone, and a mirror that speaks 1.3 alone would be out of reach."""
    point = "[Net.ServicePointManager]::SecurityProtocol"
    site.write(r"C:\k\other.txt", b"")
    fetch = f"Receive-Rest -Url '{site.spec.artifacts[0].url}' -Path 'C:\\k\\a.part'"

    answer = call(site, f"{point} = '{before}'\n{fetch}\n\"$({point})\"")

    assert (answer.id, answer.objects[-1:]) == ("", [after])
    assert site.file(r"C:\k\a.part")


def test_a_pin_of_another_version_under_the_key_of_the_wanted_one_is_found_by_what_the_program_says(
    site: Site,
):
    """`sed 's/1.36.5/1.36.9/'` over the whole profile renames the pins, too: the hash fits, the program is the old one."""
    site.run("directories", STEP)
    kept = {one.name: one for one in site.spec.artifacts}
    renamed = replace(kept["kubectl"], version="1.36.9")
    site.spec = replace(
        site.spec, artifacts=tuple(renamed if one.name == "kubectl" else one for one in site.spec.artifacts)
    )

    found = site.look(STEP).differences(STEP)
    told = site.run(STEP)

    (what,) = found
    assert found[what] == (f"v{kept['kubectl'].version}", "1.36.9")
    assert told.problem(STEP).id == "WrongVersion"
    assert f"says v{kept['kubectl'].version}, and 1.36.9 is wanted" in told.problem(STEP).message


# What is versioned: the words of the profile, the version before and after, and a program of it.
VERSIONS = [
    ('version: "{}"', "1.36.5", "1.36.9", "kubelet"),
    ('version: "{}"', "1.36.5", "1.36.9", "kube-proxy"),
    ('version: "{}"', "1.36.5", "1.36.9", "kubectl"),
    ('containerd: "{}"', "2.3.6", "2.3.4", "containerd"),
    ('crictl: "{}"', "1.36.0", "1.36.1", "crictl"),
    ('flannel: "{}"', "0.28.9", "0.28.10", "flanneld"),
    ('flannel_cni: "{}"', "1.9.1-flannel1", "1.9.1-flannel2", "flannel"),
    ('cni_plugins: "{}"', "1.9.1", "1.9.2", "host-local"),
    ('nssm: "{}"', "2.24", "2.25", "nssm"),
]


def place_of(site: Site, name: str) -> str:
    """Where a program of the wanted version lies."""
    places = (member.destination for one in site.spec.artifacts for member in one.members)
    (place,) = [one for one in places if one.endswith(rf"\{name}.exe")]
    return place


# All at once, and one of an archive from which others come, too; each other one alone says what these two say.
ALONE = [
    pytest.param(
        [row], id=f"{row[3]} to {row[2]}", marks=() if row[3] == "host-local" else pytest.mark.matrix
    )
    for row in VERSIONS
]


@pytest.mark.parametrize("versions", [pytest.param(VERSIONS, id="all programs"), *ALONE])
def test_another_version_is_a_difference_that_disturbs_and_lies_beside_the_former_one(
    versions: list[tuple[str, str, str, str]],
):
    """Back again nothing is downloaded: the former one is still there."""
    site = Site()
    former, wanted = with_a_mirror(a_spec()), with_a_mirror(a_spec(**changes_to(versions)))
    names = [name for *_, name in versions]
    site.spec = former
    before = {name: place_of(site, name) for name in names}
    site.run("directories", STEP)
    site.spec = wanted
    after = {name: place_of(site, name) for name in names}

    told = site.run("directories", STEP)

    differences = told.step(STEP)["differences"]
    disturbs = {
        name: [one["disturbs"] for one in differences if after[name] in one["what"]] for name in names
    }
    assert disturbs == {name: [True] for name in names}
    assert told.states[STEP] == "changed"
    for _, old, new, name in versions:
        found = site.file(before[name]), site.file(after[name])
        assert found == (program(name, old), program(name, new)), name
    assert site.look(STEP).states == {STEP: "ok"}
    site.spec = former
    assert site.look(STEP).states == {STEP: "ok"}


def changes_to(versions: list[tuple[str, str, str, str]]) -> dict[str, str]:
    """What is replaced in the text of the profile."""
    return {words.format(old): words.format(new) for words, old, new, _ in versions}


def with_version(version: str) -> NodeSpec:
    return with_a_mirror(a_spec(**{'version: "1.36.5"': f'version: "{version}"'}))


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(False, id="idle", marks=pytest.mark.check),
        pytest.param(True, id="something runs from it"),
    ],
)
def test_so_many_versions_stay_and_one_from_which_something_runs(site: Site, runs: bool):
    """Two; the oldest goes at the end of a run that succeeded."""
    first, second, third = places = [
        rf"C:\k\versions\kubernetes-{version}\kubelet.exe" for version in ("1.36.5", "1.36.8", "1.36.9")
    ]
    site.run("directories", STEP)
    if runs:
        site.machine.processes.add("kubelet", first, "kubelet")
    site.spec = with_version("1.36.8")
    site.run("directories", STEP)
    assert [site.file(path) is not None for path in places] == [True, True, False]
    site.spec = with_version("1.36.9")

    site.run("directories", STEP)

    assert [site.file(path) is not None for path in (first, second, third)] == [runs, True, True]
    assert bool(site.machine.files.exists(first.rpartition("\\")[0])) == runs
    assert site.look(STEP).states == {STEP: "ok"}


def test_a_download_that_another_account_has_begun_is_not_continued(site: Site):
    """That account may have it open, and write once more after winboot compared its hash."""
    files = site.machine.files
    site.machine.accounts.add("alice", administrator=False)
    site.look(STEP)
    files.make_directory(DOWNLOADS)
    planted = rf"{DOWNLOADS}\x.zip.part"
    files.write(planted, b"x")
    files.need(planted)[1].acl.owner = site.machine.accounts.token("alice").sid

    problem = site.run(STEP).problem(STEP)

    assert planted in problem.message and "look at it, and delete it" in problem.message
    assert files.read(planted) == b"x"


def test_a_run_knows_what_it_has_placed_itself(bench: Bench):
    place = "Save-Placed -Artifact @{{ name = '{0}'; sha256 = '{0}' }} -Files @(@{{ destination = 'C:\\{0}'; sha256 = '1' }})"
    count = "@(Get-Placed).Count"

    answer = call(bench, "; ".join([count, place.format("a"), count, place.format("b"), count]))

    assert answer.objects == [0, 1, 2]
