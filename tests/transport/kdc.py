"""A genuine KDC (Debian's krb5-kdc) with a realm that lasts as long as the test, on loopback."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

REALM: Final = "WINBOOT.TEST"
_PATH: Final = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"
_PROGRAMS: Final = {
    name: shutil.which(name, path=_PATH) for name in ("kdb5_util", "kadmin.local", "krb5kdc", "kinit")
}
_MISSING: Final = [
    *(
        f"{name} (apt-get install krb5-kdc krb5-admin-server krb5-user)"
        for name, path in _PROGRAMS.items()
        if path is None
    ),
    *(
        f"the Python package {name} (pip install '.[kerberos]')"
        for name in ("gssapi", "krb5")
        if importlib.util.find_spec(name) is None
    ),
]
needs_kdc = pytest.mark.skipif(bool(_MISSING), reason=f"{''.join(_MISSING[:1])} is missing")

# No DNS; a clock that may be off by a second only, so that short tickets really expire.
_KRB5_CONF: Final = """[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    clockskew = 1
    udp_preference_limit = 1
    forwardable = true
[realms]
    {realm} = {{
        kdc = 127.0.0.1:{port}
    }}
    ELSEWHERE.TEST = {{
        kdc = 127.0.0.1:{nobody}
    }}
"""
_KDC_CONF: Final = """[kdcdefaults]
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {realm} = {{
        database_name = {folder}/principal
        key_stash_file = {folder}/stash
        acl_file = {folder}/acl
        max_life = 1h
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
"""


class Kdc:
    """One realm. `principal` adds to it, `ticket` logs in; the environment of both is `environment`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, nobody = _free_ports()
        words = {"realm": REALM, "port": self.port, "nobody": nobody, "folder": folder}
        (folder / "krb5.conf").write_text(_KRB5_CONF.format(**words))
        (folder / "kdc.conf").write_text(_KDC_CONF.format(**words))
        self.environment = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder}/ccache",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._call("kdb5_util", "create", "-s", "-W", "-r", REALM, "-P", "master")

    def principal(self, name: str, *, password: str | None = None) -> Path:
        """A new principal with this password (a random key without one), and a keytab of it."""
        keytab = self.folder / (name.replace("/", "_") + ".keytab")
        key = f'-pw "{password}"' if password is not None else "-randkey"
        self._call("kadmin.local", "-r", REALM, "-q", f"addprinc {key} {name}")
        self._call("kadmin.local", "-r", REALM, "-q", f"ktadd -norandkey -k {keytab} {name}")
        return keytab

    def ticket(self, name: str, keytab: Path, *, lifetime: str = "1h") -> None:
        """Put a ticket for this principal into the cache."""
        self._call("kinit", "-l", lifetime, "-k", "-t", str(keytab), name)

    def start(self) -> None:
        """Start it and wait until its port answers."""
        program = _PROGRAMS["krb5kdc"]
        assert program is not None
        self._process = subprocess.Popen(
            [program, "-n", "-r", REALM], env=self._environment(), stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError("krb5kdc did not start")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def _call(self, program: str, *words: str) -> None:
        path = _PROGRAMS[program]
        assert path is not None
        done = subprocess.run(
            [path, *words], env=self._environment(), capture_output=True, text=True, check=False, timeout=60
        )
        # kadmin.local ends well whatever its query did.
        assert done.returncode == 0 and "while" not in done.stderr, done.stderr


@contextmanager
def realm(folder: Path) -> Iterator[Kdc]:
    """A realm with its KDC, up."""
    kdc = Kdc(folder)
    kdc.start()
    try:
        yield kdc
    finally:
        kdc.stop()


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return int(one.getsockname()[1]), int(other.getsockname()[1])
