"""The same clients at real brokers: what is published there reaches the application once and in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from broker_world import SECRET, World, place, token_of
from broker_world import world as broker
from conformance.drivers import Driver, NodeDriver, PythonDriver, Refused
from conformance.stories import NEWS, QUICK
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.tickets import issue_ticket

CAN = ("topic:*", "publish:*", "ingest:*")


@dataclass
class Town:
    """Two brokers that hear of the same publications; ``b`` keeps nothing and reads the past again each time."""

    client: Driver
    a: World
    b: World

    async def connect(self, **options: Any) -> Any:
        told = {"broker": self.a.server.url, "token": token_of("ann", CAN), "settings_ms": QUICK, **options}
        return await self.client.ask("connect", options=told)

    async def subscribe(self, id: str = "n") -> Any:
        return await self.client.ask("subscribe", id=id, target=NEWS)

    def put(self, first: int, last: int) -> None:
        """Publications ``first`` to ``last``; each is its own number, and has that as its position."""
        for number in range(first, last + 1):
            for one in (self.a, self.b):
                assert one.topics.put("news", b"%d" % number) == place(number)

    async def numbers(self, count: int) -> list[int]:
        return [payload for _, payload in await self.client.items(count)]

    def cut(self) -> None:
        for one in (self.a, self.b):
            for outlet in list(one.core.outlets):
                outlet.transport.abort()


def told_in_town(tell: Callable[[Town], Awaitable[None]]) -> Callable[..., None]:
    @pytest.mark.parametrize("kind", [PythonDriver, NodeDriver], ids=lambda kind: kind.name)
    def told(kind: type[Driver], stage: asyncio.Runner) -> None:
        stage.run(_tell(kind, tell))

    told.__name__, told.__doc__ = tell.__name__, tell.__doc__
    return told


async def _tell(kind: Any, tell: Callable[[Town], Awaitable[None]]) -> None:
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        a = await stack.enter_async_context(broker(name="a"))
        b = await stack.enter_async_context(broker(name="b", cache_bytes=0))
        client = kind()
        await client.start()
        stack.push_async_callback(client.stop)
        await tell(Town(client, a, b))


async def eventually(holds: Callable[[], Any]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


@told_in_town
async def test_what_is_published_arrives(town: Town) -> None:
    assert await town.connect() == {"user": "ann", "broker": "a"}
    assert await town.subscribe() == {"stream": "topic:news", "position": "0000"}
    assert await town.client.ask("publish", topic="news", payload=1) == {"position": place(1)}
    town.a.topics.put("news", b"2")
    assert await town.numbers(2) == [1, 2]
    assert await town.client.ask("held") == {"ids": ["n"]}
    assert await town.client.ask("records", dataset="Places", records=[{"x": 1}]) == {"accepted": 1, "rejected": 0}
    await eventually(lambda: ("ann", "n", place(2)) in town.a.directory.acks)
    await town.client.ask("unsubscribe", id="n")
    assert await town.client.ask("held") == {"ids": []}


@told_in_town
async def test_connections_that_break_lose_and_double_nothing(town: Town) -> None:
    await town.connect()
    await town.subscribe()
    for first in range(1, 200, 20):
        town.put(first, first + 9)
        town.cut()
        town.put(first + 10, first + 19)
        await asyncio.sleep(0)
    assert await town.numbers(200) == list(range(1, 201))


@told_in_town
async def test_an_application_that_starts_again_goes_on_where_it_stopped(town: Town) -> None:
    await town.connect()
    await town.subscribe()
    town.put(1, 5)
    assert await town.numbers(5) == [1, 2, 3, 4, 5]
    positions = await town.client.ask("positions")
    await town.client.ask("close")
    assert (await town.client.event())["event"] == "over"
    town.put(6, 9)
    await town.connect(positions=positions)
    town.put(10, 12)
    await town.subscribe()
    town.put(13, 14)
    assert await town.numbers(9) == [6, 7, 8, 9, 10, 11, 12, 13, 14]


@told_in_town
async def test_one_that_kept_no_positions_goes_on_at_what_it_acknowledged(town: Town) -> None:
    await town.connect()
    await town.subscribe()
    town.put(1, 5)
    await town.numbers(5)
    await town.client.ask("close")
    assert (await town.client.event())["event"] == "over"
    town.put(6, 9)
    await town.connect()
    await town.subscribe()
    assert await town.numbers(4) == [6, 7, 8, 9]


@told_in_town
async def test_what_is_gone_is_a_gap(town: Town) -> None:
    await town.connect(broker=town.b.server.url)
    await town.subscribe()
    town.put(1, 2)
    await town.numbers(2)
    positions = await town.client.ask("positions")
    await town.client.ask("close")
    await town.client.event()
    town.put(3, 9)
    town.b.topics.forgotten["topic:news"] = 6
    await town.connect(broker=town.b.server.url, positions=positions)
    await town.subscribe()
    gap, *rest = await town.client.items(4)
    assert gap == ("gap", place(2), place(6), 4, "retention")
    assert [payload for _, payload in rest] == [7, 8, 9]


@told_in_town
async def test_positions_of_a_stream_that_was_made_anew_are_a_gap(town: Town) -> None:
    town.put(1, 2)
    await town.connect(positions={"n": place(9)})
    await town.subscribe()
    town.put(3, 9)
    gap, *rest = await town.client.items(8)
    assert gap == ("gap", place(9), place(2), None, "ahead")
    assert [payload for _, payload in rest] == list(range(3, 10))


@told_in_town
async def test_moves_to_and_fro_lose_and_double_nothing(town: Town) -> None:
    await town.connect()
    await town.subscribe()
    here, there, last = town.a, town.b, 0
    for version in range(2, 8):
        town.put(last + 1, last + 10)
        await there.residents.adopt("ann", version, here.residents.subscriptions("ann"))
        ticket = issue_ticket(SECRET, "ann", there.settings.name, version, f"t{version}", time.time() + 60)
        moved = here.residents.send("ann", version, BrokerInfo(there.settings.name, there.server.url), ticket)
        moving = asyncio.create_task(moved)
        town.put(last + 11, last + 20)
        await moving
        assert there.directory.arrivals[-1] == ("ann", version)
        await here.residents.release("ann", version)
        town.put(last + 21, last + 30)
        here, there, last = there, here, last + 30
    assert await town.numbers(180) == list(range(1, 181))
    assert town.client.waiting() == 0


@told_in_town
async def test_a_token_that_does_not_verify_is_an_error(town: Town) -> None:
    with pytest.raises(Refused) as refused:
        await town.connect(token="nonsense")
    assert refused.value.number == 4400


@told_in_town
async def test_what_the_token_does_not_allow_is_refused(town: Town) -> None:
    await town.connect(token=token_of("ann", ("topic:other",)))
    for ask in (town.subscribe(), town.client.ask("publish", topic="news", payload=1)):
        with pytest.raises(Refused) as refused:
            await ask
        assert refused.value.code == "forbidden"


@told_in_town
async def test_a_token_is_refreshed_on_its_connection(town: Town) -> None:
    await town.connect(tokens=[token_of("ann", CAN, 2), token_of("ann", CAN, 600)])
    await town.subscribe()
    (session,) = next(iter(town.a.core.users.all())).sessions
    await eventually(lambda: session.deadline()[0] > town.a.core.now() + 60)
    town.put(1, 1)
    assert await town.numbers(1) == [1]
