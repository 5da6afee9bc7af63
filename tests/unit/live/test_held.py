"""What is said of a run on the living system, from notes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin.live import held
from tocsin.live.cost import Cost
from tocsin.live.experiment import Experiment
from tocsin.live.handover import Handover
from tocsin.live.notes import Notes

EXPERIMENT = Experiment()
HANDOVERS = [Handover("ann", 0.010, 1_500, 700, 3), Handover("bob", 0.020, 2_000, 800, 4)]
DONE = {"plan": "p1", "state": "done", "created_at": 5.0, "ended_at": 5.25}
NOTES = Notes("NR LDM", ["a"], 0.0, [], [], [DONE, DONE], {}, HANDOVERS, notifications=70)


def _told(notes: Notes) -> dict[str, tuple[bool, str, str]]:
    found = held.claims({}, {notes.label: [notes]}, EXPERIMENT)
    assert all(claim.is_live and EXPERIMENT.told() in claim.note for claim in found)
    return {claim.section: (claim.agrees, claim.measured, claim.note) for claim in found}


def test_a_migration_costs_its_time_and_all_bytes_of_both_sides() -> None:
    found = Cost.of([NOTES])
    assert found is not None
    assert (found.moves, found.ms, found.whole_ms) == (2, pytest.approx((15.0, 19.5)), (250.0, 250.0))
    assert found.bytes == pytest.approx((2_500.0, 2_770.0))
    assert Cost.of([replace(NOTES, handovers=[])]) is None


@pytest.mark.parametrize(
    ("seconds", "size", "agrees"), [(1.0, 15_000, True), (1.1, 15_000, False), (1.0, 17_000, False)]
)
def test_light_is_a_second_and_sixteen_kilobytes(seconds: float, size: int, agrees: bool) -> None:
    told = _told(replace(NOTES, handovers=[Handover("ann", seconds, size, 500, 3)]))
    assert told["2, live"][0] is agrees


@pytest.mark.parametrize("lost", [{"holes": 1}, {"gaps": 1}])
def test_who_is_moved_loses_nothing(lost: dict[str, int]) -> None:
    assert _told(NOTES)["3.2, live"][:2] == (True, "2 migrations, 70 notifications, 0 holes in what somebody got")
    assert not _told(replace(NOTES, **lost))["3.2, live"][0]


def test_how_often_each_was_run_is_told() -> None:
    assert "Each was run once." in _told(NOTES)["2, live"][2]
    twice = held.claims({}, {NOTES.label: [NOTES, NOTES]}, EXPERIMENT)
    assert all("Each was run 2 times." in claim.note for claim in twice)


def test_a_busy_machine_is_told() -> None:
    assert "times longer" not in _told(NOTES)["2, live"][2]
    slow = replace(NOTES, held_s=EXPERIMENT.run_s)
    assert "and so 2.0 times longer" in _told(slow)["2, live"][2]
