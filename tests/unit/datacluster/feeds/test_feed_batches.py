from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tocsin.datacluster.feeds import batches
from tocsin.datacluster.feeds.batches import PIECE, Delivered, deliver, encode


class MemorySink:
    """Keeps what it is given, once a key."""

    def __init__(self) -> None:
        self.appended: dict[str, list[int]] = {}
        self.rejected: dict[str, list[tuple[str, str]]] = {}
        self.calls: list[str] = []

    def append(self, table: pa.Table, key: str) -> None:
        self.calls.append(key)
        self.appended.setdefault(key, table["id"].to_pylist())

    def reject(self, raw_lines: list[tuple[str, str]], key: str) -> None:
        self.calls.append(key)
        self.rejected.setdefault(key, raw_lines)


def piece(at: int, source: str, start: int, ids: list[int], bad: list[tuple[str, str]] = []) -> dict[str, object]:  # noqa: B006
    good = encode(pa.table({"id": ids})) if ids else None
    raw, reason = [r for r, _ in bad], [why for _, why in bad]
    return {"at": at, "source": source, "start": start, "good": good, "raw": raw, "reason": reason}


def pieces(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=PIECE)


FIVE = [
    piece(1, "b", 0, [1, 2]),
    piece(1, "b", 1, [3]),
    piece(2, "a", 0, [4], [("x", "not JSON")]),
    piece(2, "a", 1, [], [("y", "too long")]),
    piece(2, "c", 0, [5, 6, 7]),
]


def test_records_come_in_the_order_of_their_source() -> None:
    sink = MemorySink()
    assert deliver(pieces(*FIVE), "k", sink) == Delivered(7, 2)
    assert sink.appended == {"k/0": [1, 2, 3, 4, 5, 6, 7]}
    assert sink.rejected == {"k/rejected/0": [("x", "not JSON"), ("y", "too long")]}


@pytest.mark.parametrize("seed", range(5))
def test_chunks_do_not_depend_on_how_spark_spread_the_input(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "CHUNK_ROWS", 3)
    shuffled = random.Random(seed).sample(FIVE, len(FIVE))
    sink = MemorySink()
    deliver(pieces(*shuffled), "k", sink)
    assert sink.appended == {"k/0": [1, 2, 3], "k/1": [4, 5, 6], "k/2": [7]}


def test_dead_letters_are_kept_before_records() -> None:
    sink = MemorySink()
    deliver(pieces(*FIVE), "k", sink)
    assert sink.calls == ["k/rejected/0", "k/0"]


def test_a_batch_of_nothing_calls_nobody() -> None:
    sink = MemorySink()
    assert deliver(pieces(), "k", sink) == Delivered(0, 0)
    assert sink.calls == []
