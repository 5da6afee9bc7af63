"""Scripts as the command line runs them: understood whole, then sent statement by statement.

So every answer is there as soon as its statement is done, and an error says which statement it was.
A statement is sent with its place kept, by blank lines before it, so that the cluster's errors point
into the script. The file of a LOAD is the user's, not the server's: it is read here and streamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tocsin.cli.http import ClusterClient
from tocsin.cli.load import Job, send_file, sentence
from tocsin.errors import Span, StatementError, TocsinError, Unavailable
from tocsin.language.parser import parse_script
from tocsin.language.statements import LoadDataset, Statement


class ScriptStopped(TocsinError):
    """A statement failed; what ran before it stays done."""

    def __init__(self, problem: TocsinError, place: str) -> None:
        self.problem, self.place = problem, place
        super().__init__(place, str(problem))

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


def run_script(client: ClusterClient, text: str) -> Iterator[dict[str, Any]]:
    """The answers, one a statement, each as it comes."""
    statements = _parsed(text)
    if len(statements) < 2:
        yield from _run(client, statements[0] if statements else None, text)
        return
    for statement, part in zip(statements, _parts(text, [s.span for s in statements]), strict=True):
        try:
            yield from _run(client, statement, part)
        except TocsinError as problem:
            has_place = str(problem).startswith("line ")
            if has_place or (statement is statements[0] and isinstance(problem, Unavailable)):
                raise  # where nobody answers, no statement is to blame
            raise ScriptStopped(problem, f"line {statement.span.line}, column {statement.span.column}") from None


def _parsed(text: str) -> list[Statement]:
    try:
        return parse_script(text)
    except StatementError:
        return []  # the cluster says what is wrong, in the same words


def _parts(text: str, spans: Sequence[Span]) -> Iterator[str]:
    """The text of each statement, at the line and column that it has in the script."""
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    starts = [lines[span.line - 1] + span.column - 1 for span in spans]
    for span, (start, end) in zip(spans, pairwise([*starts, len(text)]), strict=True):
        yield "\n" * (span.line - 1) + " " * (span.column - 1) + text[start:end]


def _run(client: ClusterClient, statement: Statement | None, text: str) -> list[dict[str, Any]]:
    if not isinstance(statement, LoadDataset):
        return client.run(text)
    form = "jsonl" if statement.format == "json" else statement.format
    job = Job(statement.name, Path(statement.path), form)
    message = sentence(job, send_file(client, job))
    return [{"kind": "done", "message": message, "columns": [], "rows": [], "truncated": False}]
