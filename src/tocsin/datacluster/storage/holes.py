"""What of a backend subscription's results was never made, for nobody held it.

Its row remembers the last time that it was let go and held again: executions in (``left_after``, ``held_since``)
made nothing for it. Of breaks before that only the end of the last is kept, ``broken_through``: up to there some of
its results are kept and some were never made, so all of them count as missing for whoever comes from before. Where
it was held again before another execution began there is no hole.
"""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.datacluster.storage.transaction import Tx, row_or_none
from tocsin.model.position import START, Position

UNHELD = "unheld"


Hole = tuple[Position, Position]
"""(after, through]"""


def whole_span(tx: Tx, channel_id: int, backend: int, after: Position) -> tuple[Position, Position | None]:
    """Where results after a position begin to be whole, and where the next hole begins.

    Who begins at ``START`` asks for what there is, and is told of no hole.
    """
    sql = """SELECT b.active, b.broken_through, b.left_after, b.held_since, p.committed FROM backend_subscription b
             JOIN channel_progress p ON p.channel_id = b.channel_id WHERE b.channel_id = ? AND b.no = ?"""
    found = row_or_none(tx, sql, (channel_id, backend)) if after > START else None
    begin = after
    for first, last in _holes(*found) if found else ():
        if first > begin:
            return begin, first
        begin = max(begin, last)
    return begin, None


def _holes(active: int, broken_through: int, left_after: int, held_since: int, committed: int) -> Iterator[Hole]:
    if broken_through:
        yield START, Position.end_of(broken_through)
    last = held_since - 1 if active else committed
    if last > left_after:
        yield Position.end_of(left_after), Position.end_of(last)
