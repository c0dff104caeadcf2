"""A join command of kubeadm in every form that it is printed or written in; no complaint holds the token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.config.join_command import JoinCommand, is_configuration, of_configuration, of_line

TOKEN = "uvwxyz.9876543210fedcba"
HASH = "8cb2de97839780a412b93877f8507ad6c94f73add17d5d7058e91741c9d5ec78"
LINE = f"kubeadm join 10.0.0.10:6443 --token {TOKEN} --discovery-token-ca-cert-hash sha256:{HASH} \n"
INIT = f"""
Then you can join any number of worker nodes by running the following on each as root:

kubeadm join 10.0.0.10:6443 --token {TOKEN} \\
\t--discovery-token-ca-cert-hash sha256:{HASH}
"""
SEVERAL_CONTROL_PLANES = f"""
You can now join any number of control-plane nodes running the following command on each as root:

  kubeadm join 10.0.0.10:6443 --token {TOKEN} \\
\t--discovery-token-ca-cert-hash sha256:{HASH} \\
\t--control-plane --certificate-key {"f" * 64}
{INIT}"""
WINDOWS = f"""
.\\kubeadm.exe  join 10.0.0.10:6443 --token {TOKEN} `
  --discovery-token-ca-cert-hash sha256:{HASH} --cri-socket "npipe:////./pipe/containerd-containerd"
"""
V1BETA4 = f"""
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 10.0.0.10:6443
    token: {TOKEN}
    caCertHashes: ["sha256:{HASH}"]
nodeRegistration:
  criSocket: npipe:////./pipe/containerd-containerd
  kubeletExtraArgs: [{{name: v, value: "4"}}]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
"""
V1BETA3 = f"""
apiVersion: kubeadm.k8s.io/v1beta3
kind: JoinConfiguration
discovery:
  bootstrapToken: {{apiServerEndpoint: "10.0.0.10:6443", caCertHashes: [sha256:{HASH}]}}
  tlsBootstrapToken: {TOKEN}
"""


def read(text: str) -> JoinCommand:
    secret = Secret(text)
    return of_configuration(secret, "it") if is_configuration(secret) else of_line(secret, "it")


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        (LINE, ()),
        (INIT, ()),
        (SEVERAL_CONTROL_PLANES, ()),
        (WINDOWS, ("--cri-socket",)),
        (f'& "C:\\k\\kubeadm.exe" {LINE.partition(" ")[2]}', ()),
        (f"sudo {LINE}", ()),
        (LINE.replace(" sha256", "=sha256").replace("--token ", "--token="), ()),
        (LINE.replace(HASH, HASH.upper()), ()),
        (LINE.replace("--token", "--discovery-token zzzzzz.0123456789abcdef --tls-bootstrap-token"), ()),
        (LINE.replace("--token", "--node-name win-1 --v=5 --token"), ("--node-name", "--v")),
        (V1BETA4, ("nodeRegistration.criSocket", "nodeRegistration.kubeletExtraArgs")),
        (V1BETA3, ()),
        (f"{LINE.strip()} --discovery-token-unsafe-skip-ca-verification", ()),
        (V1BETA3.replace("{apiServerEndpoint", "{unsafeSkipCAVerification: true, apiServerEndpoint"), ()),
    ],
)
def test_server_token_and_hash_are_read(text: str, ignored: tuple[str, ...]) -> None:
    found = read(text)

    assert (found.server, found.ca_hashes, found.ignored) == ("https://10.0.0.10:6443", (HASH,), ignored)
    assert found.token.reveal() == TOKEN


def test_an_ipv6_server_and_two_hashes_are_read() -> None:
    other = "0" * 64
    found = read(
        LINE.replace("10.0.0.10", "[fd00::1]").strip() + f" --discovery-token-ca-cert-hash sha256:{other}"
    )

    assert (found.server, found.ca_hashes) == ("https://[fd00::1]:6443", (HASH, other))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "0 lines hold `kubeadm join`"),
        (LINE * 2, "2 lines hold"),
        ("kubeadm join", "no arguments"),
        (LINE.replace("10.0.0.10:6443", "'"), "an open quote"),
        (LINE.replace(":6443", ""), "HOST:PORT"),
        (LINE.replace("10.0.0.10", "https://10.0.0.10"), "HOST:PORT"),
        (LINE.replace("10.0.0.10:6443", "h:99999"), "HOST:PORT"),
        (LINE.replace("10.0.0.10:6443", "fd00::1:6443"), "HOST:PORT"),
        (LINE.replace("10.0.0.10:6443", "10.0.0.300:6443"), "HOST:PORT"),
        (LINE.replace("10.0.0.10:6443", f"{TOKEN}:6443 {TOKEN}"), "names 2 API servers"),
        (LINE.replace("--token ", "--"), "no flag of that form"),
        (LINE.replace("--token ", "--token"), "no flag of that form"),
        (LINE.replace("10.0.0.10:6443", "10.0.0.10:6443 10.0.0.11:6443"), "names 2 API servers"),
        (LINE.replace(TOKEN, TOKEN.upper()), "the bootstrap token is missing or not"),
        (LINE.replace(f"--token {TOKEN}", ""), "the bootstrap token is missing"),
        (LINE.replace("sha256:", "sha512:"), "a hash of the CA is missing or not"),
        (LINE.partition("--discovery")[0], "a hash of the CA is missing"),
        (LINE.replace("--token", "--control-plane --token"), "--control-plane: winboot makes workers"),
        (
            LINE.partition("--discovery")[0] + "--discovery-token-unsafe-skip-ca-verification",
            "believes no CA",
        ),
        (LINE.replace("--token", "--tokem"), "no flag --tokem"),
        (V1BETA4.replace("v1beta4", "v1beta2"), "does not read this apiVersion"),
        (V1BETA4.replace("kind: Join", "kind: Init"), "0 JoinConfigurations"),
        (
            V1BETA4.replace("nodeRegistration:", "controlPlane: {}\nnodeRegistration:"),
            "controlPlane: winboot makes",
        ),
        (V1BETA3.replace("discovery:", "discovery:\n  file: {kubeConfigPath: x}"), "discovery.file"),
        (V1BETA4.replace("caCertHashes:", "unsafeSkipCAVerification: true\n    none:"), "believes no CA"),
        (V1BETA3.replace("discovery:", "discovery: ["), "is not valid YAML"),
        (V1BETA4.replace("token: ", "token: !"), "is not valid YAML"),
        (V1BETA4.replace("token: ", "token: *"), "is not valid YAML"),
        (V1BETA4.replace("kubeadm.k8s.io/v1beta4", TOKEN), "does not read this apiVersion"),
        (f"a: b\n---{V1BETA4}".replace("token: ", "token: !"), "line=8"),
    ],
)
def test_what_cannot_be_believed_is_refused_without_the_token(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=r"^it: ") as refused:
        read(text)

    said = f"{refused.value.problem} {refused.value.problems} {refused.value.hint}"
    assert told in said
    assert TOKEN not in said


@given(
    st.text()
    | st.text(alphabet=" -=\\\n'\"#:.absha256", max_size=60).map(lambda more: f"kubeadm join {more}")
)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read(text)
    except InvalidInput:
        return
    assert found.ca_hashes
