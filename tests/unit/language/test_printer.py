"""Canonical text."""

import pytest

from tocsin.language.parser import parse_statement
from tocsin.language.printer import retention_sql, to_sql
from tocsin.language.statements import Statement
from tocsin.model.catalog import Retention


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (
            "create active dataset d (id string primary key, `as` int, p numeric) retain 5 records and '60 minutes'",
            "CREATE ACTIVE DATASET d (id STRING NOT NULL, `as` INT, p DECIMAL(10, 0)) PRIMARY KEY (id) "
            "RETAIN '1h' AND 5 RECORDS",
        ),
        ("drop dataset if exists `if`", "DROP DATASET IF EXISTS `if`"),
        ("load dataset d from 'it''s.csv'", "LOAD DATASET d FROM 'it''s.csv' FORMAT csv"),
        ("upsert into d values (null, [1, 2.50], true)", "INSERT INTO d VALUES (NULL, ARRAY(1, 2.5), TRUE)"),
        ("delete from d where k in ('a')", "DELETE FROM d WHERE k = 'a'"),
        ("delete from d where (k) in ((1), (2))", "DELETE FROM d WHERE k IN (1, 2)"),
        ("create feed f into d", "CREATE FEED f INTO d FROM HTTP"),
        (
            "create feed f into d from directory 'in' with ('a' = 'b')",
            "CREATE FEED f INTO d FROM DIRECTORY 'in' FORMAT json WITH ('a' = 'b')",
        ),
        (
            "create or replace push channel c period '1000ms' as select  :x",
            "CREATE OR REPLACE PUSH CHANNEL c() PERIOD '1s' AS select  :x",
        ),
        ("subscribe to c(1, a => ['x']) on b", "SUBSCRIBE TO c(1, a => ARRAY('x')) ON b"),
        ("unsubscribe 's' from c", "UNSUBSCRIBE 's' FROM c"),
        ("show dead letters of d", "SHOW DEAD LETTERS OF d"),
        ("describe dataset", "DESCRIBE `dataset`"),
    ],
)
def test_to_sql(written: str, canonical: str) -> None:
    assert to_sql(parse_statement(written)) == canonical


def test_refuses_what_is_no_statement() -> None:
    with pytest.raises(TypeError, match="Statement is not a statement"):
        to_sql(Statement())


def test_retention_alone() -> None:
    assert retention_sql(Retention()) == ""
    assert retention_sql(Retention(90, 5, 2048)) == "'90s' AND 5 RECORDS AND 2 KiB"
