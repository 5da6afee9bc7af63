"""Nothing of a dataset that is out of order breaks in another way than by saying so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tocsin.datacluster.storage.dataset import DatasetStore
from tocsin.datacluster.storage.faulted import FaultedStore
from tocsin.errors import TocsinError, Unavailable
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.types import SqlType

SPEC = DatasetSpec("Users", (Column("id", SqlType("INT")), Column("v", SqlType("INT"))), ("id",))
ARGUMENTS: dict[str, Any] = {
    "after": 0, "through": 0, "seq": 1, "table": pa.table({"id": [1]}), "keys": pa.table({"id": [1]}), "key": "k",
    "digest": "d", "now": 0.0, "column": Column("w", SqlType("INT")), "name": "v",
}  # fmt: skip
QUIET = {"close", "keep_from", "compact", "expire", "time_of"}
METHODS = [name for name, _ in inspect.getmembers(DatasetStore, inspect.isfunction) if not name.startswith("_")]
PROPERTIES = [
    name for name, found in inspect.getmembers(DatasetStore) if isinstance(found, property) and name[0] != "_"
]


def call(function: Callable[..., Any]) -> Any:
    return function(**{name: ARGUMENTS[name] for name in inspect.signature(function).parameters})


@pytest.mark.parametrize("name", sorted(set(METHODS) - QUIET))
def test_what_reads_or_changes_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(Unavailable, match="'Users' is out of order: torn; restore its files"):
        call(getattr(FaultedStore(SPEC, 7, 3, "torn"), name))


@pytest.mark.parametrize("name", [*sorted(QUIET), *PROPERTIES])
def test_what_looks_after_datasets_passes_it_by(name: str) -> None:
    store = FaultedStore(SPEC, 7, 3, "torn")
    try:
        found = getattr(store, name)
        if callable(found):
            call(found)
    except (TocsinError, AttributeError) as problem:
        pytest.fail(f"{name}: {problem!r}")
