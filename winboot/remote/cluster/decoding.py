"""The API types that winboot decodes, made ready in one thread before any other uses them.

msgspec builds what it must know of a type when the type is first decoded, and hangs it on the class before it is
whole. If two threads decode the same type for the first time at the same moment, they end the process with a SIGSEGV
(msgspec 0.22.0; `tests/cluster/test_first_decode.py` shows it without this module). A type that is not in `TYPES`
must not be decoded; the same test compares the list with what `lightkube.py` imports.
"""

from __future__ import annotations

import threading
from typing import Final

import msgspec
from lightkube.core import decoders
from lightkube.models.meta_v1 import Status
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview, SubjectAccessReview
from lightkube.resources.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestApproval
from lightkube.resources.core_v1 import ConfigMap, Event, Node, Pod, Secret, Service

# Whatever the client decodes: objects it gets, lists, creates, patches or replaces.
TYPES: Final = (
    CertificateSigningRequest,
    CertificateSigningRequestApproval,
    ConfigMap,
    DaemonSet,
    Event,
    Node,
    Pod,
    Pod.Eviction,
    Secret,
    SelfSubjectAccessReview,
    Service,
    SubjectAccessReview,
)

_lock = threading.Lock()
_ready = threading.Event()


def prepare_types() -> None:
    """Build what the decoder must know of every type, once in the life of the process; from any thread."""
    with _lock:
        if _ready.is_set():
            return
        for kind in TYPES:
            msgspec.json.Decoder(kind)
            # The list model is made and kept by lightkube when it is first asked for.
            decoders.decode_list(b'{"items":[]}', kind)
        for other in (Status, decoders.WatchEvent):
            msgspec.json.Decoder(other)
        _ready.set()
