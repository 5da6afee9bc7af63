"""What statements gave, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.cli.output import console, note, print_table, visible
from tocsin.units import counted


def print_answer(answer: Mapping[str, Any]) -> None:
    """A table where there are columns, then the sentence."""
    if answer.get("columns"):
        print_table(answer["columns"], answer["rows"])
        note(answer.get("message") or counted(len(answer["rows"]), "row"))
        if answer.get("truncated"):
            note("There are more rows; add a LIMIT or narrow the query.")
    elif answer.get("message"):
        console().print(visible(answer["message"]))
