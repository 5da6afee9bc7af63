"""Who must get which report, against two plain loops."""

import math
import random

import pytest

from tocsin.demo.expected import foretell

KINDS = ("fire", "flood", "storm")


def world(seed, reports=60, backends=25):
    rng = random.Random(seed)
    spot = lambda: {"kind": rng.choice(KINDS), "x": rng.uniform(0, 900), "y": rng.uniform(0, 900)}  # noqa: E731
    made = [{"report_id": f"r{i}", **spot()} for i in range(reports)]
    wanted = {10 * i: {**spot(), "radius": rng.uniform(50, 400)} for i in range(backends)}
    return made, wanted


def from_the_start(backends):
    return dict.fromkeys(backends, 0)


def naive(reports, backends, matches):
    return {(r["report_id"], number) for r in reports for number, args in backends.items() if matches(r, args)}


@pytest.mark.parametrize("seed", range(3))
def test_by_kind_pairs_every_report_with_the_subscriptions_to_its_kind(seed):
    reports, places = world(seed)
    backends = {number: {"kind": args["kind"]} for number, args in places.items()}
    found = foretell(reports, backends, from_the_start(backends))
    assert found.certain == naive(reports, backends, lambda r, a: r["kind"] == a["kind"])
    assert found.possible == frozenset()


@pytest.mark.parametrize("seed", range(3))
def test_a_severity_pairs_reports_of_the_kind_that_are_as_severe(seed):
    reports, places = world(seed)
    reports = [report | {"severity": number % 5} for number, report in enumerate(reports)]
    backends = {number: {"kind": args["kind"], "severity": number % 4} for number, args in places.items()}
    found = foretell(reports, backends, from_the_start(backends))
    matches = lambda r, a: r["kind"] == a["kind"] and r["severity"] >= a["severity"]  # noqa: E731
    assert found.certain == naive(reports, backends, matches)


@pytest.mark.parametrize("seed", range(3))
def test_circles_pair_reports_of_the_kind_inside_them(seed):
    reports, backends = world(seed)

    def inside(r, a):
        return r["kind"] == a["kind"] and math.dist((r["x"], r["y"]), (a["x"], a["y"])) < a["radius"]

    found = foretell(reports, backends, from_the_start(backends))
    assert found.certain == naive(reports, backends, inside)
    assert found.certain


def test_a_report_on_the_edge_may_come_or_not():
    reports = [{"report_id": "r1", "kind": "fire", "x": 300.0, "y": 400.0}]
    backends = {7: {"kind": "fire", "x": 0.0, "y": 0.0, "radius": 500.0}}
    found = foretell(reports, backends, from_the_start(backends))
    assert (found.certain, found.possible) == (frozenset(), {("r1", 7)})


def test_where_people_are_at_a_tick_cannot_be_foretold():
    assert foretell(world(1)[0], {7: {"user": "ann", "kind": "fire"}}, {7: 0}) is None


@pytest.mark.parametrize("channel", ["ByKind", "NearPlace"])
def test_without_reports_nothing_is_to_come(channel):
    backends = world(1)[1]
    assert foretell([], backends, from_the_start(backends)).certain == frozenset()


@pytest.mark.parametrize("channel", ["ByKind", "NearPlace"])
def test_what_was_on_its_way_at_a_login_may_come_or_not(channel):
    reports = [{"report_id": f"r{n}", "kind": "fire", "x": 0.0, "y": 0.0} for n in range(4)]
    backends = {number: {"kind": "fire", "x": 0.0, "y": 0.0, "radius": 500.0} for number in (7, 8)}
    found = foretell(reports, backends, {7: 0, 8: 3})
    assert found.certain == {("r0", 7), ("r1", 7), ("r2", 7), ("r3", 7), ("r3", 8)}
    assert found.possible == {("r0", 8), ("r1", 8), ("r2", 8)}
