"""runtime.config: containerd's own settings in the form that each line of containerd reads, and what is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.scene import a_spec, complaints
from winboot.config import compat
from winboot.config.compat.containerd import check_settings
from winboot.config.node_spec.merged import over
from winboot.config.node_spec.toml import toml

CRI: Final = "io.containerd.grpc.v1.cri"
IMAGES: Final = "io.containerd.cri.v1.images"
RUNTIME: Final = "io.containerd.cri.v1.runtime"
# The newest Kubernetes of the data that each line of containerd goes with.
KUBERNETES: Final = {
    "1.7": "1.33.5",
    "2.0": "1.33.5",
    "2.1": "1.35.0",
    "2.2": "1.36.5",
    "2.3": "1.36.5",
    "2.4": "1.36.5",
}
SINCE_2: Final = ("2.0", "2.1", "2.2", "2.3", "2.4")
ALL: Final = ("1.7", *SINCE_2)


def profile(config: str, line: str) -> str:
    version = compat.load().section("containerd")[line]["latest"]
    return f"kubernetes: {{version: '{KUBERNETES[line]}'}}\nruntime:\n  containerd: {version}\n  config: {config}\n"


def wrong(config: str, line: str = "2.3") -> list[str]:
    return [str(one) for one in complaints(profile(config, line)) if one.path.startswith("runtime.config")]


def at(table: Mapping[str, Any], path: str) -> Any:
    value: Any = table
    for part in path.split("/"):
        value = value[part]
    return value


# Setting as YAML, its place in the file, and the lines that have it.
SETTINGS: Final = [
    ("{debug: {level: debug}}", "debug/level", "debug", ALL),
    ("{metrics: {address: '127.0.0.1:1338'}}", "metrics/address", "127.0.0.1:1338", ALL),
    (
        "{timeouts: {io.containerd.timeout.shim.load: 10s}}",
        "timeouts/io.containerd.timeout.shim.load",
        "10s",
        ALL,
    ),
    (
        "{plugins: {io.containerd.gc.v1.scheduler: {pause_threshold: 0.5, startup_delay: 2s}}}",
        "plugins/io.containerd.gc.v1.scheduler/pause_threshold",
        0.5,
        ALL,
    ),
    (
        f"{{plugins: {{{CRI}: {{stream_idle_timeout: 4h0m0s}}}}}}",
        f"plugins/{CRI}/stream_idle_timeout",
        "4h0m0s",
        ALL,
    ),
    (
        f"{{plugins: {{{CRI}: {{max_container_log_line_size: -1}}}}}}",
        f"plugins/{CRI}/max_container_log_line_size",
        -1,
        ("1.7",),
    ),
    (
        f"{{plugins: {{{RUNTIME}: {{max_container_log_line_size: -1}}}}}}",
        f"plugins/{RUNTIME}/max_container_log_line_size",
        -1,
        SINCE_2,
    ),
    (
        f"{{plugins: {{{RUNTIME}: {{containerd: {{runtimes: {{runhcs-wcow-process: {{container_annotations: [a]}}}}}}}}}}}}",
        f"plugins/{RUNTIME}/containerd/runtimes/runhcs-wcow-process/container_annotations",
        ["a"],
        SINCE_2,
    ),
    (
        f"{{plugins: {{{IMAGES}: {{use_local_image_pull: true}}}}}}",
        f"plugins/{IMAGES}/use_local_image_pull",
        True,
        ("2.1", "2.2", "2.3", "2.4"),
    ),
    (
        f"{{plugins: {{{RUNTIME}: {{stats_retention_period: 1m}}}}}}",
        f"plugins/{RUNTIME}/stats_retention_period",
        "1m",
        ("2.3", "2.4"),
    ),
    (
        f"{{plugins: {{{IMAGES}: {{pinned_images: {{base: 'mcr.microsoft.com/windows/nanoserver:ltsc2022'}}}}}}}}",
        f"plugins/{IMAGES}/pinned_images/base",
        "mcr.microsoft.com/windows/nanoserver:ltsc2022",
        SINCE_2,
    ),
]


@pytest.mark.parametrize("line", ALL)
@pytest.mark.parametrize(("config", "path", "value", "lines"), SETTINGS, ids=[one[1] for one in SETTINGS])
def test_a_setting_is_in_the_file_of_the_lines_that_have_it(
    config: str, path: str, value: object, lines: tuple[str, ...], line: str, tmp_path: Path
):
    if line not in lines:
        assert len(wrong(config, line)) == 1
        return
    assert wrong(config, line) == []
    plain = tomllib.loads(a_spec(tmp_path, profile=profile("{}", line)).runtime.config_text)
    written = tomllib.loads(a_spec(tmp_path, profile=profile(config, line)).runtime.config_text)

    assert at(written, path) == value
    # winboot's own settings stay.
    assert over(plain, written) == written


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{root: 'D:\\x'}", "winboot writes this key itself; expected runtime.root"),
        ("{grpc: {address: x}}", "config.grpc.address: winboot writes this key itself"),
        (f"{{plugins: {{{IMAGES}: {{pinned_images: {{sandbox: x}}}}}}}}", "expected runtime.pause_image"),
        (f"{{plugins: {{{IMAGES}: {{registry: {{mirrors: {{}}}}}}}}}}", "expected runtime.registries"),
        ("{plugins: {io.containerd.transfer.v1.local: {config_path: x}}}", "expected runtime.registries"),
        (
            f"{{plugins: {{{RUNTIME}: {{containerd: {{default_runtime_name: x}}}}}}}}",
            "expected runtime.isolation",
        ),
        (f"{{plugins: {{{RUNTIME}: {{cni: {{conf_dir: x}}}}}}}}", "expected network.cni"),
        ("{metrics: {adress: x}}", "did you mean 'address'?"),
        (
            f"{{plugins: {{{IMAGES}: {{max_concurent_downloads: 3}}}}}}",
            "did you mean 'max_concurrent_downloads'?",
        ),
        ("{plugins: {io.containerd.cri.v1.image: {}}}", f"did you mean '{IMAGES}'?"),
        ("{plugins: {cri: {enable_tls_streaming: true}}}", f"did you mean '{CRI}'?"),
        ("{plugins: {scheduler: {pause_threshold: 0.5}}}", "did you mean 'io.containerd.gc.v1.scheduler'?"),
        ("{image_pull_progress_timeout: 30m}", f"instead: plugins.{IMAGES}.image_pull_progress_timeout"),
        (
            f"{{plugins: {{{CRI}: {{containerd: {{discard_unpacked_layers: true}}}}}}}}",
            f"1.7 was the last line with it; instead: plugins.{IMAGES}.discard_unpacked_layers",
        ),
        ("{plugins: {io.containerd.server.v1.metrics: {address: x}}}", "metrics or ttrpc"),
        (f"{{plugins: {{{IMAGES}: {{discard_unpacked_layers: 'yes'}}}}}}", "expected true or false"),
        (f"{{plugins: {{{IMAGES}: {{image_pull_progress_timeout: 30}}}}}}", "did you mean '30s'?"),
        (f"{{plugins: {{{IMAGES}: x}}}}", "expected setting: value"),
        ("{plugins: x}", "expected plug-in: {setting: value}"),
        (f"{{disabled_plugins: [{CRI}]}}", "the kubelet needs this plug-in"),
        (
            "{oom_score: 1}",
            "warning: runtime.config.oom_score: oom_score: containerd reads this setting only on Linux",
        ),
        ("{debug: {address: 'http://user:pw@host'}}", "the address contains a user or a password"),
        (
            f"{{plugins: {{{RUNTIME}: {{containerd: {{runtimes: {{own: {{options: {{list: [null]}}}}}}}}}}}}}}",
            "a list cannot have an empty item",
        ),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_in_its_place(config: str, said: str):
    (complaint,) = wrong(config)
    assert said in complaint
    assert complaint.startswith("profile.yaml:4:")


# What AKS sets on its Windows nodes beyond winboot's own (Azure/AgentBaker, containerd2template.toml).
AKS: Final = f"""
    metrics: {{address: '0.0.0.0:10257'}}
    plugins:
      io.containerd.gc.v1.scheduler: {{pause_threshold: 0.02, schedule_delay: 0s, startup_delay: 100ms}}
      {CRI}: {{stream_idle_timeout: 4h0m0s, stream_server_address: 127.0.0.1}}
      {IMAGES}: {{discard_unpacked_layers: true, max_concurrent_downloads: 3}}
      {RUNTIME}:
        max_container_log_line_size: 16384
        containerd:
          runtimes:
            runhcs-wcow-hypervisor-17763:
              runtime_type: io.containerd.runhcs.v1
              pod_annotations: ['io.microsoft.virtualmachine.*', 'io.microsoft.container.*']
              options: {{SandboxImage: mcr.microsoft.com/windows/nanoserver:1809, SandboxIsolation: 1}}
