"""Sending in time, in order, once; with a cluster that takes down what it gets."""

import itertools
import json
import threading
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from tocsin.demo import feeder
from tocsin.demo.audience import Audience
from tocsin.demo.feeder import Ahead, Feeder
from tocsin.errors import BadRecords
from tocsin.scenarios.city import Intent
from tocsin.scenarios.recording import Event


class Taker:
    """Accepts batches, and rejects the reports whose kind it does not know."""

    def __init__(self):
        self.batches = []

    def post(self, path, body):
        made = [{"backend": 1, "position": f"after {len(self.batches)}"} for _ in body["subscriptions"]]
        return {"subscriptions": made}

    def append(self, dataset, lines, key):
        records = [json.loads(line) for line in lines.splitlines()]
        self.batches.append((dataset, records, key))
        bad = [r for r in records if r.get("kind") == "unknown"]
        seen = sum(len(r) for d, r, _ in self.batches if d == dataset)
        problems = [{"line": 1, "reason": "no such kind"}] if bad else []
        return {"accepted": len(records) - len(bad), "rejected": len(bad), "last": seen, "problems": problems}


def report(t, number, kind="fire"):
    return Event(t, "report", {"report_id": f"r{number}", "kind": kind})


def city(until_s=0.4, gap_s=0.02):
    yield report(0.0, 0)
    yield Event(0.0, "shelters", [{"name": "a"}, {"name": "b"}])
    yield Event(0.0, "locations", [{"user": "u1"}])
    for number in range(1, int(until_s / gap_s)):
        yield report(number * gap_s, number)


def feed(events, seconds, lag_s=0.0, taker=None):
    taker = taker or Taker()
    ahead = Ahead(events)
    made = Feeder(taker, ahead, Audience(taker, ["ByKind"]), seconds, lambda: lag_s)
    return made, taker, ahead


def test_everything_is_sent_once_in_order_and_remembered(monkeypatch):
    monkeypatch.setattr(feeder, "WARM_UP_S", 0.1)
    made, taker, _ = feed(city(), 0.4)
    made.warm_up()
    warm = made.warm_up_reports
    made.run(threading.Event())
    reports = [r["report_id"] for dataset, records, _ in taker.batches if dataset == "Reports" for r in records]
    assert reports == [f"r{n}" for n in range(20)] == [r["report_id"] for r in made.reports]
    assert made.sent == {"Shelters": 2, "UserLocations": 1, "Reports": 20}
    assert made.last_seq == 20
    assert 0 < warm < 20
    assert list(made.accepted_at) == reports[warm:]
    assert len({key for _, _, key in taker.batches}) == len(taker.batches)


def test_the_city_goes_on_past_the_end_and_nothing_of_it_is_remembered():
    made, taker, ahead = feed(city(until_s=0.8), 0.2)
    made.run(threading.Event())
    assert made.pace.run_s < 0.8
    assert made.reports
    made.live(threading.Event())
    ahead.stop()
    came = {record["report_id"] for dataset, sent, _ in taker.batches if dataset == "Reports" for record in sent}
    assert made.sent["Reports"] == len(came) == 40
    assert (made.reports, made.accepted_at) == ([], {})


def test_records_say_that_they_are_of_the_moment_at_which_they_are_sent():
    old = Event(0.0, "report", {"report_id": "r1", "at": "2026-01-01T00:00:00.000Z"})
    made, taker, _ = feed(iter([old, report(0.0, 2)]), 0.4)
    before = datetime.now(UTC) - timedelta(seconds=1)
    made.warm_up()
    first, second = taker.batches[0][1]
    assert datetime.fromisoformat(first["at"]) > before
    assert "at" not in second


def test_what_reports_are_joined_with_goes_first():
    made, taker, _ = feed(city(), 0.4)
    made.warm_up()
    assert [dataset for dataset, _, _ in taker.batches] == ["Shelters", "UserLocations", "Reports"]


def test_who_logs_in_subscribes_after_the_records_of_that_moment():
    wanted = [Intent("u9", "ByKind", {"kind": kind}) for kind in ("fire", "flood")]
    asked = [Event(0.1, "subscribe", asdict(intent)) for intent in wanted]
    made, _, _ = feed(iter([report(0.0, 0), *asked, report(0.2, 1)]), 0.15)
    made.warm_up()
    backends = made._audience.backends["ByKind"]
    assert (backends.since, backends.positions) == ({1: 1}, {1: ["after 1", "after 1"]})
    assert made._audience.late == 2


def test_large_steps_are_cut_into_batches(monkeypatch):
    monkeypatch.setattr(feeder, "MAX_BATCH", 7)
    made, taker, _ = feed(city(), 0.4)
    made.warm_up()
    assert [len(records) for dataset, records, _ in taker.batches if dataset == "Reports"] == [7, 7, 6]


def test_a_cluster_that_lags_is_waited_for_and_the_feed_is_cut_in_the_end():
    made, _, ahead = feed(city(), 0.2, lag_s=99.0)
    made.run(threading.Event())
    ahead.stop()
    assert (made.is_cut, made.pace.run_s) == (True, 0.0)
    assert made.sent == {"Shelters": 2, "UserLocations": 1, "Reports": 1}


def test_rejected_records_stop_the_feed_with_the_reason():
    made, _, _ = feed(iter([report(0.0, 1, "unknown")]), 0.4)
    with pytest.raises(BadRecords, match="no such kind"):
        made.warm_up()


def test_a_city_that_fails_is_heard_of():
    def broken():
        yield report(0.0, 1)
        raise ZeroDivisionError

    ahead = Ahead(broken())
    with pytest.raises(ZeroDivisionError):
        list(ahead.until(1.0))


def test_making_events_ahead_stops_when_asked(monkeypatch):
    monkeypatch.setattr(feeder, "_AHEAD", 3)
    ahead = Ahead(report(0.0, n) for n in iter(int, 1))
    ahead.stop()
    assert ahead._work.is_done


def test_events_are_made_ahead_for_a_while_only(monkeypatch):
    monkeypatch.setattr(feeder, "_AHEAD_S", 2.0)
    made = []

    def seconds():
        for t in itertools.count():
            made.append(t)
            yield report(float(t), t)

    ahead = Ahead(seconds())
    assert [event.t for event in ahead.until(10.0)] == [float(t) for t in range(11)]
    ahead.stop()
    assert len(made) <= 10 + 2 + 2
