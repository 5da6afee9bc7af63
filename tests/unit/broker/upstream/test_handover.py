"""Brokers ask each other for many topics at once when one comes or goes."""

from __future__ import annotations

import asyncio

import msgspec

from tocsin.broker.upstream.handover import Handover, PeerClient
from tocsin.protocol.coordination import BrokerInfo

SEEN = Handover(None, "0001")


class Peer:
    """A broker that answers each request after a moment, and counts how many are under way."""

    def __init__(self) -> None:
        self.under_way = self.most = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.01)
        body = msgspec.json.encode(SEEN)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        self.under_way -= 1
        writer.close()


def test_thousands_of_topics_are_asked_for_a_few_at_a_time_and_each_is_answered() -> None:
    async def story() -> None:
        peer = Peer()
        server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
        me = BrokerInfo("me", "http://127.0.0.1:1")
        other = BrokerInfo("other", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        client = PeerClient(lambda: None, timeout_s=5.0, parallel=3)
        answers = await asyncio.gather(*(client.take_over(f"topic {n}", me, [other]) for n in range(200)))
        await client.close()
        server.close()
        assert answers == [[SEEN]] * 200
        assert peer.most <= 3

    asyncio.run(story())
