"""Records that subscribers send for datasets: collected for a moment, forwarded in one request, answered each.

Rules kept here:

* A dataset has one batch under way at a time; what comes meanwhile goes with the next, in the order it came.
* A batch has an idempotency key of its own and is sent under it until the cluster answers or ``give_up_s`` has
  passed. Then its senders are told to try again; the cluster may have the records all the same.
* A batch has at most ``batch_records``, as has a sender's message: the cluster refuses a longer one as a whole.
* No more than ``max_pending_bytes`` wait in all; beyond it a sender is told when to come back.
* Bytes and records are counted here, apart from the load of notifications.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.cluster import ClusterClient, Receipt
from tocsin.errors import LimitExceeded, Refused, TocsinError, Unavailable
from tocsin.tokens import Principal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """``name`` is this life of the broker; it begins every idempotency key."""

    name: str
    delay_s: float
    batch_bytes: int
    batch_records: int
    max_pending_bytes: int
    give_up_s: float
    backoff_min_s: float
    backoff_max_s: float


@dataclass(slots=True)
class RecordCounts:
    records: int = 0
    bytes: int = 0
    rejected: int = 0
    batches: int = 0
    pending_bytes: int = 0


@dataclass(slots=True)
class _Sent:
    lines: Sequence[bytes]
    size: int
    receipt: asyncio.Future[tuple[int, int]]


@dataclass(slots=True)
class _Queue:
    waiting: list[_Sent] = field(default_factory=list)
    size: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)


class RecordForwarder:
    def __init__(self, cluster: ClusterClient, options: RecordOptions) -> None:
        self._cluster, self._options = cluster, options
        self._queues: dict[str, _Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.counts = RecordCounts()

    async def records(self, dataset: str, records: Sequence[bytes], principal: Principal) -> tuple[int, int]:
        """How many the cluster accepted and rejected, once they are durable."""
        if not principal.may("ingest", dataset):
            raise Refused(f"the token does not allow records for {dataset!r}")
        if len(records) > self._options.batch_records:
            raise LimitExceeded("records in one message", self._options.batch_records)
        lines = [b" ".join(record.splitlines()) + b"\n" for record in records]
        if not lines:
            return 0, 0
        sent = _Sent(lines, sum(map(len, lines)), asyncio.get_running_loop().create_future())
        self._admit(sent.size)
        self._enqueue(dataset, sent)
        return await sent.receipt

    async def stop(self) -> None:
        """Send what waits, then end."""
        for queue in self._queues.values():
            queue.full.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._options.give_up_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _admit(self, size: int) -> None:
        limit = self._options.max_pending_bytes
        if self.counts.pending_bytes + size > limit:
            raise LimitExceeded("bytes of records that wait for the data cluster", limit, retry_after_s=1.0)
        self.counts.pending_bytes += size

    def _enqueue(self, dataset: str, sent: _Sent) -> None:
        queue = self._queues.get(dataset)
        if queue is None:
            queue = self._queues[dataset] = _Queue()
            task = asyncio.get_running_loop().create_task(self._forward(dataset, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        queue.waiting.append(sent)
        queue.size += sent.size
        if queue.size >= self._options.batch_bytes:
            queue.full.set()

    async def _forward(self, dataset: str, queue: _Queue) -> None:
        """One batch after the other until nothing waits."""
        while queue.waiting:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.delay_s):
                    await queue.full.wait()
            batch = self._next(queue)
            try:
                await self._deliver(dataset, batch)
            except Exception:  # those behind them are sent all the same
                log.exception("sending records to the data cluster failed")
                _fail(batch, Unavailable("the broker failed to send them"))
            finally:
                self.counts.pending_bytes -= sum(sent.size for sent in batch)
                _fail(batch, Unavailable("the broker stops"))
        del self._queues[dataset]

    def _next(self, queue: _Queue) -> list[_Sent]:
        batch: list[_Sent] = []
        size, records, most = 0, 0, self._options
        while queue.waiting:
            sent = queue.waiting[0]
            size, records = size + sent.size, records + len(sent.lines)
            if batch and (size > most.batch_bytes or records > most.batch_records):
                size -= sent.size
                break
            batch.append(queue.waiting.pop(0))
        queue.size -= size
        if queue.size < self._options.batch_bytes:
            queue.full.clear()
        return batch

    async def _deliver(self, dataset: str, batch: Sequence[_Sent]) -> None:
        self.counts.batches += 1
        key = f"{self._options.name}-{self.counts.batches}"
        body = b"".join(line for sent in batch for line in sent.lines)
        try:
            receipt = await self._append(dataset, body, key)
        except TocsinError as problem:
            _fail(batch, problem)
            return
        self.counts.records += receipt.accepted
        self.counts.rejected += receipt.rejected
        self.counts.bytes += len(body)
        _answer(batch, receipt)

    async def _append(self, dataset: str, body: bytes, key: str) -> Receipt:
        backoff = Backoff(self._options.backoff_min_s, self._options.backoff_max_s)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.give_up_s
        while True:
            try:
                return await self._cluster.append(dataset, body, key)
            except Unavailable:
                if loop.time() >= deadline:
                    raise
                await backoff.pause()


def _answer(batch: Sequence[_Sent], receipt: Receipt) -> None:
    """Each sender's share. The cluster names the first rejected lines; the rest count to those after them."""
    named = [problem.line for problem in receipt.problems]
    unnamed, first = receipt.rejected - len(named), 1
    shares: list[int] = []
    for sent in batch:
        last = first + len(sent.lines) - 1
        share = sum(first <= line <= last for line in named)
        if unnamed and named and last > named[-1]:
            more = min(unnamed, last - max(first - 1, named[-1]))
            share, unnamed = share + more, unnamed - more
        shares.append(share)
        first = last + 1
    for sent, rejected in zip(batch, shares, strict=True):
        if not sent.receipt.done():
            sent.receipt.set_result((len(sent.lines) - rejected, rejected))


def _fail(batch: Sequence[_Sent], problem: TocsinError) -> None:
    for sent in batch:
        if not sent.receipt.done():
            sent.receipt.set_exception(problem)
