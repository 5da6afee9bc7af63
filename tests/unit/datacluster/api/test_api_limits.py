"""What is too large is refused with the limit; what is too much at once, with when to come back."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from support.asgi import AppClient, client_of
from support.memory_cluster import MemoryCluster
from tocsin.config import Cluster, Config, Ingest, Results
from tocsin.datacluster.api import ApiLimits, create_app
from tocsin.datacluster.api.admission import Admission
from tocsin.errors import LimitExceeded, StorageFull
from tocsin.tokens import LOCAL_ADMIN, Principal

RECORDS = "/datasets/Reports/records"


class SlowCluster(MemoryCluster):
    """Ingest stands still until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = threading.Semaphore(0), threading.Event()

    def ingest(self, dataset, body, key, who, form="json"):
        self.entered.release()
        assert self.go.wait(10)
        return super().ingest(dataset, body, key, who, form)


@pytest.fixture
def cluster() -> MemoryCluster:
    return SlowCluster()


@pytest.fixture
def threads(cluster: SlowCluster) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads
        cluster.go.set()


async def parts(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b" " * size


def test_a_batch_that_declares_too_much_is_refused(client: AppClient, cluster: MemoryCluster):
    answer = client.post(RECORDS, content=b"x" * 1001)
    assert (answer.status_code, answer.json()["limit"], answer.json()["got"]) == (413, 1000, 1001)
    assert cluster.bodies == []


def test_a_batch_without_a_length_is_refused_at_the_first_byte_too_many(client: AppClient, cluster: MemoryCluster):
    answer = client.post(RECORDS, content=parts(600, 401, 600))
    assert (answer.status_code, answer.json()["got"]) == (413, 1001)
    assert cluster.bodies == []


def test_a_json_body_has_its_own_limit(client: AppClient):
    answer = client.post("/statements", json={"text": " " * 5000})
    assert (answer.status_code, answer.json()["limit"]) == (413, 4096)


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("POST", "/subscriptions", {"channel": "c", "broker": "b", "subscriptions": [{"arguments": []}] * 6}),
        ("POST", "/subscriptions/remove", {"ids": ["x"] * 6}),
        ("POST", "/subscriptions/change", {"ids": ["x"] * 6, "broker": "b"}),
        ("DELETE", RECORDS, {"keys": [{}] * 6}),
        ("POST", "/brokers/north/pull", {"cursors": {str(n): None for n in range(6)}}),
        ("POST", "/brokers/north/ack", {"positions": {str(n): "x" for n in range(6)}}),
    ],
)
def test_lists_have_a_limit(client: AppClient, method: str, path: str, asked: dict):
    answer = client.request(method, path, json=asked)
    assert (answer.status_code, answer.json()["limit"], answer.json()["got"]) == (413, 5, 6)


def test_one_batch_too_many_is_told_to_come_back(client: AppClient, cluster: SlowCluster, threads: ThreadPoolExecutor):
    started = [threads.submit(client.post, RECORDS, content=b"{}") for _ in range(2)]
    for _ in started:
        assert cluster.entered.acquire(timeout=10)
    refused = client.post(RECORDS, content=b"{}")
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["limit"]) == (429, "1", 2)
    cluster.go.set()
    assert [one.result().status_code for one in started] == [200, 200]
    assert client.post(RECORDS, content=b"{}").status_code == 200


def test_batches_together_may_hold_only_so_many_bytes(
    client: AppClient, cluster: SlowCluster, threads: ThreadPoolExecutor
):
    started = threads.submit(client.post, RECORDS, content=b" " * 900)
    assert cluster.entered.acquire(timeout=10)
    refused = client.post(RECORDS, content=b" " * 700)
    assert (refused.status_code, refused.json()["limit"]) == (429, 1500)
    cluster.go.set()
    assert started.result().status_code == 200
    assert client.post(RECORDS, content=b" " * 700).status_code == 200


def test_other_requests_go_on_while_ingest_stands_still(
    client: AppClient, cluster: SlowCluster, threads: ThreadPoolExecutor
):
    threads.submit(client.post, RECORDS, content=b"{}")
    assert cluster.entered.acquire(timeout=10)
    assert client.get("/datasets").status_code == 200


def test_a_full_disk_is_told_as_such(client: AppClient, cluster: MemoryCluster):
    def full(*_: object) -> None:
        raise StorageFull("no space left; nothing of this batch was kept")

    cluster.ingest = full  # type: ignore[method-assign, assignment]
    answer = client.post(RECORDS, content=b"{}")
    assert (answer.status_code, answer.json()["type"]) == (507, "urn:tocsin:storage-full")
    assert client.get("/datasets").status_code == 200


def test_a_body_that_does_not_arrive_is_given_up():
    async def stuck() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep_forever()

    def anyone(_: str) -> Principal:
        return LOCAL_ADMIN

    app = create_app(MemoryCluster(), verify=anyone, limits=ApiLimits(body_timeout_s=0.01))
    with client_of(app, {"Authorization": "Bearer x"}) as client:
        answer = client.post(RECORDS, content=stuck())
    assert (answer.status_code, answer.json()["type"]) == (408, "urn:tocsin:request-timeout")


def test_limits_follow_the_configuration():
    results = Results(pull_max_rows=3, pull_max_wait=4.0, max_waiting_pulls=5)
    config = Config(
        Cluster(max_body_bytes=6, max_items=7), ingest=Ingest(max_batch_bytes=10, max_pending_bytes=20), results=results
    )
    limits = ApiLimits.of(config)
    assert (limits.ingest_bytes, limits.ingest_inflight_bytes, limits.page_rows) == (10, 20, 3)
    assert (limits.wait_s, limits.waiting_pulls, limits.body_bytes, limits.items) == (4.0, 5, 6, 7)


def test_without_a_configuration_the_limits_are_those_of_the_default_one():
    assert ApiLimits() == ApiLimits.of(Config())


def test_a_refused_upload_gives_back_what_it_took():
    admission = Admission(max_requests=1, max_bytes=10, retry_after_s=1)

    def upload() -> None:
        with admission.share() as share:
            share.take(8)
            share.take(3)

    with pytest.raises(LimitExceeded):
        upload()
    assert (admission.requests, admission.size_bytes) == (0, 0)
