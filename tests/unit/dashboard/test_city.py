from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Any

import numpy as np
import pytest

from tocsin.config import Dashboard
from tocsin.dashboard import city
from tocsin.dashboard.feeding import Playing
from tocsin.dashboard.replay import Replay, evenly
from tocsin.dashboard.samples import Sample
from tocsin.dashboard.stage import Stage
from tocsin.errors import BadArgument, Corrupt
from tocsin.scenarios import recording
from tocsin.scenarios.city import Scenario
from tocsin.scenarios.recording import Event


def test_people_are_two_numbers_of_sixteen_bits_each() -> None:
    found = city.people(1.0, [0.0, 5_000.0, 10_000.0, 99_999.0], [0.0, 4_000.0, 8_000.0, -5.0], (10_000, 8_000))
    packed = np.frombuffer(b64decode(found["xy"]), "<u2").reshape(-1, 2).tolist()
    assert packed == [[0, 0], [32_768, 32_768], [65_535, 65_535], [65_535, 0]]


def test_whose_broker_is_not_known_is_nowhere() -> None:
    found = city.placed(3, {"u00001": "b", "u00002": "unknown", "else": "a"}, {"a": None, "b": None})
    assert (found["brokers"], list(b64decode(found["of"]))) == (["a", "b"], [255, 1, 255])


def test_brokers_are_told_with_their_places_as_far_as_they_say() -> None:
    found = city.placed(0, {}, {"a": (1.6, 2.4), "b": None})
    assert (found["brokers"], found["at"]) == (["a", "b"], [[2, 2], None])


def test_where_people_are_is_told_when_it_has_changed() -> None:
    stage = Stage()
    assert stage.place({}, {"a": None}) is None
    stage.scene = city.Scene(people=1)
    assert stage.place({"u00000": "a"}, {"a": None}) is not None
    assert stage.place({"u00000": "a"}, {"a": None}) is None
    assert stage.place({}, {"a": None}) is not None
    assert stage.place({}, {"a": (1.0, 2.0)}) is not None


def test_a_recording_is_played_second_by_second(tmp_path) -> None:
    path = tmp_path / "city.jsonl"
    scene = Scenario(people=40, subscribers=5, speed=10.0, size_m=(3_000, 2_000), districts=3, shelters=5)
    scene.record(path, 4.0)
    replay = Replay(path, brokers=3)
    moments = list(replay.moments())
    assert [moment.t for moment in moments] == [0.0, 1.0, 2.0, 3.0]
    assert replay.scene.people == 40
    assert {len(moment.placed) for moment in moments} == {40}
    for moment in moments:
        assert sum(broker.online for broker in moment.sample.brokers) == 40
        assert all((broker.load > 0) == (broker.online > 0) for broker in moment.sample.brokers)
    assert any(moment.reports for moment in moments)


def test_what_a_replay_does_to_people_is_nobodys_decision(tmp_path) -> None:
    events = [Event(float(t), "locations", SPOTS) for t in range(62)]
    recording.record(tmp_path / "long.jsonl", events, ABOUT)
    samples = [moment.sample for moment in Replay(tmp_path / "long.jsonl", brokers=2).moments()]
    assert {sample.policies for sample in samples} == {None}
    told = [one for sample in samples for one in sample.decisions]
    assert [(one["at"], one["action"], "policy" in one) for one in told] == [
        (30.0, "made up", False),
        (60.0, "made up", False),
    ]


def test_only_recordings_of_the_city_are_played(tmp_path) -> None:
    recording.record(tmp_path / "other.jsonl", [], {"scenario": "market"})
    with pytest.raises(BadArgument, match="one of the city"):
        Replay(tmp_path / "other.jsonl")


ABOUT = {"scenario": "city", "seed": 1, "size_m": [3_000, 2_000], "districts": 3, "shelters": 5, "people": 2}
SPOTS = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}]


@pytest.mark.parametrize(
    "odd", [{"seed": None}, {"size_m": "large"}, {"size_m": [1]}, {"people": 10**9}, {"districts": -1}]
)
def test_settings_that_make_no_city_are_told(tmp_path, odd) -> None:
    recording.record(tmp_path / "odd.jsonl", [], ABOUT | odd)
    with pytest.raises(Corrupt, match="make no city"):
        Replay(tmp_path / "odd.jsonl")


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "nobody is anywhere"),
        ([Event(0.0, "locations", [])], "expected 2 people, found 0"),
        ([Event(0.0, "locations", SPOTS), Event(1.0, "locations", SPOTS[:1])], "expected 2 people, found 1"),
        ([Event(0.0, "locations", 5)], "locations at 0 s"),
        ([Event(0.0, "locations", [{"x": "a", "y": 1.0}])], "locations at 0 s"),
        ([Event(0.0, "report", {"kind": "fire"}), Event(1.0, "locations", SPOTS)], "report at 0 s"),
    ],
)
def test_a_recording_that_cannot_be_shown_says_why(tmp_path, events, problem) -> None:
    recording.record(tmp_path / "odd.jsonl", events, ABOUT)
    with pytest.raises(Corrupt, match=problem):
        list(Replay(tmp_path / "odd.jsonl").moments())


def test_a_recording_of_one_moment_is_not_played_without_a_pause(tmp_path) -> None:
    recording.record(tmp_path / "short.jsonl", [Event(0.0, "locations", SPOTS)], ABOUT)
    told = Mouth()

    async def play() -> None:
        playing = asyncio.create_task(Playing(Replay(tmp_path / "short.jsonl"), Dashboard(), Stage(), told).run())
        await told.sampled.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        playing.cancel()

    asyncio.run(play())
    assert told.samples == 1
    assert told.kinds[:2] == ["begins", "people"]  # pages forget what was reported the last time


class Mouth:
    """Counts what pages would be told."""

    def __init__(self) -> None:
        self.samples, self.sampled, self.kinds = 0, asyncio.Event(), list[str]()

    async def city(self, message: dict[str, Any]) -> None:
        self.kinds.append(message["k"])

    async def sample(self, sample: Sample) -> None:
        self.samples += 1
        self.sampled.set()


def test_nobody_has_more_than_its_share() -> None:
    ways = np.array([[1.0, 9.0, 9.0]] * 7)
    assert sorted(np.bincount(evenly(ways)).tolist()) == [1, 3, 3]
