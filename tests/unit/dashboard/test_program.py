from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from tocsin.client import connect, topic
from tocsin.config import Config
from tocsin.dashboard.program import LoneBroker
from tocsin.dashboard.telling import Speaker
from tocsin.tokens import mint

SECRET = b"s" * 32


def test_a_topic_is_followed_while_a_page_is_open_and_no_longer(tmp_path: Path) -> None:
    async def story() -> list[bool]:
        config = replace(Config(), dashboard=replace(Config().dashboard, host="127.0.0.1", port=0))
        broker = LoneBroker(config, SECRET)
        await broker.start()
        speaker, seen = Speaker(broker.sources.topics), [broker.is_map_watched()]
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
