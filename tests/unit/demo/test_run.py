"""Setting the demonstration up at a cluster that is silent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tocsin.cli.http import ClusterClient
from tocsin.demo.crowd import Crowd
from tocsin.demo.feeder import Ahead
from tocsin.demo.plan import Plan
from tocsin.demo.receiver import NoticeReceiver
from tocsin.demo.run import DemoRun
from tocsin.errors import Unavailable
from tocsin.tokens import mint

PLAN = Plan(1.0, 5, 10, datetime(2026, 1, 1, tzinfo=UTC))


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
