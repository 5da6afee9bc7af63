from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tocsin.config import Dashboard
from tocsin.dashboard.samples import Sample
from tocsin.dashboard.sampling import Sampler
from tocsin.system.ports import free_ports

LOAD = {"model_in_per_s": 100.0, "model_out_per_s": 300.0, "loop_lag_s": 0.0}
BROKER = {
    "name": "b1", "url": "http://b1", "state": "live", "users": 3, "online": 2, "load": LOAD, "capacity": None,
    "location": None,
}  # fmt: skip
CHANNEL = {
    "name": "Near", "parameters": [], "mode": "continuous", "state": "running", "strategy": "index", "subscriptions": 5,
    "backends": 2, "executions": 9, "lag_s": 0.0, "problem": None,
}  # fmt: skip


def answers(shed: float, results: float) -> dict[str, Any]:
    return {
        "http://c/brokers": {"brokers": [BROKER]},
        "http://c/policies": {"placement": {"name": "nearest"}},
        "http://c/decisions": {"decisions": [_decided(3.0), _decided(2.0), _decided(1.0)]},
        "http://c/plans": {"plans": []},
        "http://c/moves": {"moves": [{"id": "m1", "state": "done"}]},
        "http://d/status": {"ready": True, "reason": "", "started_at": "", "spark": {}, "totals": {}},
        "http://d/channels": {"channels": [CHANNEL]},
        "http://d/metrics": (
            f'tocsin_results_total{{channel="Near"}} {results}\n'
            f'tocsin_record_to_result_seconds_sum{{channel="Near"}} {results / 100}\n'
            f'tocsin_record_to_result_seconds_count{{channel="Near"}} {results / 10}\n'
        ),
        "http://b1/metrics": f"tocsin_broker_shed_total {shed}\ntocsin_broker_gaps_total 0.0\n",
    }


def _decided(at: float) -> dict[str, Any]:
    return {"at": at, "action": "nothing", "reason": "balanced"}


async def unheard(sample: Sample) -> None:
    return


async def sampled(*rounds: dict[str, Any]) -> list[Sample]:
    """Samples of peers that give these answers, one round after the other."""
    now = [rounds[0]]

    def answer(request: httpx.Request) -> httpx.Response:
        found = now[0].get(f"{request.url.scheme}://{request.url.host}{request.url.path}")
        if found is None:
            return httpx.Response(503)
        return httpx.Response(200, text=found) if isinstance(found, str) else httpx.Response(200, json=found)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        sampler = Sampler(client, "http://c", "http://d", Dashboard(), unheard)
        made = []
        for one in rounds:
            now[0] = one
            made.append(await sampler.sample())
    return made


def test_what_grew_between_two_samples_is_told_as_rates_and_losses() -> None:
    first, second = asyncio.run(sampled(answers(10.0, 100.0), answers(13.0, 160.0)))
    assert (first.brokers[0].lost, second.brokers[0].lost) == (0, 3)
    assert second.channels[0].results_per_s > 0
    assert (first.channels[0].latency_ms, second.channels[0].latency_ms) == (None, 100.0)
    assert second.cluster.latency_ms == 100.0
    assert [alert.id for alert in second.alerts] == ["loss b1"]
    assert second.figures.total == 400.0


def without(url: str, told: dict[str, Any]) -> dict[str, Any]:
    """The same, but nobody answers there."""
    return {where: found for where, found in told.items() if not where.startswith(url)}


def test_what_was_lost_while_a_broker_did_not_answer_is_told_when_it_does() -> None:
    silent = without("http://b1", answers(0.0, 0.0))
    *_, back, after = asyncio.run(sampled(answers(0.0, 0.0), silent, answers(5000.0, 0.0), answers(5000.0, 0.0)))
    assert [[alert.id for alert in one.alerts] for one in (back, after)] == [["loss b1"]] * 2


def test_a_loss_is_not_forgotten_because_a_broker_does_not_answer_afterwards() -> None:
    silent = without("http://b1", answers(0.0, 0.0))
    *_, sample = asyncio.run(sampled(answers(0.0, 0.0), answers(5000.0, 0.0), silent))
    assert (sample.brokers[0].lost, [alert.id for alert in sample.alerts]) == (5000, ["loss b1"])


def test_counters_that_were_not_read_once_are_not_counted_from_their_beginning() -> None:
    """A long life at 9 s a record, and the last minute at 0.1 s."""

    def lived(records: float, sum_s: float) -> dict[str, Any]:
        series = "tocsin_record_to_result_seconds"
        text = f'{series}_sum{{channel="Near"}} {sum_s}\n{series}_count{{channel="Near"}} {records}\n'
        return answers(0.0, 0.0) | {"http://d/metrics": text}

    unread = without("http://d/metrics", answers(0.0, 0.0))
    *_, sample = asyncio.run(sampled(lived(100_000, 900_000), lived(100_010, 900_001), unread, lived(100_020, 900_002)))
    assert (sample.cluster.latency_ms, sample.channels[0].latency_ms) == (100.0, 100.0)


def test_only_news_are_told_and_the_same_nothing_once() -> None:
    first, second = asyncio.run(sampled(answers(0.0, 0.0), answers(0.0, 0.0)))
    assert ([one["at"] for one in first.decisions], len(first.moves)) == ([3.0], 1)
    assert (second.decisions, second.moves) == ([], [])


