"""The data cluster's real interface, over a cluster of dictionaries, as the coordinator cleans up in it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from support.authority import Certificate
from support.memory_cluster import BROKER, CHANNEL, MemoryCluster
from tocsin.coordinator.detaching import HttpCluster
from tocsin.datacluster.api import create_app
from tocsin.datacluster.service import Wanted
from tocsin.errors import Unavailable
from tocsin.tls import trusting
from tocsin.tokens import LOCAL_ADMIN, Principal, mint, verify
from tocsin.web.server import ApiServer, ServerOptions, Tls

SECRET = b"a secret of at least thirty-two bytes"


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def url(cluster: MemoryCluster) -> Iterator[str]:
    server = ApiServer(create_app(cluster, verify=partial(verify, secret=SECRET)), ServerOptions(port=0))
    server.start()
    yield server.url
    server.stop()


def remove(url: str, broker: str, secret: bytes = SECRET, tls: ssl.SSLContext | None = None) -> bool:
    async def ask() -> bool:
        client = HttpCluster(url, lambda name: mint(secret, "coordinator", [f"broker:{name}"], 60), 5.0, tls)
        try:
            return await client.remove_some(broker)
        finally:
            await client.close()

    return asyncio.run(ask())


def held(cluster: MemoryCluster) -> list[str]:
    return sorted(cluster.held)


def test_a_dead_brokers_subscriptions_are_removed(url: str, cluster: MemoryCluster):
    cluster.subscribe(CHANNEL, BROKER, [Wanted(["fire"], "one"), Wanted(["flood"], "two")], LOCAL_ADMIN)
    assert held(cluster) == ["one", "two"]
    assert not remove(url, BROKER)
    assert held(cluster) == []
    assert not remove(url, BROKER)


def test_what_the_broker_asks_for_again_before_the_removal_arrives_stays(url: str, cluster: MemoryCluster):
    north, wanted = Principal(BROKER, ("subscribe:*", "broker:*")), [Wanted(["fire"], "one")]
    remove_now = cluster.unsubscribe
    cluster.subscribe(CHANNEL, BROKER, wanted, north, 7)
    cluster.subscribe(CHANNEL, BROKER, [Wanted(["fire"], "another's")], LOCAL_ADMIN, 9)

    def remove_late(ids: Sequence[str], who: Principal, making: int | None = None) -> int:
        cluster.subscribe(CHANNEL, BROKER, wanted, north, 8)
        return remove_now(ids, who, making)

    cluster.unsubscribe = remove_late  # type: ignore[method-assign]
    remove(url, BROKER)
    assert held(cluster) == ["one"]


def test_a_cluster_with_a_certificate_of_a_private_authority_is_trusted_where_that_is_named(certificate: Certificate):
    options = ServerOptions(port=0, tls=Tls(Path(certificate.chain), Path(certificate.key)))
    server = ApiServer(create_app(MemoryCluster(), verify=partial(verify, secret=SECRET)), options)
    server.start()
    try:
        assert not remove(server.url, BROKER, tls=trusting("http.ca_file", certificate.ca))
        with pytest.raises(Unavailable, match="does not answer"):
            remove(server.url, BROKER)
    finally:
        server.stop()


def test_a_broker_that_the_cluster_never_knew_has_nothing(url: str):
    assert not remove(url, "stranger")


def test_a_refusal_is_no_success(url: str):
    with pytest.raises(Unavailable, match="answers 40"):
        remove(url, BROKER, b"another secret of thirty-two bytes!!")


def test_what_is_no_data_cluster_is_told():
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def story() -> None:
        async with await asyncio.start_server(page, "127.0.0.1", 0) as server:
            client = HttpCluster(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", lambda broker: "token", 5.0)
            with pytest.raises(Unavailable, match="not understood"):
                await client.remove_some(BROKER)
            await client.close()

    asyncio.run(story())


def test_a_cluster_that_is_away_is_told(url: str):
    with pytest.raises(Unavailable, match="does not answer"):
        remove("http://127.0.0.1:1", BROKER)
