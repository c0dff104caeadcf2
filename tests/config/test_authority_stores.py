"""Which store of Windows a certificate of `windows.trust_roots` belongs in, and which are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.config.certificates import made
from tests.config.scene import GOOD, an_inventory
from winboot.base.errors import InvalidInput
from winboot.cli import run
from winboot.config.authority import trusted_certificates

ROOT = made("corp root")
ISSUING = made("corp issuing", ROOT)
WHERE = ("roots.pem", "windows.trust_roots")
HOSTS = "groups: {p: {profile: profile.yaml, os: '2022', hosts: {win-1: , win-2: }}}\n"


@pytest.mark.parametrize(
    ("pem", "stores"),
    [
        (ROOT.pem, ["Root"]),
        (ISSUING.pem + ROOT.pem, ["CA", "Root"]),
        (f"# a comment\n{ROOT.pem}{ISSUING.pem}", ["Root", "CA"]),
        # A registry's own certificate, without an issuer: it is its root. New-SelfSignedCertificate makes such.
        (made("registry.corp.example", ca=None).pem, ["Root"]),
        (made("registry.corp.example", ca=False).pem, ["Root"]),
    ],
)
def test_a_certificate_goes_where_windows_looks_for_it(pem: str, stores: list[str]) -> None:
    assert [one.store for one in trusted_certificates(pem, *WHERE)] == stores


@pytest.mark.parametrize("ca", [False, None])
def test_a_servers_certificate_is_refused_with_its_issuer(ca: bool | None) -> None:
    leaf = made("mirror.corp.example", ISSUING, ca=ca)

    with pytest.raises(InvalidInput) as caught:
        trusted_certificates(ROOT.pem + leaf.pem, *WHERE)

    assert caught.value.problem == (
        "windows.trust_roots: CN=mirror.corp.example (roots.pem) is not a CA's certificate; "
        "name that of its issuer, CN=corp issuing"
    )


def test_a_certificate_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"a certificate of roots\.pem cannot be read"):
        trusted_certificates("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", *WHERE)


@pytest.mark.parametrize(
    ("pem", "code", "told"),
    [
        (ROOT.pem + ISSUING.pem, 0, ""),
        (made("old root", days=-10).pem, 0, "warning: windows.trust_roots: CN=old root expired on 20"),
        (ISSUING.pem, 0, "warning: windows.trust_roots: the issuer of CN=corp issuing is not here"),
        (
            made("mirror", ISSUING, ca=False).pem,
            64,
            "windows.trust_roots: CN=mirror (.*) is not a CA's certificate",
        ),
    ],
    ids=["chain", "expired", "without its root", "leaf"],
)
def test_check_judges_trusted_certificates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pem: str, code: int, told: str
) -> None:
    path = an_inventory(tmp_path, HOSTS, GOOD + "windows: {trust_roots: [{file: roots.pem}]}\n")
    (tmp_path / "roots.pem").write_text(pem, encoding="utf-8")

    found = run(["check", str(path)])

    said = capsys.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "trust_roots" in line]
    assert found == code
    assert len(lines) == bool(told)
    assert not told or re.search(told, lines[0])
