"""Topics across brokers: one stamps, all follow, and what moves moves without a hole."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest

from support.topic_brokers import SECRET, TOKEN, LocalBroker, Subscriber, agree, brokers
from tocsin.broker.upstream.cluster import ClusterClient
from tocsin.broker.upstream.handover import Batch, Handed
from tocsin.broker.upstream.topics import Bounds, Log, owner_of, ranked
from tocsin.client import connect
from tocsin.errors import LimitExceeded, Refused, Unavailable, Uncertain
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.targets import TopicTarget
from tocsin.tokens import Principal, mint

ANN = Principal("ann", ("publish:*", "topic:*"))
NAMES = ("a", "b", "c")


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 60)

    asyncio.run(bounded())


def topic_of(owner: str, among: tuple[str, ...] = NAMES) -> str:
    return next(f"t{n}" for n in range(1000) if owner_of(f"t{n}", among) == owner)


async def publish(broker: LocalBroker, topic: str, *numbers: int) -> list[str]:
    return [await broker.sources.topics.publish(topic, b"%d" % n, ANN) for n in numbers]


def test_everyone_gets_everything_in_one_order_wherever_it_is_published() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topic = topic_of("b")
            async with (
                Subscriber(a.info.url, topic) as at_a,
                Subscriber(b.info.url, topic) as at_b,
                Subscriber(c.info.url, topic) as at_c,
            ):
                assert at_a.position == at_b.position == at_c.position
                await asyncio.gather(*(publish(broker, topic, *range(n, n + 20)) for n, broker in enumerate((a, b, c))))
                orders = [await one.until(60) for one in (at_a, at_b, at_c)]
                assert orders[0] == orders[1] == orders[2]
                assert at_a.gaps == []

    run(story())


def test_a_topic_moves_to_a_broker_that_joins_without_a_hole() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("c")
            async with Subscriber(a.info.url, topic) as at_a, Subscriber(b.info.url, topic) as at_b:
                before = await publish(a, topic, *range(10))
                c = LocalBroker("c")
                await c.start()
                agree([a, b, c], heard_by=[c])  # the others learn it later
                first = await publish(c, topic, 10)
                agree([a, b, c], heard_by=[a])
                await publish(a, topic, 11, 12)
                agree([a, b, c], heard_by=[b])
                last = await publish(b, topic, *range(13, 20))
                assert await at_a.until(20) == await at_b.until(20) == list(range(20))
                assert at_a.gaps == at_b.gaps == []
                assert before + first < last
                async with Subscriber(c.info.url, topic, position=before[3]) as back:
                    assert await back.until(16) == list(range(4, 20))
                    assert back.recovered
                await c.stop()

    run(story())


def test_a_broker_that_drains_hands_its_topics_over_even_those_that_nobody_follows() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            quiet, busy = topic_of("c"), "x" + topic_of("c")
            while owner_of(busy, NAMES) != "c":
                busy += "x"
            stamped = await publish(a, quiet, 1, 2, 3)
            async with Subscriber(a.info.url, busy) as at_a, Subscriber(c.info.url, busy) as at_c:
                await publish(b, busy, 1)
                agree([a, b], heard_by=[a, b, c])
                await publish(c, busy, 2)
                await publish(b, busy, 3)
                assert await at_a.until(3) == await at_c.until(3) == [1, 2, 3]
                assert at_a.gaps == at_c.gaps == []
            while not c.sources.topics.is_relieved:
                await asyncio.sleep(0.02)
            async with Subscriber(b.info.url, quiet, position=stamped[0]) as back:
                assert await back.until(2) == [2, 3]

    run(story())


def test_when_the_owner_dies_its_subscribers_are_told_a_gap_and_go_on() -> None:
    async def story() -> None:
        async with brokers(*NAMES) as (a, b, c):
            topic = topic_of("c")
            async with Subscriber(a.info.url, topic) as at_a, Subscriber(b.info.url, topic) as at_b:
                await publish(a, topic, 1, 2)
                await at_a.until(2)
                await at_b.until(2)
                await c.die()
                with pytest.raises(Unavailable):
                    await publish(a, topic, 99)
                agree([a, b])
                (position,) = await publish(b, topic, 3)
                assert await at_a.until(3) == await at_b.until(3) == [1, 2, 3]
                assert at_a.gaps == at_b.gaps == [("owner", None)]
                assert at_a.position == at_b.position == position

    run(story())


def test_a_new_owner_does_not_look_for_the_one_that_died() -> None:
    async def story() -> None:
        async with brokers("a", "b", upstream__backoff_min="10ms", upstream__backoff_max="50ms") as (a, b):
            topic = topic_of("b", ("a", "b"))
            async with Subscriber(a.info.url, topic) as at_a:
                await publish(a, topic, 1)
                await at_a.until(1)
                await b.die()
                agree([a])
                await publish(a, topic, 2)
                assert await at_a.until(2) == [1, 2]
                dialled: list[object] = []
                await asyncio.sleep(0.1)
                async with await asyncio.start_server(lambda *one: dialled.append(one), "127.0.0.1", b.server.port):
                    await asyncio.sleep(0.3)
                assert dialled == []

    run(story())


def test_a_broker_that_gives_its_topic_away_and_stays_is_not_followed_in_return() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("b", ("a", "b"))
            async with Subscriber(a.info.url, topic) as at_a, Subscriber(b.info.url, topic) as at_b:
                await publish(a, topic, 1)
                agree([a], heard_by=[a, b])
                await publish(b, topic, *range(2, 20))
                assert await at_a.until(19) == await at_b.until(19) == list(range(1, 20))
                assert at_a.gaps == at_b.gaps == []
            for broker in (a, b):
                ann = broker.core.users["ann"]
                await broker.core.subscribing.unsubscribe(ann, list(ann.subscriptions), None)
            while a.core.hub.streams() or b.core.hub.streams():  # each would keep the other's for ever
                await asyncio.sleep(0.01)

    run(story())


def test_a_topic_goes_to_and_fro_without_a_hole() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("b", ("a", "b"))
            async with Subscriber(a.info.url, topic) as at_a, Subscriber(b.info.url, topic) as at_b:
                stamped: list[str] = []
                for turn in range(20):
                    agree([a] if turn % 2 else [a, b], heard_by=[a, b] if turn % 3 else [b, a])
                    stamped += await publish((a, b)[turn // 2 % 2], topic, *range(5 * turn, 5 * turn + 5))
                assert await at_a.until(100) == await at_b.until(100) == list(range(100))
                assert at_a.gaps == at_b.gaps == []
                assert stamped == sorted(stamped)

    run(story())


@pytest.mark.parametrize("by", ["a session", "HTTP"])
def test_a_publication_whose_owner_breaks_off_before_its_answer_is_uncertain_and_made_once(by: str) -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic, stamp, stamped = topic_of("b", ("a", "b")), b.sources.topics.publish, list[str]()

            async def stamp_and_break_off(*asked: Any) -> str:
                stamped.append(await stamp(*asked))
                for outlet in list(b.core.outlets):
                    outlet.transport.abort()
                return stamped[-1]

            b.sources.topics.publish = stamp_and_break_off  # type: ignore[method-assign]
            if by == "a session":
                async with connect(broker=a.info.url, token=TOKEN) as session:
                    with pytest.raises(Uncertain, match="may have been published or not"):
                        await session.publish(topic, 1)
            else:
                bearer = {"Authorization": f"Bearer {TOKEN}"}
                async with httpx.AsyncClient(base_url=a.info.url, headers=bearer) as http:
                    answer = await http.post(f"/topics/{topic}/messages", content=b"1")
                assert (answer.status_code, answer.json()["type"]) == (504, "urn:tocsin:uncertain")
                assert "Retry-After" not in answer.headers
            assert len(stamped) == 1

    run(story())


def test_an_owner_that_lost_its_memory_begins_a_new_epoch_above_what_others_saw() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("b", ("a", "b"))
            async with Subscriber(a.info.url, topic) as at_a:
                await publish(a, topic, 1)
                await at_a.until(1)
                port = b.server.port
                await b.die()
                again = LocalBroker("b", port)
                await again.start()
                agree([a, again])
                await publish(a, topic, 2)
                assert await at_a.until(2) == [1, 2]
                assert at_a.gaps == [("owner", None)]
                await again.stop()

    run(story())


def test_one_who_comes_back_to_another_broker_gets_the_history_of_the_owner() -> None:
    async def story() -> None:
        async with brokers("a", "b", upstream__topic_messages="5", upstream__topic_page="8 B") as (a, b):
            topic = topic_of("b", ("a", "b"))
            stamped = await publish(b, topic, *range(10, 20))
            async with Subscriber(a.info.url, topic, position=stamped[6]) as back:
                assert await back.until(3) == [17, 18, 19]
                assert back.recovered
            async with Subscriber(a.info.url, topic, position=stamped[1]) as late:
                assert await late.until(5) == [15, 16, 17, 18, 19]
                assert late.gaps == [("retention", 3)]

    run(story())


@pytest.mark.parametrize("made_up", ["ffffffffffff-000000000001", "zzz"])
def test_one_who_stands_where_its_topic_never_was_is_told_so_wherever_it_comes(made_up: str) -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("b", ("a", "b"))
            last = (await publish(b, topic, 1, 2))[-1]
            async with (
                Subscriber(a.info.url, topic, position=made_up) as at_a,
                Subscriber(b.info.url, topic, position=made_up) as at_b,
                Subscriber(a.info.url, topic, position=last) as known,
            ):
                await publish(b, topic, 3)
                for one in (at_a, at_b):
                    assert await one.until(1) == [3]
                    assert (one.recovered, one.gaps) == (False, [("ahead", None)])
                assert await known.until(1) == [3]
                assert (known.recovered, known.gaps) == (True, [])

    run(story())


def test_an_owner_that_was_taken_for_dead_goes_on_beyond_what_another_stamped_meanwhile() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("b", ("a", "b"))
            async with Subscriber(a.info.url, topic) as at_a, Subscriber(b.info.url, topic) as at_b:
                await publish(b, topic, 1)
                await at_a.until(1)
                lost = BrokerInfo("b", "http://127.0.0.1:9")  # nobody answers there
                a.sources.set_topology([a.info, lost])
                a.sources.set_topology([a.info])
                await publish(a, topic, 2)
                await at_a.until(2)
                agree([a, b])
                await at_b.until_gaps(1)
                await publish(b, topic, 3)
                assert await at_a.until(3) == [1, 2, 3]
                assert await at_b.until(2) == [1, 3]
                assert (at_a.gaps, at_b.gaps) == ([("owner", None)] * 2, [("owner", None)])

    run(story())


def _knows_brokers(*known: LocalBroker) -> ClusterClient:
    """A data cluster that can tell who registered, and nothing else."""
    told = {"brokers": [{"name": one.info.name, "url": f"{one.info.url}/notify"} for one in known]}
    answer = lambda request: httpx.Response(200 if request.url.path == "/brokers" else 503, json=told)  # noqa: E731
    return ClusterClient("http://cluster", lambda: "token", 1.0, httpx.MockTransport(answer))


def test_a_broker_that_starts_while_the_coordinator_is_away_serves_the_topics_that_are_its_own() -> None:
    async def story() -> None:
        c = LocalBroker("c", broker__coordinator="http://127.0.0.1:9")
        async with brokers("a", "b") as (a, b):
            agree([a, b, c], heard_by=[a, b])
            c.sources.cluster = _knows_brokers(a, b, c)
            await c.start()
            mine, others = topic_of("c"), topic_of("a")
            async with Subscriber(a.info.url, mine) as at_a, Subscriber(c.info.url, others) as at_c:
                await publish(b, mine, 1)
                await publish(c, mine, 2)
                await publish(c, others, 3)
                assert await at_a.until(2) == [1, 2]
                assert await at_c.until(1) == [3]
            await c.stop()

    run(story())


def test_a_broker_that_starts_while_the_coordinator_is_away_takes_topics_from_one_that_leaves() -> None:
    async def story() -> None:
        async with brokers("a", "c") as (a, c):
            topic = next(f"t{n}" for n in range(1000) if ranked(f"t{n}", NAMES) == ["c", "b", "a"])
            b = LocalBroker("b", broker__coordinator="http://127.0.0.1:9")
            async with Subscriber(a.info.url, topic) as at_a:
                before = await publish(c, topic, 1, 2)
                agree([a, b], heard_by=[a, c])  # c leaves its topic to one that does not answer
                b.sources.cluster = _knows_brokers(a, b, c)
                await b.start()
                async with Subscriber(b.info.url, topic, position=before[0]) as back:
                    await publish(a, topic, 3)
                    assert await at_a.until(3) == [1, 2, 3]
                    assert await back.until(2) == [2, 3]
                    assert at_a.gaps == back.gaps == []
            await b.stop()

    run(story())


def test_a_broker_that_joins_takes_topics_from_one_that_leaves() -> None:
    async def story() -> None:
        async with brokers("a") as (a,):
            b = LocalBroker("b", broker__coordinator="http://127.0.0.1:9")
            await b.start()
            (first, _) = await publish(a, "t", 1, 2)
            b.sources.set_topology([b.info], leaving=[a.info])
            async with Subscriber(b.info.url, "t", position=first) as back:
                await publish(b, "t", 3)
                assert await back.until(2) == [2, 3]
                assert back.gaps == []
            await b.stop()

    run(story())


def test_a_log_is_given_once_and_who_asks_after_the_taker_begins_above_what_that_may_have_stamped() -> None:
    async def story() -> None:
        async with brokers("a") as (a,), brokers("b") as (b,):
            topic = topic_of("c")
            (first, second) = await publish(a, topic, 1, 2)
            dead = BrokerInfo("c", "http://127.0.0.1:9")
            a.sources.set_topology([a.info, dead])  # it has not heard of the death
            (taken,) = a.sources.topics.hand_over(Batch("c", dead.url, [topic])).topics
            assert taken.log is not None
            lost = Log(Bounds(9, 99), taken.log.epoch, taken.log.offset).append(b"it stamped this, and died")
            b.sources.set_topology([b.info], leaving=[a.info])
            async with Subscriber(b.info.url, topic, position=second) as at_b:
                (third,) = await publish(b, topic, 3)
                assert await at_b.until(1) == [3]
                assert at_b.gaps == [("owner", None)]
            assert first < second < lost < third

    run(story())


def test_a_log_is_not_lost_with_who_waited_for_it() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("b", ("a", "b"))
            agree([a], heard_by=[a])
            (first,) = await publish(a, topic, 1)
            hand_over = a.sources.topics.hand_over

            def then_cancel(asked: Batch) -> Handed:
                waiting.cancel()
                return hand_over(asked)

            a.sources.topics.hand_over = then_cancel  # type: ignore[method-assign]
            waiting = asyncio.create_task(publish(b, topic, 2))
            with pytest.raises(asyncio.CancelledError):
                await waiting
            async with Subscriber(b.info.url, topic, position=first) as at_b:
                await publish(b, topic, 3)
                assert await at_b.until(1) == [3]
                assert at_b.gaps == []

    run(story())


def test_topics_need_their_capabilities() -> None:
    async def story() -> None:
        async with brokers("a") as (a,):
            some = Principal("bob", ("publish:other", "topic:other"))
            with pytest.raises(Refused):
                await a.sources.topics.publish("news", b"1", some)
            with pytest.raises(Refused):
                await a.sources.topics.check(TopicTarget("news"), some)
            await a.sources.topics.check(TopicTarget("other"), some)

    run(story())


def test_a_peer_that_takes_another_for_the_owner_is_told_so() -> None:
    async def story() -> None:
        async with brokers("a", "b") as (a, b):
            topic = topic_of("b", ("a", "b"))
            peer = Principal("b", ("broker:b",))
            with pytest.raises(Unavailable):
                await a.sources.topics.check(TopicTarget(topic), peer)
            assert mint(SECRET, "b", ["broker:b"], 60)
            assert await b.sources.topics.publish(topic, b"1", peer)

    run(story())


def test_topics_beyond_the_limit_are_refused_and_leave_nothing_behind() -> None:
    async def story() -> None:
        async with brokers("a", upstream__max_topics="1") as (a,):
            topics = a.sources.topics
            await topics.publish("first", b"1", ANN)
            for number in range(10):
                with pytest.raises(LimitExceeded):
                    await topics.publish(f"another {number}", b"1", ANN)
            assert not topics._logs._claims

    run(story())
