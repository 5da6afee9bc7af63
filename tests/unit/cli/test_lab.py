"""``tocsin lab run``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin.cli import lab
from tocsin.errors import BadArgument, ConfigError
from tocsin.lab import claims
from tocsin.lab.debs19 import figure13
from tocsin.lab.debs19.simulation import Simulation

STUDY = """
[world]
subscribers = 50
per_channel = 3
brokers = 2
shares = [3, 1]
duration_s = 120
[[schemes]]
name = "moved"
migrate = "xbal"
"""


def test_a_study_prints_a_row_for_each_run(run, tmp_path):
    (tmp_path / "my.toml").write_text(STUDY)
    result = run("lab", "run", tmp_path / "my.toml", "--seeds", "2", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:]] == [["moved", "0"], ["moved", "1"]]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["study.csv", "study.png"]


def test_a_figure_tells_its_own_claims_and_where_everything_is(run, tmp_path, monkeypatch):
    small = Simulation(brokers=3, subscribers=60, per_channel=3, shares=(6, 3, 1), duration_s=600)
    jobs = {label: replace(job, settings=small) for label, job in figure13.jobs().items()}
    monkeypatch.setattr(figure13, "jobs", lambda: jobs)
    other = claims.Claim("debs19", "5.2, live", "It ends", "yes", "no", False, "as [bold]printed")
    claims.write(tmp_path, [other])
    result = run("lab", "run", "debs19", "--figure", "13", "--seeds", "2", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    told, measured = result.stdout.splitlines()[::2], result.stdout.splitlines()[1::2]
    assert len(told) == len(measured) == 4
    assert all(line[:9].rstrip() in ("agrees", "differs") and line[9:].startswith("6.2.2, fig. 13") for line in told)
    assert all(line.startswith(" " * 9 + "measured: ") for line in measured)
    assert f"1 others are unchanged, in {tmp_path / 'report.md'}" in result.stderr
    files = [*(tmp_path / "debs19").iterdir(), tmp_path / "report.json", tmp_path / "report.md"]
    assert len(files) == 4
    assert all(f"  {path}\n" in result.stderr for path in files)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(("debs20",), "debs19, debs19-live, or a file", id="a paper that is not known"),
        pytest.param(("debs19", "--figure", "4"), "one of 5, 6,", id="a figure that it does not make"),
        pytest.param(("debs19", "--seeds", "0"), "a number from 1 to", id="no seeds"),
        pytest.param(("my.toml", "--figure", "13"), "a paper", id="a figure of a study"),
        pytest.param(("debs19-live", "--spark", "local"), "debs19 or a study", id="Spark for what has its own"),
        pytest.param(("debs19", "--beside", "2"), "debs19-live", id="what only a living system can"),
        pytest.param(("debs19-live", "--beside", "0"), "from 1 to 15", id="none of them"),
        pytest.param(("debs19-live", "--compress", "0"), "speed of the experiment", id="time that stands still"),
    ],
)
def test_what_cannot_be_run_is_refused(run, arguments, told):
    problem = run("lab", "run", *arguments).exception
    assert isinstance(problem, BadArgument)
    assert told in str(problem)


def test_a_study_without_seeds_is_refused(run, tmp_path):
    (tmp_path / "my.toml").write_text(STUDY)
    problem = run("lab", "run", tmp_path / "my.toml", "--seeds", "0", "--out", tmp_path / "out").exception
    assert str(problem) == "seeds: expected a number from 1 to 10,000, got 0"


def test_where_nothing_can_be_written_nothing_is_run(run, tmp_path):
    (tmp_path / "taken").write_text("")
    problem = run("lab", "run", "debs19", "--out", tmp_path / "taken" / "below").exception
    assert isinstance(problem, BadArgument)
    assert "--out: expected a directory that can be written to" in str(problem)


def test_many_runs_of_a_study_go_to_spark_where_it_is(monkeypatch):
    assert [lab.master_for(runs) for runs in (1, 63, 64)] == ["none", "none", "local[*]"]
    monkeypatch.setattr(lab, "find_spec", lambda name: None)
    assert lab.master_for(1000) == "none"


def test_a_study_asks_for_spark_by_its_runs(run, tmp_path, monkeypatch):
    asked = []

    def runner(master):
        return lambda jobs: asked.append((master, len(jobs))) or []

    monkeypatch.setattr(lab, "_runner", runner)
    (tmp_path / "my.toml").write_text(STUDY)
    for seeds, spark in ((63, ()), (64, ()), (64, ("--spark", "none")), (1, ("--spark", "local[4]"))):
        run("lab", "run", tmp_path / "my.toml", "--seeds", seeds, *spark, "--out", tmp_path / "out")
    assert asked == [("none", 63), ("local[*]", 64), ("none", 64), ("local[4]", 1)]


def test_a_study_that_is_not_there_is_told(run, tmp_path):
    assert isinstance(run("lab", "run", tmp_path / "none.toml").exception, ConfigError)
