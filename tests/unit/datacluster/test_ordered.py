"""Memory follows the ledger in the ledger's order, however late a caller's thread runs on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from tocsin.datacluster.ordered import write_then_apply
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.transaction import Tx


class _Held(Ledger):
    """A ledger whose first caller gets no time between handing its work over and whatever it does next."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_written, self.goes_on = Event(), Event()

    def submit(self, work: Callable[[Tx], Any], *more: Any) -> Future[Any]:
        future = super().submit(work, *more)
        future.result()
        if not self.is_written.is_set():
            self.is_written.set()
            self.goes_on.wait()
        return future


def test_effects_come_in_the_order_of_the_writes_though_the_first_caller_is_held_up(tmp_path: Path) -> None:
    applied: list[str] = []
    ledger = _Held(tmp_path / "ledger.db")
    with ledger, ThreadPoolExecutor(1) as pool:
        first = pool.submit(write_then_apply, ledger, lambda _: "ended", applied.append)
        ledger.is_written.wait()
        write_then_apply(ledger, lambda _: "made again", applied.append)
        ledger.goes_on.set()
        first.result()
    assert applied == ["ended", "made again"]
