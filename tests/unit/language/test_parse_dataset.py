"""CREATE, ALTER, DROP and LOAD DATASET."""

import pytest

from support.refusals import check_refused
from tocsin.errors import SyntaxProblem
from tocsin.language.parser import parse_statement
from tocsin.language.statements import (
    AlterDatasetAddColumn,
    AlterDatasetDropColumn,
    CreateDataset,
    DropDataset,
    LoadDataset,
    Statement,
)
from tocsin.model.catalog import Column, DatasetSpec, Retention
from tocsin.model.types import SqlType

INT, STRING = SqlType("INT"), SqlType("STRING")
KEYED = DatasetSpec("users", (Column("id", STRING, True), Column("x", INT)), ("id",))


def dataset(text: str) -> DatasetSpec:
    statement = parse_statement(text)
    assert isinstance(statement, CreateDataset)
    return statement.spec


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("CREATE DATASET users (id STRING PRIMARY KEY, x INT)", id="at the column"),
        pytest.param("CREATE DATASET users (id STRING NOT NULL PRIMARY KEY, x INT)", id="after NOT NULL"),
        pytest.param("CREATE DATASET users (id STRING PRIMARY KEY NOT NULL, x INT)", id="before NOT NULL"),
        pytest.param("CREATE DATASET users (id STRING, x INT, PRIMARY KEY (ID))", id="inside the brackets"),
        pytest.param("CREATE DATASET users (PRIMARY KEY (id), id STRING, x INT)", id="ahead of its column"),
        pytest.param("create dataset users (id string, x int) primary key (Id)", id="after the brackets"),
    ],
)
def test_a_key_may_stand(text: str) -> None:
    assert dataset(text) == KEYED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("BOOLEAN", SqlType("BOOLEAN"), id="a scalar"),
        pytest.param("integer", INT, id="an alias"),
        pytest.param("LONG", SqlType("BIGINT"), id="another alias"),
        pytest.param("DECIMAL", SqlType("DECIMAL", 10, 0), id="DECIMAL alone"),
        pytest.param("DECIMAL(5)", SqlType("DECIMAL", 5, 0), id="DECIMAL with digits"),
        pytest.param("NUMERIC(38, 38)", SqlType("DECIMAL", 38, 38), id="DECIMAL with decimals"),
        pytest.param("ARRAY<TEXT>", SqlType("STRING", is_array=True), id="an array"),
        pytest.param("ARRAY<DECIMAL(4,2)>", SqlType("DECIMAL", 4, 2, True), id="an array of decimals"),
    ],
)
def test_types(text: str, expected: SqlType) -> None:
    assert dataset(f"CREATE DATASET d (c {text})").columns == (Column("c", expected),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", Retention(), id="nothing is everything"),
        pytest.param("RETAIN '1 hour'", Retention(age_s=3600), id="by age"),
        pytest.param("RETAIN 10000 RECORDS", Retention(records=10_000), id="by count"),
        pytest.param("RETAIN 512 MB", Retention(size_bytes=512_000_000), id="by size"),
        pytest.param("RETAIN 1.5KiB", Retention(size_bytes=1536), id="by size without a space"),
        pytest.param("RETAIN 1 GB AND '7 days' AND 5 RECORDS", Retention(604_800, 5, 10**9), id="by all three"),
    ],
)
def test_retain(text: str, expected: Retention) -> None:
    assert dataset(f"CREATE DATASET d (c INT) {text}").retain == expected


def test_key_and_retain_come_in_either_order() -> None:
    one = dataset("CREATE DATASET d (c INT) PRIMARY KEY (c) RETAIN '1h'")
    assert one == dataset("CREATE DATASET d (c INT) RETAIN '1h' PRIMARY KEY (c)")


