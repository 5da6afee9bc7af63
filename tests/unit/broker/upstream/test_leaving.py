"""A broker that leaves while the coordinator is away: its topics go on elsewhere, without a hole or an echo."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from itertools import count, islice
from typing import Any

import httpx

from support.topic_brokers import SECRET, LocalBroker, Subscriber, agree, brokers
from tocsin.broker.upstream.handover import Batch, Handed, Known
from tocsin.broker.upstream.leaving import Leaving
from tocsin.broker.upstream.members import Members
from tocsin.broker.upstream.peers import NotSettled
from tocsin.broker.upstream.topics import owner_of, ranked
from tocsin.clock import VirtualClock
from tocsin.protocol.coordination import BrokerInfo
from tocsin.tokens import Principal, mint

ANN = Principal("ann", ("publish:*", "topic:*"))
NAMES = ("a", "b", "c")


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 60)

    asyncio.run(bounded())


def topic_of(owner: str) -> str:
    return next(f"t{n}" for n in count() if owner_of(f"t{n}", NAMES) == owner)


async def publish(broker: LocalBroker, topic: str, *numbers: int) -> list[str]:
    return [await broker.sources.topics.publish(topic, b"%d" % n, ANN) for n in numbers]


async def relieved(*leaving: LocalBroker) -> None:
    while not all(broker.sources.topics.is_relieved for broker in leaving):
        await asyncio.sleep(0.02)


def test_a_broker_that_leaves_while_the_coordinator_is_away_hands_its_topics_over_by_itself() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topic, quiet = islice((f"t{n}" for n in count() if owner_of(f"t{n}", NAMES) == "c"), 2)
            stamped = await publish(a, quiet, 1, 2)
            async with Subscriber(a.info.url, topic) as at_a, Subscriber(b.info.url, topic) as at_b:
                numbers = count()
                is_gone = asyncio.Event()

                async def busily(broker: LocalBroker) -> int:
                    done = 0
                    while not is_gone.is_set():
                        await publish(broker, topic, next(numbers))
                        await asyncio.sleep(0.005)
                        done += 1
                    return done

                publishers = [asyncio.create_task(busily(broker)) for broker in (a, b)]
                c.sources.topics.leave()
                await publish(c, topic, -1)
                await relieved(c)
                await publish(c, topic, -2)
                await c.stop()
                is_gone.set()
                busy = sum(await asyncio.gather(*publishers))
                (last,) = await publish(a, topic, -3)
                got = await at_a.until(busy + 3)
                assert got == await at_b.until(busy + 3)
                assert sorted(got) == [-3, -2, -1, *range(busy)]
                assert at_a.position == at_b.position == last
                assert at_a.gaps == at_b.gaps == []
            async with Subscriber(b.info.url, quiet, stamped[0], mint(SECRET, "bob", ["topic:*"], 60)) as back:
                assert await back.until(1) == [2]
                assert back.recovered

    run(story())


def test_a_coordinator_that_counts_a_leaving_broker_again_does_not_bring_its_topics_back() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topic = topic_of("c")
            async with Subscriber(a.info.url, topic) as at_a:
                await publish(b, topic, 1)
                c.sources.topics.leave()
                await relieved(c)
                agree([a, b, c])
                await publish(c, topic, 2)
                await relieved(c)
                agree([a, b, c], heard_by=[a])
                await c.stop()
                agree([a, b])
                await publish(b, topic, 3)
                assert await at_a.until(3) == [1, 2, 3]
                assert at_a.gaps == []

    run(story())


def test_two_brokers_that_leave_at_once_leave_everything_to_the_third() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topics = [topic_of(name) for name in NAMES]
            before = [(await publish(a, topic, 1, 2))[0] for topic in topics]
            for leaving in (b, c):
                leaving.sources.topics.leave()
            await relieved(b, c)
            await asyncio.gather(b.stop(), c.stop())
            for topic, position in zip(topics, before, strict=True):
                token = mint(SECRET, f"who follows {topic}", ["topic:*"], 60)
                async with Subscriber(a.info.url, topic, position, token) as back:
                    await publish(a, topic, 3)
                    assert await back.until(2) == [2, 3]
                    assert back.gaps == []

    run(story())


def test_a_leaving_broker_gives_its_topics_to_whom_those_that_stay_take_for_the_owner() -> None:
    async def story() -> None:
        names = ("a", "b", "c", "d")
        async with brokers(*names) as (a, b, _, d):
            topic = next(f"t{n}" for n in range(1000) if ranked(f"t{n}", names)[:2] == ["d", "c"])
            agree([a, b, d], heard_by=[d])  # it has not heard of c, and cannot
            (first, _) = await publish(d, topic, 1, 2)
            d.sources.topics.leave()
            await relieved(d)
            await d.stop()
            async with Subscriber(a.info.url, topic, position=first) as back:
                await publish(b, topic, 3)
                assert await back.until(2) == [2, 3]

    run(story())


def test_what_a_dead_broker_should_take_is_kept_though_the_coordinator_has_named_the_others() -> None:
    """It named them while it did not know yet that one of them is dead, and went away."""

    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topic = next(f"t{n}" for n in count() if ranked(f"t{n}", NAMES) == ["c", "b", "a"])
            async with Subscriber(a.info.url, topic) as at_a:
                await publish(c, topic, 1, 2)
                await b.die()
                c.sources.topics.leave()
                agree([a, b], heard_by=[a, c])
                await relieved(c)
                await c.stop()
                agree([a])
                await publish(a, topic, 3)
                assert await at_a.until(3) == [1, 2, 3]
                assert at_a.gaps == []

    run(story())


class Peers:
    """Those who answer a leaving broker's word, by what they know; keeps what each word offered."""

    def __init__(self, *living: str) -> None:
        self.known, self.answering = Known(tuple(map(info, living))), set(living)
        self.offered: list[Mapping[str, Sequence[str]]] = []

    async def leave(
        self, me: BrokerInfo, others: Iterable[BrokerInfo], offers: Mapping[str, Sequence[str]]
    ) -> dict[str, Known]:
        self.offered.append(dict(offers))
        return {other.name: self.known for other in others if other.name in self.answering}


