"""The evaluator of fault runs: clean runs pass, and every kind of harm is found."""

import pytest

from tocsin.chaos.evaluate import evaluate
from tocsin.chaos.evidence import Above, ByKind, Evidence, Got, Hole, Interval, Publication, Record, Topic


def record(number, kind="fire", *, sent=None, value=0.0, source="feeder", is_certain=True):
    return Record(source, number, kind, value, 100 + number if sent is None else sent, is_certain)


def published(number, position=None, *, topic="news", source="pub"):
    return Publication(topic, source, number, f"{number:04}" if position is None else position)


def got(number, through=None, source="pub"):
    return Got(source, number, f"{number:04}" if through is None else through)


def topic_of(*seen, position="0000", **options):
    return Interval("s", Topic("news"), stood=10, position=position, seen=list(seen), **options)


FIRES = ByKind("fire")


def channel_of(*seen, wish=FIRES, stood=100, **options):
    return Interval("s", wish, stood=stood, seen=list(seen), **options)


def judged(interval, records=(), publications=()):
    return evaluate(Evidence(records, publications, [interval]))


FIVE = [published(n) for n in range(1, 6)]
RECORDS = [record(n) for n in range(1, 6)]


def of_feeder(*numbers):
    return [got(n, source="feeder") for n in numbers]


def test_what_came_once_and_in_order_is_clean():
    verdict = judged(topic_of(*map(got, range(1, 6))), publications=FIVE)
    assert (verdict.expected, verdict.delivered, verdict.is_clean) == (5, 5, True)
    verdict = judged(channel_of(*of_feeder(1, 2, 3, 4, 5)), RECORDS)
    assert (verdict.expected, verdict.delivered, verdict.is_clean) == (5, 5, True)


@pytest.mark.parametrize("lost", range(1, 6))
def test_a_loss_is_found_wherever_it_is(lost):
    rest = [n for n in range(1, 6) if n != lost]
    for verdict in (
        judged(topic_of(*map(got, rest)), publications=FIVE),
        judged(channel_of(*of_feeder(*rest)), RECORDS),
    ):
        assert (verdict.expected, verdict.delivered, verdict.missing) == (5, 4, 1)
        assert f"{lost}" in verdict.problems[0]
        assert not verdict.is_complete


@pytest.mark.parametrize("again", range(1, 6))
def test_a_double_is_found_and_is_no_disorder_of_its_own(again):
    numbers = sorted([*range(1, 6), again])
    for verdict in (
        judged(topic_of(*map(got, numbers)), publications=FIVE),
        judged(channel_of(*of_feeder(*numbers)), RECORDS),
    ):
        assert (verdict.doubled, verdict.out_of_order, verdict.missing) == (1, 0, 0)
        assert not verdict.is_clean


def test_disorder_is_found():
    for verdict in (
        judged(topic_of(*map(got, (1, 3, 2, 4, 5))), publications=FIVE),
        judged(channel_of(*of_feeder(1, 3, 2, 4, 5)), RECORDS),
    ):
        assert verdict.out_of_order >= 1
        assert verdict.missing == verdict.doubled == 0


def test_a_gap_covers_what_lies_in_it_and_nothing_else():
    hole = Hole("0001", "0003", 2, "owner")
    verdict = judged(topic_of(got(1), hole, got(4), got(5), excused={"owner"}), publications=FIVE)
    assert (verdict.gapped, verdict.missing, verdict.is_clean) == ({"owner": 2}, 0, True)
    verdict = judged(topic_of(got(1), hole, got(4), excused={"owner"}), publications=FIVE)
    assert (verdict.gapped, verdict.missing) == ({"owner": 2}, 1)


def test_a_gap_in_a_channel_covers_what_lies_between_its_neighbours():
    hole = Hole("a", "b", None, "slow")
    first, *rest = of_feeder(1, 4, 5)
    verdict = judged(channel_of(first, hole, *rest, excused={"slow"}), RECORDS)
    assert (verdict.gapped, verdict.missing, verdict.is_clean) == ({"slow": 2}, 0, True)
    first, second, third = of_feeder(1, 3, 5)
    verdict = judged(channel_of(first, hole, second, third, excused={"slow"}), RECORDS)
    assert (verdict.gapped, verdict.missing) == ({"slow": 1}, 1)


