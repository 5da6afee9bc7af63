from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin.errors import BadArgument
from tocsin.matching.fingerprint import lanes, string_lanes
from tocsin.model.types import SqlType

REFERENCE_KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


def pairs(values: list[Any], arrow: pa.DataType, sql: SqlType) -> list[tuple[int, int]]:
    one, two = lanes(pa.array(values, arrow), sql, (1, 2), "value")
    return list(zip(one.tolist(), two.tolist(), strict=True))


def test_strings_are_hashed_as_the_published_test_vectors_say() -> None:
    one, two = string_lanes(pa.array([""]), REFERENCE_KEY, "text")
    digest = int(one[0]).to_bytes(8, "little") + int(two[0]).to_bytes(8, "little")
    assert digest.hex() == "a3817f04ba25a8e66df67214c7550293"


def test_strings_of_every_length_differ_and_repeat() -> None:
    texts = [c * n for c in "aé" for n in range(1, 40)]
    first = pairs(texts, pa.string(), SqlType("STRING"))
    assert len(set(first)) == len(texts)
    assert first == pairs(texts, pa.large_string(), SqlType("STRING"))


def test_another_seed_gives_other_hashes() -> None:
    assert string_lanes(pa.array(["a"]), (1, 2), "t")[0] != string_lanes(pa.array(["a"]), (1, 3), "t")[0]


def test_dictionaries_and_slices_hash_as_their_plain_values() -> None:
    from tocsin.matching.columns import flat

    column = pa.chunked_array([pa.array(["x", "fire", None, "flood"]).dictionary_encode()]).slice(1)
    one, _ = string_lanes(flat(column), (1, 2), "t")
    wanted, _ = string_lanes(pa.array(["fire", "", "flood"]), (1, 2), "t")
    assert one.tolist()[0::2] == wanted.tolist()[0::2]


@pytest.mark.parametrize(
    ("sql", "left", "right"),
    [
        pytest.param(SqlType("DOUBLE"), (0.0, pa.float64()), (-0.0, pa.float64()), id="there is one zero"),
        pytest.param(SqlType("DOUBLE"), (math.nan, pa.float64()), (-math.nan, pa.float64()), id="there is one NaN"),
        pytest.param(SqlType("BIGINT"), (-7, pa.int32()), (-7, pa.int64()), id="INT and BIGINT are encoded alike"),
        pytest.param(SqlType("DOUBLE"), (3, pa.int64()), (3.0, pa.float64()), id="an integer beside a double is one"),
        pytest.param(
            SqlType("DECIMAL", 20, 2),
            (Decimal("1.5"), pa.decimal128(10, 1)),
            (Decimal("1.50"), pa.decimal128(20, 2)),
            id="decimals of two scales",
        ),
        pytest.param(
            SqlType("TIMESTAMP"),
            (date(2026, 1, 2), pa.date32()),
            (datetime(2026, 1, 2, tzinfo=UTC), pa.timestamp("us", "UTC")),
            id="a date is its midnight",
        ),
        pytest.param(
            SqlType("TIMESTAMP"),
            (datetime(2026, 1, 2, tzinfo=UTC), pa.timestamp("ns", "UTC")),
            (datetime(2026, 1, 2), pa.timestamp("us")),
            id="timestamps of two units",
        ),
    ],
)
def test_equal_values_have_equal_fingerprints(sql: SqlType, left: tuple[Any, Any], right: tuple[Any, Any]) -> None:
    assert pairs([left[0]], left[1], sql) == pairs([right[0]], right[1], sql)


def test_numbers_are_encoded_injectively() -> None:
    values = [0, 1, -1, 2**62, -(2**63), 2**63 - 1]
    assert len(set(pairs(values, pa.int64(), SqlType("BIGINT")))) == len(values)
    wide = [Decimal(n) for n in (0, 1, -1, 2**64, 2**64 + 1, -(2**64), 10**37)]
    assert len(set(pairs(wide, pa.decimal128(38, 0), SqlType("DECIMAL", 38, 0)))) == len(wide)


def test_a_column_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(BadArgument, match="colour: expected strings"):
        lanes(pa.array([1, 2]), SqlType("STRING"), (1, 2), "colour")
    with pytest.raises(BadArgument, match="size: expected values that read as BIGINT"):
        lanes(pa.array(["one"]), SqlType("BIGINT"), (1, 2), "size")


def test_large_integers_become_doubles_as_java_rounds_them() -> None:
    one, _ = lanes(pa.array([2**63 - 1]), SqlType("DOUBLE"), (1, 2), "n")
    assert one.view(np.float64)[0] == 2.0**63
