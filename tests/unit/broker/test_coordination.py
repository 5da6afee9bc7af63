"""A broker and its coordinator: what is told, what is done, and what goes on while the coordinator is away."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec
import pytest

from tocsin.broker.coordination import Coordination, CoordinationOptions
from tocsin.broker.coordinator_client import CoordinatorClient
from tocsin.broker.noted import Noted
from tocsin.errors import BadArgument, TocsinError, Unavailable
from tocsin.protocol.coordination import (
    Acknowledged,
    Adopt,
    BrokerInfo,
    Holding,
    Instruction,
    Instructions,
    Keep,
    KeepAnswer,
    Kept,
    Load,
    NotKept,
    Outcome,
    Placement,
    Registered,
    Registration,
    Release,
    Report,
    Reported,
    Send,
    Topology,
)
from tocsin.protocol.messages import Wanted
from tocsin.protocol.targets import TopicTarget

ME = BrokerInfo("a", "http://a")
GOING = BrokerInfo("going", "http://going")
KEEP_BYTES = 20_000
REPORT_BYTES = 4_000_000
NOTED_BYTES = 64_000_000
MAX_BODY_BYTES = 16_000_000  # a coordinator's, unless it is configured
NEWS = Wanted("s", TopicTarget("news"), "p")


class Coordinator(httpx.AsyncBaseTransport):
    """Answers as a story says, and remembers what it was told."""

    def __init__(self) -> None:
        self.is_away, self.is_known, self.was_given_up = False, True, False
        self.tried = 0  # while it was away
        self.registrations: list[Registration] = []
        self.reports: list[Report] = []
        self.kept: list[Sequence[Kept]] = []
        self.words: list[Kept] = []  # as they came, by reports and at once
        self.may_drop: asyncio.Event | None = None
        self.refuses: set[str] = set()
        self.is_name_taken = False
        self.queue: list[Instruction] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.001)
        if self.is_away:
            self.tried += 1
            raise httpx.ConnectError("away")
        body, path = await request.aread(), request.url.path
        if len(body) > MAX_BODY_BYTES:
            return httpx.Response(413)
        if path.endswith("/instructions"):
            after = int(request.url.params["after"])
            await asyncio.sleep(0.01)
            return _json(Instructions([i for i in self.queue if i.number > after]))
        if path.endswith("/report"):
            if self.is_known:
                report = msgspec.json.decode(body, type=Report)
                if self.may_drop is not None and any(kept.wanted is None for kept in report.kept):
                    await self.may_drop.wait()
                self.reports.append(report)
                self.words.extend(report.kept)
            return _json(Reported(self.is_known))
        if path.startswith("/users/") and path.count("/") == 2:
            kept = {word.id: word.wanted for word in self.words if word.user == path.split("/")[2]}
            view = {"user": "ann", "subscriptions": [wanted for wanted in kept.values() if wanted]}
            return _json(view)
        if path.endswith("/placement"):
            return _json(Placement("ann", "b", "http://b", 3, "ticket", "nearest"))
        if path == "/subscriptions":
            kept = msgspec.json.decode(body, type=Keep).kept
            self.kept.append(kept)
            self.words.extend(kept)
            refused = [NotKept(n, "limit-exceeded", f"no {k.id}") for n, k in enumerate(kept) if k.id in self.refuses]
            return _json(KeepAnswer(refused))
        if self.is_name_taken:
            return httpx.Response(409, json={"detail": "broker 'a' exists already"})
        self.registrations.append(msgspec.json.decode(body, type=Registration))
        self.is_known = True
        return _json(Registered(0.05, [ME], self.was_given_up, [GOING]))


class House:
    """Residents and followers that remember what was asked of them."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.topologies: list[Sequence[BrokerInfo]] = []
        self.leaving: list[Sequence[BrokerInfo]] = []
        self.restored = self.asked_around = 0
        self.fails: set[str] = set()
        self.left = asyncio.Event()
        self.slow: dict[str, asyncio.Event] = {}
        self.crowd: list[Holding] = []

    async def adopt(self, user: str, version: int, subscriptions: Sequence[Wanted]) -> None:
        if user in self.slow:
            await self.slow[user].wait()
        if user in self.fails:
            raise Unavailable("the cluster is away")
        self.done.append(("adopt", user, version))

    async def send(self, user: str, version: int, to: BrokerInfo, ticket: str) -> None:
        self.done.append(("send", user, to.name, ticket))
        await self.left.wait()

    async def release(self, user: str, version: int) -> None:
        self.done.append(("release", user, version))
        self.left.set()

    def users(self) -> Collection[str]:
        return ["ann"]

    def subscriptions(self, user: str) -> Sequence[Wanted]:
        return []

    def sessions(self) -> int:
        return 0

    def load(self) -> Load:
        return Load(connections=7)

    def holdings(self, *, is_full: bool = False) -> Iterable[Holding]:
        return [Holding("ann", ["topic:news"]), *self.crowd] if is_full else []

    def rates(self, *, is_full: bool = False) -> dict[str, float]:
        return {"topic:news": 5.0} if is_full else {}

    def set_topology(self, brokers: Sequence[BrokerInfo], leaving: Sequence[BrokerInfo] = ()) -> None:
        self.topologies.append(brokers)
        self.leaving.append(leaving)

    async def ask_around(self) -> None:
        self.asked_around += 1

    def restore(self) -> None:
        self.restored += 1


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 30)

    asyncio.run(bounded())


