"""A feeder and a broker that live through kills of the cluster, as good clients do.

The feeder repeats a batch under its idempotency key, and a subscription under its id, until it is
acknowledged. The broker goes on from what it acknowledged, so it sees some results again and must
find them unchanged.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tocsin.model.position import START

BROKER = "b1"
CHANNELS = ("ByKind", "Outside", "Totals", "Residents", "Alarms", "Periodic")
ZONES, MOVERS, HOME = 12, 4, 100
SCHEMA = f"""
CREATE ACTIVE DATASET Reports (n BIGINT, kind STRING, x DOUBLE);
CREATE DATASET Users (user STRING, zone INT, version INT) PRIMARY KEY (user);
CREATE DATASET Fires (id STRING, zone INT);
CREATE BROKER {BROKER} AT 'http://127.0.0.1:9/nobody';
CREATE CONTINUOUS CHANNEL ByKind(kind STRING) AS SELECT r.n, r.kind FROM Reports r WHERE r.kind = :kind;
CREATE CONTINUOUS CHANNEL Outside(low DOUBLE, high DOUBLE) AS
    SELECT r.n FROM Reports r WHERE r.x < :low OR r.x > :high;
CREATE CONTINUOUS CHANNEL Totals(kind STRING) AS
    SELECT count(*) AS c, sum(r.n) AS s FROM Reports r WHERE r.kind = :kind;
CREATE CONTINUOUS CHANNEL Residents(zone INT) AS
    SELECT u.user, u.version FROM Users u WHERE is_new(u) AND u.zone = :zone;
CREATE CONTINUOUS CHANNEL Alarms(zone INT) AS
    SELECT f.id, u.user FROM Fires f, Users u WHERE (is_new(f) OR is_new(u)) AND f.zone = u.zone AND u.zone = :zone;
CREATE CHANNEL Periodic() PERIOD '200ms' AS SELECT r.n FROM Reports r;
"""
FIRST = {
    "ByKind": [["fire"], ["flood"]],
    "Outside": [[10.0, 90.0], [0.0, 50.0]],
    "Totals": [["fire"], ["storm"]],
    "Residents": [[1], [2], [HOME]],
    "Alarms": [[1], [2]],
    "Periodic": [[]],
}


class Wire:
    """Requests that are repeated until the cluster answers."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=30)
        self.given_up = threading.Event()

    def once(self, method: str, path: str, **options: Any) -> Any:
        answer = self._http.request(method, path, **options)
        if answer.status_code >= 300:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def until_answered(self, method: str, path: str, **options: Any) -> Any:
        while True:
            try:
                return self.once(method, path, **options)
            except httpx.TransportError:
                if self.given_up.is_set():
                    raise
                time.sleep(0.2)

    def statements(self, text: str) -> Any:
        return self.once("POST", "/statements", json={"text": text})

    def subscribe(self, channel: str, arguments: list[Any], id: str) -> Any:
        wanted = [{"arguments": arguments, "id": id}]
        body = {"channel": channel, "broker": BROKER, "subscriptions": wanted}
        return self.until_answered("POST", "/subscriptions", json=body)["subscriptions"][0]


