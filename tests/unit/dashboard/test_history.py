from __future__ import annotations

from worlds import broker, sample

from tocsin.dashboard.history import Events, History


def test_the_past_has_zeros_where_a_broker_was_not_there() -> None:
    history = History(10)
    history.add(sample(1, broker("a", 100.0)))
    history.add(sample(2, broker("a", 50.0), broker("b", 10.0)))
    past = history.past()
    assert (past.n, past.at) == (2, [1.0, 2.0])
    assert past.brokers["b"].bytes_out == [0, 8]
    assert past.brokers["a"].bytes_in == [20, 10]


def test_the_past_has_nothing_where_nobody_told() -> None:
    history = History(10)
    history.add(sample(1, broker("a", 100.0)))
    history.add(sample(2, broker("a", 100.0, "unknown"), figures=None))
    past = history.past()
    assert (past.cov, past.brokers["a"].bytes_in) == ([0.0, None], [20, None])


def test_only_so_many_samples_are_kept() -> None:
    history = History(2)
    for n in range(1, 6):
        history.add(sample(n))
    assert (history.past().at, history.past().began) == ([4.0, 5.0], 1.0)


def test_news_are_what_is_new_or_has_changed() -> None:
    events = Events("id", kept=2)
    assert events.note([{"id": 2, "state": "planned"}, {"id": 1, "state": "done"}]) == [
        {"id": 1, "state": "done"},
        {"id": 2, "state": "planned"},
    ]
    assert events.note([{"id": 2, "state": "done"}, {"id": 1, "state": "done"}]) == [{"id": 2, "state": "done"}]
    assert [one["id"] for one in events.note([{"id": 3, "state": "planned"}])] == [3]
    assert [one["id"] for one in events.all] == [2, 3]


def test_a_quiet_day_leaves_room_for_what_happened_before() -> None:
    history = History(10)
    moved = {"at": 1.0, "action": "migrate", "reason": "uneven"}
    quiet = [{"at": float(at), "action": "nothing", "reason": "balanced"} for at in range(2, 1000)]
    history.decisions.note([moved])
    for at in range(len(quiet)):
        (told,) = history.decisions.note([*reversed(quiet[max(0, at - 40) : at + 1]), moved][:50])
        assert told == quiet[at]
    assert history.decisions.all == [moved, quiet[-1]]


def test_what_is_listed_and_too_old_to_be_kept_is_told_once() -> None:
    """A coordinator remembers more plans than the dashboard, and lists all of them every time."""
    events, listed = Events("id", kept=2), [{"id": number} for number in (4, 3, 2, 1)]
    assert [one["id"] for one in events.note(listed)] == [3, 4]
    assert events.note(listed) == []
    assert [one["id"] for one in events.note([{"id": 5}, *listed])] == [5]


def test_a_page_is_told_how_many_samples_it_keeps() -> None:
    assert History(7).past().kept == 7


def test_a_page_that_opens_gets_all_that_is_remembered() -> None:
    history = History(5)
    news = history.moves.note([{"id": "m1"}])
    history.add(sample(1, moves=news))
    history.add(sample(2, moves=history.moves.note([{"id": "m1"}])))
    now = history.past().now
    assert now is not None
    assert now.moves == [{"id": "m1"}]
