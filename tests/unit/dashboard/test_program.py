from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tocsin.client import connect, topic
from tocsin.config import Config
from tocsin.dashboard import city
from tocsin.dashboard.program import LoneBroker
from tocsin.dashboard.telling import People
from tocsin.errors import BrokerRefused
from tocsin.tokens import mint

SECRET = b"s" * 32
CONFIG = replace(Config(), dashboard=replace(Config().dashboard, host="127.0.0.1", port=0))


def test_visitors_publish_under_nothing_but_the_city() -> None:
    async def story() -> None:
        broker = LoneBroker(CONFIG, SECRET)
        await broker.start()
        async with connect(broker=broker.server.url, token=mint(SECRET, "eve", ["publish:*"], 60)) as eve:
            assert await eve.publish("city", {"k": "begins"})
            for name in ("system", "elsewhere"):
                with pytest.raises(BrokerRefused, match="under 'city' alone"):
                    await eve.publish(name, {"forged": True})
        await broker.stop()

    asyncio.run(story())


def test_a_page_begins_where_visitors_have_brought_the_map_to() -> None:
    """Else it would get reports of long ago as new."""

    async def story() -> list[object]:
        broker = LoneBroker(CONFIG, SECRET)
        await broker.start()
        await broker.speaker.city({"k": "world"})
        found, speaker = list[object](), broker.speaker
        async with connect(broker=broker.server.url, token=mint(SECRET, "eve", ["publish:*"], 60)) as eve:
            for message in (city.people(1.0, [5.0], [5.0], (10, 10)), city.reports(1.0, []), ["odd"]):
                position = await eve.publish("city", message)
                found.append(position == speaker.positions["city"])
        found.append(speaker.people)
        await speaker.city({"k": "world"})
        await broker.stop()
        return [*found, speaker.people]

    assert asyncio.run(story()) == [True, True, True, People(1.0, bytes([0, 128, 0, 128])), None]


def test_a_topic_is_followed_while_a_page_is_open_and_no_longer() -> None:
    async def story() -> list[bool]:
        broker = LoneBroker(CONFIG, SECRET)
        await broker.start()
        speaker, seen = broker.speaker, [broker.is_map_watched()]
        token = mint(SECRET, "operator", ["topic:*"], 60)
        async with (
            connect(broker=broker.server.url, token=token) as page,
            connect(broker=broker.server.url, token=token) as other,
        ):
            (first, second) = page.subscribe(topic("city")), other.subscribe(topic("city"))
            await first, await second
            await page.close()
            await speaker.city({"k": "begins"})
            assert (await anext(second)).payload == {"k": "begins"}
            seen.append(broker.is_map_watched())
        for _ in range(500):
            if not broker.is_map_watched():
                break
            await asyncio.sleep(0.01)
        seen.append(broker.is_map_watched())
        await broker.stop()
        return seen

    assert asyncio.run(story()) == [False, True, False]
