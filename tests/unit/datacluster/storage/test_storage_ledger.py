from __future__ import annotations

import os
import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tocsin.datacluster.storage import faults
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.transaction import Tx, next_value, rows_in
from tocsin.errors import Corrupt, StorageFull, Unavailable


def _put(name: str, value: int = 1):
    return lambda tx: tx.execute("INSERT INTO counter VALUES (?, ?)", (name, value))


def _names(tx: Tx) -> list[str]:
    return [name for (name,) in tx.rows("SELECT name FROM counter ORDER BY name")]


def test_a_write_is_there_after_reopening(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.write(lambda tx: next_value(tx, "x", 3)) == 3
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.write(lambda tx: next_value(tx, "x")) == 4


def test_a_work_that_raises_undoes_only_itself(ledger: Ledger) -> None:
    gate = threading.Event()
    blocker = ledger.submit(lambda tx: gate.wait())

    def fails(tx: Tx) -> None:
        _put("bad")(tx)
        raise KeyError("mine")

    good, bad, more = ledger.submit(_put("a")), ledger.submit(fails), ledger.submit(_put("b"))
    gate.set()
    blocker.result()
    good.result()
    more.result()
    with pytest.raises(KeyError, match="mine"):
        bad.result()
    assert ledger.read(_names) == ["a", "b"]


def test_all_who_wait_share_one_commit(ledger: Ledger) -> None:
    commits: list[str] = []
    gate = threading.Event()
    blocker = ledger.submit(lambda tx: gate.wait())
    futures = [ledger.submit(_put(str(n))) for n in range(50)]
    faults.install(lambda name: commits.append(name))
    gate.set()
    for future in (blocker, *futures):
        future.result()
    ledger.close()
    assert commits.count("ledger.after-commit") <= 2


def test_nobody_is_told_when_the_commit_fails(ledger: Ledger) -> None:
    def broken(name: str) -> None:
        if name == "ledger.before-commit":
            raise OSError("no")

    faults.install(broken)
    with pytest.raises(OSError, match="no"):
        ledger.write(_put("a"))
    faults.install(None)
    assert ledger.read(_names) == []
    ledger.write(_put("b"))
    assert ledger.read(_names) == ["b"]


def test_a_full_disk_is_storage_full_and_the_ledger_goes_on(ledger: Ledger) -> None:
    pages = ledger.write(lambda tx: tx.rows("PRAGMA page_count"))[0][0]
    ledger.write(lambda tx: tx.rows(f"PRAGMA max_page_count = {pages + 1}"))
    with pytest.raises(StorageFull, match="disk is full"):
        ledger.write(_put("x" * 100_000))
    ledger.write(_put("small"))
    assert ledger.read(_names) == ["small"]


def test_a_newer_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    Ledger(tmp_path / "l").close()
    with sqlite3.connect(tmp_path / "l") as connection:
        connection.execute("INSERT INTO schema_version VALUES (99)")
    with pytest.raises(Unavailable, match="schema version 99, this program knows versions up to"):
        Ledger(tmp_path / "l")


def test_a_file_that_is_no_ledger_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b"not a database " * 100)
    with pytest.raises(Corrupt, match="does not verify"):
        Ledger(tmp_path / "l")


def test_a_reader_sees_one_state_while_others_write(ledger: Ledger) -> None:
    def read_twice(tx: Tx) -> tuple[list[str], list[str]]:
        first = _names(tx)
        ledger.write(_put("later"))
        return first, _names(tx)

    assert ledger.read(read_twice) == ([], [])
    assert ledger.read(_names) == ["later"]


def test_a_reader_cannot_write(ledger: Ledger) -> None:
    with pytest.raises(Unavailable, match="readonly"):
        ledger.read(_put("a"))


def test_a_work_that_starts_another_is_told_so(ledger: Ledger) -> None:
    with pytest.raises(RuntimeError, match="must not start another"):
        ledger.write(lambda tx: ledger.write(_put("a")))


def test_closing_finishes_what_was_submitted_and_refuses_more(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l", max_batch=3)
    futures = [ledger.submit(_put(str(n))) for n in range(20)]
    ledger.close()
    assert all(future.result() == 1 for future in futures)
    with pytest.raises(Unavailable, match="closed"):
        ledger.write(_put("late"))


def test_a_long_list_is_asked_in_parts(ledger: Ledger) -> None:
    ledger.write(lambda tx: tx.executemany("INSERT INTO counter VALUES (?, 1)", [(str(n),) for n in range(1300)]))
    found = ledger.read(
        lambda tx: rows_in(
            tx, "SELECT name FROM counter WHERE value = ? AND name IN (*)", [str(n) for n in range(1300)], (1,)
        )
    )
    assert len(found) == 1300


def test_threads_that_come_and_go_leave_few_connections(tmp_path: Path) -> None:
    def connections() -> int:
        return sum(os.path.realpath(f).endswith("few.db") for f in Path("/proc/self/fd").iterdir())

    with Ledger(tmp_path / "few.db") as ledger:
        for _ in range(40):
            thread = threading.Thread(target=ledger.read, args=(_names,))
            thread.start()
            thread.join()
        assert connections() == 2
    assert connections() == 0


def test_of_many_that_read_at_once_some_connections_stay(ledger: Ledger) -> None:
    together = threading.Barrier(30)
    threads = [threading.Thread(target=ledger.read, args=(lambda tx: together.wait(),)) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger._readers.idle == 16


def test_a_connection_that_read_in_vain_is_used_again(ledger: Ledger) -> None:
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            ledger.read(lambda tx: tx.rows("SELECT * FROM nowhere"))
    assert ledger._readers.idle == 1


def test_reading_a_closed_ledger_is_refused(ledger: Ledger) -> None:
    ledger.read(_names)
    ledger.close()
    with pytest.raises(Unavailable, match="closed"):
        ledger.read(_names)


def test_a_writer_that_cannot_roll_back_tells_everybody_and_takes_no_more(ledger: Ledger) -> None:
    def broken(name: str) -> None:
        if name == "ledger.before-commit":
            ledger._writer.close()
            waiting.append(_submit_from_elsewhere(ledger))

    waiting: list[Future[int]] = []
    faults.install(broken)
    first = ledger.submit(_put("a"))
    with pytest.raises(Unavailable, match="stopped writing"):
        first.result(10)
    with pytest.raises(Unavailable, match="stopped writing"):
        waiting[0].result(10)
    with pytest.raises(Unavailable, match="stopped writing"):
        ledger.write(_put("c"))
    assert ledger.read(_names) == []


def _submit_from_elsewhere(ledger: Ledger) -> Future[int]:
    """Submit while the writer is busy."""
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(lambda: ledger.submit(_put("b"))).result()


def test_a_damaged_page_is_found_at_start_and_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        rows = [(f"counter {n}", n) for n in range(5000)]
        ledger.write(lambda tx: tx.executemany("INSERT INTO counter (name, value) VALUES (?, ?)", rows))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(Corrupt, match=r"ledger\.db does not verify"):
        Ledger(path)


def test_works_submitted_together_share_one_commit_and_fail_alone(ledger: Ledger) -> None:
    commits: list[str] = []
    faults.install(commits.append)

    def fails(tx: Tx) -> None:
        raise KeyError("mine")

    good, bad, more = ledger.submit_all([_put("a"), fails, _put("b")])
    assert ledger.submit_all([]) == []
    assert isinstance(bad.exception(), KeyError)
    assert (good.result(), more.result()) == (1, 1)
    ledger.close()
    assert commits.count("ledger.after-commit") == 1