def _thread(work: Callable[[], None], failures: list[BaseException]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        except BaseException as problem:
            failures.append(problem)

    return threading.Thread(target=run, daemon=True)


@dataclass
class Feeder:
    """Sends numbered records from its thread; ``records`` has, by dataset, what was acknowledged."""

    wire: Wire
    rng: random.Random
    records: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"Reports": [], "Users": [], "Fires": []})
    subscriptions: dict[str, tuple[str, list[Any]]] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=lambda: ["fire", "flood", "storm", "nobody's"])
    batches: int = 0
    repeated: int = 0
    failures: list[BaseException] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._number = 0
        self._thread = _thread(self._run, self.failures)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is under way, which needs a living cluster."""
        self.stopping.set()
        self._thread.join(120)
        assert not self.failures, self.failures

    def _run(self) -> None:
        batch = 0
        while not self.stopping.is_set():
            batch += 1
            if batch % 20 == 0:
                self._subscribe_to_a_new_kind()
            dataset = self.rng.choice(["Reports", "Reports", "Users", "Fires"])
            self._send(dataset, getattr(self, f"_{dataset.lower()}")(batch), f"{dataset}-{batch}")
            time.sleep(self.rng.uniform(0.0, 0.2))

    def _send(self, dataset: str, records: list[dict[str, Any]], key: str) -> None:
        body = "\n".join(json.dumps(r) for r in records)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        receipt = self.wire.until_answered("POST", f"/datasets/{dataset}/records", content=body, headers=headers)
        assert (receipt["accepted"], receipt["rejected"]) == (len(records), 0), receipt
        self.repeated += receipt["duplicate"]
        self.records[dataset] += records
        self.batches += 1

    def _subscribe_to_a_new_kind(self) -> None:
        """Its records come only once it is acknowledged, so it must get them all."""
        kind = f"kind-{len(self.kinds)}"
        for channel in ("ByKind", "Totals"):
            self.wire.subscribe(channel, [kind], f"{channel}:{kind}")
            self.subscriptions[f"{channel}:{kind}"] = (channel, [kind])
        self.kinds.append(kind)

    def _reports(self, _: int) -> list[dict[str, Any]]:
        count = self.rng.randint(1, 8)
        self._number += count
        numbers = range(self._number - count, self._number)
        return [{"n": n, "kind": self.rng.choice(self.kinds), "x": round(self.rng.uniform(0, 100), 3)} for n in numbers]

    def _users(self, batch: int) -> list[dict[str, Any]]:
        new = [{"user": f"u{batch}-{i}", "zone": self.rng.randrange(ZONES), "version": 1} for i in range(3)]
        return [*new, {"user": f"mover-{self.rng.randrange(MOVERS)}", "zone": HOME, "version": batch}]

    def _fires(self, batch: int) -> list[dict[str, Any]]:
        return [{"id": f"f{batch}-{i}", "zone": self.rng.randrange(ZONES)} for i in range(2)]


@dataclass
class Puller:
    """Pulls and acknowledges from its thread; ``results`` by channel and position, as first seen."""

    wire: Wire
    rng: random.Random
    results: dict[str, dict[str, Any]] = field(default_factory=lambda: {c: {} for c in CHANNELS})
    acknowledged: dict[str, str] = field(default_factory=dict)
    seen_again: int = 0
    failures: list[BaseException] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = _thread(self._run, self.failures)
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join(120)
        assert not self.failures, self.failures

    def _run(self) -> None:
        while not self.stopping.is_set():
            stored = self.wire.until_answered("GET", f"/brokers/{BROKER}/ack")["positions"]
            for channel, position in self.acknowledged.items():
                assert stored[channel] >= position, f"{channel} was acknowledged at {position}, not {stored[channel]}"
            cursors = {channel: stored.get(channel, str(START)) for channel in CHANNELS}
            try:
                self._follow(cursors)
            except httpx.TransportError:
                time.sleep(0.2)

    def _follow(self, cursors: dict[str, str]) -> None:
        while not self.stopping.is_set():
            body = {"cursors": cursors, "wait_s": 0.3, "max_rows": self.rng.choice([7, 100, 1000])}
            for page in self.wire.once("POST", f"/brokers/{BROKER}/pull", json=body)["pages"]:
                self.seen_again += take(self.results[page["channel"]], page, cursors[page["channel"]])
                cursors[page["channel"]] = page["through"]
            if self.rng.random() < 0.5:
                self.wire.once("POST", f"/brokers/{BROKER}/ack", json={"positions": cursors})
                self.acknowledged.update(cursors)


def take(results: dict[str, Any], page: dict[str, Any], cursor: str) -> int:
    """Add a page's results in the order of positions; gives how many were known, unchanged."""
    again = 0
    assert page["gap"] is None, page["gap"]
    for result in page["results"]:
        assert cursor < result["position"] <= page["through"], (cursor, result)
        cursor = result["position"]
        again += cursor in results
        assert results.setdefault(cursor, result) == result, f"{page['channel']} changed at {cursor}"
    return again