def test_names_keep_their_case_and_may_be_keywords() -> None:
    spec = dataset("CREATE ACTIVE DATASET IF NOT EXISTS Period (`primary` INT, Key STRING, `As` INT)")
    assert (spec.name, spec.active) == ("Period", True)
    assert [c.name for c in spec.columns] == ["primary", "Key", "As"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("DROP DATASET d", DropDataset("d"), id="drop"),
        pytest.param("DROP DATASET IF EXISTS d", DropDataset("d", True), id="drop if there"),
        pytest.param("DROP DATASET if", DropDataset("if"), id="drop one called if"),
        pytest.param("ALTER DATASET d ADD COLUMN c INT", AlterDatasetAddColumn("d", Column("c", INT)), id="add"),
        pytest.param(
            "ALTER DATASET d ADD COLUMN IF NOT EXISTS c INT",
            AlterDatasetAddColumn("d", Column("c", INT), True),
            id="add unless there",
        ),
        pytest.param("ALTER DATASET d DROP COLUMN c", AlterDatasetDropColumn("d", "c"), id="drop a column"),
        pytest.param(
            "ALTER DATASET d DROP COLUMN IF EXISTS c", AlterDatasetDropColumn("d", "c", True), id="drop one if there"
        ),
        pytest.param("LOAD DATASET d FROM 'a/b.jsonl'", LoadDataset("d", "a/b.jsonl", "json"), id="load JSON lines"),
        pytest.param("LOAD DATASET d FROM 'B.CSV'", LoadDataset("d", "B.CSV", "csv"), id="load by upper-case ending"),
        pytest.param("LOAD DATASET d FROM 'x' FORMAT parquet", LoadDataset("d", "x", "parquet"), id="load by FORMAT"),
        pytest.param(
            "LOAD DATASET d FROM 'x.csv' FORMAT ndjson", LoadDataset("d", "x.csv", "json"), id="FORMAT beats the ending"
        ),
    ],
)
def test_other_statements(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("CREATE DATASET d ()", 19, "expected PRIMARY KEY or a column name"),
        ("CREATE DATASET d (PRIMARY KEY (a))", 32, "the key names 'a'"),
        ("CREATE DATASET d (a INT, A STRING)", 26, "column 'A' is named twice"),
        ("CREATE DATASET d (a INT, PRIMARY KEY (a, a))", 42, "key column 'a' is named twice"),
        ("CREATE DATASET d (a INT PRIMARY KEY) PRIMARY KEY (a)", 38, "a second PRIMARY KEY"),
        ("CREATE DATASET d (a INT PRIMARY KEY, b INT PRIMARY KEY)", 44, "a second PRIMARY KEY"),
        ("CREATE DATASET d (a ARRAY<INT> PRIMARY KEY)", 19, "'a' is an array"),
        ("CREATE DATASET d (a ARRAY<ARRAY<INT>>)", 27, "holds scalars"),
        ("CREATE DATASET d (a STRNG)", 21, "did you mean 'STRING'"),
        ("CREATE DATASET d (a DECIMAL(39, 0))", 29, "1 to 38 digits"),
        ("CREATE DATASET d (a DECIMAL(3, 4))", 29, "at most all of them decimals"),
        ("CREATE DATASET d (a INT) RETAIN '1h' AND '2h'", 42, "two limits of one kind"),
        ("CREATE DATASET d (a INT) RETAIN 'soon'", 33, "'soon' is not a duration"),
        ("CREATE DATASET d (a INT) RETAIN '0s'", 33, "whole milliseconds"),
        ("CREATE DATASET d (a INT) RETAIN 5 PB", 35, "expected RECORDS, KB, MB"),
        ("CREATE DATASET d (a INT) RETAIN 0 MB", 33, "keep nothing"),
        ("CREATE DATASET d (a INT) RETAIN 1.5 RECORDS", 33, "a whole number of records"),
        ("CREATE DATASET d (a INT) RETAIN 1.0001 KB", 33, "a whole number of bytes"),
        ("CREATE DATASET d (a INT) RETAIN '1h' RETAIN '1h'", 38, "unexpected 'RETAIN'"),
        ("CREATE DATASET IF NOT EXIST d (a INT)", 23, "did you mean 'EXISTS'"),
        ("CREATE DATASET __d (a INT)", 16, "the name '__d' is reserved"),
        ("CREATE DATASET d (Tocsin_a INT)", 19, "the name 'Tocsin_a' is reserved"),
        ("CREATE DATASET `a b` (a INT)", 16, "'a b' is not a name"),
        (f"CREATE DATASET {'a' * 65} (a INT)", 16, "at most 64"),
        ("ALTER DATASET d ADD COLUMN c INT NOT NULL", 34, "may be NULL"),
        ("ALTER DATASET d RENAME", 17, "expected ADD or DROP"),
        ("DROP DATASET 'd'", 14, "unexpected string 'd'; expected IF EXISTS or a dataset name"),
        ("LOAD DATASET d FROM '' FORMAT csv", 21, "an empty string; expected the path of a file"),
        ("LOAD DATASET d FROM 'x.txt'", 21, "FORMAT json, csv or parquet"),
        ("LOAD DATASET d FROM 'x' FORMAT xml", 32, "expected JSON, JSONL, NDJSON, CSV or PARQUET"),
        ('LOAD DATASET d FROM "x.csv"', 21, "strings take single quotes"),
    ],
)
def test_refuses(text: str, column: int, words: str) -> None:
    check_refused(text, column, words)


def test_columns_are_bounded() -> None:
    columns = [f"c{i} INT" for i in range(1001)]
    assert len(dataset(f"CREATE DATASET d ({', '.join(columns[:1000])})").columns) == 1000
    with pytest.raises(SyntaxProblem, match="column 'c1000'; expected at most 1000"):
        dataset(f"CREATE DATASET d ({', '.join(columns)})")
