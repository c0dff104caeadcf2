"""The command compares upstream's texts with the data, and lists additions, removals, deprecations, stages and defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tools.compat_upstream import Upstream, differences, main, read, report
from winboot.config.compat import load

MINOR = "1.37"

FIELDS = """\
package v1beta1

type KubeletConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Default: true
	EnableServer *bool `json:"enableServer,omitempty"`
	// Authentication of requests.
	Authentication KubeletAuthentication `json:"authentication"`
	Logging logsapi.LoggingConfiguration `json:"logging,omitempty"`
	// Default: 0.9
	MemoryThrottlingFactor *float64 `json:"memoryThrottlingFactor,omitempty"`
	ReservedMemory []MemoryReservation `json:"reservedMemory,omitempty"`
	BrandNew metav1.Duration `json:"brandNew,omitempty"`
	Inner string `json:"-"`
}

type KubeletAuthentication struct {
	Anonymous KubeletAnonymousAuthentication `json:"anonymous"`
}

type KubeletAnonymousAuthentication struct {
	Enabled *bool `json:"enabled,omitempty"`
}

type MemoryReservation struct {
	NumaNode int32 `json:"numaNode"`
}
"""
FLAGS = """\
func AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.KubeConfig, "kubeconfig", f.KubeConfig, "Path to a file, or \\"nothing\\".")
	fs.Var(utilflag.IPVar{Val: &c.Address}, "address", "An address.")
	fs.DurationVar(&c.New.Duration, "brand-new", c.New.Duration, "New.")
	fs.StringVar(&f.HostnameOverride, "hostname-override", f.HostnameOverride, "A name.")
	fs.MarkDeprecated("hostname-override", "will be removed")
}
"""
GATES = """\
- name: CPUCFSQuotaPeriod
  versionedSpecs:
  - {default: true, lockToDefault: false, preRelease: GA, version: "1.36"}
- name: NodeLogQuery
  versionedSpecs:
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.30"}
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.37"}
- name: BrandNewGate
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.37"}
- name: OfTheNextMinor
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.38"}
"""
CLIENT = """\
const (
	WatchListClient Feature = "WatchListClient"
	CPUCFSQuotaPeriod featuregate.Feature = "CustomCPUCFSQuotaPeriod"
)

var gates = map[Feature]VersionedSpecs{
	WatchListClient: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: Beta},
		{Version: version.MustParse("1.37"), Default: true, PreRelease: GA, LockToDefault: true},
	},
}
"""
SCHEDULE = """\
schedules:
- release: "1.37"
  releaseDate: "2026-08-26"
  endOfLifeDate: "2027-11-28"
