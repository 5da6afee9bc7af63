"""What people read: lines that say all that counts."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tocsin.demo import view
from tocsin.demo.counters import Counted
from tocsin.demo.heard import Connected
from tocsin.demo.summary import ChannelLine, Summary, channel_line
from tocsin.demo.tally import Tally
from tocsin.demo.view import Screen, closing_lines, dashboard_lines, headline, living_line, table

LINE = ChannelLine("ByKind", "continuous", "index", 1_500, 8, 12, 0, 900, 7_000, 42.4, 2_512.0, 0.0)
SUMMARY = Summary("Done", 45.0, {"Reports": 7_500, "Shelters": 200}, [LINE, replace(LINE, channel="NearMe")], 24)


def printed(thing):
    out = io.StringIO()
    Console(file=out, width=80).print(thing)
    return out.getvalue()


def test_the_dashboards_address_comes_with_how_long_it_is_good_for():
    *_, address, closes = dashboard_lines("http://here/#enter=1", 30.0, is_kept=False)
    assert address == "  http://here/#enter=1"
    assert "closes when the demonstration ends, after 30 s of the city (--seconds gives it more)" in closes
    assert "make demo ARGS=--keep" in closes
    assert "go on until Ctrl-C" in dashboard_lines("http://here/#enter=1", 30.0, is_kept=True)[-1]
    assert dashboard_lines(None, 30.0, is_kept=False) == []


def test_a_city_that_goes_on_says_how_to_end_it():
    assert living_line(1_200, 0.2) == "The city goes on: 1,200 reports so far. Ctrl-C ends everything."
    assert "the channels are 4 s behind" in living_line(1_200, 4.2)


def test_the_table_has_a_row_a_channel():
    shown = printed(table(SUMMARY))
    for text in ("ByKind", "NearMe", "continuous", "1,500", "7,000", "42 ms", "2.5 s"):
        assert text in shown


def test_a_channel_without_results_has_no_latency_yet():
    views = {"name": "C", "mode": "every 1s", "strategy": "join", "subscriptions": 2, "backends": 1, "lag_s": 0.04}
    line = channel_line(views, Tally(), Counted(executions=3), {}, None)
    assert (line.p50_ms, line.executions, line.is_periodic, line.lag_s) == (None, 3, True, 0.0)
    assert "–" in printed(table(replace(SUMMARY, channels=[line])))


def test_the_headline_adds_up():
    assert headline(SUMMARY) == (
        "Done, 45 s of the city: 7,700 records, 24 executions, 14,000 notifications, 24 notices"
    )


def test_the_headline_counts_one_as_one():
    line = replace(LINE, executions=1, notifications=1)
    text = headline(replace(SUMMARY, channels=[line], notices=1, records={"Reports": 1}))
    assert text.endswith("1 record, 1 execution, 1 notification, 1 notice")


def test_that_the_machine_lagged_is_told_first():
    assert "lagged" in closing_lines(replace(SUMMARY, held_s=9.0))[0]


def test_the_headline_says_how_far_behind_it_is():
    assert headline(replace(SUMMARY, channels=[replace(LINE, lag_s=4.2)])).endswith("notices, 4 s behind")


@pytest.mark.parametrize(
    ("phase", "lag_s", "end"),
    [
        pytest.param("Feeding", 2.0, "2 s behind", id="not yet slower"),
        pytest.param("Feeding", 7.0, "7 s behind: the feed is slowed until they catch up", id="slower"),
        pytest.param("Feeding", 13.0, "13 s behind: the feed waits for the channels", id="standing still"),
        pytest.param("Catching up", 13.0, "13 s behind", id="fed already"),
    ],
)
def test_a_city_that_seems_stuck_says_why(phase, lag_s, end):
    assert headline(replace(SUMMARY, phase=phase, channels=[replace(LINE, lag_s=lag_s)])).endswith(f", {end}")


def test_the_table_fits_a_small_terminal():
    wide = replace(LINE, channel="WithShelters", rows=123_456, notifications=987_654, p50_ms=12_345.0, p99_ms=98_765.0)
    shown = printed(table(replace(SUMMARY, channels=[wide])))
    assert all(text in shown for text in ("WithShelters", "continuous", "123,456", "987,654", "12.3 s", "98.8 s"))


def test_the_summary_says_what_was_shared_and_that_ticks_are_waited_for():
    text = "\n".join(closing_lines(replace(SUMMARY, late_subscriptions=310)))
    assert "310 of the subscriptions were made by people who came during the run" in text
    assert "1,800 rows, which are 14,000 notifications: one for each subscription" in text
    assert "3,000 subscriptions, 16 distinct parameter sets" in text
    assert "that wait is included" in text
    assert "none missing, none doubled" in text
    assert "lagged" not in text


def test_the_summary_says_which_broker_of_how_many_people_and_who_else_is_subscribed():
    connected = Connected(people=60, of_people=600, brokers=2, subscriptions=1, notifications=9)
    text = "\n".join(closing_lines(replace(SUMMARY, connected=connected, other_subscriptions=153)))
    assert "counted at a broker of the demonstration's own, which the cluster told of new ones 24 times" in text
    assert "60 of the 600 people are also connected by WebSocket, to 2 other brokers, with 1 subscription." in text
    assert "tocsin status count 153 subscriptions more" in text
    assert "tocsin status" not in "\n".join(closing_lines(SUMMARY))


@pytest.mark.parametrize(
    ("summary", "said", "not_said"),
    [
        (replace(SUMMARY, held_s=9.0), "held back for 9 of 54 s. The latencies are those", "cut short"),
        (replace(SUMMARY, held_s=9.0, is_cut=True), "was cut short", "failed"),
        (replace(SUMMARY, problems=("ByKind: …",)), "Records", "none missing"),
        (replace(SUMMARY, channels=[replace(LINE, failed=2)]), "2 executions failed and were repeated", "lagged"),
        (
            replace(SUMMARY, channels=[replace(LINE, failed=1)]),
            "1 execution failed and was repeated",
            "executions failed",
        ),
    ],
    ids=["lag", "lag beyond patience", "problems", "failures", "one failure"],
)
def test_what_did_not_go_well_is_told(summary, said, not_said):
    text = "\n".join(closing_lines(summary))
    assert said in text
    assert not_said not in text


def test_elsewhere_than_on_a_terminal_lines_come_now_and_then(monkeypatch):
    out, now = io.StringIO(), [100.0]
    monkeypatch.setattr(view.time, "monotonic", lambda: now[0])
    with Screen(Console(file=out)) as screen:
        for _ in range(12):
            screen.watch(SUMMARY)
            now[0] += 1.0
    assert out.getvalue().splitlines() == [headline(SUMMARY)] * 3


def test_what_clients_counted_is_told_where_there_are_clients():
    assert not any("WebSocket" in line for line in closing_lines(SUMMARY))
    connected = Connected(people=40, of_people=600, brokers=2, subscriptions=200, notifications=11_862, p50_ms=130.0)
    told = [line for line in closing_lines(replace(SUMMARY, connected=connected)) if "WebSocket" in line]
    assert len(told) == 1
    assert all(
        text in told[0]
        for text in ("40 of the 600 people", "2 other brokers", "11,862", "130 ms", "0 missing, 0 doubled")
    )
    assert headline(replace(SUMMARY, connected=connected)).endswith("24 notices, 11,862 at clients")
