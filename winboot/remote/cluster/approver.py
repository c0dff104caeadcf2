"""Settle a node's certificate requests while its script waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from winboot.base.errors import ClusterError, ClusterUnreachable
from winboot.remote.cluster.base import CertificateRequests, ExpectedNode


class Approver:
    """A thread that looks at one node's requests every `poll` seconds, for as long as the context lasts.

    `expected` is called each time, because the machine says its address only when it is worked on. `refusals` are
    sentences about requests that were not approved, each once. A cluster that does not answer is one of them, because
    the node's own step reports what is missing. The thread survives every error: an unexpected one is among the
    refusals, too.
    """

    def __init__(
        self,
        cluster: CertificateRequests | None,
        node: str,
        expected: Callable[[], ExpectedNode],
        *,
        poll: float,
    ) -> None:
        self._cluster = cluster
        self._expected = expected
        self._poll = poll
        self._stop = threading.Event()
        self._said: dict[str, None] = {}
        self._away = ""
        self._thread = threading.Thread(target=self._loop, name=f"csr-{node}", daemon=True)

    @property
    def refusals(self) -> tuple[str, ...]:
        """What was not approved, and why."""
        return (*self._said, *((self._away,) if self._away else ()))

    def __enter__(self) -> Approver:
        if self._cluster is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._cluster is not None:
            self._thread.join()
            if self._away and kind is None:
                # The last answer was lost, and the node went on all the same: what counts is how it is now.
                self._settle()

    def _loop(self) -> None:
        while True:
            self._settle()
            if self._stop.wait(self._poll):
                return

    def _settle(self) -> None:
        assert self._cluster is not None  # the thread runs only then
        try:
            verdicts = self._cluster.settle_requests(self._expected())
        except ClusterUnreachable as error:
            # No reason to refuse anything: it matters only when it is so to the end.
            self._away = f"winboot cannot read certificate requests: {error.problem}"
            return
        except ClusterError as error:
            self._said[f"winboot cannot read certificate requests: {error.problem}"] = None
            return
        except Exception as error:  # noqa: BLE001 - a thread that dies silently would leave the node waiting without end
            problem = f"a bug in winboot itself: {type(error).__name__}: {error}; please report it"
            self._said[f"winboot cannot read certificate requests: {problem}"] = None
            return
        self._away = ""
        for verdict in verdicts:
            if not verdict.approved:
                self._said[
                    f"{verdict.kind} certificate request {verdict.request}: {'; '.join(verdict.reasons)}"
                ] = None
