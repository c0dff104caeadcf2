"""Make the folders that the later steps write to, with the access rules they need."""

from tests.steps.builders import a_spec
from winboot.steps.directories import DIRECTORIES


def test_whatever_holds_a_credential_is_private():
    spec = a_spec()
    private = {one["path"] for one in DIRECTORIES.inputs(spec)["folders"] if one["private"]}

    for path in (
        spec.paths.bootstrap_kubeconfig,
        spec.paths.kubelet_client_certificate,
        spec.paths.containerd_certs + r"\x",
    ):
        assert path.rpartition("\\")[0] in private


def test_every_service_has_a_folder_for_its_log():
    spec = a_spec()
    paths = {one["path"] for one in DIRECTORIES.inputs(spec)["folders"]}

    assert {service.log_file.rpartition("\\")[0] for service in spec.services.all} <= paths
