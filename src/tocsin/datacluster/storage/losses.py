"""Records that were acknowledged and are gone, as the log remembers them.

A log whose end lies before what others have seen of it was cut off behind our back. The numbers in
between are never given out again: an empty file named after the first and the last of them marks the
hole, and the log goes on behind it. The mark stays until retention has passed over the hole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tocsin.datacluster.storage.files import sync_directory

_SUFFIX = ".lost"


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"the records {self.first} to {self.last} were acknowledged and are no longer in the log"


def load(directory: Path) -> tuple[Loss, ...]:
    marks = (path.stem.split("-") for path in directory.glob(f"*{_SUFFIX}"))
    return tuple(sorted(Loss(int(first), int(last)) for first, last in marks))


def note(directory: Path, loss: Loss) -> None:
    """Mark a hole durably."""
    os.close(os.open(_path(directory, loss), os.O_WRONLY | os.O_CREAT, 0o644))
    sync_directory(directory)


def forget(directory: Path, losses: Sequence[Loss]) -> None:
    for loss in losses:
        _path(directory, loss).unlink(missing_ok=True)


def after(losses: Sequence[Loss], expected: int) -> int:
    """The number that comes next where ``expected`` may be the first of a hole."""
    for loss in losses:
        if loss.first == expected:
            expected = loss.last + 1
    return expected


def _path(directory: Path, loss: Loss) -> Path:
    return directory / f"{loss.first:020d}-{loss.last:020d}{_SUFFIX}"
