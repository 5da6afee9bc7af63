"""Records that were acknowledged and are gone, as the log remembers them.

A log whose end lies before what others have seen of it was cut off behind our back. The numbers in
between are never given out again: a file named after the first and the last of them marks the
hole, and the log goes on behind it. The mark stays until retention has passed over the hole. Where the log ends
in the middle of a frame, the mark says under which name the damaged segment was kept, for somebody to salvage it.
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
    kept_as: str = ""

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        kept = f"; the damaged segment is kept as {self.kept_as}" if self.kept_as else ""
        return f"the records {self.first} to {self.last} were acknowledged and are no longer in the log{kept}"


def load(directory: Path) -> tuple[Loss, ...]:
    return tuple(sorted(_loaded(path) for path in directory.glob(f"*{_SUFFIX}")))


def note(directory: Path, loss: Loss) -> None:
    """Mark a hole durably."""
    with _path(directory, loss).open("w") as file:
        file.write(loss.kept_as)
        file.flush()
        os.fsync(file.fileno())
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


def _loaded(path: Path) -> Loss:
    first, last = path.stem.split("-")
    return Loss(int(first), int(last), path.read_text())


def _path(directory: Path, loss: Loss) -> Path:
    return directory / f"{loss.first:020d}-{loss.last:020d}{_SUFFIX}"
