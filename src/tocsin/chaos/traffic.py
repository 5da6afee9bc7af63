"""What goes in while the system is hurt: records and publications, numbered, one after the other by each sender."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from random import Random
from typing import Any

import msgspec

from tocsin.chaos.evidence import Publication, Record
from tocsin.chaos.journal import Journal
from tocsin.chaos.people import Person
from tocsin.chaos.world import World
from tocsin.errors import TocsinError
from tocsin.unanswered import UNANSWERED

RECORDS_PAUSE_S = 0.15
PUBLISH_PAUSE_S = 0.06
RETRY_S = 0.2
LOOK_S = 0.05
SENDERS = ("feeder", "walker", "publisher", "http")


class Traffic:
    def __init__(
        self, world: World, dataset: str, topics: list[str], kinds: list[str], rng: Random, journal: Journal
    ) -> None:
        self._world, self._dataset, self._topics, self._kinds = world, dataset, topics, kinds
        self._rng, self._journal = rng, journal
        self.records: list[Record] = []
        self.publications: list[Publication] = []
        self._acknowledged: Counter[str] = Counter()  # how much, by sender
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._token = world.host.token("sender", ["ingest:*", "publish:*"])

    def start(self, publisher: Person, walker: Person) -> None:
        work = (self._feed(), self._publish_by(publisher), self._publish_by_http(), self._walk(walker))
        self._tasks = [asyncio.create_task(one) for one in work]

    async def stop(self) -> None:
        """Ends when everything that was sent has its answer, which needs a living system."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def unheard(self, timeout_s: float) -> list[str]:
        """Senders of whom nothing more is acknowledged in that time, though they go on."""
        before, deadline = Counter(self._acknowledged), time.monotonic() + timeout_s
        while found := [sender for sender in SENDERS if self._acknowledged[sender] == before[sender]]:
            if time.monotonic() > deadline:
                return found
            await asyncio.sleep(LOOK_S)
        return []

    def abandon(self) -> None:
        """Wait for nothing more."""
        for task in self._tasks:
            task.cancel()

    async def burst(self, topic: str, count: int, size: int) -> None:
        """Much at once, for one who does not read."""
        source = f"burst-{self._journal.moment()}"
        for number in range(count):
            await self._publish_http_once(topic, source, number, "x" * size)

    # --- records ------------------------------------------------------------------------------------------

    async def _feed(self) -> None:
        """Batches straight to the cluster, each repeated under its key until it is acknowledged."""
        number = batch = 0
        while not self._stopping.is_set():
            batch += 1
            rows = [self._row("feeder", number + i) for i in range(self._rng.randint(1, 4))]
            number += len(rows)
            sent = self._journal.note("sending", rows=rows)
            await self._append(rows, f"{self._dataset}-{batch}")
            self.records += [_record(row, sent) for row in rows]
            self._acknowledged["feeder"] += len(rows)
            self._journal.note("appended", last=number - 1)
            await self._pause(RECORDS_PAUSE_S)

    async def _append(self, rows: list[dict[str, Any]], key: str) -> None:
        body = msgspec.json.Encoder().encode_lines(rows)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key, **self._authorization}
        url = f"{self._world.host.url}/datasets/{self._dataset}/records"
        while True:
            try:
                answer = await self._world.http.post(url, content=body, headers=headers)
                if answer.is_success:
                    return
            except UNANSWERED:
                pass
            await asyncio.sleep(RETRY_S)

    async def _walk(self, walker: Person) -> None:
        """Single records on a person's own connection; after one without an answer the sender takes another name."""
        number, life = 0, 0
        while not self._stopping.is_set():
            if walker.session is not None:
                row = self._row(f"walker-{life}", number)
                sent, is_certain = self._journal.note("sending", rows=[row]), False
                try:
                    accepted, _ = await walker.session.records(self._dataset, [row])
                    is_certain = accepted == 1
                except TocsinError as problem:
                    self._journal.note("unsure", row=row, problem=str(problem))
                    life += 1
                self.records.append(_record(row, sent, is_certain=is_certain))
                self._acknowledged["walker"] += is_certain
                number += 1
            await self._pause(RECORDS_PAUSE_S)

    def _row(self, source: str, number: int) -> dict[str, Any]:
        value = round(self._rng.uniform(0, 100), 2)
        return {"source": source, "n": number, "kind": self._rng.choice(self._kinds), "value": value}

    # --- publications -----------------------------------------------------------------------------------------

    async def _publish_by(self, publisher: Person) -> None:
        number = 0
        while not self._stopping.is_set():
            if publisher.session is not None:
                topic, position = self._rng.choice(self._topics), None
                try:
                    position = await publisher.session.publish(topic, {"source": publisher.name, "n": number})
                except TocsinError as problem:
                    self._journal.note("unsure", topic=topic, n=number, problem=str(problem))
                self._published(topic, publisher.name, number, position)
                self._acknowledged["publisher"] += position is not None
                number += 1
            await self._pause(PUBLISH_PAUSE_S)

    async def _publish_by_http(self) -> None:
        number = 0
        while not self._stopping.is_set():
            is_certain = await self._publish_http_once(self._rng.choice(self._topics), "http", number)
            self._acknowledged["http"] += is_certain
            number += 1
            await self._pause(PUBLISH_PAUSE_S)

    async def _publish_http_once(self, topic: str, source: str, number: int, filling: str = "") -> bool:
        """Whether it was acknowledged."""
        running, position = self._world.running(), None
        if not running:
            return False
        url = f"{self._world.broker_url(self._rng.choice(running))}/topics/{topic}/messages"
        body = {"source": source, "n": number} | ({"filling": filling} if filling else {})
        try:
            answer = await self._world.http.post(url, json=body, headers=self._authorization)
            position = answer.json()["position"] if answer.is_success else None
            if position is None:
                self._journal.note("unsure", topic=topic, n=number, problem=answer.text[:200])
        except UNANSWERED as problem:
            self._journal.note("unsure", topic=topic, n=number, problem=str(problem) or type(problem).__name__)
        self._published(topic, source, number, position)
        return position is not None

    def _published(self, topic: str, source: str, number: int, position: str | None) -> None:
        self.publications.append(Publication(topic, source, number, position))
        self._journal.note("published", topic=topic, source=source, n=number, position=position)

    @property
    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    async def _pause(self, mean_s: float) -> None:
        await asyncio.sleep(self._rng.uniform(0, 2 * mean_s))


def _record(row: dict[str, Any], sent: int, *, is_certain: bool = True) -> Record:
    return Record(row["source"], row["n"], row["kind"], row["value"], sent, is_certain)
