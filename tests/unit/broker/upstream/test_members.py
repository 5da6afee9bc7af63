"""Among whom topics are shared out, by what a broker is told and hears."""

from __future__ import annotations

from tocsin.broker.upstream.members import Members
from tocsin.clock import VirtualClock
from tocsin.protocol.coordination import BrokerInfo

A, B, C = (BrokerInfo(name, f"http://{name}") for name in "abc")
LEAVING_S = 60.0


def members(*living: BrokerInfo, clock: VirtualClock | None = None) -> Members:
    made = Members(lambda: A, clock or VirtualClock(), LEAVING_S)
    made.tell(living)
    return made


def test_who_leaves_by_its_own_word_counts_no_more_and_is_asked_for_its_logs_for_a_while():
    clock = VirtualClock()
    at_a = members(A, B, C, clock=clock)
    assert at_a.hear(B)
    assert at_a.known == (A, C)
    assert at_a.others == [B, C]
    clock.advance(LEAVING_S / 2)
    assert not at_a.hear(B), "it says so again"
    clock.advance(LEAVING_S * 0.75)
    assert at_a.others == [B, C], "who still says so is still there"
    clock.advance(LEAVING_S)
    assert at_a.others == [C]


def test_whom_the_coordinator_names_as_leaving_is_asked_for_its_logs_by_who_never_knew_it():
    clock = VirtualClock()
    at_a = members(clock=clock)
    at_a.tell([A, C], leaving=[B, C])
    assert at_a.known == (A, C)
    assert at_a.others == [B, C]
    assert at_a.staying == [C]
    clock.advance(LEAVING_S)
    assert at_a.others == [C]


def test_the_coordinator_may_count_again_who_left():
    at_a = members(A, B)
    at_a.hear(B)
    at_a.tell([A, B])
    assert at_a.known == (A, B)
    assert at_a.staying == [B]


def test_a_broker_that_leaves_does_not_count_itself_though_it_is_named_again():
    at_a = members(A, B, C)
    assert at_a.is_counted
    assert at_a.leave([B, C])
    at_a.tell([A, B, C])
    assert at_a.is_counted, "so it has to say once more that it leaves"
    assert at_a.known == (B, C)
    assert not at_a.leave([B, C])
    at_a.tell([B, C])
    assert not at_a.is_counted


def test_where_everybody_leaves_nobody_is_left_to_take_anything():
    at_a = members(A, B)
    at_a.leave([B])
    assert not at_a.hear(B), "nobody else counts"
    assert at_a.known == (B,)
    assert at_a.staying == []
