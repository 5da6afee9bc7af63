"""How many batches, and how many of their bytes, may be under way at once.

Bytes are counted as they arrive, so that a body without a length cannot take more than its share, and are
held until the batch is durable. A place is taken when the whole body is there: senders that are slow, or stop
in the middle, take no places from others. What does not fit is refused at once, never queued: a sender that
backs off is better than a server that swells. Used from the event loop only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tocsin.errors import LimitExceeded


class Admission:
    def __init__(self, max_requests: int, max_bytes: int, retry_after_s: float) -> None:
        self._max_requests, self._max_bytes, self._retry_after_s = max_requests, max_bytes, retry_after_s
        self.requests = 0
        self.size_bytes = 0

    @contextmanager
    def share(self) -> Iterator[Share]:
        """One request's bytes, given back at the end whatever happens."""
        self._check_requests()
        share = Share(self)
        try:
            yield share
        finally:
            self.size_bytes -= share.size_bytes

    @contextmanager
    def place(self) -> Iterator[None]:
        """One batch that is becoming durable."""
        self._check_requests()
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    def _check_requests(self) -> None:
        if self.requests >= self._max_requests:
            raise self._refusal("batches under way", self._max_requests)

    def count(self, size_bytes: int) -> None:
        if self.size_bytes + size_bytes > self._max_bytes:
            raise self._refusal("bytes of batches under way", self._max_bytes)
        self.size_bytes += size_bytes

    def _refusal(self, what: str, limit: int) -> LimitExceeded:
        return LimitExceeded(what, limit, retry_after_s=self._retry_after_s)


class Share:
    """One upload's share of an ``Admission``."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.size_bytes = 0

    def take(self, size_bytes: int) -> None:
        self._admission.count(size_bytes)
        self.size_bytes += size_bytes
