"""Certificates of CAs as a profile names them: their text, and the hash of a key."""

from __future__ import annotations

import base64
import hashlib

from winboot.base.errors import InvalidInput


def certificate(text: str, where: str, owner: str = "cluster.ca") -> str:
    """PEM text with LF line ends and one at the end, so that its bytes on every node are the same."""
    pem = "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"
    if "-----BEGIN CERTIFICATE-----" not in pem:
        raise InvalidInput(f"{owner}: {where} does not contain a certificate", hint="It must be a PEM file.")
    if "PRIVATE KEY" in pem:
        # It would be in the text of the script, and on every node.
        raise InvalidInput(
            f"{owner}: {where} contains a private key", hint="Name a file with certificates alone."
        )
    return pem


def check_ca_hash(pem: str, wanted: str) -> None:
    """Raises InvalidInput unless the certificate's key has this hash."""
    found = key_hash(pem)
    if found != wanted:
        raise InvalidInput(
            f"cluster.ca: the key of the certificate has the hash {found}, not the one in cluster.ca_hash",
            hint="One of the two belongs to another cluster.",
        )


def key_hash(pem: str) -> str:
    """The sha256 (hex) of a certificate's public key, as kubeadm prints it. Raises InvalidInput where it is none."""
    from cryptography import x509  # heavy, and only needed for profiles that name a hash
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        body = pem.split("-----BEGIN CERTIFICATE-----")[1].split("-----END")[0]
        key = x509.load_der_x509_certificate(base64.b64decode(body)).public_key()
    except (IndexError, ValueError) as error:
        raise InvalidInput(
            "cluster.ca: the certificate cannot be read", hint="It must be a PEM file."
        ) from error
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