def info(name: str) -> BrokerInfo:
    return BrokerInfo(name, f"http://{name}")


def test_a_topic_is_offered_to_another_only_where_its_owner_was_told_and_is_silent() -> None:
    async def story() -> None:
        members = Members(lambda: info("d"), VirtualClock(), 60.0)
        members.tell([info(name) for name in "abd"])  # of c it hears from a and b
        peers = Peers("a", "b", "c")
        topic = topic_of("c")
        leaving = Leaving(lambda: info("d"), members, peers, lambda: [topic], lambda: None)  # type: ignore[arg-type]
        for _ in range(3):
            await leaving._tell()
        assert peers.offered == [{}, {}, {}]
        peers.answering = {"a", "b"}
        for _ in range(2):
            await leaving._tell()
        assert peers.offered[3:] == [{}, {owner_of(topic, "ab"): [topic]}]

    run(story())


def test_a_topic_whose_next_owner_is_dead_is_kept_by_one_that_stays_until_that_is_back() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topic = next(f"t{n}" for n in count() if ranked(f"t{n}", NAMES) == ["c", "b", "a"])
            async with Subscriber(a.info.url, topic) as at_a:
                stamped = await publish(c, topic, 1, 2)
                port = b.server.port
                await b.die()  # and nobody finds out
                c.sources.topics.leave()
                stamped += await published_at_last(a, topic, 3)
                while topic in c.sources.topics._logs.topics:
                    await asyncio.sleep(0.02)
                await c.stop()
                stamped += await publish(a, topic, 4)
                again = LocalBroker("b", port)
                await again.start()
                again.sources.set_topology([a.info, again.info])
                stamped += await publish(again, topic, 5)
                assert await at_a.until(5) == [1, 2, 3, 4, 5]
                assert at_a.gaps == []
                assert [position[-2:] for position in stamped] == ["01", "02", "03", "04", "05"], "in one epoch"
            await again.stop()

    run(story())


async def published_at_last(broker: LocalBroker, topic: str, number: int) -> list[str]:
    """Tried again while brokers look for one that is not there."""
    while True:
        try:
            return await publish(broker, topic, number)
        except NotSettled:
            await asyncio.sleep(0.02)


def test_a_broker_that_keeps_a_topic_for_another_begins_nothing_where_it_was_taken_meanwhile() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topic = topic_of("b")
            (first,) = await publish(b, topic, 1)  # c gave the log to b before a asks for it
            is_asked, hand_over = asyncio.Event(), c.sources.topics.hand_over

            def tell(asked: Batch) -> Handed:
                is_asked.set()
                return hand_over(asked)

            c.sources.topics.hand_over = tell  # type: ignore[method-assign]
            a.sources.topics.leaves(Batch("c", c.info.url, [topic]))
            await is_asked.wait()
            (second,) = await publish(a, topic, 2)
            assert second == first[:-1] + "2"

    run(story())


def test_only_a_broker_itself_may_say_that_it_leaves() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            async with httpx.AsyncClient(trust_env=False) as http:
                for who, status in (("b", 403), ("a", 200)):
                    token = mint(SECRET, who, [f"broker:{who}"], 60)
                    answer = await http.post(
                        f"{b.info.url}/brokers/a/leaving", json={"broker": "a", "url": a.info.url},
                        headers={"Authorization": f"Bearer {token}"},
                    )  # fmt: skip
                    assert answer.status_code == status, answer.text
            assert b.sources.topics.known.brokers == (b.info,)

    run(story())
