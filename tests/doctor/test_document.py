"""Documents: saved and read again, without secrets, and of the cluster alone."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from winboot_lab.cluster import ApiFailure

from tests.doctor.damages import DAMAGES
from tests.doctor.documents import bundle, documents
from tests.lab import actions
from tests.lab.scenes import REGISTRY_PASSWORD
from tests.lab.site import Site
from winboot.base.errors import UsageError
from winboot.cli import run
from winboot.operations.doctor import gather, judge, load, save
from winboot.operations.doctor.metrics import metrics

CANARY = "canary-0f3a"


def test_a_saved_document_gives_the_same_verdicts(joined_site: Callable[[str], Site], tmp_path: Path) -> None:
    site = joined_site("plain")
    next(one for one in DAMAGES if one.rule == "certificate-expired").do(site)
    live = documents(site)

    file = tmp_path / "facts.jsonl"
    file.write_bytes(save(live))

    assert judge(load(file)) == judge(live)


@pytest.mark.parametrize("content", [b"{}\n", b"no json\n", b'{"schema": 99}\n', b"\xff\xfe\n"])
def test_another_file_is_refused_with_its_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)

    with pytest.raises(UsageError, match="other:1"):
        load(file)


def test_a_newer_document_is_refused(joined_site: Callable[[str], Site], tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_bytes(save(documents(joined_site("plain"))).replace(b'"schema":1', b'"schema":99'))

    with pytest.raises(UsageError, match="version 99"):
        load(file)


def test_no_secret_is_in_document_bundle_or_answer(
    joined_site: Callable[[str], Site], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kubeconfigs, keys, environment, hosts.toml, arguments, configuration, user data and logs."""
    site = joined_site("everything")
    (spec,) = site.specs()
    services = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services"
    proxy = [f"HTTPS_PROXY=http://user:{CANARY}@proxy", f"TOKEN={CANARY}"]
    site.machine.registry.set(rf"{services}\containerd", "Environment", "MultiString", proxy)
    site.machine.registry.set(rf"{services}\kubelet\Parameters", "AppEnvironmentExtra", "MultiString", proxy)
    site.machine.registry.set(rf"{services}\kubelet", "ImagePath", "ExpandString", f"x --token={CANARY}")
    for name in ("kubelet", "containerd"):
        actions.append(spec.services[name].log_file, f"token {CANARY} is forbidden: User x\r\n")(site)
    site.machine.events.write(
        "System", "Service Control Manager", 7031, f"token {CANARY}", "Error", ("x", "1")
    )
    actions.append(
        spec.paths.kubelet_config,
        f"\nclusterDomain: x # {CANARY}\nmaxPods: {{a: {CANARY}}}\ntoken: {CANARY}\nresolvConf: https://{CANARY}@x\n",
    )(site)
    actions.append(spec.paths.containerd_config, f'\nauth = "{CANARY}"\n')(site)
    actions.write(r"C:\k\bootstrap-kubeconfig", f"token: {CANARY}")(site)
    actions.write(r"C:\k\azure.json", f'{{"aadClientSecret": "{CANARY}"}}')(site)
    actions.write(rf"{spec.paths.containerd_certs}\x\hosts.toml", f'[header]\nx-token = "{CANARY}"')(site)
    actions.write(r"C:\etc\cni\net.d\99-x.conf", '{"name": "x", "token": "' + CANARY + '"}')(site)
    actions.write(spec.network.cni_conf_path, '{\n"name": "cbr0", "token": "' + CANARY + '"}')(site)
    site.machine.processes.add("x", r"C:\k\x.exe", f"x --token={CANARY}")
    keys = site.machine.files.text(actions.CLIENT).partition("PRIVATE KEY-----")[2][:60]

    file = bundle(site, tmp_path / "x.zip")
    run(["doctor", "--from", str(file)])
    run(["doctor", "--from", str(file), "-o", "json"])

    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name).decode() for name in archive.namelist()}
    contents |= {"document": save(documents(site)).decode(), "answers": capsys.readouterr().out}
    contents["metrics"] = metrics(judge(load(file)))
    assert keys
    assert "cluster.local" in contents["win-1/configuration.json"]
    with zipfile.ZipFile(bundle(site, tmp_path / "logs.zip", logs=True)) as archive:
        for name in archive.namelist():
            # The text of logs is in the bundle as programs wrote it.
            if not name.startswith(("win-1/log-", "win-1/events-")):
                contents[f"with logs: {name}"] = archive.read(name).decode()
    for secret in (CANARY, REGISTRY_PASSWORD, keys):
        assert [name for name, content in contents.items() if secret in content] == []


def test_the_cluster_alone_names_a_silent_kubelet(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    site.machine.power_off()
    site.settle(120)
    (spec,) = site.specs()
    cluster = site.controller().context.cluster(spec)
    assert cluster is not None

    (found,) = judge([gather(spec, None, cluster)])

    assert found.first is not None
    assert found.first.rule.id == "kubelet-silent"


def test_a_textfile_has_a_sample_for_each_finding(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    next(one for one in DAMAGES if one.rule == "service-stopped").do(site)

    text = metrics(judge(documents(site)))

    sample = 'winboot_doctor_finding{node="win-1",rule="service-stopped",severity="fault",first="true"} 1'
    assert sample in text.splitlines()
    assert all(line.startswith(("# ", "winboot_doctor_")) for line in text.splitlines())


def test_the_cluster_alone_counts_known_texts_of_logs(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    (spec,) = site.specs()
    actions.append(spec.services["containerd"].log_file, "x: 0xc0370101\r\n")(site)

    def judged() -> list[str]:
        cluster = site.controller().context.cluster(spec)
        (found,) = judge([gather(spec, None, cluster)])
        assert found.unread == ()
        return [one.rule.id for one in found.findings]

    assert judged() == []

    path = spec.paths.kubelet_config
    actions.replace(path, '"clusterDomain"', '"enableSystemLogQuery": true, "clusterDomain"')(site)
    actions.stop("kubelet")(site)
    for name in ("kubelet", "kube-proxy"):
        actions.sc("start", name)(site)
    site.settle(60)

    assert judged() == ["other-os"]
    assert not site.refusals


def test_a_refused_log_is_named_and_costs_nothing_else(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    (spec,) = site.specs()
    site.cluster.faults.refuse = lambda who, method, path: (
        ApiFailure(403, "nodes/proxy is forbidden") if "/proxy/" in path else None
    )

    (found,) = judge([gather(spec, None, site.controller().context.cluster(spec))])

    assert found.findings == ()
    assert ["nodes/proxy is forbidden" in one for one in found.unread] == [True]