@asynccontextmanager
async def linked(
    coordinator: Coordinator,
    report_bytes: int = REPORT_BYTES,
    hand_in_s: float = 0.1,
    noted_bytes: int = NOTED_BYTES,
    is_hurried: asyncio.Event | None = None,
) -> AsyncIterator[tuple[Coordination, House]]:
    house = House()
    client = CoordinatorClient("http://coordinator", "a", lambda: "token", 1.0, 4, coordinator)
    options = CoordinationOptions(
        "life-1", 0.05, 0.005, 0.02, KEEP_BYTES, report_bytes, noted_bytes, (1.0, 2.0),
        drain_s=20.0, hand_in_s=hand_in_s,
    )  # fmt: skip
    link = Coordination(client, lambda: ME, house, options)
    link.start(house)
    try:
        yield link, house
    finally:
        await link.stop(is_hurried)


async def until(is_so: Callable[[], object]) -> None:
    while not is_so():
        await asyncio.sleep(0.005)


def test_a_broker_registers_and_reports_everything_first_then_changes() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (_, house):
            await until(lambda: len(coordinator.reports) >= 3)
            assert coordinator.registrations == [Registration("life-1", "http://a", (1.0, 2.0))]
            first, second = coordinator.reports[:2]
            assert (first.is_full, first.holdings, first.load.connections) == (
                True,
                [Holding("ann", ["topic:news"])],
                7,
            )
            assert (second.is_full, list(second.holdings)) == (False, [])
            assert house.topologies[0] == [ME]
            assert house.leaving[0] == [GOING]

    run(story())


def test_instructions_are_carried_out_and_their_outcomes_told_until_taken() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.queue = [
            Topology(1, [ME, BrokerInfo("b", "http://b")], [GOING]),
            Adopt(2, "ann", 4, [NEWS]),
            Adopt(3, "bob", 1, [NEWS]),
        ]
        async with linked(coordinator) as (_, house):
            house.fails.add("bob")
            await until(lambda: len({o.number for r in coordinator.reports for o in r.outcomes}) == 2)
            told = {o.number: o for r in coordinator.reports for o in r.outcomes}
            assert told == {2: Outcome(2, True), 3: Outcome(3, False, "the cluster is away")}
            assert [b.name for b in house.topologies[-1]] == ["a", "b"]
            assert house.leaving[-1] == [GOING]
            coordinator.reports.clear()
            await until(lambda: len(coordinator.reports) > 2)
            assert all(not report.outcomes for report in coordinator.reports)

    run(story())


def test_instructions_of_one_user_keep_their_order_and_a_release_ends_a_send() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.queue = [
            Adopt(1, "ann", 1, []),
            Send(2, "ann", 2, BrokerInfo("b", "http://b"), "t"),
            Adopt(3, "bob", 1, []),
        ]
        async with linked(coordinator) as (_, house):
            house.slow["ann"] = asyncio.Event()
            await until(lambda: ("adopt", "bob", 1) in house.done)
            assert house.done == [("adopt", "bob", 1)]
            house.slow["ann"].set()
            await until(lambda: ("send", "ann", "b", "t") in house.done)
            coordinator.queue.append(Release(4, "ann", 2))
            await until(lambda: {o.number for r in coordinator.reports for o in r.outcomes} == {1, 2, 3, 4})
            assert house.done[1:] == [("adopt", "ann", 1), ("send", "ann", "b", "t"), ("release", "ann", 2)]

    run(story())