"""
TEXTS = {
    "kubelet/config/v1beta1/types.go": FIELDS,
    "cmd/kubelet/app/options/options.go": FLAGS,
    "cmd/kubelet/app/options/options_linux.go": FLAGS.replace("brand-new", "only-linux"),
    "test/versioned_feature_list.yaml": GATES,
    "client-go/features/known_features.go": CLIENT,
    "CHANGELOG/CHANGELOG-1.37.md": "# v1.37.9\n\n# v1.37.10\n\n## Changelog since v1.37.9\n",
    "data/releases/schedule.yaml": SCHEDULE,
}


def a_folder(tmp_path: Path, minor: str = MINOR, **texts: str) -> Path:
    for name, text in (texts or TEXTS).items():
        file = tmp_path / minor / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def found(tmp_path: Path) -> Upstream:
    return read(a_folder(tmp_path) / MINOR, MINOR)


def told(found: Upstream) -> list[str]:
    return [str(one) for one in differences(load(), found)]


SAYS = [
    "minors: 1.37: upstream is at 1.37.10; the data at 1.37.1",
    "minors: 1.37: upstream says end_of_life 2027-11-28; the data 2027-10-28",
    "kubelet_fields: brandNew: upstream has it (metav1.Duration); the data does not know it",
    "kubelet_fields: authentication.x509.clientCAFile: upstream does not have it; the data has it",
    "kubelet_flags: brand-new: upstream has it; the data does not know it",
    "kubelet_flags: node-ip: upstream does not have it; the data has it",
    "kubelet_flags: hostname-override: upstream calls it deprecated; the data does not",
    "gates: BrandNewGate: upstream has it alpha, off; the data does not know it",
    "gates: WinOverlay: upstream does not have it; the data has it",
]  # fmt: skip


@pytest.mark.parametrize("says", SAYS)
def test_what_upstream_has_otherwise_is_reported(found: Upstream, says: str) -> None:
    assert says in told(found)


@pytest.mark.parametrize(
    "name",
    [
        "enableServer",
        "authentication.anonymous.enabled",
        # Its package's text is not there.
        "logging.format",
        # What is in a list is not a field of its own.
        "reservedMemory",
        "kubelet_flags: kubeconfig",
        "kubelet_flags: address",
        # Shared by all programs, and not in the text of one.
        "kubelet_flags: v:",
        "only-linux",
        # The list has Go's name of this one.
        "CPUCFSQuotaPeriod",
        "OfTheNextMinor",
        "kube_proxy",
    ],
)
def test_what_is_the_same_or_cannot_be_judged_is_not_reported(found: Upstream, name: str) -> None:
    assert [one for one in told(found) if name in one] == []


def test_a_stage_that_upstream_has_otherwise_is_an_entry_of_an_overlay(tmp_path: Path) -> None:
    lines, sections = report(load(), a_folder(tmp_path))

    (line,) = [one for one in lines if "WatchListClient" in one]
    assert "upstream has it ga, on, locked" in line
    assert sections["gates"]["WatchListClient"]["stages"] == [
        ["1.30", "beta", False, False],
        ["1.37", "ga", True, True],
    ]
    assert sections["kubelet_flags"]["brand-new"] == {"type": "duration", "added": "1.37"}
    assert sections["kubelet_fields"]["brandNew"] == {"added": "1.37", "type": "duration"}


def test_a_default_that_changes_between_two_minors_is_reported_where_the_data_does_not_say_so(
    tmp_path: Path,
) -> None:
    """The data says that memoryThrottlingFactor changed in 1.37, and knows nothing of enableServer."""
    name = "kubelet/config/v1beta1/types.go"
    before = FIELDS.replace("Default: true", "Default: false").replace("Default: 0.9", "Default: 0.8")
    a_folder(tmp_path, "1.36", **{name: before})
    lines, _ = report(load(), a_folder(tmp_path, "1.37", **{name: FIELDS}))

    defaults = [one.strip() for one in lines if "the default" in one]
    assert defaults == [
        "kubelet_fields: enableServer: upstream has the default 'true' from 1.37 on, 'false' before; the data does not say so"
    ]


def test_the_differences_are_written_as_an_overlay_that_can_be_baked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay = tmp_path / "overlay.yaml"
    monkeypatch.setattr("sys.argv", ["compat", str(a_folder(tmp_path)), "--overlay", str(overlay)])

    assert main() == 2
    assert "1.37: read " in capsys.readouterr().out
    assert yaml.safe_load(overlay.read_text())["minors"]["1.37"]["seen_patch"] == "1.37.10"
    assert load(overlay).section("kubelet_flags")["brand-new"]["added"] == "1.37"


# Repository, tags, expected output: a pre-release or an older patch is nothing new.
TAGS: list[tuple[str, list[str], str]] = [
    ("kubernetes", ["v1.37.2", "v1.37.1"], "has 1.37.2; the data has 1.37.1"),
    ("kubernetes", ["v1.38.0"], "has the minor 1.38; the data ends with 1.37"),
    ("kubernetes", ["v1.38.0-rc.1", "v1.36.0"], ""),
    ("containerd", ["v2.3.7"], "has 2.3.7; the data has 2.3.6"),
    ("containerd", ["v2.5.0"], "has the minor 2.5"),
    ("containerd", ["api/v1.99.0", "v2.4.0-beta.1"], ""),
    ("flannel", ["v0.28.10", "v0.28.9"], "has 0.28.10; the data has 0.28.9"),
    ("flannel-cni", ["v1.9.1-flannel2"], "has 1.9.1-flannel2"),
    ("azure-cni", ["v1.6.49"], "has 1.6.49"),
    ("azure-cni", ["v1.8.12"], ""),
    ("calico", ["v3.34.0"], "has the minor 3.34; the data ends with 3.33"),
    ("calico", ["v3.34.0-0.dev", "v3.32.9"], ""),
]


@pytest.mark.parametrize(("name", "tags", "says"), TAGS)
def test_a_tag_that_the_data_does_not_have_is_reported(
    name: str, tags: list[str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "tags").mkdir()
    text = "".join(f"{'0' * 40}\trefs/tags/{tag}\n" for tag in tags)
    (tmp_path / "tags" / name).write_text(text, encoding="utf-8")

    lines, _ = report(load(), tmp_path)

    assert says in lines[1]
    assert (lines[1] == "  nothing that the data does not have") is (says == "")


def test_a_folder_without_a_minor_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["compat", str(tmp_path)])

    assert main() == 64
    assert "has no folder of a minor, such as 1.37" in capsys.readouterr().err


def test_unknown_texts_are_no_agreement(tmp_path: Path) -> None:
    lines, _ = report(load(), a_folder(tmp_path, "1.37", **{"notes.txt": "what I think"}))

    assert lines[0] == "1.37: no text that is known here (docs/compat.md lists them)"
