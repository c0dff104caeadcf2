"""What more hosts cost: `winboot check` of a thousand against one, and the second render of a kind against the first."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import Ratio, interleaved
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


def measure() -> list[Ratio]:
    """Times of this process alone. The bars: 12 for the thousand, an eighth for a further render."""
    with tempfile.TemporaryDirectory() as folder:
        one, many = _inventory(Path(folder), "one", 1), _inventory(Path(folder), "many", HOSTS)
        # Before anything else: the first one reads templates and library.
        first, further = _renders([resolve(m.profile, m) for m in load_inventory(many)][:40])
        found = interleaved({"one": _check(one), "many": _check(many)}, ROUNDS)
    return [
        Ratio(
            f"check {HOSTS} hosts (bar 12)", found["many"].cpu_ms, found["one"].cpu_ms, "ms CPU", "one host"
        ),
        Ratio("render a further host (bar 0.12)", further, first, "ms CPU", "the first"),
    ]


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


def _renders(specs: list[NodeSpec]) -> tuple[float, float]:
    """Milliseconds of the first render of this process, and of one of the others."""
    times = list(_times(specs))
    return times[0], sum(times[1:]) / len(times[1:])


def _times(specs: list[NodeSpec]) -> Iterator[float]:
    for spec in specs:
        began = time.process_time()
        render(make_plan(spec, STEPS).complete, spec)
        yield (time.process_time() - began) * 1000
