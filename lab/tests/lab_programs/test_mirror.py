"""The artifact mirror serves what upstream would, byte for byte the same each time."""

from __future__ import annotations

import hashlib
import io
import tarfile
import urllib.error
import urllib.request
import zipfile

import pytest
from winboot_lab.mirror import Mirror, MirrorServer, content_of, sha256_of
from winboot_lab.windows.programs_api import Image, read_image

NODE = "/v1.34.2/kubernetes-node-windows-amd64.tar.gz"
CONTAINERD = "/containerd/containerd/releases/download/v2.1.5/containerd-2.1.5-windows-amd64.tar.gz"


@pytest.mark.parametrize(
    ("path", "member", "image"),
    [
        (NODE, "kubernetes/node/bin/kubelet.exe", Image("kubelet", "1.34.2")),
        (CONTAINERD, "bin/containerd.exe", Image("containerd", "2.1.5")),
        ("/x/crictl-v1.34.0-windows-amd64.tar.gz", "crictl.exe", Image("crictl", "1.34.0")),
        ("/x/cni-plugins-windows-amd64-v1.7.1.tgz", "./win-bridge.exe", Image("win-bridge", "1.7.1")),
        ("/x/flannel-v0.27.4-windows-amd64.tar.gz", "flanneld.exe", Image("flanneld", "0.27.4")),
        (
            "/x/cni-plugin-flannel-windows-amd64-v1.7.1-flannel1.tgz",
            "flannel-amd64.exe",
            Image("flannel", "1.7.1-flannel1"),
        ),
    ],
)
def test_an_archive_holds_the_programs_of_the_version_asked_for(path: str, member: str, image: Image) -> None:
    content = content_of(path)

    assert content is not None
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile(member)
        assert file is not None
        assert read_image(file.read()) == image


def test_a_zip_has_the_members_of_the_real_one() -> None:
    content = content_of("/release/nssm-2.24.zip")

    assert content is not None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert read_image(archive.read("nssm-2.24/win64/nssm.exe")) == Image("nssm", "2.24")


def test_single_programs_take_their_version_from_the_path() -> None:
    for path in (
        "/v1.33.6/bin/windows/amd64/kubectl.exe",
        "https://dl.k8s.io/release/v1.33.6/bin/windows/amd64/kubectl.exe",
    ):
        content = content_of(path)
        assert content is not None
        assert read_image(content) == Image("kubectl", "1.33.6")


def test_checksum_files_have_the_publishers_form() -> None:
    assert content_of(NODE + ".sha256") == sha256_of(NODE).encode()
    named = f"{sha256_of(CONTAINERD)}  containerd-2.1.5-windows-amd64.tar.gz\n"
    assert content_of(CONTAINERD + ".sha256sum") == named.encode()


def test_a_broken_download_continues_by_range() -> None:
    mirror = Mirror()
    mirror.faults.breaks["kubernetes-node-windows-amd64.tar.gz"] = 100

    torn = mirror.answer(NODE)
    rest = mirror.answer(NODE, "bytes=100-")

    assert not torn.complete
    assert rest.status == 206
    assert hashlib.sha256(torn.body + rest.body).hexdigest() == sha256_of(NODE)


def test_a_wrong_file_has_the_right_size_and_another_hash() -> None:
    mirror = Mirror()
    mirror.faults.wrong.add("kubernetes-node-windows-amd64.tar.gz")

    served = mirror.answer(NODE).body

    assert len(served) == len(content_of(NODE) or b"")
    assert hashlib.sha256(served).hexdigest() != sha256_of(NODE)


def test_the_mirror_speaks_http() -> None:
    with MirrorServer() as server:
        with urllib.request.urlopen(server.url + NODE) as answer:
            assert hashlib.sha256(answer.read()).hexdigest() == sha256_of(NODE)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.url + "/v1.34.2/unknown.tar.gz")
