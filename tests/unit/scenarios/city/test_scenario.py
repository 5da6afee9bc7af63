from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tocsin.errors import BadArgument
from tocsin.language.parser import parse_script
from tocsin.scenarios import recording
from tocsin.scenarios.city import DEMO, Residents, Scenario, Storms, Timetable, records_of
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


def test_without_churn_nobody_leaves() -> None:
    scenario = Scenario(seed=5, speed=60.0, timetable=Timetable(churn=0.0), **SMALL)
    kinds = {event.kind for event in scenario.events(30)}
    assert kinds == {"shelters", "locations", "report", "login", "subscribe"}


def test_some_leave_and_return_unless_told_otherwise() -> None:
    kinds = Counter(act.kind for act in Scenario(seed=5, **{**SMALL, "people": 200, "subscribers": 200}).acts())
    assert 5 <= kinds["logout"] <= 40
    assert kinds["login"] == 200 + kinds["logout"]
    assert 0 < kinds["unsubscribe"] < kinds["logout"]


def test_residents_are_there_and_the_last_of_them_come_with_all_that_they_want() -> None:
    scenario = Scenario(seed=5, speed=60.0, timetable=Residents(60.0, 300.0, late=0.2), subscriptions=50, **SMALL)
    acts = list(scenario.acts())
    assert Counter(act.kind for act in acts)["subscribe"] == len(scenario.intents) == 50
    late = [act for act in acts if act.t > 0]
    people = {intent.user for intent in scenario.intents}
    assert len({act.payload["user"] for act in late}) == round(0.2 * len(people))
    assert {act.payload["user"] for act in acts} == people
    assert all(1.0 <= act.t < 5.0 for act in late)
    assert all(len({act.t for act in acts if act.payload["user"] == user}) == 1 for user in people)


def test_storms_make_one_district_hot_and_skew_the_reports() -> None:
    """Most reports of a storm come from one district; without storms the busiest has far fewer."""
    calm = Scenario(seed=5, reports_per_s=5.0, **{k: v for k, v in SMALL.items() if k != "reports_per_s"})
    stormy = replace(calm, storms=Storms(every_s=60.0, lasts_s=60.0, share=0.9, surge=3.0))

    def busiest(scenario: Scenario) -> tuple[int, float]:
        told = [event.payload for event in scenario.events(60) if event.kind == "report"]
        spots = Counter(scenario.city.district_at(report["x"], report["y"]).name for report in told)
        return len(told), max(spots.values()) / len(told)

    (usual, spread), (many, skewed) = busiest(calm), busiest(stormy)
    assert skewed > 0.85 > spread
    assert many > 2 * usual
    assert list(stormy.events(30)) == list(stormy.events(30))


def test_a_recording_says_that_its_map_is_generated_and_whether_there_were_storms(tmp_path: Path) -> None:
    Scenario(seed=5, storms=Storms(surge=4.0), **SMALL).record(tmp_path / "run.jsonl", 2)
    told = recording.about(tmp_path / "run.jsonl")
    assert "generated" in told["map"]
    assert told["storms"]["surge"] == 4.0


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


@pytest.mark.parametrize(
    ("timetable", "named"), [(Timetable(churn=2.0), "churn"), (Residents(5.0, 1.0), "first_s")], ids=["churn", "times"]
)
def test_a_bad_timetable_is_refused(timetable: Timetable | Residents, named: str) -> None:
    with pytest.raises(BadArgument, match=named):
        list(Scenario(timetable=timetable, **SMALL).events(1))


@pytest.mark.parametrize(
    "wrong", [{"lasts_s": 0}, {"lasts_s": 9, "every_s": 8}, {"share": 1.1}, {"surge": 0.5}], ids=str
)
def test_bad_storms_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadArgument, match="storms"):
        Storms(**wrong)


def test_more_subscriptions_than_are_wanted_are_refused_with_the_number() -> None:
    with pytest.raises(BadArgument, match=r"at most \d+, which 20 people ask for"):
        _ = Scenario(subscriptions=9_999, **SMALL).intents
