"""Scripts as the command line runs them: by the cluster, but for ``LOAD DATASET``.

The file of a LOAD is the user's, not the server's, so it is read here and streamed with a progress
bar. A script without one goes to the cluster as it was written, so that errors point into it.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from tocsin.cli.http import ClusterClient
from tocsin.cli.load import send_file
from tocsin.errors import StatementError
from tocsin.language.parser import parse_script
from tocsin.language.printer import to_sql
from tocsin.language.statements import LoadDataset, Statement


def run_script(client: ClusterClient, text: str) -> list[dict[str, Any]]:
    """The answers, one a statement."""
    statements = _parsed(text)
    if not any(isinstance(s, LoadDataset) for s in statements):
        return client.run(text)
    return [answer for statement in statements for answer in _run(client, statement)]


def _parsed(text: str) -> list[Statement]:
    try:
        return parse_script(text)
    except StatementError:
        return []  # the cluster says what is wrong, in the same words


def _run(client: ClusterClient, statement: Statement) -> list[dict[str, Any]]:
    if not isinstance(statement, LoadDataset):
        return client.run(to_sql(statement))
    form = "jsonl" if statement.format == "json" else statement.format
    totals = send_file(client, statement.name, Path(statement.path), form, secrets.token_hex(6))
    message = f"loaded {totals.accepted:,} records into {statement.name}, {totals.rejected:,} rejected"
    return [{"kind": "done", "message": message, "columns": [], "rows": [], "truncated": False}]
