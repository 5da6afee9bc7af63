from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tocsin.datacluster.spark.factorise import factorise

SCHEMA = pa.schema([("bs", pa.int32()), ("seq", pa.int64()), ("ord", pa.int32()), ("payload", pa.string())])
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2), st.sampled_from(["a", "b", "ü"])), unique=True
)


@given(ROWS)
def test_every_pair_comes_back_and_no_payload_is_stored_twice(rows: list[tuple[int, int, int, str]]) -> None:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    result = factorise(table)
    pairs = [
        (int(b), int(result.seq[i]), int(result.ord[i]), result.payload[i].as_py().decode())
        for i in range(len(result.seq))
        for b in result.ids[result.offsets[i] : result.offsets[i + 1]]
    ]
    assert sorted(pairs) == sorted(rows)
    assert len(result.seq) == len({row[1:] for row in rows})


@given(ROWS, st.randoms())
def test_the_order_of_arrival_does_not_matter(rows: list[tuple[int, int, int, str]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, two = (
        factorise(pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in order], schema=SCHEMA))
        for order in (rows, shuffled)
    )
    assert one.ids.tolist() == two.ids.tolist()
    assert one.payload.to_pylist() == two.payload.to_pylist()