@pytest.mark.parametrize("after", [Release(3, "ann", 2), Adopt(3, "ann", 3, [])], ids=["release", "adoption"])
def test_what_comes_while_a_send_waits_for_its_turn_does_not_wait_for_the_sends_end(after: Release | Adopt) -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.queue = [Adopt(1, "ann", 1, []), Send(2, "ann", 2, BrokerInfo("b", "http://b"), "t"), after]
        coordinator.queue.append(Adopt(4, "bob", 1, []))
        async with linked(coordinator) as (link, house):
            house.slow["ann"] = asyncio.Event()
            await until(lambda: ("adopt", "bob", 1) in house.done)
            house.slow["ann"].set()
            await until(lambda: {1, 3, 4} <= {o.number for r in coordinator.reports for o in r.outcomes})
            assert [done[0] for done in house.done[1:]] == ["adopt", "send", type(after).__name__.lower()]
            await until(lambda: link.is_briefed)

    run(story())


def test_an_instruction_that_fails_at_once_keeps_none_from_being_carried_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("nobody foresaw this")

    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (link, house):
            await until(lambda: link.is_briefed)
            monkeypatch.setattr(house, "set_topology", fail)
            coordinator.queue = [Topology(1, [ME]), Adopt(2, "ann", 1, [])]
            await until(lambda: ("adopt", "ann", 1) in house.done)
            coordinator.queue.append(Adopt(3, "bob", 1, []))
            await until(lambda: ("adopt", "bob", 1) in house.done)

    run(story())
    assert [record.exc_text for record in caplog.records if "nobody foresaw this" in (record.exc_text or "")]


def test_while_the_coordinator_is_away_nobody_waits_and_nothing_is_forgotten() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (link, _):
            await until(lambda: coordinator.reports)
            assert await link.where("ann") is not None
            await link.keep("ann", NEWS)
            assert coordinator.kept == [[Kept("ann", "s", NEWS)]]
            coordinator.is_away = True
            await until(lambda: link.is_away)
            assert await link.where("ann") is None
            await link.keep("bob", NEWS)
            await link.drop("bob", "s")
            await link.keep("cem", NEWS)
            link.logged_in("bob", "x", is_admitted_unasked=True)
            link.acknowledged("ann", "s", "p1")
            link.acknowledged("ann", "s", "p2")
            link.arrived("ann", 5)
            coordinator.reports.clear()
            coordinator.is_away = False
            await until(lambda: coordinator.reports)
            report = coordinator.reports[0]
            assert report.is_full
            assert {(k.user, k.wanted is None) for k in report.kept} == {("bob", True), ("cem", False)}
            assert [a.position for a in report.acknowledged] == ["p2"]
            assert (list(report.admitted), report.arrivals[0].version) == (["bob"], 5)
            await until(lambda: len(coordinator.reports) > 2)
            assert not coordinator.reports[-1].kept

    run(story())


def test_a_coordinator_that_was_never_there_is_told_once_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def said() -> list[str]:
        return [one.getMessage() for one in caplog.records if "the coordinator is away" in one.getMessage()]

    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_away = True
        async with linked(coordinator) as (_, house):
            await until(lambda: house.asked_around > 3)
            assert len(said()) == 1
            coordinator.is_away = False
            await until(lambda: coordinator.reports)
            coordinator.is_away = True
            await until(lambda: len(said()) == 2)

    run(story())


def test_a_broker_knows_that_it_is_not_taken_until_it_is() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_name_taken = True
        async with linked(coordinator) as (link, _):
            await until(lambda: link.refused)
            assert "exists already" in str(link.refused)
            coordinator.is_name_taken = False
            await until(lambda: coordinator.reports)
            assert link.refused is None

    run(story())


def test_an_acknowledgement_that_takes_the_place_of_a_step_back_is_one_itself() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_away = True
        async with linked(coordinator) as (link, _):
            link.acknowledged("ann", "s", "05", is_back=True)
            link.acknowledged("ann", "s", "06")
            coordinator.is_away = False
            await until(lambda: coordinator.reports)
            link.acknowledged("ann", "s", "07")
            await until(lambda: any(one.position == "07" for told in coordinator.reports for one in told.acknowledged))
            told = [(one.position, one.is_back) for report in coordinator.reports for one in report.acknowledged]
            assert told == [("06", True), ("07", False)]

    run(story())


