"""Let the machine trust the CAs of proxies, mirrors and registries."""

import hashlib
import json
import ssl
from base64 import b64decode
from dataclasses import replace

from winboot_lab.cluster.authority import Authority

from tests.config.certificates import made
from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from winboot.config.authority import trusted_certificates
from winboot.script.steps.trust_roots import TRUST_ROOTS

ROOTS = {"update_hold: false": "update_hold: false\n  trust_roots: [{file: ./ca.crt}]"}


def test_a_profile_without_roots_has_no_such_step():
    assert not TRUST_ROOTS.wanted(a_spec())
    assert TRUST_ROOTS.wanted(a_spec(**ROOTS))


def test_a_root_is_known_by_the_thumbprint_windows_shows():
    (root,) = TRUST_ROOTS.inputs(a_spec(**ROOTS))["roots"]

    assert root["thumbprint"] == hashlib.sha1(b64decode(root["body"])).hexdigest().upper()


STEP = "trust-roots"


def test_a_root_is_added_once_and_taken_out_again():
    bench = Bench(spec=a_spec(**ROOTS))

    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    bench.undo(STEP)
    assert bench.look(STEP).states == {STEP: "would-change"}


def test_a_root_that_was_there_before_stays_after_an_undo():
    bench = Bench(spec=a_spec(**ROOTS))
    bench.run(STEP)
    bench.machine.files.delete(r"C:\ProgramData\winboot\former\trust-roots.jsonl")

    bench.undo(STEP)

    assert bench.look(STEP).states == {STEP: "ok"}


def test_the_roots_of_others_are_left_alone():
    bench = Bench(spec=a_spec(**ROOTS))
    roots = bench.machine.sockets.certificates.setdefault("LocalMachine\\Root", {})
    theirs = ssl.PEM_cert_to_DER_cert(Authority("somebody").pem)
    roots[hashlib.sha1(theirs).hexdigest().upper()] = theirs
    bench.run(STEP)
    assert len(roots) == 2
    bench.undo(STEP)

    assert list(roots.values()) == [theirs]


ROOT = made("corp root")
ISSUING = made("corp issuing", ROOT)
CHAIN = ISSUING.pem + ROOT.pem
NOTES = r"C:\ProgramData\winboot\former\trust-roots.jsonl"


def thumbprint(pem: str) -> str:
    return hashlib.sha1(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()


def chained() -> Bench:
    spec = a_spec(**ROOTS)
    return Bench(
        spec=replace(spec, trust_roots=trusted_certificates(CHAIN, "chain.pem", "windows.trust_roots"))
    )


def stores(bench: Bench) -> dict[str, list[str]]:
    """What lies in the two stores."""
    certificates = bench.machine.sockets.certificates
    return {name: sorted(certificates.get(rf"LocalMachine\{name}", {})) for name in ("Root", "CA")}


SORTED = {"Root": [thumbprint(ROOT.pem)], "CA": [thumbprint(ISSUING.pem)]}


def test_a_chain_is_sorted_into_roots_and_intermediate_cas():
    """Others than self-signed ones in Root break logins by certificate (KB 2795828)."""
    bench = chained()

    assert bench.run(STEP).states == {STEP: "changed"}
    assert stores(bench) == SORTED
    assert bench.run(STEP).states == {STEP: "ok"}

    bench.machine.sockets.certificates[r"LocalMachine\CA"].clear()
    assert bench.run(STEP).states == {STEP: "changed"}
    assert stores(bench) == SORTED
    bench.undo(STEP)
    assert stores(bench) == {"Root": [], "CA": []}


def by_an_older_winboot(bench: Bench) -> None:
    """All in Root, with notes that name no store."""
    bench.run(STEP)
    certificates = bench.machine.sockets.certificates
    certificates[r"LocalMachine\Root"].update(certificates.pop(r"LocalMachine\CA"))
    names = [thumbprint(one.pem) for one in (ISSUING, ROOT)]
    lines = [json.dumps({"kind": "Root", "key": name, "value": {"thumbprint": name}}) for name in names]
    bench.write(NOTES, "\n".join(lines).encode() + b"\n")


def test_an_issuing_ca_that_an_older_winboot_put_into_root_is_moved():
    bench = chained()
    by_an_older_winboot(bench)

    assert bench.run(STEP).states == {STEP: "changed"}
    assert stores(bench) == SORTED
    assert bench.run(STEP).states == {STEP: "ok"}
    bench.undo(STEP)
    assert stores(bench) == {"Root": [], "CA": []}


def test_an_undo_of_older_notes_empties_root():
    bench = chained()
    by_an_older_winboot(bench)

    bench.undo(STEP)

    assert stores(bench) == {"Root": [], "CA": []}


def test_an_issuing_ca_that_an_administrator_put_into_root_stays():
    bench = chained()
    bench.run(STEP)
    bench.machine.sockets.certificates[r"LocalMachine\Root"][thumbprint(ISSUING.pem)] = (
        ssl.PEM_cert_to_DER_cert(ISSUING.pem)
    )

    assert bench.look(STEP).states == {STEP: "ok"}
