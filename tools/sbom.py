"""Print a CycloneDX 1.6 SBOM of a lock file: `python tools/sbom.py requirements.lock`.

The lock has the name, version and hashes of every distribution (pip's requirements format with `--hash`). The same lock
gives the same bytes: there is no serial number and no time stamp (https://cyclonedx.org/docs/1.6/json/, both are optional).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^ ;\\\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> Iterator[dict[str, Any]]:
    """One component for each distribution of the lock, in its order. Raises ValueError for one without a hash."""
    found = list(_PINNED.finditer(lock))
    ends = [one.start() for one in found[1:]] + [len(lock)]
    for one, end in zip(found, ends, strict=True):
        name, version = one["name"].lower().replace("_", "-"), one["version"]
        hashes = sorted(set(_HASH.findall(lock, one.end(), end)))
        if not hashes:
            raise ValueError(f"{name} {version} has no hash")
        purl = f"pkg:pypi/{name}@{version}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in hashes],
        }


def sbom(lock: str) -> str:
    """The SBOM as JSON."""
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "winboot", "name": "winboot"}},
        "components": list(components(lock)),
    }
    return json.dumps(made, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(sbom(Path(sys.argv[1]).read_text(encoding="utf-8")))
