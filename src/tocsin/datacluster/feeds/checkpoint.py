"""The directory that makes a feed exactly-once across restarts.

::

    checkpoint_dir/
      feed.id      drawn once, before the first batch: the first half of every idempotency key
      query/       Spark's own checkpoint: the plan of each batch, written before it runs

Batch *n* of a feed is appended under a key made of the feed's id and *n*, and the dataset never forgets the
keys of a feed's last batch (``storage.idempotency``). That is exactly once if batch *n* always means the
same input. Spark writes the plan of a batch first but does not sync it: after
a power cut the records could be on disk and the plan gone, and another batch *n* would be dropped as
a duplicate. So ``secure`` syncs the plan before the first append. A feed that is dropped and created
anew has another directory, hence another id, and does not collide with its former self.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from tocsin.datacluster.storage.idempotency import feed_key


@dataclass(frozen=True, slots=True)
class Checkpoint:
    feed_id: str
    query: Path

    def key(self, batch_id: int) -> str:
        return feed_key(self.feed_id, batch_id)

    def secure(self, batch_id: int) -> None:
        """Make the plan of a batch durable: what Spark wrote for it, and the directories on the way."""
        _sync(self.query / "metadata")
        _sync(self.query / "offsets" / str(batch_id))
        for source in sorted((self.query / "sources").glob("*")):
            newest = max(source.iterdir(), key=_number, default=source)
            _sync(newest)
            _sync(source)
        for directory in ("sources", "offsets", "."):
            _sync(self.query / directory)


def open_checkpoint(directory: Path) -> Checkpoint:
    """The checkpoint in ``directory``, made if it is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "feed.id"
    if not file.exists():
        draft = directory / "feed.id.new"
        draft.write_text(uuid.uuid4().hex)
        _sync(draft)
        draft.rename(file)
        _sync(directory)
    return Checkpoint(file.read_text().strip(), directory / "query")


def _number(entry: Path) -> int:
    """Spark numbers a source's entries: ``7``, or ``9.compact`` for a merged one; -1 for anything else."""
    number = entry.name.removesuffix(".compact")
    return int(number) if number.isdigit() else -1


def _sync(path: Path) -> None:
    if not path.exists():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
