"""A data cluster of dictionaries, for tests of what stands in front of one.

It keeps the promises of ``ClusterService`` for one channel, ``ByKind(kind STRING)`` on the dataset ``Reports``:
a record's ``kind`` selects the subscriptions. There is no language beyond ``SHOW DATASETS``, and no Spark.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tocsin.datacluster.service import (
    Answer,
    BrokerView,
    ChannelPage,
    ChannelView,
    DatasetView,
    FeedView,
    GapView,
    Receipt,
    Rejected,
    ResultView,
    Status,
    Subscribed,
    SubscriptionView,
    Wanted,
)
from tocsin.datacluster.storage.parse_csv import parse_csv
from tocsin.errors import BadArgument, NotFound, Refused, Span, SyntaxProblem
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.position import START, Position
from tocsin.model.types import SqlType
from tocsin.tokens import Principal

CHANNEL, DATASET, BROKER = "ByKind", "Reports", "north"
SPEC = DatasetSpec(
    DATASET,
    (Column("id", SqlType("INT")), Column("kind", SqlType("STRING")), Column("text", SqlType("STRING"))),
    primary_key=("id",),
)
QUERY = "SELECT r.text FROM Reports r WHERE r.kind = :kind"


class MemoryCluster:
    def __init__(self) -> None:
        self._news = threading.Condition()
        self.records: list[dict[str, Any]] = []
        self.bodies: list[tuple[bytes, str | None]] = []
        self.receipts: dict[str, Receipt] = {}
        self.held: dict[str, SubscriptionView] = {}
        self.backends: dict[str, int] = {}
        self.results: list[tuple[str, ResultView]] = []
        self.acks: dict[str, Position] = {}
        self.oldest = START
        self.ready, self.reason = True, "ready"

    def execute(self, text: str, who: Principal, go_on: Callable[[], None] = lambda: None) -> list[Answer]:
        self._need(who, "read")
        answers = []
        for statement in filter(None, (part.strip() for part in text.split(";"))):
            go_on()
            if statement.upper() != "SHOW DATASETS":
                raise SyntaxProblem(f"unknown statement {statement[:20]!r}", Span(1, 1), expected="SHOW DATASETS")
            answers.append(Answer("table", "1 dataset", ("name", "records"), ((DATASET, len(self.records)),)))
        return answers

    def ingest(self, dataset: str, body: bytes, key: str | None, who: Principal, form: str = "json") -> Receipt:
        self._need(who, "ingest", dataset)
        self._named("dataset", dataset, DATASET)
        with self._news:
            self.bodies.append((body, key))
            if key in self.receipts:
                first = self.receipts[key]
                return Receipt(first.accepted, first.rejected, first.first, first.last, True, first.problems)
            receipt = self._append_csv(body) if form == "csv" else self._append(body)
            if key is not None:
                self.receipts[key] = receipt
            self._news.notify_all()
            return receipt

    def delete_records(self, dataset: str, keys: Sequence[Mapping[str, Any]], who: Principal) -> int:
        self._need(who, "ingest", dataset)
        self._named("dataset", dataset, DATASET)
        self.records = [record for record in self.records if {"id": record.get("id")} not in keys]
        return len(keys)

    def subscribe(
        self, channel: str, broker: str, wanted: Sequence[Wanted], who: Principal, making: int = 0
    ) -> list[Subscribed]:
        self._need(who, "subscribe", channel)
        self._named("channel", channel, CHANNEL)
        self._named("broker", broker, BROKER)
        kinds = [self._kind(one.arguments) for one in wanted]
        return [self._hold(one, kind, broker, who, making) for one, kind in zip(wanted, kinds, strict=True)]

    def unsubscribe(self, ids: Sequence[str], who: Principal, making: int | None = None) -> int:
        for held in (self.held[one] for one in ids if one in self.held):
            if held.owner != who.subject and not who.may("broker", held.broker):
                raise Refused(f"subscription {held.id!r} belongs to someone else")
        return sum(self.held.pop(one, None) is not None for one in self._made_up_to(making, ids))

    def change(self, ids: Sequence[str], broker: str, who: Principal) -> list[Subscribed]:
        self._need(who, "admin")
        self._named("broker", broker, BROKER)
        for one in ids:
            self._named("subscription", one, *self.held)
        return [Subscribed(one, CHANNEL, self.held[one].backend, self._end()) for one in ids]

    def subscriptions(
        self, who: Principal, channel: str | None, broker: str | None, limit: int, after: str | None
    ) -> list[SubscriptionView]:
        if broker is not None:
            self._named("broker", broker, BROKER)
        chosen = [self.held[one] for one in sorted(self.held) if one > (after or "")]
        seen = [s for s in chosen if s.owner == who.subject or who.may("broker", s.broker)]
        return [s for s in seen if channel in (None, s.channel) and broker in (None, s.broker)][:limit]

    def pull(
        self,
        broker: str,
        cursors: Mapping[str, Position],
        who: Principal,
        *,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        wait_s: float = 0.0,
    ) -> list[ChannelPage]:
        self._need(who, "broker", broker)
        self._named("broker", broker, BROKER)
        for channel in cursors:
            self._named("channel", channel, CHANNEL)
        with self._news:
            self._news.wait_for(lambda: any(self._after(c) for c in cursors.values()), wait_s)
            return [self._page(channel, cursor, max_rows) for channel, cursor in cursors.items()]

    def replay(
        self, channel: str, backend: int, after: Position, through: Position | None, limit: int, who: Principal
    ) -> ChannelPage:
        self._need(who, "read")
        self._named("channel", channel, CHANNEL)
        return self._page(channel, after, limit, backend, through)

    def acknowledge(self, broker: str, positions: Mapping[str, Position], who: Principal) -> None:
        self._need(who, "broker", broker)
        self._named("broker", broker, BROKER)
        for channel in positions:
            self._named("channel", channel, CHANNEL)
        self.acks.update(positions)

    def acknowledged(self, broker: str, who: Principal) -> dict[str, Position]:
        self._need(who, "broker", broker)
        self._named("broker", broker, BROKER)
        return dict(self.acks)

    def datasets(self, who: Principal) -> list[DatasetView]:
        self._need(who, "read")
        columns = (("id", "INT"), ("kind", "STRING"), ("text", "STRING"))
        return [DatasetView(DATASET, columns, ("id",), True, "7d", len(self.records), len(self.records), 0)]

    def channels(self, who: Principal) -> list[ChannelView]:
        self._need(who, "read")
        parameters, counts = (("kind", "STRING"),), (len(self.held), len(self.backends), len(self.results))
        return [ChannelView(CHANNEL, parameters, "continuous", False, "running", "index", *counts, 0.0, None, QUERY)]

    def explain(self, channel: str, who: Principal) -> Mapping[str, Any]:
        self._need(who, "read")
        self._named("channel", channel, CHANNEL)
        return {"strategy": "index", "sql": QUERY, "backends": len(self.backends)}

    def brokers(self, who: Principal) -> list[BrokerView]:
        self._need(who, "read")
        return [BrokerView(BROKER, "http://127.0.0.1:8421", len(self.held), 0, None)]

    def feeds(self, who: Principal) -> list[FeedView]:
        self._need(who, "read")
        return [FeedView("push", DATASET, "http", "running", len(self.records), None)]

    def unready(self) -> str | None:
        return None if self.ready else self.reason

    def status(self) -> Status:
        return Status(self.ready, self.reason, 1_700_000_000.0, {"version": "none"}, {"records": len(self.records)})

    def publish(self, kind: str, payload: bytes) -> None:
        """A result, for whoever subscribed to ``kind``."""
        with self._news:
            backend = self.backends.setdefault(kind, len(self.backends))
            position = Position(len(self.results) + 1, 1)
            self.results.append((kind, ResultView(f"r{position.execution}", position, (backend,), payload)))
            self._news.notify_all()

    def forget_through(self, position: Position) -> None:
        """Let retention pass over results up to ``position``."""
        self.oldest = position

    def _append(self, body: bytes) -> Receipt:
        first, problems = len(self.records) + 1, []
        for number, line in enumerate(filter(bytes.strip, body.split(b"\n")), 1):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if isinstance(record, dict):
                self.records.append(record)
            else:
                problems.append(Rejected(number, "expected a JSON object"))
        return Receipt(len(self.records) - first + 1, len(problems), first, len(self.records), False, tuple(problems))

    def _append_csv(self, body: bytes) -> Receipt:
        first = len(self.records) + 1
        table, bad = parse_csv(body, SPEC)
        self.records += table.to_pylist()
        problems = tuple(Rejected(one.line_no, one.reason) for one in bad)
        return Receipt(table.num_rows, len(bad), first, len(self.records), False, problems)

    def _made_up_to(self, making: int | None, ids: Sequence[str]) -> list[str]:
        return [one for one in ids if one in self.held and (making is None or self.held[one].making <= making)]

    def _hold(self, wanted: Wanted, kind: str, broker: str, who: Principal, making: int) -> Subscribed:
        backend = self.backends.setdefault(kind, len(self.backends))
        name = wanted.id or f"s{len(self.held) + 1:06}"
        latest = max(making, self.held[name].making if name in self.held else 0)
        self.held[name] = SubscriptionView(name, CHANNEL, broker, backend, {"kind": kind}, who.subject, latest)
        return Subscribed(name, CHANNEL, backend, self._end(), making=latest)

    def _page(
        self,
        channel: str,
        after: Position,
        limit: int | None,
        backend: int | None = None,
        through: Position | None = None,
    ) -> ChannelPage:
        found = [r for r in self._after(max(after, self.oldest)) if backend is None or backend in r.backends]
        chosen = [r for r in found if through is None or r.position <= through][:limit]
        gap = GapView(after, self.oldest, None, "no longer kept") if after < self.oldest else None
        end = chosen[-1].position if chosen else after
        return ChannelPage(channel, after, end, tuple(chosen), len(chosen) == len(found), gap)

    def _after(self, position: Position) -> list[ResultView]:
        return [result for _, result in self.results if result.position > position]

    def _end(self) -> Position:
        return self.results[-1][1].position if self.results else START

    def _kind(self, arguments: Mapping[str, Any] | Sequence[Any]) -> str:
        values = list(arguments.values()) if isinstance(arguments, Mapping) else list(arguments)
        if len(values) != 1 or not isinstance(values[0], str):
            raise BadArgument("kind", "STRING", arguments)
        return values[0]

    def _need(self, who: Principal, action: str, name: str | None = None) -> None:
        if not who.may(action, name):
            raise Refused(f"{who.subject} lacks the capability {action!r}")

    def _named(self, kind: str, name: str, *known: str) -> None:
        if name not in known:
            raise NotFound(kind, name, known)
