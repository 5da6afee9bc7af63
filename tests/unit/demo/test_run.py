"""Setting the demonstration up at a cluster that is silent, and judging one that has visitors and loses something."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tocsin.cli.http import ClusterClient
from tocsin.demo import run as running
from tocsin.demo.crowd import Crowd
from tocsin.demo.feeder import Ahead
from tocsin.demo.plan import Plan
from tocsin.demo.receiver import NoticeReceiver
from tocsin.demo.run import DemoRun
from tocsin.errors import Unavailable
from tocsin.tokens import mint

PLAN = Plan(1.0, 5, 10, datetime(2026, 1, 1, tzinfo=UTC))
CHANNEL, SHOWN = "NearMe", "000000000001-ffffffff"


class Town:
    """A cluster with one execution of one channel, of which a broker can be told more or less than it gets.

    Backend 1 is the demonstration's, 2 a visitor's, whom the counters count.
    """

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        self.rows = [
            {"id": id, "position": "000000000001-00000001", "backends": [1], "payload": {"report_id": report}}
            for id, report in rows
        ]

    def text(self, path: str) -> str:
        counters = {"executions": 1, "results": 9, "matched": 11}
        return "".join(
            f'# TYPE tocsin_{name} counter\ntocsin_{name}_total{{channel="{CHANNEL}"}} {value}\n'
            for name, value in counters.items()
        )

    def get(self, path: str) -> Any:
        view = {"mode": "every 1s", "strategy": "join", "subscriptions": 2, "backends": 2, "lag_s": 0.0}
        views = [view | {"name": name} for name in PLAN.channels]
        return {"explanation": {"seen": {"reports": 0}}} if path.endswith("explain") else {"channels": views}

    def post(self, path: str, body: Any) -> Any:
        if path == "/subscriptions":
            return {"subscriptions": [{"backend": 1, "position": ""} for _ in body["subscriptions"]]}
        pages = []
        for channel, cursor in body.get("cursors", {}).items():
            results = self.rows if channel == CHANNEL and cursor is None else []
            pages.append({"channel": channel, "through": SHOWN, "results": results, "gap": None, "end": True})
        return {"pages": pages}

    def run(self, text: str) -> list[dict[str, Any]]:
        return []

    def append(self, dataset: str, lines: bytes, key: str) -> dict[str, Any]:
        count = len(lines.splitlines())
        return {"accepted": count, "rejected": 0, "last": count}


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_problem_names_the_step_and_the_log(silent: str):
    steps: list[str] = []
    crowd = Crowd(silent, lambda user: "", lambda user: False)
    with ClusterClient(silent, None, timeout_s=0.1) as client, NoticeReceiver(b"secret") as receiver:
        run = DemoRun(client, PLAN, Ahead(iter(())), receiver, crowd)
        with pytest.raises(Unavailable) as caught:
            run.set_up(Path(".demo/cluster.log"), steps.append)
    assert steps == ["Creating datasets and channels"]
    assert str(caught.value).startswith(f"{steps[0]}: the cluster at {silent} did not answer within")
    assert str(caught.value).endswith("; the cluster's log is .demo/cluster.log")


def test_people_who_do_not_get_in_are_told(silent: str):
    secret = b"a secret of more than thirty-two bytes"
    crowd = Crowd(silent, lambda user: mint(secret, user, [], 60), lambda user: True)
    crowd.start()
    try:
        with pytest.raises(Unavailable, match=r"[1-9] people were not logged in after 0 s"):
            crowd.arrive(PLAN.present, 0.05)
    finally:
        crowd.stop()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param([("a", "r1"), ("b", "r2")], [], id="nothing, whatever the visitor gets"),
        pytest.param([("a", "r1")], ["NearMe: 1 matches did not come of which the broker was told"], id="one lost"),
        pytest.param(
            [("a", "r1"), ("b", "r2"), ("b", "r2")],
            ["NearMe: 1 matches came more than once", "NearMe: 1 matches came of which the broker was not told"],
            id="one doubled",
        ),
        pytest.param(
            [("a", "r1"), ("a", "r1")], ["NearMe: 1 matches came more than once"], id="one in place of another"
        ),
    ],
)
def test_with_a_visitor_who_gets_results_what_is_wrong_with_ours_is_told(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, str]], said: list[str]
):
    monkeypatch.setattr(running, "SETTLE_S", 0.0)
    with NoticeReceiver(b"secret") as receiver:
        receiver.heard({"notices": [{"channel": CHANNEL, "through": SHOWN, "count": 2, "backends": [[1, 2]]}]})
        run = DemoRun(Town(rows), PLAN, Ahead(iter(())), receiver, Crowd("", lambda user: "", lambda user: False))
        run._audience.backends[CHANNEL].add(1, {"user": "u1"}, "000000000000-ffffffff", 0)
        found = run.judge().problems
    assert len(found) == len(said)
    assert all(problem.startswith(start) for problem, start in zip(found, said, strict=True))


class _Enough(Exception):
    pass


def test_a_city_that_goes_on_feeds_on_after_the_summary_and_counts_nothing():
    town, seen = Town([("a", "r1")]), list[int]()

    def watch(reports: int, lag_s: float) -> None:
        seen.append(reports)
        if reports > 20:
            raise _Enough

    ahead = Ahead(Plan(0.1, 5, 10, PLAN.start, goes_on=True).events())
    crowd = Crowd("", lambda user: "", lambda user: False)
    crowd.start()
    try:
        with NoticeReceiver(b"secret") as receiver:
            run = DemoRun(town, PLAN, ahead, receiver, crowd)
            with pytest.raises(_Enough):
                run.live(watch)
            receiver.heard({"notices": [{"channel": CHANNEL, "through": SHOWN, "backends": [[1, 2]]}]})
            assert (receiver.notices, run._puller.tallies[CHANNEL].rows, run._feeder.reports) == (0, 0, [])
    finally:
        ahead.stop()
        crowd.stop()
    assert seen == sorted(seen)
