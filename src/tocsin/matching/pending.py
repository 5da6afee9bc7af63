"""Parameter sets as Arrow tables, and those that are not yet in a base.

The tables have one column for each parameter, of the Arrow type of its SQL type.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.matching.columns import flat
from tocsin.matching.encode import Columns
from tocsin.matching.spec import IndexSpec
from tocsin.model.arrow import arrow_type

_SLACK = 1000  # dead rows that are kept without a thought


def params_schema(spec: IndexSpec) -> pa.Schema:
    return pa.schema([(name, arrow_type(sql)) for name, sql in spec.param_types])


def params_table(schema: pa.Schema, params: Columns, n: int) -> pa.Table:
    """The parameters as declared; BadArgument where one is missing, does not fit or is not ``n`` long."""
    columns = []
    for field in schema:
        if field.name not in params:
            raise BadArgument(f"parameter {field.name}", "its values", sorted(params))
        column = flat(params[field.name])
        try:
            columns.append(column if column.type == field.type else pc.cast(column, field.type))
        except pa.ArrowException as problem:
            raise BadArgument(f"parameter {field.name}", str(field.type), str(problem)) from None
        if len(column) != n:
            raise BadArgument(f"parameter {field.name}", f"{n} values", len(column))
    return pa.Table.from_arrays(columns, schema=schema)


class Pending:
    """Parameter sets by id. Adding an id that is there changes nothing: its parameters never change."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._rows: dict[int, int] = {}
        self._chunks: list[pa.Table] = []
        self._stored = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, number: int) -> bool:
        return number in self._rows

    def add(self, ids: Iterable[int], params: pa.Table) -> None:
        for i, number in enumerate(ids, start=self._stored):
            self._rows.setdefault(number, i)
        self._chunks.append(params)
        self._stored += params.num_rows

    def remove(self, number: int) -> bool:
        """Whether it was there."""
        return self._rows.pop(number, None) is not None

    def contents(self) -> tuple[NDArray[np.uint32], pa.Table]:
        """(ids ascending, their parameters)."""
        ids = np.fromiter(self._rows, np.uint32, len(self._rows))
        rows = np.fromiter(self._rows.values(), np.int64, len(self._rows))
        order = np.argsort(ids)
        whole = joined(self._schema, self._chunks, self._stored)
        self._chunks = [whole]
        if self._stored > 2 * len(self) + _SLACK:
            self._shrink(whole)
        return ids[order], take(whole, rows[order])

    def _shrink(self, whole: pa.Table) -> None:
        rows = np.fromiter(self._rows.values(), np.int64, len(self._rows))
        self._chunks, self._stored = [take(whole, rows)], rows.size
        self._rows = dict(zip(self._rows, range(rows.size), strict=True))


def joined(schema: pa.Schema, tables: list[pa.Table], rows: int) -> pa.Table:
    """The tables' rows in one; without columns a table is only a number of rows."""
    if not schema.names:
        return bare(rows)
    return pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()


def take(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    return table.take(pa.array(rows)) if table.num_columns else bare(rows.size)


def bare(rows: int) -> pa.Table:
    """A table of no columns."""
    return pa.table({"rows": pa.nulls(rows)}).select([])
