"""``tocsin record`` writes what ``Scenario.replay`` reads."""

from tocsin.errors import BadArgument
from tocsin.scenarios import recording
from tocsin.scenarios.city import Scenario


def test_a_recording_holds_the_scenario_that_was_asked_for(run, tmp_path):
    result = run("record", "city.jsonl.gz", "--seconds", "2", "--people", "20", "--speed", "120", "--storms")
    assert "generated city" in result.stderr
    path = tmp_path / "city.jsonl.gz"
    kinds = {event.kind for event in Scenario.replay(path)}
    assert kinds == {"shelters", "locations", "report", "login"}
    told = recording.about(path)
    assert (told["people"], told["subscribers"], told["speed"]) == (20, 20, 120.0)
    assert told["storms"] is not None


def test_a_recording_of_no_time_is_refused(run, tmp_path):
    assert isinstance(run("record", "city.jsonl", "--seconds", "0").exception, BadArgument)
    assert list(tmp_path.iterdir()) == []
