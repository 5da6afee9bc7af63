from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.storage import faults, frames
from tocsin.datacluster.storage.frames import Frame, Kind
from tocsin.datacluster.storage.idempotency import Appended, RememberedKeys
from tocsin.datacluster.storage.recordlog import RecordLog, Show
from tocsin.errors import Corrupt, StorageFull, Unavailable


def open_log(directory: Path, clock: VirtualClock | None = None, *, segment_bytes: int = 1 << 20, max_keys: int = 100,
             compacted_through: int = 0, prepare: Callable[[Frame], Show | None] = lambda frame: None,
             ) -> RecordLog:  # fmt: skip
    clock = clock or VirtualClock(1000.0)
    keys = RememberedKeys(clock, max_keys, 60.0)
    return RecordLog(directory, clock, keys, prepare, compacted_through=compacted_through, segment_bytes=segment_bytes)


def frame(body: bytes, count: int = 1, key: str = "") -> Frame:
    return Frame(Kind.RECORDS, 1, 0, count, 0, key.encode(), body)


def bodies(log: RecordLog) -> list[bytes]:
    return [bytes(f.body) for f in log.read(0, log.head)]


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def test_a_frame_decodes_to_what_was_encoded() -> None:
    made = Frame(Kind.DELETIONS, 7, 2**40, 3, -5, b"key", b"body", 99)
    assert frames.decode(memoryview(made.encode()), 0) == made


@pytest.mark.parametrize("at", range(len(Frame(Kind.RECORDS, 1, 1, 1, 1, b"k", b"b").encode())))
def test_a_flipped_bit_anywhere_is_found(at: int) -> None:
    data = bytearray(Frame(Kind.RECORDS, 1, 1, 1, 1, b"k", b"b").encode())
    data[at] ^= 0x10
    assert frames.decode(memoryview(bytes(data)), 0) is None


