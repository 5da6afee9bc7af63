from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tocsin.errors import BadArgument
from tocsin.language.parser import parse_script
from tocsin.scenarios import recording
from tocsin.scenarios.city import DEMO, Scenario, Timetable, records_of
from tocsin.scenarios.recording import Event

SMALL = {
    "reports_per_s": 0.5,
    "people": 30,
    "subscribers": 20,
    "size_m": (2_000, 1_500),
    "districts": 3,
    "shelters": 10,
}


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return Scenario(seed=5, speed=60.0, **SMALL)


@pytest.fixture(scope="module")
def events(scenario: Scenario) -> list[Event]:
    return list(scenario.events(12))


def test_the_same_seed_gives_the_same_trace(scenario: Scenario, events: list[Event]) -> None:
    assert list(scenario.events(12)) == events
    assert list(Scenario(seed=5, speed=60.0, **SMALL).events(12)) == events
    assert list(Scenario(seed=6, speed=60.0, **SMALL).events(12)) != events


def test_a_longer_run_begins_with_the_shorter_one(scenario: Scenario, events: list[Event]) -> None:
    shorter = list(scenario.events(5))
    assert events[: len(shorter)] == shorter
    assert all(event.t < 5 for event in shorter)


def test_events_are_in_order_and_shelters_come_first(events: list[Event]) -> None:
    times = [event.t for event in events]
    assert times == sorted(times)
    assert events[0].kind == "shelters"
    assert len(events[0].payload) == 10


def test_everyone_is_located_every_second(events: list[Event]) -> None:
    batches = [event for event in events if event.kind == "locations"]
    assert [event.t for event in batches] == list(range(12))
    assert all(len(event.payload) == 30 for event in batches)
    assert list(batches[3].payload[0]) == ["user", "x", "y", "at"]
    assert batches[3].payload[0]["at"] == "2026-01-01T00:00:03.000Z"


def test_logins_take_four_minutes_and_subscriptions_the_next_four(scenario: Scenario, events: list[Event]) -> None:
    """Paper, section 6.1.2, here compressed 60 times."""
    logins = [event.t for event in events if event.kind == "login"]
    subscribed = [event for event in events if event.kind == "subscribe"]
    assert len(logins) == 20
    assert max(logins) < 4
    assert len(subscribed) == len(scenario.intents)
    assert all(4 <= event.t < 8 for event in subscribed)


def test_subscriptions_are_the_intents(scenario: Scenario, events: list[Event]) -> None:
    wanted = Counter(intent.key for intent in scenario.intents)
    made = [event.payload for event in events if event.kind == "subscribe"]
    assert Counter((p["channel"], *sorted(p["args"].items())) for p in made) == wanted


def test_without_churn_nobody_leaves(events: list[Event]) -> None:
    assert {event.kind for event in events} == {"shelters", "locations", "report", "login", "subscribe"}


def test_with_churn_who_leaves_returns_and_some_unsubscribe() -> None:
    scenario = Scenario(seed=5, speed=60.0, timetable=Timetable(churn=0.8), **SMALL)
    acts = [event for event in scenario.events(30) if event.kind in ("login", "logout", "unsubscribe", "subscribe")]
    left = {event.payload["user"]: event.t for event in acts if event.kind == "logout"}
    back = {event.payload["user"]: event.t for event in acts if event.kind == "login" and event.t >= 8}
    assert left
    assert left.keys() == back.keys()
    assert all(8 <= left[user] < back[user] for user in left)
    subscribed = [event.payload for event in acts if event.kind == "subscribe"]
    given_up = [event.payload for event in acts if event.kind == "unsubscribe"]
    assert given_up
    assert all(payload in subscribed for payload in given_up)


def test_statements_are_a_script_at_this_speed() -> None:
    scenario = Scenario(speed=4.0, channel_names=DEMO)
    script = ";\n".join(scenario.statements())
    assert len(parse_script(script)) == 7
    assert "PERIOD '2500ms'" in script


def test_records_of_names_the_dataset(events: list[Event]) -> None:
    first = {event.kind: records_of(event) for event in reversed(events)}
    assert first["shelters"][0] == "Shelters"
    assert first["locations"][0] == "UserLocations"
    assert first["report"][0] == "Reports"
    assert first["report"][1][0]["report_id"] == "r000001"
    assert first["login"] is None


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_a_recording_replays_the_same_events(
    scenario: Scenario, events: list[Event], tmp_path: Path, name: str
) -> None:
    assert scenario.record(tmp_path / name, 12) == len(events)
    assert list(Scenario.replay(tmp_path / name)) == events
    assert recording.about(tmp_path / name)["seed"] == 5


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        pytest.param({"speed": 0}, "speed", id="time passes"),
        pytest.param({"people": 5, "subscribers": 6}, "subscribers", id="subscribers are people"),
    ],
)
def test_bad_settings_are_named(wrong: dict[str, int], named: str) -> None:
    with pytest.raises(BadArgument, match=named):
        Scenario(**wrong)


def test_a_bad_timetable_is_refused() -> None:
    with pytest.raises(BadArgument, match="churn"):
        list(Scenario(timetable=Timetable(churn=2.0), **SMALL).events(1))
