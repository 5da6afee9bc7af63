"""Memory follows the ledger in the ledger's order.

The effect of a write on what ticks use is applied by the ledger's own thread as the write settles, so
two callers' effects cannot overtake each other on the way from the ledger to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from tocsin.datacluster.storage.transaction import Transactions, Tx

T = TypeVar("T")


def write_then_apply(ledger: Transactions, work: Callable[[Tx], T], apply: Callable[[T], None]) -> T:
    """Commit ``work``, apply its answer to memory, then return it."""
    applied: Future[T] = Future()

    def settle(written: Future[T]) -> None:
        try:
            answer = written.result()
            apply(answer)
            applied.set_result(answer)
        except BaseException as problem:
            applied.set_exception(problem)

    ledger.submit(work, settle)
    return applied.result()
