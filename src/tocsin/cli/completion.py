"""What the shell offers at a place in a statement.

The word before the cursor's decides: after SHOW only what SHOW lists, after FROM the tables first. Names are
asked of the cluster at the start and after each statement that may have changed them.
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

_WORDS = """
    ACTIVE ADD ALTER AND AS AT BETWEEN BROKER BROKERS BY CHANGE CHANNEL CHANNELS COLUMN CONTINUOUS CREATE DATASET
    DATASETS DEAD DELETE DESCRIBE DROP EXECUTIONS EXISTS EXPLAIN FEED FEEDS FROM GROUP HAVING IF IN INSERT INTO IS
    JOIN KEY LATERAL LEFT LETTERS LIKE LIMIT LOAD NOT NULL OF ON OR ORDER PAUSE PERIOD PRIMARY PUSH REPLACE RESUME
    RETAIN SELECT SHOW SUBSCRIBE SUBSCRIPTION SUBSCRIPTIONS TO UNION UNSUBSCRIBE VALUES WHERE WITH
"""
KEYWORDS = tuple(_WORDS.split())
_ONLY = {
    "SHOW": tuple(Shown),
    "DROP": ("DATASET", "FEED", "CHANNEL", "BROKER"),
    "CREATE": ("DATASET", "ACTIVE DATASET", "CHANNEL", "CONTINUOUS CHANNEL", "PUSH", "OR REPLACE", "FEED", "BROKER"),
    "PAUSE": ("CHANNEL", "FEED"),
    "RESUME": ("CHANNEL", "FEED"),
    "EXPLAIN": ("CHANNEL",),
    "DEAD": ("LETTERS",),
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
}
_NAMED = ("datasets", "channels", "brokers", "feeds")
_BEFORE = re.compile(r"(\w+)\s+\w*$")


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
        word = document.get_word_before_cursor()
        for offered in self._offered(document.text_before_cursor, word):
            if offered.casefold().startswith(word.casefold()):
                yield Completion(offered, -len(word))

    def _offered(self, text: str, word: str) -> Iterable[str]:
        found = _BEFORE.search(text)
        before = found[1].upper() if found else ""
        if before in _ONLY:
            return _ONLY[before]
        first = [name for kind in _FIRST.get(before, ()) for name in self._names.get(kind, [])]
        rest = [*KEYWORDS, *(name for names in self._names.values() for name in names)] if word else []
        return dict.fromkeys([*first, *rest])