def test_a_broker_that_is_not_taken_is_told_why_to_the_last_word() -> None:
    why = f"broker 'a' exists already; it lives at http://{'x' * 300}: give this one another name"
    problem = {"type": "about:blank", "title": "Already exists", "status": 409, "detail": why}
    refusing = httpx.MockTransport(lambda request: httpx.Response(409, json=problem))
    client = CoordinatorClient("http://coordinator", "a", lambda: "token", 1.0, 4, refusing)
    with pytest.raises(BadArgument) as refused:
        asyncio.run(client.register(Registration("life-1", "http://a", None, None)))
    assert why in str(refused.value)


def test_a_coordinator_that_forgot_the_broker_is_registered_with_again() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (link, house):
            await until(lambda: coordinator.reports)
            seen = len(coordinator.reports)
            coordinator.is_known, coordinator.was_given_up = False, True
            link.acknowledged("ann", "s", "p1")
            await until(lambda: len(coordinator.registrations) == 2)
            await until(lambda: any(r.is_full for r in coordinator.reports[seen:]))
            assert house.restored == 1
            assert any(a.position == "p1" for r in coordinator.reports for a in r.acknowledged)

    run(story())


def test_a_report_that_is_longer_than_a_request_may_be_is_told_in_pieces() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (link, house):
            await until(lambda: coordinator.reports)
            coordinator.is_away = True
            await until(lambda: link.is_away)
            house.crowd = [Holding(f"u{n}", [f"topic:{n:04}{m:0246}" for m in range(1000)]) for n in range(70)]
            await link.keep("bob", NEWS)
            coordinator.reports.clear()
            coordinator.is_away = False
            await until(lambda: not link.is_away and not coordinator.reports[-1].is_full)
            await until(lambda: not coordinator.reports[-1].holdings)
            told = [holding for report in coordinator.reports for holding in report.holdings]
            assert [holding.user for holding in told] == ["ann", *(f"u{n}" for n in range(70))]
            assert [report.is_full for report in coordinator.reports].count(True) == 1
            assert coordinator.reports[0].is_full
            assert [kept.user for report in coordinator.reports for kept in report.kept] == ["bob"]
            assert coordinator.reports[-1].load == house.load()

    run(story())


def test_subscriptions_of_a_login_are_kept_in_one_request_and_each_is_answered() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.refuses = {"s7"}
        async with linked(coordinator) as (coordination, _):
            await until(lambda: coordinator.reports)
            wanted = [Wanted(f"s{n}", TopicTarget("news"), "p") for n in range(100)]
            answers = await asyncio.gather(*(coordination.keep("ann", w) for w in wanted), return_exceptions=True)
            assert [kept.wanted for kept in coordinator.kept[0]] == wanted
            assert len(coordinator.kept) == 1
            [(number, problem)] = [(n, answer) for n, answer in enumerate(answers) if answer is not None]
            assert isinstance(problem, TocsinError)
            assert (number, problem.code, str(problem)) == (7, "limit-exceeded", "no s7")
            assert not coordination.is_away

    run(story())


def test_what_is_told_of_a_subscription_arrives_in_its_order_and_requests_are_bounded() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.refuses = {"gone"}
        async with linked(coordinator) as (link, _):
            await until(lambda: coordinator.reports)
            long = [Wanted(f"s{n}", TopicTarget(f"{n}" * 200), "p") for n in range(100, 180)]
            steps = [step for one in long for step in (link.keep("ann", one), link.drop("ann", one.id))]
            await asyncio.gather(*steps, link.drop("ann", "gone"))
            for one in long:
                assert [k.wanted for k in itertools.chain(*coordinator.kept) if k.id == one.id] == [one, None]
            sizes = [len(msgspec.json.encode(kept)) for kept in coordinator.kept]
            assert len(sizes) > 1
            assert max(sizes) < 2 * KEEP_BYTES

    run(story())


async def returning(coordinator: Coordinator, link: Coordination) -> asyncio.Event:
    """A coordinator that has taken a part of a long report, and not yet that ann ended ``s``: not before the event."""
    await link.keep("zoe", Wanted("other", TopicTarget("t" * 300)))
    await link.drop("ann", "s")
    coordinator.may_drop = asyncio.Event()
    coordinator.is_away = False
    await until(lambda: not link.is_away)
    return coordinator.may_drop


