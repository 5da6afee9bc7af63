"""Channels against the data cluster's real HTTP interface, with a cluster of dictionaries behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from support.delivered import Remembered
from support.memory_cluster import CHANNEL
from support.results_cluster import BROKER, ResultsCluster, Way, token
from tocsin.broker.upstream.channels import ChannelOptions, ChannelUpstream
from tocsin.broker.upstream.cluster import ClusterClient, Parameter
from tocsin.datacluster.service import Answer
from tocsin.errors import BadArgument, NotFound, Refused, TocsinError, Unavailable
from tocsin.model.position import Position
from tocsin.protocol.targets import ChannelTarget
from tocsin.tokens import Principal

FIRE, FLOOD = ChannelTarget(CHANNEL, ("fire",)), ChannelTarget(CHANNEL, ("flood",))
ANYONE = Principal("ann", (f"subscribe:{CHANNEL}",))


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 60)

    asyncio.run(bounded())


class World:
    """A cluster, the way to it, and one broker's upstream with a hub that remembers."""

    def __init__(self, cluster: ResultsCluster | None = None, **options: Any) -> None:
        self.cluster = cluster or ResultsCluster()
        self.way, self.hub = Way(self.cluster), Remembered()
        self.client = ClusterClient("http://cluster", token, 5.0, self.way)
        chosen: dict[str, Any] = {
            "wait_s": 0.2, "page_rows": 3, "ack_s": 0.02, "orphan_s": 30.0, "backoff_min_s": 0.005,
            "backoff_max_s": 0.02, "max_waiting": 100,
        }  # fmt: skip
        self.upstream = ChannelUpstream(self.client, self.hub, ChannelOptions(BROKER, **(chosen | options)))

    async def attach(self, target: ChannelTarget) -> str:
        attached = await self.upstream.attach(target)
        self.hub.open(attached.stream, attached.position)
        return attached.stream

    def happen(self, kind: str, *numbers: int) -> None:
        for number in numbers:
            self.cluster.publish(kind, b"%d" % number)

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await asyncio.sleep(0.005)

    def got(self, stream: str) -> list[int]:
        return [int(payload) for _, payload in self.hub.items[stream]]


@asynccontextmanager
async def world(cluster: ResultsCluster | None = None, *, is_up: bool = True, **options: Any) -> AsyncIterator[World]:
    made = World(cluster, **options)
    made.way.is_cut = not is_up
    made.upstream.start("http://north/notify")
    if is_up:
        await made.until(lambda: made.upstream.is_ready)
    try:
        yield made
    finally:
        await made.upstream.stop()
        await made.client.close()


def test_results_after_the_answer_come_once_and_in_order() -> None:
    async def story() -> None:
        async with world() as w:
            w.happen("fire", 1, 2)
            stream = await w.attach(FIRE)
            w.happen("fire", *range(3, 20))
            w.happen("flood", 99)
            await w.until(lambda: len(w.got(stream)) == 17)
            assert w.got(stream) == list(range(3, 20))

    run(story())


def test_two_forms_of_the_same_arguments_share_a_stream() -> None:
    async def story() -> None:
        async with world() as w:
            stream = await w.attach(FIRE)
            other = ChannelTarget(CHANNEL, {"kind": "fire"})
            assert await w.attach(other) == stream
            w.happen("fire", 1)
            await w.until(lambda: w.got(stream) == [1])
            await w.upstream.detach(FIRE)
            w.happen("fire", 2)
            await w.until(lambda: w.got(stream) == [1, 2])
            w.hub.close(stream)
            await w.upstream.detach(other)
            await w.until(lambda: not w.cluster.held)

    run(story())


def test_results_before_the_hub_knows_the_stream_are_not_lost() -> None:
    async def story() -> None:
        async with world() as w:
            await w.attach(FLOOD)
            attached = await w.upstream.attach(FIRE)
            w.happen("fire", *range(10))
            await asyncio.sleep(0.1)
            w.hub.open(attached.stream, attached.position)
            await w.until(lambda: len(w.got(attached.stream)) == 10)
            assert w.got(attached.stream) == list(range(10))

    run(story())


def test_while_the_cluster_is_away_attaching_is_refused_and_the_rest_goes_on_later() -> None:
    async def story() -> None:
        async with world(is_up=False) as w:
            with pytest.raises(Unavailable):
                await w.upstream.attach(FIRE)
            w.way.is_cut = False
            await w.until(lambda: w.upstream.is_ready)
            stream = await w.attach(FIRE)
            w.way.is_cut = True
            with pytest.raises(Unavailable):
                await w.upstream.attach(FLOOD)
            assert await w.upstream.attach(FIRE)
            w.happen("fire", 1, 2, 3)
            await asyncio.sleep(0.05)
            assert w.got(stream) == []
            w.way.is_cut = False
            await w.until(lambda: w.got(stream) == [1, 2, 3])

    run(story())


