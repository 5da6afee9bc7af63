"""A pull waits for the first result, and for nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from fastapi import FastAPI

from support.asgi import AppClient
from support.memory_cluster import MemoryCluster
from tocsin.datacluster.api import pulling
from tocsin.datacluster.api.context import Api
from tocsin.datacluster.service import ChannelPage
from tocsin.model.position import START

WAIT = {"cursors": {"ByKind": None}, "wait_s": 20}
PULL = "/brokers/north/pull"
NOTHING = [ChannelPage("ByKind", START, START, (), True)]


class Caller:
    """Stands where the request does; leaves when told to."""

    def __init__(self, gone: bool = False) -> None:
        self.gone = gone

    async def is_disconnected(self) -> bool:
        return self.gone


@pytest.fixture
def api(app: FastAPI) -> Api:
    return app.state.api


def wait_until(condition) -> None:
    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(_until, condition)


async def _until(condition) -> None:
    with anyio.fail_after(10):
        while not condition():
            await anyio.sleep(0.005)


def test_a_pull_that_waits_is_answered_by_the_first_result(client: AppClient, cluster: MemoryCluster, api: Api):
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.post, PULL, json=WAIT)
        wait_until(lambda: api.waiting_pulls == 1)
        cluster.publish("fire", b'{"n": 1}')
        (page,) = waiting.result(15).json()["pages"]
    assert [one["payload"] for one in page["results"]] == [{"n": 1}]
    assert api.waiting_pulls == 0


def test_only_so_many_pulls_wait_and_others_are_served_meanwhile(client: AppClient, cluster: MemoryCluster, api: Api):
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.post, PULL, json=WAIT)
        wait_until(lambda: api.waiting_pulls == 1)
        refused = client.post(PULL, json=WAIT)
        at_once = client.post(PULL, json=WAIT | {"wait_s": 0})
        ingested = client.post("/datasets/Reports/records", content=b"{}")
        cluster.publish("fire", b"{}")
        assert waiting.result(15).status_code == 200
    assert (refused.status_code, refused.json()["limit"], at_once.status_code) == (429, 1, 200)
    assert ingested.status_code == 200


def test_a_drain_ends_the_waiting(client: AppClient, api: Api):
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.post, PULL, json=WAIT)
        wait_until(lambda: api.waiting_pulls == 1)
        api.drain()
        (page,) = waiting.result(15).json()["pages"]
    assert (page["results"], page["through"]) == ([], str(START))


def ask_waiting(api: Api, caller: Caller, wait_s: float) -> list[float]:
    """The slices in which the service was asked."""
    slices: list[float] = []

    def ask(seconds: float) -> list[ChannelPage]:
        slices.append(seconds)
        return NOTHING

    anyio.run(pulling.pull_waiting, api, caller, wait_s, ask)
    return slices


def test_a_caller_who_left_is_not_waited_for(api: Api):
    assert ask_waiting(api, Caller(gone=True), 20.0) == [pulling.SLICE_S]


def test_the_last_slice_is_what_is_left(api: Api):
    (only,) = ask_waiting(api, Caller(), pulling.SLICE_S / 2)
    assert 0 < only <= pulling.SLICE_S / 2


def test_no_pull_waits_longer_than_the_limit(client: AppClient, app: FastAPI, cluster: MemoryCluster):
    asked: list[float] = []
    pull = cluster.pull

    def remember(*args, wait_s: float, **options):
        asked.append(wait_s)
        return pull(*args, wait_s=0, **options)

    cluster.pull = remember  # type: ignore[method-assign]
    app.state.api.limits = type(app.state.api.limits)(wait_s=0.5)
    assert client.post(PULL, json=WAIT).status_code == 200
    assert asked
    assert max(asked) <= 0.5