def test_nothing_overtakes_what_a_returning_coordinator_is_still_to_be_told() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_away = True
        async with linked(coordinator, report_bytes=200) as (link, _):
            may_drop = await returning(coordinator, link)
            words = [asyncio.create_task(one) for one in (link.keep("ann", NEWS), link.drop("ann", "s"))]
            last = asyncio.create_task(link.keep("ann", NEWS))
            await asyncio.sleep(0.05)
            assert not any(word.done() for word in (*words, last))
            may_drop.set()
            await asyncio.gather(*words, last)
            assert [k.wanted for k in coordinator.words if k.user == "ann"] == [None, NEWS, None, NEWS]
            coordinator.words.clear()
            await link.keep("ann", NEWS)
            assert coordinator.words == [Kept("ann", "s", NEWS)]

    run(story())


def test_what_is_kept_is_asked_after_all_that_was_told_of_it() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_away = True
        async with linked(coordinator, report_bytes=200) as (link, _):
            with pytest.raises(Unavailable):
                await link.kept_of("ann", ["s"])
            may_drop = await returning(coordinator, link)
            words = [asyncio.create_task(link.kept_of("ann", ["s", "t"])), asyncio.create_task(link.keep("ann", NEWS))]
            said = asyncio.create_task(link.said("ann", ["s"]))
            await asyncio.sleep(0.05)
            assert not any(word.done() for word in (*words, said))
            may_drop.set()
            assert await words[0] == {}
            await said
            assert await link.kept_of("ann", ["s"]) == {"s": NEWS}

    run(story())


def test_what_a_returning_coordinator_refuses_is_told_so() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_away, coordinator.refuses = True, {"s"}
        async with linked(coordinator, report_bytes=200) as (link, _):
            (await returning(coordinator, link)).set()
            with pytest.raises(TocsinError, match="no s"):
                await link.keep("ann", NEWS)

    run(story())


def test_who_waits_for_a_returning_coordinator_waits_no_longer_when_it_goes_away_again() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_away = True
        async with linked(coordinator, report_bytes=200) as (link, _):
            may_drop = await returning(coordinator, link)
            kept = asyncio.create_task(link.keep("ann", NEWS))
            await asyncio.sleep(0.01)
            coordinator.is_away = True
            assert await link.where("ann") is None
            await kept
            coordinator.is_away = False
            may_drop.set()
            await until(lambda: coordinator.words and coordinator.words[-1].wanted == NEWS)
            assert [k.wanted for k in coordinator.words if k.user == "ann"] == [None, NEWS]

    run(story())


def test_a_word_that_is_noted_while_an_older_one_is_under_way_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (link, _):
            await until(lambda: coordinator.reports)
            may_keep, keep = asyncio.Event(), CoordinatorClient.keep

            async def kept(self: CoordinatorClient, words: Sequence[Kept]) -> KeepAnswer:
                await may_keep.wait()
                return await keep(self, words)

            monkeypatch.setattr(CoordinatorClient, "keep", kept)
            words = [asyncio.create_task(link.keep("ann", NEWS))]
            await asyncio.sleep(0.01)
            coordinator.is_away = True
            await until(lambda: link.is_away)
            words.append(asyncio.create_task(link.drop("ann", "s")))
            await asyncio.sleep(0.01)
            coordinator.is_away = False
            may_keep.set()
            await asyncio.gather(*words)
            await until(lambda: len(coordinator.words) == 2)
            assert [k.wanted for k in coordinator.words] == [NEWS, None]

    run(story())


def test_what_waits_for_a_coordinator_that_goes_away_is_handed_in_later() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (link, _):
            await until(lambda: coordinator.reports)
            coordinator.is_away = True
            await asyncio.gather(*(link.keep(f"u{n}", NEWS) for n in range(20)))
            coordinator.reports.clear()
            coordinator.is_away = False
            await until(lambda: coordinator.reports)
            assert {kept.user for kept in coordinator.reports[0].kept} == {f"u{n}" for n in range(20)}

    run(story())


def test_a_drain_is_told_at_once() -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator) as (link, _):
            await until(lambda: coordinator.reports)
            link.drained()
            await until(lambda: coordinator.reports[-1].is_draining)
            assert 0 < (coordinator.reports[-1].leaves_in_s or 0) <= 20

    run(story())


