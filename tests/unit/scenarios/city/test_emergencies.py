from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import islice, takewhile

import pytest

from tocsin.errors import BadArgument
from tocsin.scenarios.city import KINDS, RADIUS_M, City, Publishers
from tocsin.scenarios.city.emergencies import LARGEST_BYTES, SMALLEST_BYTES, size_bytes
from tocsin.scenarios.city.phrases import ADVICE, OPENINGS

START = datetime(2026, 1, 1, tzinfo=UTC)


def reports(city: City, count: int, seed: int = 1, **settings: float) -> list[tuple[float, dict]]:
    return list(islice(Publishers(city, seed, START, **settings).reports(), count))


def test_there_are_eight_kinds_with_words_of_their_own() -> None:
    assert len(KINDS) == 8
    assert set(OPENINGS) == set(KINDS)
    assert set(ADVICE) == {*KINDS, "any"}


def test_the_same_seed_reports_the_same(city: City) -> None:
    assert reports(city, 50) == reports(city, 50)
    assert reports(city, 50) != reports(city, 50, seed=2)


def test_reports_take_200_to_700_bytes(city: City) -> None:
    sizes = [size_bytes(report) for _, report in reports(city, 2_000)]
    assert SMALLEST_BYTES == 200
    assert LARGEST_BYTES == 700
    assert min(sizes) >= 200
    assert max(sizes) <= 700
    assert max(sizes) - min(sizes) > 300


def test_the_longest_words_still_fit() -> None:
    """The last sentence may run over the length that was drawn; even then the report is small enough."""
    assert 580 + 1 + max(len(sentence) for sentences in ADVICE.values() for sentence in sentences) <= LARGEST_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_enough_advice_for_the_shortest_report(kind: str) -> None:
    assert sum(len(sentence) for sentence in ADVICE[kind] + ADVICE["any"]) > SMALLEST_BYTES


def test_about_ten_thousand_come_in_half_an_hour(city: City) -> None:
    in_three_minutes = takewhile(lambda timed: timed[0] < 180, Publishers(city, 4, START).reports())
    assert sum(1 for _ in in_three_minutes) == pytest.approx(1_000, rel=0.12)


def test_speed_compresses_time_and_rate_is_a_choice(city: City) -> None:
    slow, fast = reports(city, 100), reports(city, 100, speed=10.0)
    assert [t / 10 for t, _ in slow] == pytest.approx([t for t, _ in fast])
    assert [r["x"] for _, r in slow] == [r["x"] for _, r in fast]
    assert reports(city, 100, rate=100.0)[-1][0] < 3


def test_records_have_the_fields_of_the_dataset(city: City) -> None:
    t, report = reports(city, 3)[2]
    assert list(report) == ["report_id", "kind", "severity", "x", "y", "radius", "text", "at"]
    assert report["report_id"] == "r000003"
    assert type(report["x"]) is float
    at = datetime.fromisoformat(report["at"])
    assert (at - START).total_seconds() == pytest.approx(t, abs=0.001)


def test_every_kind_and_severity_occurs(city: City) -> None:
    made = [report for _, report in reports(city, 1_000)]
    assert set(Counter(r["kind"] for r in made)) == set(KINDS)
    assert min(Counter(r["kind"] for r in made).values()) > 80
    assert set(Counter(r["severity"] for r in made)) == {1, 2, 3, 4, 5}
    assert all(0 <= r["x"] <= 10_000 and 0 <= r["y"] <= 8_000 for r in made)


def test_half_an_hour_reaches_every_district(city: City) -> None:
    made = [report for _, report in reports(city, 1_000, rate=1_000 / 1_800)]
    assert {city.district_at(r["x"], r["y"]) for r in made} == set(city.districts)


def test_the_radius_is_the_kinds_at_severity_3(city: City) -> None:
    made = [report for _, report in reports(city, 300)]
    assert all(r["radius"] == RADIUS_M[r["kind"]] for r in made if r["severity"] == 3)
    assert all(r["radius"] < RADIUS_M[r["kind"]] for r in made if r["severity"] < 3)


def test_reports_happen_beside_streets(city: City) -> None:
    made = [report for _, report in reports(city, 100)]
    away = city.streets.distance_to([r["x"] for r in made], [r["y"] for r in made])
    assert away.max() <= 36


@pytest.mark.parametrize("settings", [{"speed": 0.0}, {"rate": -1.0}, {"speed": float("nan")}])
def test_time_must_pass(town: City, settings: dict[str, float]) -> None:
    with pytest.raises(BadArgument, match="above 0"):
        Publishers(town, 1, START, **settings)
