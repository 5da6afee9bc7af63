"""What a dataset's directory holds besides its log; switched from one state to the next atomically."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from tocsin.datacluster.storage.files import write_atomically
from tocsin.errors import Corrupt

FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A Parquet file of records with numbers from ``first`` to ``last``; a keyed base has gaps."""

    name: str
    first: int
    last: int
    rows: int
    size_bytes: int
    columns_version: int


@dataclass(frozen=True, slots=True)
class SeqTime:
    """Everything up to ``seq`` was committed by ``time_us``."""

    seq: int
    time_us: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """``files`` cover the records through ``compacted_through``: for a keyed dataset one file, its
    state then; for an appending one the records themselves. What has a number up to ``floor`` has
    expired. ``keys`` names the file of the idempotency keys whose frames are gone.
    """

    compacted_through: int = 0
    floor: int = 0
    files: tuple[StoredFile, ...] = ()
    times: tuple[SeqTime, ...] = ()
    keys: str | None = None

    @property
    def names(self) -> set[str]:
        return {f.name for f in self.files} | ({self.keys} if self.keys else set())


def load(directory: Path) -> Manifest:
    path = directory / FILE
    if not path.exists():
        return Manifest()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        raise Corrupt(f"{path} does not verify: {error}") from error


def switch(directory: Path, manifest: Manifest) -> None:
    data = msgspec.json.encode(manifest)
    write_atomically(directory / FILE, lambda file: file.write(data), "manifest.before-switch", "manifest.after-switch")
