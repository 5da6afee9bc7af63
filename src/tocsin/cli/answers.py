"""What statements gave, for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tocsin.cli.output import console, note, print_table, visible


def print_answers(answers: Iterable[Mapping[str, Any]]) -> None:
    for answer in answers:
        print_answer(answer)


def print_answer(answer: Mapping[str, Any]) -> None:
    """A table where there are columns, then the sentence."""
    if answer.get("columns"):
        print_table(answer["columns"], answer["rows"])
        note(answer.get("message") or _count(answer))
        if answer.get("truncated"):
            note("There are more rows; add a LIMIT or narrow the query.")
    elif answer.get("message"):
        console().print(visible(answer["message"]))


def _count(answer: Mapping[str, Any]) -> str:
    rows = len(answer["rows"])
    return f"{rows} row{'' if rows == 1 else 's'}"
