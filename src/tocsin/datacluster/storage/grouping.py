"""Frames that are written together: each gets its numbers, and repeated idempotency keys are found.

One that is refused takes no number and no other with it. A key that an earlier frame of the same group has is a
repetition, too: it is answered as that one is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tocsin.datacluster.storage.frames import Frame
from tocsin.datacluster.storage.idempotency import Appended, RememberedKeys, check_digests, split_key

Show = Callable[[], None]


@dataclass(slots=True)
class Waiting:
    """A frame whose sender waits, and what it is told."""

    frame: Frame
    done: Appended | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A frame with its numbers, and what makes it readable, if anything need be done."""

    waiting: Waiting
    frame: Frame
    show: Show | None


def placed(
    group: Sequence[Waiting], head: int, now_us: int, start: int, keys: RememberedKeys,
    prepare: Callable[[Frame], Show | None],
) -> tuple[list[Placed], list[Waiting]]:  # fmt: skip
    """The frames with numbers after ``head``, written from ``start`` on, and those whose key was seen before."""
    fresh: list[Placed] = []
    again: list[Waiting] = []
    seen: dict[str, str] = {}
    for waiting in group:
        key, digest = split_key(waiting.frame.key)
        frame = waiting.frame.placed(head + 1, now_us, start)
        try:
            if key and _is_known(key, digest, seen, keys):
                again.append(waiting)
                continue
            fresh.append(Placed(waiting, frame, prepare(frame)))
        except Exception as error:
            waiting.error = error
            continue
        seen[key] = digest
        head = frame.last_seq
    return fresh, again


def settle(fresh: Sequence[Placed], again: Sequence[Waiting], keys: RememberedKeys) -> None:
    """Tell everybody which numbers they got, now that they are durable."""
    for one in fresh:
        one.waiting.done = Appended(one.frame.first_seq, one.frame.last_seq, one.frame.count)
    for waiting in again:
        key = split_key(waiting.frame.key)[0]
        first = next((p.waiting.done for p in fresh if split_key(p.frame.key)[0] == key), None)
        waiting.done = first.again() if first else keys.find(key)


def _is_known(key: str, digest: str, group: Mapping[str, str], keys: RememberedKeys) -> bool:
    """Whether a key was used before, or by an earlier one of its group."""
    if key in group:
        check_digests(key, group[key], digest)
    return key in group or keys.find(key, digest) is not None
