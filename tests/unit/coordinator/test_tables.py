"""The tables of legal transitions are what the rows keep to."""

from __future__ import annotations

import pytest

from tocsin.coordinator import brokers, moves
from tocsin.coordinator.brokers import Broker, BrokerState
from tocsin.coordinator.moves import Move, MoveState


@pytest.mark.parametrize("source", list(BrokerState))
@pytest.mark.parametrize("target", list(BrokerState))
def test_brokers(source: BrokerState, target: BrokerState):
    broker = Broker("a", "http://a:1", "1", source)
    if target is source:
        assert not broker.become(target)
    elif target in brokers.LEGAL[source]:
        assert broker.become(target)
    else:
        with pytest.raises(RuntimeError, match=f"{source} does not become {target}"):
            broker.become(target)


@pytest.mark.parametrize("source", list(MoveState))
@pytest.mark.parametrize("target", list(MoveState))
def test_moves(source: MoveState, target: MoveState):
    move = Move("m1", "p1", "ann", "a", "b", "", 0.0, source)
    if target in moves.LEGAL[source]:
        move.become(target)
        assert move.state is target
    else:
        with pytest.raises(RuntimeError, match="does not become"):
            move.become(target)


def test_what_ended_stays_ended():
    ended = [state for state in MoveState if not moves.LEGAL[state]]
    assert ended == [MoveState.DONE, MoveState.REFUSED, MoveState.TIMED_OUT, MoveState.SUPERSEDED]
    assert all(BrokerState.LIVE in brokers.LEGAL[state] for state in brokers.ENDED), "brokers may return"
