from __future__ import annotations

import re
from itertools import combinations

import pytest

from tocsin.config import Dashboard
from tocsin.dashboard.lab import SchemeAsked, StudyAsked, check
from tocsin.dashboard.plot import Line, plot, round_up
from tocsin.dashboard.report import page, plots, table
from tocsin.dashboard.studying import answer
from tocsin.errors import BadArgument

UNCUT = {"n": 2, "began": 1.0}


def test_a_study_has_curves_of_each_scheme() -> None:
    asked = StudyAsked([SchemeAsked()], subscribers=50, brokers=2, duration_s=120)
    shown = answer(asked).schemes[0]
    assert (shown.name, shown.migrations, len(shown.loads)) == ("nearest, no balancing", 0, 2)
    assert len(shown.minutes) == len(shown.cov) == len(shown.loads[0]) == 120


def test_schemes_that_would_end_above_alpha_end_there() -> None:
    asked = StudyAsked(
        [SchemeAsked(migrate="ldm"), SchemeAsked(migrate="xbal")], subscribers=50, brokers=2, duration_s=60, alpha=0.1
    )
    assert [shown.name for shown in answer(asked).schemes] == ["nearest, ldm", "nearest, xbal"]


@pytest.mark.parametrize(("value", "expected"), [(0, 1), (1, 1), (1.2, 2), (3, 5), (51, 100), (4200, 5000)])
def test_the_top_of_a_plot_is_a_round_number(value: float, expected: float) -> None:
    assert round_up(value) == expected


def test_a_report_needs_nothing_else_and_shows_no_markup_of_others() -> None:
    past = UNCUT | {
        "at": [5.0, 6.0], "cov": [0.0, 0.1], "maximum": [1, 2], "mean": [1, 1],
        "brokers": {"<b>": {"bytes_in": [1, 1], "bytes_out": [2, 2], "online": [0, 1]}},
    }  # fmt: skip
    made = page("A <run>", "lead", [*plots(past), table("T", ["a"], [["<script>"], [1234]])])
    assert made.count("<svg") == 4
    assert "<script" not in made
    assert "1,234" in made
    assert "&lt;b&gt;" in made
    assert "http" not in made


def test_a_column_of_numbers_stands_right_with_its_name() -> None:
    made = table("T", ["channel", "rows", "p50"], [["Near", 1_200, "–"], ["Far", 7, "3 ms"]])
    assert "<tr><th>channel</th><th class=n>rows</th><th class=n>p50</th></tr>" in made
    assert "<tr><td>Near</td><td class=n>1,200</td><td class=n>–</td></tr>" in made


def test_a_line_goes_from_the_left_to_the_right() -> None:
    drawn = plot("x", [0.0, 10.0], [Line("l", [0.0, 5.0], "#000")])
    assert 'd="M64.0 214.0 L896.0 28.0"' in drawn


def test_the_names_of_many_lines_stand_in_rows_and_colours_that_come_again_are_dotted() -> None:
    columns = {"bytes_in": [1, 2], "bytes_out": [1, 2], "online": [1, 2]}
    brokers = {f"broker_{number}": columns for number in range(1, 17)}
    load, highest, *_ = plots(
        UNCUT | {"at": [1, 2], "cov": [0, 0], "maximum": [1, 2], "mean": [1, 2], "brokers": brokers}
    )
    names = re.findall(r'<text x="([\d.]+)" y="([-\d.]+)"[^>]*>(broker_\d+|highest)<', load + highest)
    spots = [(float(x), float(y)) for x, y, _ in names]
    assert len(set(spots[:16])) == 16
    assert all(abs(a[0] - b[0]) >= 100 or abs(a[1] - b[1]) >= 16 for a, b in combinations(spots[:16], 2))
    assert [round(y) for _, y in (spots[0], spots[15], spots[16])] == [-20, 16, 16]
    assert 'viewBox="0 -36 920 276"' in load
    assert load.count("stroke-dasharray") == 6


def test_a_report_has_breaks_where_nobody_told() -> None:
    untold = {"bytes_in": [1, None, 1, 1], "bytes_out": [2, None, 2, 2], "online": [1, None, 1, 1]}
    figures = [0.5, None, 0.5, 0.5]
    past = UNCUT | {"at": [1, 2, 3, 4], "cov": figures, "maximum": figures, "mean": figures, "brokers": {"b": untold}}
    for drawn in plots(past):
        assert drawn.count("M64.0") == drawn.count("M618.7") == drawn.count("L896.0") >= 1


def test_a_report_of_a_long_run_says_that_its_plots_are_of_the_end() -> None:
    figures = {"cov": [0, 0], "maximum": [1, 2], "mean": [1, 2], "brokers": {}}
    past = {"n": 1_000, "began": 0.0, "at": [900.0, 1_000.0], **figures}
    told, first, *_ = plots(past)
    assert "keeps 2 samples: the plots begin 900 s after it did" in told
    assert re.findall(r">(\d+ s)<", first) == ["900 s", "920 s", "940 s", "960 s", "980 s", "1000 s"]
    assert len(plots(past | {"n": 2})) == 4


def test_the_emergency_city_has_five_brokers_and_no_other_number() -> None:
    check(StudyAsked([SchemeAsked()], world="prototype"), Dashboard())
    check(StudyAsked([SchemeAsked()], world="simulation", brokers=7), Dashboard())
    with pytest.raises(BadArgument, match="brokers: expected 5, for so many stand in the emergency city, got 7"):
        check(StudyAsked([SchemeAsked()], world="prototype", brokers=7), Dashboard())


@pytest.mark.parametrize("asked", [{"placement": "near"}, {"migrate": "gone"}, {"shuffle": ""}])
def test_a_policy_that_there_is_not_is_refused_before_a_process_is_started(asked: dict[str, str]) -> None:
    (kind,) = asked
    with pytest.raises(BadArgument, match=f"{kind}: expected one of"):
        check(StudyAsked([SchemeAsked(), SchemeAsked(**asked)]), Dashboard())