def test_a_gap_covers_no_more_than_it_says():
    verdict = judged(topic_of(got(1), Hole("0001", "0005", 3, "owner"), excused={"owner"}), publications=FIVE)
    assert (verdict.gapped, verdict.missing) == ({"owner": 3}, 1)


@pytest.mark.parametrize("reason", ["owner", "slow", "retention", "lost", "unannounced"])
def test_a_gap_without_a_cause_is_false(reason):
    verdict = judged(topic_of(*map(got, range(1, 6)), Hole("0005", "0006", 0, reason)), publications=FIVE)
    assert verdict.false_gaps == 1
    assert not verdict.is_clean
    excused = {"owner", "slow", "retention", "lost", "unannounced"} - {reason}
    verdict = judged(topic_of(got(1), Hole("0001", "0005", None, reason), excused=excused), publications=FIVE)
    assert verdict.false_gaps == 1


def test_what_nobody_sent_or_nobody_asked_for_is_strange():
    assert judged(topic_of(*map(got, range(1, 7))), publications=FIVE).strange == 1
    assert judged(channel_of(*of_feeder(1), got(7, source="feeder")), [record(1), record(7, "flood")]).strange == 1


def test_a_publication_at_another_position_than_acknowledged_is_strange():
    assert judged(topic_of(got(1, "0009")), publications=[published(1)]).strange == 1


def test_what_lies_before_the_position_of_the_acknowledgement_must_not_come():
    verdict = judged(topic_of(*map(got, (3, 4, 5)), position="0002"), publications=FIVE)
    assert (verdict.expected, verdict.is_clean) == (3, True)
    assert judged(topic_of(*map(got, (2, 3, 4, 5)), position="0002"), publications=FIVE).strange == 1


def test_records_on_their_way_while_a_subscription_began_may_come_but_then_all_that_follow():
    assert judged(channel_of(*of_feeder(3, 4, 5), stood=102), RECORDS).is_clean
    assert judged(channel_of(*of_feeder(2, 3, 4, 5), stood=102), RECORDS).is_clean
    verdict = judged(channel_of(*of_feeder(1, 3, 4, 5), stood=102), RECORDS)
    assert (verdict.expected, verdict.missing) == (5, 1)


def test_after_the_end_nothing_is_owed_but_holes_before_the_last_are_found():
    assert judged(topic_of(*map(got, (1, 2)), ended=50), publications=FIVE).is_clean
    assert judged(topic_of(*map(got, (1, 3)), ended=50), publications=FIVE).missing == 1
    assert judged(channel_of(*of_feeder(1, 2), ended=150), RECORDS).is_clean
    assert judged(channel_of(*of_feeder(1, 3), ended=150), RECORDS).missing == 1
    assert judged(channel_of(ended=150), RECORDS).expected == 0


def test_what_was_not_acknowledged_may_come_once():
    doubtful = [*FIVE[:4], Publication("news", "pub", 5, None)]
    assert judged(topic_of(*map(got, range(1, 5))), publications=doubtful).is_clean
    assert judged(topic_of(*map(got, range(1, 6))), publications=doubtful).is_clean
    assert judged(topic_of(*map(got, [1, 2, 3, 4, 5, 5])), publications=doubtful).doubled == 1
    records = [*RECORDS[:4], record(5, is_certain=False)]
    assert judged(channel_of(*of_feeder(1, 2, 3, 4)), records).is_clean


def test_a_subscription_that_was_never_answered_is_a_problem():
    verdict = judged(Interval("s", Topic("news")), publications=FIVE)
    assert (verdict.unanswered, verdict.expected, verdict.is_clean) == (1, 0, False)


def test_senders_have_orders_of_their_own():
    records = [record(1), record(2), record(1, source="other"), record(2, source="other")]
    seen = [got(1, "1", "feeder"), got(1, "2", "other"), got(2, "3", "other"), got(2, "4", "feeder")]
    assert judged(channel_of(*seen), records).is_clean


def test_a_bound_is_a_wish_too():
    records = [record(1, value=5.0), record(2, value=1.0), record(3, value=9.0)]
    verdict = judged(channel_of(*of_feeder(1, 3), wish=Above(4.0)), records)
    assert (verdict.expected, verdict.is_clean) == (2, True)


def test_a_run_in_which_nothing_had_to_come_is_not_clean():
    assert judged(topic_of()).problems == ["nothing had to arrive, so nothing was tested"]