def test_who_does_not_answer_is_told_and_the_rest_stands() -> None:
    cluster_away = {url: found for url, found in answers(0.0, 0.0).items() if not url.startswith("http://d")}
    (sample,) = asyncio.run(sampled(cluster_away))
    assert [broker.name for broker in sample.brokers] == ["b1"]
    assert sample.problems == ["The data cluster at http://d answered 503."]
    assert [alert.id for alert in sample.alerts] == ["cluster"]


def test_a_connection_that_is_reset_at_once_is_told_like_one_that_is_not_there() -> None:
    """As anyio has it: the socket is gone when its peer's name is asked for."""

    def reset(request: httpx.Request) -> httpx.Response:
        raise AttributeError("'NoneType' object has no attribute 'getpeername'")

    async def story() -> Sample:
        async with httpx.AsyncClient(transport=httpx.MockTransport(reset)) as client:
            return await Sampler(client, "http://c", "http://d", Dashboard(), unheard).sample()

    assert "The coordinator at http://c does not answer (AttributeError)." in asyncio.run(story()).problems


def test_while_the_cluster_is_away_channels_are_as_it_last_told() -> None:
    behind = CHANNEL | {"lag_s": 900.0, "problem": "it fails"}
    told = answers(0.0, 0.0) | {"http://d/channels": {"channels": [behind]}}
    grown = answers(0.0, 100.0)
    *_, sample = asyncio.run(sampled(told, grown, without("http://d", grown)))
    (channel,) = sample.channels
    assert (channel.name, channel.state, channel.executions) == ("Near", "unknown", 9)
    assert (channel.lag_s, channel.results_per_s, channel.matched_per_s, channel.latency_ms) == (None,) * 4
    assert sample.cluster.latency_ms is None
    assert [alert.id for alert in sample.alerts] == ["cluster"]


def test_while_the_coordinator_is_away_brokers_are_as_it_last_told_and_their_load_is_unknown() -> None:
    told = answers(0.0, 0.0)
    away = {url: found for url, found in answers(4.0, 0.0).items() if not url.startswith("http://c/")}
    *_, sample, back = asyncio.run(sampled(told, away, told))
    assert [(broker.name, broker.state, broker.lost) for broker in sample.brokers] == [("b1", "unknown", 4)]
    assert (sample.figures, sample.problems) == (None, ["The coordinator at http://c answered 503."])
    assert (back.brokers[0].state, back.problems) == ("live", [])


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://c/brokers", "<html>somebody else's page</html>"),
        ("http://c/brokers", {"items": []}),
        ("http://c/brokers", {"brokers": [{"name": "b1"}]}),
        ("http://c/brokers", "[" * 100_000),
        ("http://c/policies", []),
        ("http://c/decisions", {"decisions": [{"at": "now"}]}),
        ("http://c/plans", {"plans": [5]}),
        ("http://c/moves", {"moves": None}),
        ("http://d/status", {"ready": "yes"}),
        ("http://d/channels", {"channels": [CHANNEL | {"lag_s": None}]}),
    ],
)
def test_an_answer_that_nobody_can_read_is_told_and_the_rest_stands(url: str, found: Any) -> None:
    (sample,) = asyncio.run(sampled(answers(0.0, 0.0) | {url: found}))
    (problem,) = sample.problems
    assert problem.startswith(f"The {'coordinator' if 'c/' in url else 'data cluster'} at {url[:8]} answered something")
    assert len(sample.brokers) + len(sample.channels) >= 1


def test_a_broker_at_an_impossible_address_or_with_impossible_counts_is_told_like_the_others() -> None:
    odd = BROKER | {"name": "b2", "url": "http://☃"}
    metrics = "tocsin_broker_shed_total NaN\ntocsin_broker_gaps_total +Inf\ntocsin_broker_deliveries_total many\n"
    told = answers(0.0, 0.0) | {"http://c/brokers": {"brokers": [BROKER, odd]}, "http://b1/metrics": metrics}
    (sample,) = asyncio.run(sampled(told))
    assert [(one.name, one.lost, one.deliveries_per_s) for one in sample.brokers] == [("b1", 0, 0.0), ("b2", 0, 0.0)]
    assert sample.problems == ["The broker at http://☃ does not answer (InvalidURL)."]


def test_nobody_is_there() -> None:
    async def alone() -> Sample:
        urls = [f"http://127.0.0.1:{port}" for port in free_ports([0, 0])]
        async with httpx.AsyncClient() as client:
            return await Sampler(client, *urls, Dashboard(), unheard).sample()

    sample = asyncio.run(alone())
    assert (sample.brokers, sample.channels, sample.cluster.is_ready) == ([], [], False)
    assert len(sample.problems) == 2


def test_policies_are_those_of_now_in_every_sample() -> None:
    switched = answers(0.0, 0.0) | {"http://c/policies": {"placement": {"name": "random"}}}
    first, second = asyncio.run(sampled(answers(0.0, 0.0), switched))
    assert [sample.policies["placement"]["name"] for sample in (first, second)] == ["nearest", "random"]


def test_a_part_of_who_is_where_is_not_told_as_the_whole() -> None:
    """The second page is not answered: nobody on it has gone away for that."""
    first = {"assignments": [{"user": "u1", "broker": "b1", "online": True}], "next": "u1"}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503) if request.url.params["after"] else httpx.Response(200, json=first)

    async def asked() -> dict[str, str] | None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            return await Sampler(client, "http://c", "http://d", Dashboard(), unheard).assignments()

    assert asyncio.run(asked()) is None