def test_numbers_are_consecutive_and_survive_reopening(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.append(frame(b"a", 3)) == Appended(1, 3, 3)
    assert log.append(frame(b"b", 2)) == Appended(4, 5, 2)
    log.close()
    again = open_log(tmp_path)
    assert (again.head, bodies(again)) == (5, [b"a", b"b"])
    assert again.append(frame(b"c")) == Appended(6, 6, 1)


def test_reading_gives_the_frames_that_touch_the_range(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    for body in (b"a", b"b", b"c", b"d"):
        log.append(frame(body, 3))
    assert [bytes(f.body) for f in log.read(4, 7)] == [b"b", b"c"]
    assert [bytes(f.body) for f in log.read(12, 12)] == []


def test_waiting_appends_share_one_sync(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    syncs: list[str] = []
    entered, gate = threading.Event(), threading.Event()

    def handler(name: str) -> None:
        if name == "log.before-write" and not entered.is_set():
            entered.set()
            gate.wait()
        syncs.append(name)

    faults.install(handler)
    threads = [threading.Thread(target=log.append, args=(frame(b"x"),)) for _ in range(20)]
    threads[0].start()
    entered.wait()
    for thread in threads[1:]:
        thread.start()
    while len(log._pending) < 19:
        pass
    gate.set()
    for thread in threads:
        thread.join()
    assert (log.head, syncs.count("log.after-sync")) == (20, 2)


def test_a_key_is_answered_as_the_first_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = log.append(frame(b"a", 3, "k"))
    assert log.append(frame(b"other", 5, "k")) == first.again()
    log.close()
    assert open_log(tmp_path).append(frame(b"a", 3, "k")) == first.again()


@pytest.mark.parametrize(
    ("max_keys", "seconds"),
    [pytest.param(1, 0.0, id="when there are too many"), pytest.param(100, 61.0, id="when it is too old")],
)
def test_a_key_is_forgotten(tmp_path: Path, max_keys: int, seconds: float) -> None:
    clock = VirtualClock(1000.0)
    log = open_log(tmp_path, clock, max_keys=max_keys)
    log.append(frame(b"a", 1, "k"))
    log.append(frame(b"b", 1, "l"))
    clock.advance(seconds)
    assert not log.append(frame(b"a", 1, "k")).is_duplicate


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(frame(b"whole"))
    log.append(frame(b"torn"))
    log.close()
    (path,) = segments(tmp_path)
    os.truncate(path, path.stat().st_size - 1)
    again = open_log(tmp_path)
    assert bodies(again) == [b"whole"]
    again.append(frame(b"next"))
    again.close()
    assert bodies(open_log(tmp_path)) == [b"whole", b"next"]


def test_zeros_after_the_end_are_cut_off(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(frame(b"whole"))
    log.close()
    with segments(tmp_path)[0].open("ab") as file:
        file.write(bytes(4096))
    assert bodies(open_log(tmp_path)) == [b"whole"]


def test_damage_before_a_synced_frame_names_file_and_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for body in (b"first", b"second", b"third"):
        log.append(frame(body))
    log.close()
    (path,) = segments(tmp_path)
    data = bytearray(path.read_bytes())
    at = data.index(b"second")
    data[at] ^= 1
    path.write_bytes(bytes(data))
    offset = frame(b"first").size_bytes
    with pytest.raises(Corrupt, match=rf"{path.name}: the frame at offset {offset} does not verify"):
        open_log(tmp_path)


def test_a_torn_group_is_cut_off_though_its_end_was_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(frame(b"whole"))
    log.close()
    (path,) = segments(tmp_path)
    start = path.stat().st_size
    group = [frame(b"lost").placed(2, 1, start).encode(), frame(b"there").placed(3, 1, start).encode()]
    with path.open("ab") as file:
        file.write(bytes(len(group[0])) + group[1])
    assert bodies(open_log(tmp_path)) == [b"whole"]


def test_damage_in_a_closed_segment_is_corrupt(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=1)
    log.append(frame(b"first"))
    log.append(frame(b"second"))
    log.close()
    path = segments(tmp_path)[0]
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(Corrupt, match=path.name):
        open_log(tmp_path)


def test_a_missing_segment_is_corrupt(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=1)
    for body in (b"first", b"second", b"third"):
        log.append(frame(body))
    log.close()
    segments(tmp_path)[1].unlink()
    with pytest.raises(Corrupt, match="expected to start with record 2"):
        open_log(tmp_path)
    segments(tmp_path)[0].unlink()
    with pytest.raises(Corrupt, match="records after 0 are missing"):
        open_log(tmp_path)


def test_dropped_segments_are_gone_and_the_rest_reads(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=1)
    for body in (b"first", b"second", b"third"):
        log.append(frame(body))
    assert log.drop_through(2) == 2
    assert log.start == 3
    log.close()
    assert bodies(open_log(tmp_path, compacted_through=2)) == [b"third"]


def test_a_full_disk_takes_the_write_back_and_the_log_goes_on(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(frame(b"whole"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageFull, match="nothing was acknowledged"):
            log.append(frame(b"x" * 10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert segments(tmp_path)[0].stat().st_size == frame(b"whole").size_bytes
    assert log.append(frame(b"next")) == Appended(2, 2, 1)
    log.close()
    assert bodies(open_log(tmp_path)) == [b"whole", b"next"]


def test_after_a_failed_sync_nothing_more_is_accepted(tmp_path: Path) -> None:
    log = open_log(tmp_path)

    def ill(name: str) -> None:
        if name == "log.after-write":
            raise OSError(errno.EIO, "input/output error")

    faults.install(ill)
    with pytest.raises(Unavailable, match="input/output"):
        log.append(frame(b"a"))
    faults.install(None)
    with pytest.raises(Unavailable, match="stopped after a write error"):
        log.append(frame(b"b"))
    log.close()
    assert bodies(open_log(tmp_path)) == []


def test_a_closed_log_refuses(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.close()
    with pytest.raises(Unavailable, match="is closed"):
        log.append(frame(b"a"))


def test_a_frame_is_shown_before_the_head_is(tmp_path: Path) -> None:
    heads: list[int] = []
    log = open_log(tmp_path, segment_bytes=1, prepare=lambda frame: lambda: heads.append(log.head))
    log.append(frame(b"a", 3))
    log.append(frame(b"b"))
    assert (heads, log.head) == ([0, 3], 4)


def test_a_frame_that_cannot_be_prepared_leaves_nothing_behind(tmp_path: Path) -> None:
    def prepare(placed: Frame) -> None:
        if placed.body == b"bad":
            raise ValueError("not a batch")

    log = open_log(tmp_path, prepare=prepare)
    with pytest.raises(ValueError, match="not a batch"):
        log.append(frame(b"bad", 3, "k"))
    assert log.append(frame(b"good", 1, "k")) == Appended(1, 1, 1)
    log.close()
    assert bodies(open_log(tmp_path)) == [b"good"]


def test_a_log_that_cannot_show_what_is_durable_stops_and_knows_the_key_when_reopened(tmp_path: Path) -> None:
    def show() -> None:
        raise MemoryError("too much")

    log = open_log(tmp_path, prepare=lambda placed: show)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"durable that could not be shown \(too much\)"):
            log.append(frame(b"a", 3, "k"))
    log.close()
    again = open_log(tmp_path)
    assert again.append(frame(b"a", 3, "k")) == Appended(1, 3, 3, is_duplicate=True)
    assert bodies(again) == [b"a"]


def next_handle() -> int:
    """The lowest number that is free."""
    handle = os.open(os.devnull, os.O_RDONLY)
    os.close(handle)
    return handle


def test_a_segment_that_cannot_be_made_leaves_nothing_open(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=1)
    before = next_handle()

    def ill(point: str) -> None:
        if point == "log.roll":
            raise OSError(errno.ENOSPC, "full")

    faults.install(ill)
    try:
        for _ in range(3):
            log.append(frame(b"a"))
    finally:
        faults.install(None)
    assert next_handle() == before
    assert (log.head, len(segments(tmp_path))) == (3, 1)
    log.append(frame(b"b"))
    assert (bodies(log), len(segments(tmp_path))) == ([b"a", b"a", b"a", b"b"], 2)