def test_what_cannot_be_noted_is_refused_and_nothing_that_was_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        coordinator = Coordinator()
        coordinator.is_away = True
        async with linked(coordinator, noted_bytes=3_000) as (link, _):
            noted = []
            for user in [f"u{n}" for n in range(1000)]:
                with suppress(Unavailable):
                    await link.keep(user, NEWS)
                    noted.append(user)
            assert 10 < len(noted) < 100
            with pytest.raises(Unavailable, match="noted"):
                await link.drop("zoe", "s" * 200)
            for user in noted:  # in the place of what is noted
                await link.keep(user, NEWS)
            await link.drop(noted[0], "s")
            link.acknowledged(noted[1], "s", "p9")
            coordinator.is_away = False
            await until(lambda: coordinator.words)
            assert coordinator.words == [Kept(noted[0], "s"), *(Kept(user, "s", NEWS) for user in noted[1:])]
            assert coordinator.reports[0].acknowledged[0].position == "p9"
            await link.keep("zoe", NEWS)
            coordinator.is_away = True
            await until(lambda: link.is_away)
            await link.keep("zoe", NEWS)  # there is room again
            assert [r.getMessage().count("no more is noted") for r in caplog.records].count(1) == 1

    run(story())


def test_one_who_makes_and_ends_ever_new_ids_fills_no_more_than_the_bound() -> None:
    async def story() -> None:
        noted = Noted(10_000)
        for n in range(1_000):
            if noted.keep(Kept("ann", f"s{n}", NEWS)):
                noted.acknowledge(Acknowledged("ann", f"s{n}", "p9"))
                assert noted.keep(Kept("ann", f"s{n}"))
        assert sum(len(msgspec.json.encode(kept)) for kept in noted.kept.values()) == noted.kept_bytes <= 10_000
        assert not noted.acknowledged
        report = noted.report("life-1", Load(), [], {}, is_full=True, is_draining=False)
        noted.keep(again := Kept("ann", "s0", NEWS))
        noted.taken(report)
        assert (list(noted.kept.values()), noted.kept_bytes) == ([again], len(msgspec.json.encode(again)))

    run(story())


@pytest.mark.parametrize("is_known", [True, False], ids=["the same life", "another life of the coordinator"])
def test_a_broker_that_stops_hands_in_what_it_noted_when_the_coordinator_is_back(is_known: bool) -> None:
    async def story() -> None:
        coordinator = Coordinator()
        async with linked(coordinator, hand_in_s=20.0) as (link, _):
            await until(lambda: coordinator.reports)
            coordinator.is_away = True
            await until(lambda: link.is_away)
            await link.keep("ann", NEWS)
            await link.drop("bob", "s")
            link.acknowledged("cem", "s", "p9")
            coordinator.reports.clear()
            tried = coordinator.tried

            async def come_back() -> None:
                await until(lambda: coordinator.tried > tried + 2)
                coordinator.is_away, coordinator.is_known = False, is_known

            back = asyncio.create_task(come_back())
        await back
        assert coordinator.words == [Kept("ann", "s", NEWS), Kept("bob", "s")]
        assert [(a.user, a.position) for a in coordinator.reports[-1].acknowledged] == [("cem", "p9")]

    run(story())


@pytest.mark.parametrize(
    ("hand_in_s", "is_hurried"), [(0.1, False), (3600.0, True)], ids=["in its time", "at a second signal"]
)
def test_a_broker_that_cannot_hand_in_what_it_noted_says_how_much(
    caplog: pytest.LogCaptureFixture, hand_in_s: float, is_hurried: bool
) -> None:
    async def story() -> None:
        coordinator, hurried = Coordinator(), asyncio.Event()
        coordinator.is_away = True
        async with linked(coordinator, hand_in_s=hand_in_s, is_hurried=hurried) as (link, _):
            await asyncio.gather(*(link.keep(f"u{n}", NEWS) for n in range(3)))
            link.acknowledged("ann", "s", "p9")
            if is_hurried:
                hurried.set()
        (told,) = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
        assert "3 subscriptions" in told
        assert "1 are acknowledged" in told

    run(story())


def _json(value: object) -> httpx.Response:
    return httpx.Response(200, content=msgspec.json.encode(value))
