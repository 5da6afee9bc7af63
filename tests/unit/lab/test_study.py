from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tocsin.errors import ConfigError
from tocsin.lab import drawing
from tocsin.lab.jobs import local
from tocsin.lab.study import Study, run

SCHEMES = """
[[schemes]]
name = "nothing"
[[schemes]]
name = "ldm"
placement = "round_robin"
migrate = "ldm"
migrate_options = { stop_cov = 0.01 }
options = { alpha = 0.02 }
"""
WORLD = """
seeds = 2
[world]
subscribers = 100
per_channel = 3
brokers = 2
shares = [3, 1]
duration_s = 600
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def test_a_study_runs_each_scheme_once_a_seed(tmp_path: Path) -> None:
    asked = []

    def runner(jobs):
        asked.extend(jobs)
        return local(jobs)

    rows, files = run(Study.read(written(tmp_path, WORLD + SCHEMES)), tmp_path / "out", runner)
    assert [row[:2] for row in rows] == [("nothing", 0), ("nothing", 1), ("ldm", 0), ("ldm", 1)]
    assert [job.seed for job in asked] == [0, 1, 0, 1]
    assert rows[0][4] > rows[2][4]  # cov
    assert rows[0][5] == 0 < rows[2][5]  # migrations
    assert all(path.stat().st_size > 0 for path in files)
    assert (tmp_path / "out" / "study.csv").read_text().count("\n") == 5


def test_the_picture_of_a_study_shows_the_mean_of_its_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures, traces = [], []
    monkeypatch.setattr(drawing, "save", lambda figure, path: figures.append(figure) or path)

    def runner(jobs):
        traces.extend(local(jobs))
        return traces

    run(Study.read(written(tmp_path, WORLD + SCHEMES)), tmp_path, runner)
    (axes,) = figures[0].axes
    first, second = (trace.covs() for trace in traces[:2])
    assert not np.allclose(first, second)
    assert np.allclose(axes.lines[0].get_ydata(), (first + second) / 2)
    assert "mean of 2 seeds" in figures[0].get_suptitle()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("seeds = 0" + SCHEMES, "seeds: expected a number from 1 to 10,000", id="no seeds"),
        pytest.param("seeds = 1000000000000" + SCHEMES, "from 1 to 10,000", id="seeds without end"),
        pytest.param(SCHEMES + SCHEMES, "none of them twice", id="a scheme twice"),
        pytest.param("schemes = []", "expected schemes", id="no scheme"),
        pytest.param("seed = 1" + SCHEMES, "unknown field `seed`", id="a key that is not known"),
        pytest.param("[world]\nkind = 'moon'" + SCHEMES, "simulation, prototype, got 'moon'", id="a world"),
        pytest.param("[world]\nkind = ['moon']" + SCHEMES, "simulation, prototype, got", id="worlds"),
        pytest.param("[world]\nsubscriber = 3" + SCHEMES, "got 'subscriber'.*subscribers", id="a world's field"),
        pytest.param("[world]\nshares = [1.0]" + SCHEMES, "10 from 0 on", id="shares of other brokers"),
        pytest.param("[pace]\nwindow_s = 25" + SCHEMES, "multiple of the check period", id="a window"),
        pytest.param("seeds = [", "study.toml", id="no TOML"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Study.read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("simulation", "brokers", "0"),
        ("simulation", "subscribers", "-3"),
        ("simulation", "periods_s", "[]"),
        ("simulation", "periods_s", "[5, 0]"),
        ("simulation", "subscriptions", "[-5, 3]"),
        ("simulation", "subscriptions", "[20, 10]"),
        ("simulation", "subscriptions", "[10, 1001]"),
        ("simulation", "subscribe_s", "-1"),
        ("simulation", "rate_kb_s", "nan"),
        ("simulation", "rate_sd_kb_s", "-1.0"),
        ("simulation", "risen", "-2.0"),
        ("simulation", "share_rising", "1.5"),
        ("simulation", "rise_within_s", "-3"),
        ("simulation", "high_for_s", "[5, 1]"),
        ("simulation", "subscribers", "10_000_000"),  # 30 subscriptions each
        ("simulation", "per_channel", "10_000_000"),  # counted at 10 brokers
        ("prototype", "subscribers", "0"),
        ("prototype", "reports", "-1"),
        ("prototype", "login_s", "0"),
        ("prototype", "subscribe_s", "0"),
        ("prototype", "drivers", "7.0"),
        ("prototype", "spots", "[]"),
        ("prototype", "spots", "[[0.5, inf]]"),
        ("prototype", "subscribers", "100_000"),  # positions for half an hour
    ],
)
def test_a_world_that_cannot_be_is_told_by_its_field_before_it_is_drawn(
    tmp_path: Path, kind: str, field: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^world: .*\b{field}\b.*: expected .*, got"):
        Study.read(written(tmp_path, f'[world]\nkind = "{kind}"\n{field} = {value}{SCHEMES}'))


@pytest.mark.parametrize(
    ("field", "value"), [("check_s", "0"), ("moves_per_s", "0"), ("limit_bytes_s", "0.0"), ("limit_bytes_s", "nan")]
)
def test_a_pace_that_cannot_be_is_told_by_its_field(tmp_path: Path, field: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^pace: {field}: expected"):
        Study.read(written(tmp_path, f"[pace]\n{field} = {value}{SCHEMES}"))


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    study = Study.read(written(tmp_path, '[[schemes]]\nname = "x"\nmigrate = "lmd"'))
    with pytest.raises(ConfigError, match="lmd"):
        study.jobs()


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        Study.read(tmp_path / "missing.toml")