"""


def test_the_containerd_settings_of_aks_can_be_carried_over(tmp_path: Path):
    assert wrong(AKS) == []
    written = tomllib.loads(a_spec(tmp_path, profile=profile(AKS, "2.3")).runtime.config_text)
    handlers = at(written, f"plugins/{RUNTIME}/containerd/runtimes")
    assert set(handlers) == {"runhcs-wcow-process", "runhcs-wcow-hypervisor-17763"}
    assert handlers["runhcs-wcow-hypervisor-17763"]["options"]["SandboxIsolation"] == 1


def pulls(folder: Path, line: str, words: str) -> dict[str, Any]:
    """What a file has about layers and pulls, with these words in the section that holds them."""
    section = f"{CRI}: {{containerd: {words}}}" if line == "1.7" else f"{IMAGES}: {words}"
    config = f"{{plugins: {{{section}}}}}"
    assert wrong(config, line) == []
    written = tomllib.loads(a_spec(folder, profile=profile(config, line)).runtime.config_text)
    found = at(written, f"plugins/{CRI}/containerd" if line == "1.7" else f"plugins/{IMAGES}")
    return {key: value for key, value in found.items() if "layers" in key or "pull" in key}


@pytest.mark.parametrize(
    ("words", "old", "since_2_1"),
    [
        ("{}", {"discard_unpacked_layers": True}, {"discard_unpacked_layers": True}),
        (
            "{discard_unpacked_layers: false}",
            {"discard_unpacked_layers": False},
            {"discard_unpacked_layers": False, "image_pull_progress_timeout": "30m"},
        ),
        ("{discard_unpacked_layers: null}", {}, {"image_pull_progress_timeout": "30m"}),
    ],
)
@pytest.mark.parametrize("line", ALL)
def test_layers_and_pulls_fit_images_of_windows(
    words: str, old: dict[str, Any], since_2_1: dict[str, Any], line: str, tmp_path: Path
):
    assert pulls(tmp_path, line, words) == (old if line in ("1.7", "2.0") else since_2_1)


def test_the_profiles_own_limit_of_pulls_counts(tmp_path: Path):
    words = "{discard_unpacked_layers: false, image_pull_progress_timeout: 1h}"
    assert pulls(tmp_path, "2.3", words)["image_pull_progress_timeout"] == "1h"


@pytest.mark.parametrize("line", ALL)
def test_empty_words_of_a_dumped_configuration_are_right(line: str) -> None:
    """`containerd config default` writes them (cmd/containerd/command/main.go, `setLogLevel`; plugins/metadata/plugin.go)."""
    bolt = "plugins: {io.containerd.metadata.v1.bolt: {content_sharing_policy: ''}}"

    assert wrong(f"{{debug: {{level: '', format: ''}}, {bolt}}}", line) == []


def test_a_setting_of_cri_is_not_looked_for_outside_of_cri() -> None:
    """The image verifier has a `bin_dir`, too."""
    (said,) = [one for one in wrong(f"{{plugins: {{{CRI}: {{cni: {{bin_dir: x}}}}}}}}") if "any more" in one]

    assert "instead" not in said


def test_settings_of_1_7_have_another_place_in_its_file():
    (complaint,) = wrong(f"{{plugins: {{{IMAGES}: {{discard_unpacked_layers: true}}}}}}", "1.7")
    assert complaint.endswith(f"instead: plugins.{CRI}.containerd.discard_unpacked_layers")


def test_null_drops_a_setting_of_winboots(tmp_path: Path):
    config = f"{{plugins: {{{RUNTIME}: {{containerd: {{runtimes: {{runhcs-wcow-process: {{options: null}}}}}}}}}}}}"
    assert wrong(config, "2.0") == []
    written = tomllib.loads(a_spec(tmp_path, profile=profile(config, "2.0")).runtime.config_text)
    assert "options" not in at(written, f"plugins/{RUNTIME}/containerd/runtimes/runhcs-wcow-process")


def test_lines_beyond_the_data_are_judged_as_the_nearest():
    facts, config = compat.load(), {"debug": {"log_trace_id": True}}
    judged = {
        text: len(list(check_settings(facts, config, compat.Version.parse(text))))
        for text in ("1.6.39", "2.9.0")
    }
    assert judged == {"1.6.39": 1, "2.9.0": 0}


_SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), _VALUES, max_size=5))
def test_every_mapping_is_read_back_as_it_was(table: dict[str, Any]):
    assert tomllib.loads("\n".join(toml(table))) == table


def test_an_invalid_number_is_read_back() -> None:
    found = tomllib.loads("\n".join(toml({"a": float("nan")})))["a"]

    assert found != found
