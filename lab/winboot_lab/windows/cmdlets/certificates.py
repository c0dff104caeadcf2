"""Import-Certificate."""

from __future__ import annotations

import base64
import hashlib
import re

from winboot_lab.windows.call import Call, cmdlet, parameter
from winboot_lab.windows.door import Problem, Record
from winboot_lab.windows.primitives.system import certificate_add

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


@cmdlet(
    "Import-Certificate",
    "pki",
    parameter("FilePath", position=0, mandatory=True, aliases=("FullName",), by_value=True, by_name=True),
    parameter("CertStoreLocation"),
    should_process=True,
)
def import_certificate(call: Call) -> None:
    """Put the certificate of a file (DER or PEM) into a store."""
    content = call.machine.files.read(call.text("FilePath"), call.session.token)
    found = _PEM.search(content)
    raw = base64.b64decode(found.group(1)) if found else content
    if raw[:1] != b"\x30":
        message = "The data is invalid. 0x8007000d (WIN32: 13 ERROR_INVALID_DATA)"
        identifier = "System.ComponentModel.Win32Exception,Microsoft.CertificateServices.Commands.ImportCertificateCommand"
        call.fail(Problem(message, identifier, "NotSpecified", "System.ComponentModel.Win32Exception"))
        return
    place = call.text("CertStoreLocation").replace("/", "\\")
    store = re.sub(r"(?i)^cert:\\", "", place)
    certificate_add(call.session, store, raw)
    thumbprint = hashlib.sha1(raw).hexdigest().upper()
    call.give(
        Record(
            "System.Security.Cryptography.X509Certificates.X509Certificate2",
            {"Thumbprint": thumbprint, "RawData": raw},
        )
    )
