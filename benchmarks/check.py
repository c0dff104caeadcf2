"""What more hosts cost: `winboot check` of a thousand against one, and the second render of a kind against the first."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import Figure, beside, interleaved, quotients
from winboot.cli import run
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

ROOT = Path(__file__).parent.parent
HOSTS = 1000
ROUNDS = 3
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def measure() -> Iterator[Figure]:
    """Times of this process alone."""
    with tempfile.TemporaryDirectory() as folder:
        one, many = _inventory(Path(folder), "one", 1), _inventory(Path(folder), "many", HOSTS)
        # Before anything else: the first one reads templates and library.
        first, *further = _times([resolve(m.profile, m) for m in load_inventory(many)][:40])
        found = interleaved({"one": _check(one), "many": _check(many)}, ROUNDS)
    ours, single = found["many"].cpu_ms, found["one"].cpu_ms
    yield Figure(
        f"check {HOSTS} hosts", quotients(ours, single), 12, beside(ours, single, "ms CPU", "one host")
    )
    note = beside(further, [first], "ms CPU", "the first")
    yield Figure("render a further host", [one / first for one in further], 0.12, note)


def _inventory(folder: Path, name: str, hosts: int) -> Path:
    shutil.copytree(ROOT / "profiles", folder / "profiles", dirs_exist_ok=True)
    (folder / "profiles" / "ca.crt").write_text(CA, encoding="ascii")
    rows = "\n".join(f"      win-{n}: {{address: 10.{n // 250 + 1}.1.{n % 250 + 1}}}" for n in range(hosts))
    path = folder / f"{name}.yaml"
    path.write_text(
        "groups:\n  pool:\n    profile: profiles/flannel-host-gw.yaml\n    os: '2022'\n"
        f"    connection: {{user: a, password: {{env: P}}}}\n    hosts:\n{rows}\n",
        encoding="utf-8",
    )
    return path


def _check(path: Path) -> Callable[[], object]:
    def checked() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            run(["check", str(path)])

    return checked


def _times(specs: list[NodeSpec]) -> Iterator[float]:
    """Milliseconds of each render."""
    for spec in specs:
        began = time.process_time()
        render(make_plan(spec, STEPS).complete, spec)
        yield (time.process_time() - began) * 1000
