"""A user with a phone and a page moves: brokers with real sockets, told what to do by the coordinator's state."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from broker_world import SECRET, Client, World, token_of, topic, world
from support.coordinators import Story, told
from tocsin.coordinator.events import Effect
from tocsin.protocol.coordination import Adopt, Arrival, Outcome, Release, Send
from tocsin.protocol.messages import Confirm, Done, Login, Move, Ping, Pong, Welcome
from tocsin.protocol.tickets import issue_ticket


@dataclass
class Town:
    """Ann is placed at a, and wanted at b."""

    a: World
    b: World
    story: Story = field(default_factory=lambda: Story("a", "b", follow_timeout_s=5))

    async def plan(self) -> tuple[Send, asyncio.Task[None]]:
        assert self.story.place("ann") == "a"
        self.story.keep("ann", "news", by="a")
        [adopt] = told(self.story.plan("ann", "b"), "b")
        assert isinstance(adopt, Adopt)
        await self.b.residents.adopt("ann", adopt.version, [topic("news")])
        [send] = told(self.story.done("b", adopt), "a")
        assert isinstance(send, Send)
        ticket = issue_ticket(SECRET, "ann", "b", send.version, "n", time.time() + 60)
        return send, asyncio.create_task(self.a.residents.send("ann", send.version, send.to, ticket))

    def arrive(self) -> list[Effect]:
        arrivals = [Arrival(*one) for one in self.b.directory.arrivals]
        return self.story.report("b", arrivals=arrivals)


async def follow(here: Client, there: Client, session: str) -> None:
    """Do as a client does that is told to move; its ticket is enough."""
    move = await here.next()
    assert isinstance(move, Move)
    assert isinstance(await there.ask(Login(1, None, move.ticket, session)), Welcome)
    assert isinstance(await there.ask(Confirm(2)), Done)
    await here.socket.close()


async def closed(client: Client) -> int | None:
    await asyncio.wait_for(client.socket.wait_closed(), 10)
    return client.socket.close_code


@pytest.mark.parametrize("is_late", [False, True], ids=["the page follows", "the page stays"])
def test_the_page_is_served_by_the_source_until_it_has_followed_the_phone(is_late: bool):
    async def scenario() -> None:
        async with (
            world(name="a") as a, world(name="b") as b, a.client() as phone, a.client() as page,
            b.client() as phone_there, b.client() as page_there,
        ):  # fmt: skip
            town = Town(a, b)
            for client, session in ((phone, "phone"), (page, "page")):
                await client.ask(Login(1, token_of("ann"), None, session, [topic("news")]))
            send, sending = await town.plan()
            await follow(phone, phone_there, "phone")
            assert told(town.arrive(), "a") == []
            if is_late:
                effects = town.story.pass_time(6, "a", "b")
            else:
                await follow(page, page_there, "page")
                await sending
                effects = town.story.report("a", outcomes=[Outcome(send.number, True)])
            [release] = told(effects, "a")
            assert isinstance(release, Release)
            assert isinstance(await phone_there.ask(Ping(3)), Pong)
            await a.residents.release("ann", release.version)
            await sending
            if is_late:
                assert isinstance(await page.next(), Move)
                assert await closed(page) == 4101
            assert town.story.where("ann") == "b"

    asyncio.run(scenario())
