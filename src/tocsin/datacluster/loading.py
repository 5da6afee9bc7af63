"""LOAD DATASET: a file of the server's, read in batches into a dataset.

The key of each batch is the file's content address and the batch's place, so loading the same file
again, after an interruption for instance, adds only what is missing as long as the keys are known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.feeds.decode import UnreadableFile, decode_file
from tocsin.datacluster.service import Receipt
from tocsin.datacluster.storage.parse_records import BadRecord
from tocsin.errors import BadArgument, BadRecords
from tocsin.units import counted


@dataclass(slots=True)
class Loaded:
    """Records that came in, that did not fit, and that had come with the same file before."""

    accepted: int = 0
    rejected: int = 0
    before: int = 0

    def add(self, receipt: Receipt) -> None:
        if receipt.is_duplicate:
            self.before += receipt.accepted + receipt.rejected
        else:
            self.accepted += receipt.accepted
            self.rejected += receipt.rejected

    def sentence(self, dataset: str) -> str:
        again = f"; {counted(self.before, 'record')} of this file came before" if self.before else ""
        return f"loaded {counted(self.accepted, 'record')} into {dataset}, {self.rejected:,} rejected{again}"


def load_file(
    datasets: Datasets, name: str, place: Path, form: str, go_on: Callable[[], None] = lambda: None
) -> Loaded:
    """Append every record of the file at ``place``; ends before a batch where ``go_on`` raises."""
    if not place.is_file():
        raise BadArgument("file", "a file that exists on the server", str(place))
    content = place.read_bytes()
    digest = hashlib.blake2b(content, digest_size=12).hexdigest()
    loaded = Loaded()
    try:
        for number, (table, letters) in enumerate(decode_file(place.name, content, datasets[name].spec, form)):
            go_on()
            bad = [BadRecord(line, raw, reason) for line, (raw, reason) in enumerate(letters, 1)]
            loaded.add(datasets.append(name, table, bad, f"load/{digest}/{number}"))
    except UnreadableFile as problem:
        raise BadRecords(f"{place.name}: {problem}") from None
    return loaded
