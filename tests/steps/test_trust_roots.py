"""Let the machine trust the CAs of proxies, mirrors and registries."""

import hashlib
from base64 import b64decode

from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from winboot.steps.trust_roots import TRUST_ROOTS

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
