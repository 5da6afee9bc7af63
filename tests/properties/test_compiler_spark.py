"""Laws of compiled channels, on real Spark.

One plan for all subscriptions gives the pairs that one query for each would give, whatever the channel,
the data and the subscriptions.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.compiler_worlds import (
    CATALOG,
    NOW,
    PARAMETERS,
    City,
    channels,
    comparable,
    dumb_sql,
    holds,
    register_subscriptions,
    subscriptions,
)
from tocsin.compiler.channel import compile_channel
from tocsin.compiler.plan import CompiledChannel
from tocsin.model.catalog import ChannelSpec

pytestmark = pytest.mark.spark

BOUNDED = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


def compiled(query: str) -> CompiledChannel:
    return compile_channel(ChannelSpec("Law", PARAMETERS, query), CATALOG)


def collect(spark: Any, sql: str) -> list[Any]:
    return list(spark.sql(sql.replace("{now}", NOW)).collect())


def by_join(spark: Any, channel: CompiledChannel) -> Counter[Any]:
    rows = collect(spark, channel.join.sql)
    places = [(row["__bs"], row["__seq"], row["__ord"]) for row in rows]
    assert len(set(places)) == len(places), "a row's place must be its own"
    return Counter((row["__bs"], comparable(tuple(row)[3:])) for row in rows)


def by_index(spark: Any, channel: CompiledChannel, subs: list[tuple[Any, ...]]) -> Counter[Any]:
    assert channel.index is not None
    found: Counter[Any] = Counter()
    for row in collect(spark, channel.index.sql):
        record = row.asDict()
        payload = comparable(tuple(record[name] for name in channel.columns))
        for number, sub in enumerate(subs):
            values = dict(zip((p.name for p in PARAMETERS), sub, strict=True))
            if all(holds(p, record, values) for p in channel.index.spec.predicates):
                found[number, payload] += 1
    return found


@BOUNDED
@given(channels(), st.integers(0, 2**32))
@example("SELECT r.id, s.name FROM Reports r FULL JOIN Shelters s ON s.cap = r.sev AND s.cap > :k", 1)
@example("SELECT r.id FROM Reports r WHERE r.kind = :t AND distance(r.x, r.y, :x, :y) < :r", 2)
@example("SELECT r.kind, r.sev, count(*) AS n FROM Reports r WHERE r.sev > :k GROUP BY r.kind, r.sev WITH ROLLUP", 3)
def test_one_plan_gives_what_one_query_a_subscription_gives(spark: Any, query: str, seed: int) -> None:
    City(seed).register(spark)
    subs = subscriptions(random.Random(seed), 3)
    channel = compiled(query)
    register_subscriptions(spark, channel, subs)
    expected = Counter((row["__bs"], comparable(tuple(row)[1:])) for row in collect(spark, dumb_sql(query, subs)))
    assert by_join(spark, channel) == expected
    if channel.index is not None:
        assert by_index(spark, channel, subs) == expected


def new_pairs(city: City, reach: float) -> set[tuple[int, str]]:
    """(report, user) within reach now, one of them new, and not so before: word for word."""

    def near(report: Any, user: Any) -> bool:
        return math.hypot(report[2] - user[1], report[3] - user[2]) < reach

    before, after = city.users
    now = before | after
    found = {(r[0], key) for r in city.new_reports for key, user in now.items() if near(r, user)}
    for report in city.old_reports:
        for key, user in after.items():
            if near(report, user) and not (key in before and near(report, before[key])):
                found.add((report[0], key))
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_a_pair_of_two_drivers_is_told_once(spark: Any, seed: int) -> None:
    city = City(seed)
    city.register(spark)
    channel = compiled(
        "SELECT r.id, u.user FROM Reports r, Users u "
        "WHERE (is_new(r) OR is_new(u)) AND u.user = :u AND distance(r.x, r.y, u.x, u.y) < 900"
    )
    subs = [(None, 0.0, 0.0, 0.0, [], None, f"u{i}") for i in range(9)]
    register_subscriptions(spark, channel, subs)
    expected = Counter((int(user[1:]), (report, user)) for report, user in new_pairs(city, 900))
    assert expected
    assert by_join(spark, channel) == expected


def test_two_keyed_drivers_compare_both_before_images(spark: Any) -> None:
    city = City(3)
    city.register(spark)
    channel = compiled(
        "SELECT s.name, u.user FROM Shelters s JOIN Users u ON distance(s.x, s.y, u.x, u.y) < 1200 "
        "WHERE is_new(s) OR is_new(u)"
    )
    register_subscriptions(spark, channel, subscriptions(random.Random(0), 1))

    def matches(shelters: Any, users: Any) -> set[tuple[str, str]]:
        return {
            (s, u) for s, a in shelters.items() for u, b in users.items() if math.hypot(a[1] - b[1], a[2] - b[2]) < 1200
        }

    (s0, s1), (u0, u1) = city.shelters, city.users
    expected = matches(s0 | s1, u0 | u1) - matches(s0, u0)
    assert by_join(spark, channel) == Counter((0, pair) for pair in expected)


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SELECT r.id FROM Reports r WHERE r.kind = :t", id="an equality"),
        pytest.param("SELECT r.id FROM Reports r WHERE distance(r.x, r.y, :x, :y) < :r", id="a circle of parameters"),
        pytest.param("SELECT r.id FROM Reports r WHERE r.kind IN (:l)", id="a list"),
        pytest.param("SELECT r.id FROM Reports r WHERE has_word(r.text, :t) AND r.sev > :k", id="a keyword"),
        pytest.param(
            "SELECT r.id, :t AS t FROM Reports r WHERE distance(r.x, r.y, :x, :y) < r.radius", id="its own radius"
        ),
        pytest.param(
            "SELECT r.id, u.user FROM Reports r, Users u WHERE u.user = :u AND distance(r.x, r.y, u.x, u.y) < :r",
            id="the user's own place",
        ),
        pytest.param(
            "SELECT r.id, s.name FROM Reports r LEFT JOIN Shelters s ON distance(r.x, r.y, s.x, s.y) < 500 "
            "WHERE r.kind = :t",
            id="a left join by distance",
        ),
        pytest.param(
            "SELECT r.id, u.user FROM Reports r, Users u WHERE (is_new(r) OR is_new(u)) AND u.user = :u "
            "AND distance(r.x, r.y, u.x, u.y) < 300",
            id="two drivers",
        ),
    ],
)
def test_no_plan_loops_over_subscriptions_and_records(spark: Any, query: str) -> None:
    City(1).register(spark)
    channel = compiled(query)
    register_subscriptions(spark, channel, subscriptions(random.Random(1), 4))
    plan = spark.sql(channel.join.sql)._jdf.queryExecution().executedPlan().toString()
    assert "NestedLoop" not in plan
    assert "Cartesian" not in plan
