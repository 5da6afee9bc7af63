"""What a migration takes behind the subscriber's back: the messages between coordinator and brokers, in bytes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tocsin.protocol.coordination import Adopt, Arrival, BrokerInfo, Outcome, Release, Send
from tocsin.protocol.messages import Move, Wanted

NUMBER, VERSION = 1_000, 1_000  # of usual length


def behind_bytes(user: str, move: Move, wanted: Sequence[Wanted]) -> int:
    """Adopt, send and release with their outcomes, and the arrival, as the JSON that they are; without HTTP's heads,
    for instructions and reports travel together with others."""
    told = (
        Adopt(NUMBER, user, VERSION, wanted),
        Send(NUMBER, user, VERSION, BrokerInfo(move.broker, move.url), move.ticket),
        Release(NUMBER, user, VERSION),
        *(Outcome(NUMBER, ok=True) for _ in range(3)),
        Arrival(user, VERSION),
    )
    return sum(len(msgspec.json.encode(message)) for message in told)
