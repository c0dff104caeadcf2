"""`winboot render --sign`: a signed copy of the script, as Windows PowerShell takes it under AllSigned."""

from __future__ import annotations

import base64
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs7,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import walk

from tests.cli.test_check import HOSTS, an_inventory
from winboot.base.errors import ScriptError, UsageError
from winboot.base.secret import Secret
from winboot.cli import run
from winboot.script.authenticode import BEGIN, END, load_signer, sign

PASSWORD = "the password of a key"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
needs_osslsigncode = pytest.mark.skipif(
    shutil.which("osslsigncode") is None, reason="osslsigncode is missing (apt-get install osslsigncode)"
)


class Company:
    """A root, and certificates for code signing from it."""

    def __init__(self) -> None:
        self.root_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.root = self.certificate("a company", self.root_key, root=True)
        self.leaf = self.certificate("its scripts", self.key)

    def certificate(
        self, name: str, key: Key, *, root: bool = False, days: int = 30, usage: bool = True
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if root else self.root.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=60))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=root, path_length=None), critical=True)
        )
        if usage and not root:
            purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING])
            builder = builder.add_extension(purposes, critical=False)
        return builder.sign(self.root_key, hashes.SHA256())


def pem(key: Key | None, *certificates: x509.Certificate, password: str = "") -> bytes:
    locked = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked) if key else b""
    return private + b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def pfx(company: Company, password: str = "") -> bytes:
    locked = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return pkcs12.serialize_key_and_certificates(b"", company.key, company.leaf, [company.root], locked)


@pytest.fixture(scope="module")
def company() -> Company:
    return Company()


@pytest.fixture
def signer_file(company: Company, tmp_path: Path) -> Path:
    path = tmp_path / "signer.pem"
    path.write_bytes(pem(company.key, company.leaf, company.root))
    return path


