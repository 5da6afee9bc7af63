"""LOAD DATASET: a file of the server's, read in batches into a dataset.

The key of each batch is the file's content address and the batch's place, so loading the same file
again after an interruption adds only what is missing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.feeds.decode import UnreadableFile, decode_file
from tocsin.datacluster.service import Receipt
from tocsin.datacluster.storage.parse_records import BadRecord
from tocsin.errors import BadArgument, Refused


def load_file(datasets: Datasets, name: str, root: Path, path: str, form: str) -> Receipt:
    """Append every record of ``path``, which lies under ``root``."""
    place = (root / path).resolve()
    if not place.is_relative_to(root.resolve()):
        raise Refused(f"{path!r} is outside the directory that LOAD DATASET may read")
    if not place.is_file():
        raise BadArgument("file", "a file that exists on the server", path)
    content = place.read_bytes()
    digest = hashlib.blake2b(content, digest_size=12).hexdigest()
    accepted = rejected = 0
    try:
        for number, (table, letters) in enumerate(decode_file(place.name, content, datasets[name].spec, form)):
            bad = [BadRecord(line, raw, reason) for line, (raw, reason) in enumerate(letters, 1)]
            receipt = datasets.append(name, table, bad, f"load/{digest}/{number}")
            accepted, rejected = accepted + receipt.accepted, rejected + receipt.rejected
    except UnreadableFile as problem:
        raise BadArgument("file", f"readable {form}", str(problem)) from None
    return Receipt(accepted, rejected, 0, 0, False)