def test_a_subscription_whose_answer_was_lost_is_ended_again() -> None:
    async def story() -> None:
        async with world(ack_s=30.0) as w:
            w.way.loses = 1
            with pytest.raises(Unavailable):
                await w.upstream.attach(FIRE)
            await w.until(lambda: not w.cluster.held)
            assert await w.attach(FIRE)

    run(story())


def test_one_bad_argument_harms_only_its_own_subscription() -> None:
    async def story() -> None:
        async with world() as w:
            bad = ChannelTarget(CHANNEL, (1, 2))
            answers = await asyncio.gather(*(w.upstream.attach(t) for t in (FIRE, bad, FLOOD)), return_exceptions=True)
            assert [isinstance(answer, BadArgument) for answer in answers] == [False, True, False]
            with pytest.raises(NotFound):
                await w.upstream.attach(ChannelTarget("Nothing", ()))

    run(story())


def test_a_broker_that_starts_again_goes_on_where_it_had_acknowledged() -> None:
    async def story() -> None:
        async with world() as first:
            stream = await first.attach(FIRE)
            first.happen("fire", 1, 2)
            await first.until(lambda: first.got(stream) == [1, 2])
        first.happen("fire", 3)
        async with world(first.cluster) as again:
            assert await again.attach(FIRE) == stream
            again.happen("fire", 4)
            await again.until(lambda: again.got(stream) == [3, 4])

    run(story())


def test_what_an_earlier_life_left_is_ended_once_everybody_was_heard_of() -> None:
    async def story() -> None:
        async with world() as first:
            await first.attach(FIRE)
            await first.attach(FLOOD)
        briefed = [False]
        async with world(first.cluster, orphan_s=0.02, may_drop=lambda: briefed[0]) as again:
            await again.attach(FIRE)
            await asyncio.sleep(0.1)
            assert len(again.cluster.held) == 2
            briefed[0] = True
            await again.until(lambda: len(again.cluster.held) == 1)

    run(story())


def test_attachments_that_were_removed_are_made_again_and_filled() -> None:
    async def story() -> None:
        async with world() as w:
            stream = await w.attach(FIRE)
            w.cluster.unsubscribe(list(w.cluster.held), Principal("x", ("admin",)))
            w.happen("fire", 1, 2)
            await asyncio.sleep(0.3)
            w.upstream.restore()
            w.happen("fire", 3)
            await w.until(lambda: w.got(stream) == [1, 2, 3])

    run(story())


