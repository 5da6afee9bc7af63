"""A dataset whose files do not verify: it is there, says why, and takes and gives nothing.

The other datasets and their channels run on. Its number stands where others have seen it, so that no
window moves; it is opened again at the next start, when its files were restored or it was dropped.
"""

from __future__ import annotations

from typing import NoReturn

import pyarrow as pa

from tocsin.datacluster.storage.dataset import DatasetStore, Snapshot
from tocsin.datacluster.storage.idempotency import Appended
from tocsin.errors import Unavailable
from tocsin.model.catalog import DatasetSpec


class FaultedStore(DatasetStore):
    """Stands in for the store of ``spec``; ``problem`` is what its opening failed of."""

    def __init__(self, spec: DatasetSpec, id: int, reached: int, problem: str) -> None:
        self.id, self._spec, self._reached, self._problem = id, spec, reached, problem

    @property
    def spec(self) -> DatasetSpec:
        return self._spec

    @property
    def head(self) -> int:
        return self._reached

    def time_of(self, seq: int) -> None: ...

    @property
    def version(self) -> int:
        return 0

    @property
    def floor(self) -> int:
        return 0

    @property
    def size_bytes(self) -> int:
        return 0

    @property
    def count(self) -> int:
        return 0

    @property
    def problem(self) -> str:
        return self._problem

    @property
    def is_faulted(self) -> bool:
        return True

    def close(self) -> None: ...

    def append(self, table: pa.Table, key: str | None = None, digest: str = "") -> Appended:
        self._refuse()

    def check_key(self, key: str, digest: str) -> None:
        self._refuse()

    def delete(self, keys: pa.Table, key: str | None = None) -> Appended:
        self._refuse()

    def new(self, after: int, through: int) -> pa.Table:
        self._refuse()

    def now(self, through: int | None = None) -> pa.Table:
        self._refuse()

    def snapshot(self) -> Snapshot:
        self._refuse()

    def keep_from(self, seq: int | None) -> None: ...

    def compact(self) -> bool:
        return False

    def expire(self, now: float | None = None) -> int:
        return 0

    def _change(self, spec: DatasetSpec) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unavailable(
            f"dataset {self._spec.name!r} is out of order: {self._problem}; "
            "restore its files and start again, or drop it"
        )
