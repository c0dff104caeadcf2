"""Documents: saved and read again, without secrets, and of the cluster alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doctor.damages import DAMAGES
from tests.doctor.documents import documents
from tests.lab import hands
from tests.lab.scenes import REGISTRY_PASSWORD
from tests.lab.site import Site
from winboot.base.errors import UsageError
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


def test_no_secret_is_in_a_document(joined_site: Callable[[str], Site]) -> None:
    """Where facts 7.4 of the collectors name secrets: kubeconfigs, keys, environment, hosts.toml, arguments, logs."""
    site = joined_site("everything")
    site.machine.registry.set(
        r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\containerd",
        "Environment",
        "MultiString",
        [f"HTTPS_PROXY=http://user:{CANARY}@proxy"],
    )
    for name in ("kubelet", "containerd"):
        path = site.specs()[0].services[name].log_file
        hands.append(path, f"token {CANARY} is forbidden: User x\r\n")(site)
    hands.write(r"C:\k\bootstrap-kubeconfig", f"token: {CANARY}")(site)
    hands.write(r"C:\etc\cni\net.d\99-x.conf", '{"name": "x", "token": "' + CANARY + '"}')(site)
    keys = site.machine.files.text(hands.CLIENT).partition("PRIVATE KEY-----")[2][:60]

    saved = save(documents(site))

    assert keys and keys.encode() not in saved
    assert CANARY.encode() not in saved
    assert REGISTRY_PASSWORD.encode() not in saved


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