@pytest.mark.parametrize("broken", ["the cluster's answer", "the hub"])
def test_a_fill_that_fails_as_nobody_foresaw_is_logged_and_tried_again(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_once(owner: Any, name: str) -> None:
        def fail(*_: Any) -> None:
            monkeypatch.undo()
            raise ZeroDivisionError("unforeseen")

        monkeypatch.setattr(owner, name, fail)

    async def story() -> None:
        async with world() as w:
            await w.attach(FLOOD)
            attached = await w.upstream.attach(FIRE)
            w.happen("fire", *range(5))
            w.happen("flood", 9)
            await w.until(lambda: w.got(next(iter(w.hub.items))) == [9])
            fail_once(*((w.client, "replay") if broken == "the cluster's answer" else (w.hub, "deliver")))
            w.hub.open(attached.stream, attached.position)
            await w.until(lambda: w.got(attached.stream) == list(range(5)))

    run(story())
    assert [r.msg for r in caplog.records if r.exc_info] == ["filling %s failed; trying again"]


def test_when_a_channel_is_dropped_its_streams_end() -> None:
    async def story() -> None:
        async with world() as w:
            streams = [await w.attach(FIRE), await w.attach(FLOOD)]
            w.happen("fire", 1)
            await w.until(lambda: w.got(streams[0]) == [1])
            w.cluster.drop()
            await w.until(lambda: len(w.hub.ended) == 2)
            assert w.hub.ended == {stream: ["dropped"] for stream in streams}
            with pytest.raises(NotFound):
                await w.upstream.attach(FIRE)

    run(story())


class AnyCase(ResultsCluster):
    """Knows its channel in any case, and names what it does not know as it was asked, as the real one does."""

    def _named(self, kind: str, name: str, *known: str) -> None:
        super()._named(kind, next((one for one in known if one.lower() == name.lower()), name), *known)


@pytest.mark.parametrize("name", [CHANNEL, CHANNEL.lower()], ids=["by its name", "in another case"])
def test_a_channel_that_is_found_dropped_ends_once_and_nothing_else_is_made_again(name: str) -> None:
    async def story() -> None:
        async with world(AnyCase()) as w:
            streams = [await w.attach(ChannelTarget(name, (f"kind {number}",))) for number in range(20)]
            w.cluster.drop()
            w.way.requests.clear()
            w.upstream.restore()
            await w.until(lambda: len(w.hub.ended) == 20)
            await asyncio.sleep(0.1)
            assert w.hub.ended == {stream: ["dropped"] for stream in streams}
            assert w.way.requests.count(("POST", "/subscriptions")) == 1
            assert ("POST", "/statements") not in w.way.requests

    run(story())


class Forgetful(ResultsCluster):
    """May forget the broker, until it registers."""

    has_forgotten = False

    def execute(self, text: str, who: Principal, go_on: Callable[[], None] = lambda: None) -> list[Answer]:
        self.has_forgotten = False
        return super().execute(text, who, go_on)

    def _named(self, kind: str, name: str, *known: str) -> None:
        super()._named(kind, name, *(() if kind == "broker" and self.has_forgotten else known))


def test_a_broker_that_the_cluster_has_forgotten_registers_once_and_attaches_everything_anew() -> None:
    async def story() -> None:
        cluster = Forgetful()
        async with world(cluster) as w:
            streams = [await w.attach(ChannelTarget(CHANNEL, (f"kind {number}",))) for number in range(20)]
            w.cluster.unsubscribe(list(w.cluster.held), Principal("x", ("admin",)))
            cluster.has_forgotten = True
            w.way.requests.clear()
            w.upstream.restore()
            await w.until(lambda: len(w.cluster.held) == 20)
            for number in range(20):
                w.happen(f"kind {number}", number)
            await w.until(lambda: all(w.got(stream) == [number] for number, stream in enumerate(streams)))
            assert w.way.requests.count(("POST", "/statements")) == 1

    run(story())


@pytest.mark.parametrize("happened", [1, 5], ids=["the new channel is behind the old", "it is past it already"])
def test_when_a_channel_is_replaced_its_streams_end_and_new_ones_begin(happened: int) -> None:
    async def story() -> None:
        async with world() as w:
            old = await w.attach(FIRE)
            w.happen("fire", 1, 2, 3)
            await w.until(lambda: w.got(old) == [1, 2, 3])
            w.cluster.drop()
            w.cluster.make_again()
            w.happen("fire", *range(10, 10 + happened))
            await w.until(lambda: w.hub.ended == {old: ["replaced"]})
            new = await w.attach(FIRE)
            assert new != old
            w.happen("fire", 20)
            await w.until(lambda: w.got(new) == [20])
            assert w.got(old) == [1, 2, 3]

    run(story())


def test_when_the_data_of_the_cluster_are_made_anew_what_was_followed_ends() -> None:
    async def story() -> None:
        async with world() as w:
            stream = await w.attach(FIRE)
            w.happen("fire", 1, 2)
            await w.until(lambda: len(w.got(stream)) == 2)
            w.cluster.results.clear()
            await w.until(lambda: w.hub.ended == {stream: ["replaced"]})

    run(story())


def test_one_who_attaches_finds_out_that_the_channel_is_another_one() -> None:
    async def story() -> None:
        async with world() as w:
            old = await w.attach(FIRE)
            w.cluster.drop()
            w.cluster.make_again()
            new = await w.attach(FLOOD)
            await w.until(lambda: w.hub.ended == {old: ["replaced"]})
            w.happen("flood", 1)
            await w.until(lambda: w.got(new) == [1])

    run(story())


def test_a_replay_ends_where_the_range_ends_and_tells_what_is_gone() -> None:
    async def story() -> None:
        async with world() as w:
            stream = await w.attach(FIRE)
            begin = w.hub.position(stream) or ""
            w.happen("fire", *range(1, 8))
            await w.until(lambda: len(w.got(stream)) == 7)
            positions = [position for position, _ in w.hub.items[stream]]
            page = await w.upstream.replay(stream, positions[0], positions[4])
            assert ([p for p, _ in page.items], page.is_end) == (positions[1:4], False)
            page = await w.upstream.replay(stream, page.through, positions[4])
            assert ([p for p, _ in page.items], page.is_end) == ([positions[4]], True)
            w.cluster.forget_through(w.cluster.results[1][1].position)
            page = await w.upstream.replay(stream, begin, positions[2])
            assert page.gap is not None
            assert (page.gap.holes[0].through, page.gap.reason) == (positions[1], "retention")
            with pytest.raises(NotFound):
                await w.upstream.replay("channel:Nothing/1", begin, begin)

    run(story())


def test_retention_that_overtakes_pulling_is_told() -> None:
    async def story() -> None:
        async with world() as w:
            stream = await w.attach(FIRE)
            w.way.is_cut = True
            w.happen("fire", 1, 2, 3)
            w.cluster.forget_through(w.cluster.results[1][1].position)
            w.way.is_cut = False
            await w.until(lambda: w.got(stream) == [3])
            ((hole, reason),) = w.hub.holes[stream]
            assert (hole.through, reason) == (str(w.cluster.oldest), "retention")

    run(story())


def test_the_cluster_can_tell_a_position_that_its_channel_never_reached_from_one_that_is_ahead_of_this_broker() -> None:
    async def story() -> None:
        async with world() as w:
            stream = await w.attach(FIRE)
            w.happen("fire", 1, 2)
            await w.until(lambda: len(w.got(stream)) == 2)
            w.happen("flood", 3)  # no result of this stream, so that it does not come there here
            assert not await w.upstream.is_beyond(stream, str(w.cluster.results[-1][1].position))
            assert await w.upstream.is_beyond(stream, str(Position(99, 1)))
            assert await w.upstream.is_beyond(stream, "made up")
            w.way.is_cut = True
            assert not await w.upstream.is_beyond(stream, w.hub.position(stream) or "")
            with pytest.raises(Unavailable):
                await w.upstream.is_beyond(stream, str(Position(99, 1)))

    run(story())


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_to_the_way_everything_arrives_once(seed: int) -> None:
    async def story() -> None:
        rng, sent = Random(seed), {"fire": 0, "flood": 0}
        async with world() as w:
            streams = {"fire": await w.attach(FIRE), "flood": await w.attach(FLOOD)}
            for _ in range(60):
                w.way.is_cut = rng.random() < 0.3
                w.way.loses = rng.choice((0, 0, 1))
                for kind in streams:
                    for _ in range(rng.randrange(3)):
                        sent[kind] += 1
                        w.happen(kind, sent[kind])
                if rng.random() < 0.1:
                    w.upstream.restore()
                await asyncio.sleep(rng.random() * 0.01)
            w.way.is_cut, w.way.loses = False, 0
            for kind, stream in streams.items():
                await w.until(lambda s=stream, k=kind: len(w.got(s)) >= sent[k])
                assert w.got(stream) == list(range(1, sent[kind] + 1))

    run(story())


def test_who_may_follow_what() -> None:
    async def story() -> None:
        async with world() as w:
            await w.upstream.check(FIRE, ANYONE)
            pinned = Principal("ann", ({"channel": CHANNEL, "pin": {"kind": "works_on"}},), {"works_on": "fire"})
            await w.upstream.check(FIRE, pinned)
            await w.upstream.check(ChannelTarget(CHANNEL, {"KIND": "fire"}), pinned)
            for target, who in ((FLOOD, pinned), (FIRE, Principal("bob", ("subscribe:Other",)))):
                with pytest.raises(Refused):
                    await w.upstream.check(target, who)

    run(story())


def test_the_parameters_of_a_channel_are_asked_for_once_however_its_name_is_spelt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with world() as w:
            asked: list[str] = []
            ask = w.client.parameters

            async def parameters(channel: str) -> list[Parameter]:
                asked.append(channel)
                return await ask(CHANNEL)

            monkeypatch.setattr(w.client, "parameters", parameters)
            pinned = Principal("ann", ({"channel": CHANNEL, "pin": {"kind": "works_on"}},), {"works_on": "fire"})
            for name in (CHANNEL, CHANNEL.lower(), CHANNEL.upper(), CHANNEL.swapcase()):
                await w.upstream.check(ChannelTarget(name, ("fire",)), pinned)
            assert asked == [CHANNEL]

    run(story())


def test_notices_that_make_no_sense_are_refused() -> None:
    async def story() -> None:
        async with world() as w:
            await w.upstream.noticed(b'{"notices": [{"channel": "ByKind", "through": "x", "count": 1}]}', ANYONE)
            with pytest.raises(TocsinError):
                await w.upstream.noticed(b'{"notices": 1}', ANYONE)

    run(story())
