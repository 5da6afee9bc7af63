"""The reference shows every statement, and every example in it parses, those too that are only shown."""

import re
from pathlib import Path

from tocsin.language.parser import parse_script, parse_statement
from tocsin.language.printer import to_sql
from tocsin.language.statements import Statement

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "language.md"


def examples() -> list[Statement]:
    blocks = re.findall(r"```(?:sql|text)\n(.*?)```", REFERENCE.read_text("utf-8"), re.DOTALL)
    return [statement for block in blocks for statement in parse_script(block)]


def test_every_statement_has_an_example() -> None:
    assert {type(s).__name__ for s in examples()} == {kind.__name__ for kind in Statement.__subclasses__()}


def test_every_example_survives_printing() -> None:
    assert [parse_statement(to_sql(s)) for s in examples()] == examples()
