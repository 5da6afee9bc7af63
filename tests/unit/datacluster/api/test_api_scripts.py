"""Scripts end for those who left and when they take too long, and nobody's scripts take all threads."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from support.asgi import client_of
from support.cluster_api import SECRET
from support.memory_cluster import MemoryCluster
from support.waiting import until
from tocsin.datacluster.api import ApiLimits, create_app
from tocsin.tokens import mint, verify

SHOW = {"text": "SHOW DATASETS"}


class LongScripts(MemoryCluster):
    """A script goes on and on until it is let go or told to end."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = threading.Semaphore(0), threading.Event()
        self.ended_by: list[str] = []

    def execute(self, text, who, go_on=lambda: None):
        self.entered.release()
        while not self.go.wait(0.005):
            try:
                go_on()
            except Exception as problem:
                self.ended_by.append(type(problem).__name__)
                raise
        return super().execute(text, who, go_on)


def app_of(cluster: MemoryCluster, **limits: Any) -> Any:
    return create_app(cluster, verify=lambda token: verify(token, SECRET), limits=ApiLimits(**limits))


def headers(subject: str = "ann") -> dict[str, str]:
    return {"Authorization": f"Bearer {mint(SECRET, subject, ['read'], 60)}"}


def test_a_script_ends_before_its_next_statement_when_its_sender_has_left() -> None:
    cluster = LongScripts()
    messages: list[Any] = [
        {"type": "http.request", "body": json.dumps(SHOW).encode(), "more_body": False},
        {"type": "http.disconnect"},
    ]
    scope = {
        "type": "http", "method": "POST", "path": "/statements", "query_string": b"", "http_version": "1.1",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers().items()],
    }  # fmt: skip

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError(f"nobody reads {message}")

    asyncio.run(asyncio.wait_for(app_of(cluster)(scope, receive, send), 20))
    assert cluster.ended_by == ["SenderLeft"]


def test_a_script_ends_before_its_next_statement_when_it_took_too_long() -> None:
    cluster = LongScripts()
    with client_of(app_of(cluster, script_s=0.02), headers()) as client:
        answer = client.post("/statements", json=SHOW)
    assert (answer.status_code, answer.json()["what"]) == (413, "seconds a script may run")


def test_a_drain_ends_scripts() -> None:
    cluster = LongScripts()
    app = app_of(cluster)
    with client_of(app, headers()) as client, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.post, "/statements", json=SHOW)
        assert cluster.entered.acquire(timeout=10)
        app.state.api.drain()
        assert asked.result().status_code == 503


def test_one_subject_leaves_a_thread_to_the_others_and_is_told_to_come_back() -> None:
    cluster = LongScripts()
    app = app_of(cluster, statement_threads=2, waiting_scripts=1)
    with client_of(app) as client, ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(client.post, "/statements", json=SHOW, headers=headers()) for _ in range(2)]
        until(lambda: app.state.api.scripts._under_way["ann"] == 2, "one script runs, one waits", 10)
        assert cluster.entered.acquire(timeout=10)
        refused = client.post("/statements", json=SHOW, headers=headers())
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        asked.append(threads.submit(client.post, "/statements", json=SHOW, headers=headers("ben")))
        assert cluster.entered.acquire(timeout=10)
        cluster.go.set()
        assert [one.result().status_code for one in asked] == [200, 200, 200]
    assert not app.state.api.scripts._under_way
