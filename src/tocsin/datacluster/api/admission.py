"""How many uploads, and how many of their bytes, may be under way at once.

A place is taken before the first byte is read and kept until the batch is durable; bytes are counted as
they arrive, so that a body without a length cannot take more than its share. What does not fit is refused
at once, never queued: a sender that backs off is better than a server that swells. Used from the event
loop only.
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
    def place(self) -> Iterator[Place]:
        """One request's share, given back at the end whatever happens."""
        if self.requests >= self._max_requests:
            raise self._refusal("batches under way", self._max_requests)
        place = Place(self)
        self.requests += 1
        try:
            yield place
        finally:
            self.requests -= 1
            self.size_bytes -= place.size_bytes

    def count(self, size_bytes: int) -> None:
        if self.size_bytes + size_bytes > self._max_bytes:
            raise self._refusal("bytes of batches under way", self._max_bytes)
        self.size_bytes += size_bytes

    def _refusal(self, what: str, limit: int) -> LimitExceeded:
        return LimitExceeded(what, limit, retry_after_s=self._retry_after_s)


class Place:
    """One upload's share of an ``Admission``."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.size_bytes = 0

    def take(self, size_bytes: int) -> None:
        self._admission.count(size_bytes)
        self.size_bytes += size_bytes
