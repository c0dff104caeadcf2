"""Let the machine trust the CAs of proxies, mirrors and registries."""

import hashlib
import ssl
from base64 import b64decode

from winboot_lab.cluster.authority import Authority

from tests.steps.bench import Bench
from tests.steps.builders import a_spec
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