def verified(company: Company, script: Path) -> bool:
    """What another program says of the signature."""
    ca = script.parent / "ca.pem"
    ca.write_bytes(company.root.public_bytes(Encoding.PEM))
    command = ["osslsigncode", "verify", "-CAfile", str(ca), "-in", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Current message digest" in done.stdout or done.returncode, done.stdout
    return done.returncode == 0 and "Signature verification: ok" in done.stdout


def rendered(tmp_path: Path, *options: str) -> bytes:
    inventory = an_inventory(tmp_path, HOSTS)
    arguments = ["render", "-i", str(inventory), "--limit", "win-1", "--out", str(tmp_path / "out"), *options]
    assert run(arguments) == 0
    return (tmp_path / "out" / "win-1" / "winboot.ps1").read_bytes()


def shape(script: bytes) -> list[str]:
    """What a parser sees of it."""
    return [type(node).__name__ for node in walk(parse(script.decode()))]


def test_a_signed_script_is_the_script_with_a_comment_behind_it(signer_file: Path, tmp_path: Path) -> None:
    plain = rendered(tmp_path)
    signed = rendered(tmp_path, "--sign", str(signer_file))

    assert signed.startswith(plain)
    block = signed[len(plain) :].decode().split("\r\n")
    assert (block[0], block[1], block[-2], block[-1]) == ("", BEGIN, END, "")
    assert all(line.startswith("# ") and len(line) <= 66 for line in block[1:-1])
    assert shape(signed) == shape(plain)
    assert rendered(tmp_path, "--sign", str(signer_file)) == signed


@needs_osslsigncode
def test_another_program_accepts_the_signature_and_no_changed_byte(
    company: Company, signer_file: Path, tmp_path: Path
) -> None:
    script = tmp_path / "winboot.ps1"
    signed = rendered(tmp_path, "--sign", str(signer_file))
    script.write_bytes(signed)
    assert verified(company, script)

    script.write_bytes(signed.replace(b"Set-StrictMode", b"set-StrictMode", 1))
    assert not verified(company, script)


@needs_osslsigncode
@pytest.mark.parametrize("text", ["'a'", "'a'\n", "'a'\r\n", "", "# SIG # not a block\n'a'\n"])
def test_the_end_of_the_text_is_part_of_what_is_signed(company: Company, text: str, tmp_path: Path) -> None:
    file, script = tmp_path / "signer.pfx", tmp_path / "a.ps1"
    file.write_bytes(pfx(company))
    script.write_bytes(sign(text, load_signer(file, lambda: Secret(""))))
    if text:
        assert verified(company, script)
    script.write_bytes(b"\n" + script.read_bytes())
    assert not verified(company, script)


def test_the_certificate_is_in_the_block_and_the_root_is_not(company: Company, signer_file: Path) -> None:
    signed = sign("'a'\n", load_signer(signer_file, lambda: Secret("")))
    lines = [
        line[2:] for line in signed.decode().split("\r\n") if line.startswith("# ") and "SIG #" not in line
    ]

    assert pkcs7.load_der_pkcs7_certificates(base64.b64decode("".join(lines))) == [company.leaf]


@pytest.mark.parametrize("form", ["pem", "pfx"])
@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_locked_key_takes_its_password_from_a_file_or_the_environment(
    company: Company, form: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = tmp_path / f"signer.{form}"
    locked = pem(company.key, company.leaf, password=PASSWORD) if form == "pem" else pfx(company, PASSWORD)
    signer.write_bytes(locked)
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    options = ["--sign-password-file", str(tmp_path / "password")] if by == "file" else []
    if by == "environment":
        monkeypatch.setenv("WINBOOT_SIGN_PASSWORD", PASSWORD)

    assert BEGIN.encode() in rendered(tmp_path, "--sign", str(signer), *options)


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o600, False), (0o640, False), (0o644, True), (0o602, True)], ids=oct
)
@pytest.mark.parametrize("option", ["--sign", "--sign-password-file"])
def test_a_key_or_password_that_everybody_can_read_or_change_is_used_with_a_warning(
    company: Company,
    option: str,
    mode: int,
    warned: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A group may: Kubernetes mounts a Secret for one."""
    files = {"--sign": tmp_path / "signer.pfx", "--sign-password-file": tmp_path / "password"}
    files["--sign"].write_bytes(pfx(company, PASSWORD))
    files["--sign-password-file"].write_text(PASSWORD, encoding="utf-8")
    for name, file in files.items():
        file.chmod(mode if name == option else 0o600)

    assert BEGIN.encode() in rendered(tmp_path, *(str(word) for pair in files.items() for word in pair))

    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert [(f"{option} {files[option]}: " in line, f"mode {mode:04o}" in line) for line in said] == [
        (True, True)
    ] * warned


def refused(company: Company) -> dict[str, tuple[bytes, str]]:
    """Files that are no signer: their content, and what is said of it."""
    curve = ec.generate_private_key(ec.SECP256R1())
    return {
        "no such thing": (b"hello", "PFX or PEM"),
        "no key": (pem(None, company.leaf), "PFX or PEM"),
        "no certificate of the key": (pem(company.key, company.root), "no certificate of its key"),
        "another password": (pem(company.key, company.leaf, password="x"), "password is another"),
        "an elliptic curve": (pem(curve, company.certificate("curve", curve)), "no RSA key"),
        "run out": (pem(company.key, company.certificate("old", company.key, days=-1)), "valid from"),
        "for something else": (
            pem(company.key, company.certificate("web", company.key, usage=False)),
            "not one for code signing",
        ),
    }


@pytest.mark.parametrize(
    "what",
    [
        *("no such thing", "no key", "no certificate of the key", "another password"),
        *("an elliptic curve", "run out", "for something else"),
    ],
)
def test_a_file_that_cannot_sign_is_refused_with_the_reason(
    company: Company, what: str, tmp_path: Path
) -> None:
    content, said = refused(company)[what]
    path = tmp_path / "signer"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=said) as error:
        load_signer(path, lambda: Secret(PASSWORD))

    assert PASSWORD not in str(error.value)
    assert error.value.hint


def test_nothing_is_written_without_the_password_of_the_key(
    company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    (tmp_path / "signer.pfx").write_bytes(pfx(company, PASSWORD))
    inventory = an_inventory(tmp_path, HOSTS)
    out = tmp_path / "out"

    assert (
        run(["render", "-i", str(inventory), "--out", str(out), "--sign", str(tmp_path / "signer.pfx")]) == 64
    )
    assert "--sign-password-file" in capsys.readouterr().err
    assert not out.exists()


def test_a_text_outside_of_ascii_is_not_signed(signer_file: Path) -> None:
    """A file without a byte order mark is read in the machine's code page, and checked in which?"""
    with pytest.raises(ScriptError, match="line 2"):
        sign("'a'\n'\N{LATIN SMALL LETTER A WITH DIAERESIS}'\n", load_signer(signer_file, lambda: Secret("")))
