"""What the shell offers at a place in a statement.

The word before the cursor's decides: after SHOW only what SHOW lists, after FROM the tables first, after a dot the
columns. Names are asked of the cluster at the start and after each statement that may have changed them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tocsin.cli.http import ClusterClient
from tocsin.errors import TocsinError
from tocsin.language.statements import Shown
from tocsin.model.types import SCALARS

_WORDS = """
    ACTIVE ADD ALTER AND ANTI ARRAY AS ASC AT BETWEEN BROKER BROKERS BY CASCADE CASE CHANGE CHANNEL CHANNELS COLUMN
    CONTINUOUS CREATE CROSS CSV DATASET DATASETS DEAD DELETE DESC DESCRIBE DIRECTORY DISTINCT DROP ELSE END EXECUTIONS
    EXISTS EXPLAIN FALSE FEED FEEDS FORMAT FROM FULL GROUP HAVING HTTP IF IN INNER INSERT INTO IS JOIN JSON KAFKA KEY
    LATERAL LEFT LETTERS LIKE LIMIT LOAD NOT NULL OF ON OR ORDER OVER PARQUET PARTITION PAUSE PERIOD PRIMARY PUSH
    RECORDS REPLACE RESUME RETAIN RIGHT SELECT SEMI SHOW SUBSCRIBE SUBSCRIPTION SUBSCRIPTIONS THEN TO TOPIC TRUE UNION
    UNSUBSCRIBE UPSERT VALUES WHEN WHERE WITH
"""
KEYWORDS = (*_WORDS.split(), *SCALARS)
_ONLY = {
    "SHOW": tuple(Shown),
    "DROP": ("DATASET", "FEED", "CHANNEL", "BROKER"),
    "CREATE": ("DATASET", "ACTIVE DATASET", "CHANNEL", "CONTINUOUS CHANNEL", "PUSH", "OR REPLACE", "FEED", "BROKER"),
    "PAUSE": ("CHANNEL", "FEED"),
    "RESUME": ("CHANNEL", "FEED"),
    "EXPLAIN": ("CHANNEL",),
    "DEAD": ("LETTERS",),
    "REPLACE": ("CHANNEL", "CONTINUOUS CHANNEL", "PUSH", "BROKER"),
}
_FIRST = {
    "FROM": ("datasets", "tables"),
    "JOIN": ("datasets", "tables"),
    "INTO": ("datasets",),
    "DATASET": ("datasets",),
    "CHANNEL": ("channels",),
    "TO": ("channels", "brokers"),
    "OF": ("channels", "datasets"),
    "DESCRIBE": ("datasets", "channels"),
    "ON": ("brokers",),
    "BROKER": ("brokers",),
    "FEED": ("feeds",),
    "COLUMN": ("columns",),
    "EXISTS": ("datasets", "channels", "brokers", "feeds"),
    ".": ("columns",),
}
_NAMED = ("datasets", "channels", "brokers", "feeds")
_BEFORE = re.compile(r"(?:(\w+)\s+|(\.))?(\w*)$")  # the word or the dot before the cursor's word, and that


class Names(Completer):
    """Completes keywords, and the names the cluster knows."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._names: Mapping[str, list[str]] = {}

    def refresh(self) -> None:
        """Ask for the names again; a cluster that does not answer leaves them as they are."""
        try:
            found: dict[str, list[dict[str, Any]]] = {kind: self._client.get(f"/{kind}")[kind] for kind in _NAMED}
        except TocsinError:
            return
        names = {kind: [one["name"] for one in all_of_it] for kind, all_of_it in found.items()}
        names["tables"] = [f"{channel}{what}" for channel in names["channels"] for what in ("Results", "Subscriptions")]
        names["columns"] = [column["name"] for one in found["datasets"] for column in one.get("columns", [])]
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found = _BEFORE.search(document.text_before_cursor)
        assert found is not None  # it may be empty
        before, dot, word = found.groups("")
        for offered in self._offered(dot or before.upper(), word):
            if offered.casefold().startswith(word.casefold()):
                yield Completion(offered, -len(word))

    def _offered(self, before: str, word: str) -> Iterable[str]:
        if before in _ONLY:
            return _ONLY[before]
        first = [name for kind in _FIRST.get(before, ()) for name in self._names.get(kind, [])]
        rest = [*KEYWORDS, *(name for names in self._names.values() for name in names)] if word else []
        return dict.fromkeys([*first, *rest])
