"""The interactive shell: statements end with ``;``, an error leaves the shell running.

History is kept in the user's state directory, readable by its owner only. Names for completion are
asked of the cluster at the start and after each statement that may have changed them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from pygments.lexers.sql import SqlLexer

from tocsin.cli.answers import print_answer
from tocsin.cli.http import ClusterClient
from tocsin.cli.output import note, tell
from tocsin.cli.scripts import run_script
from tocsin.errors import SyntaxProblem, TocsinError
from tocsin.language.tokens import Kind, Source, scan

LEAVE = ("exit", "quit", "\\q")
HELP = (
    "Statements end with ;  A few to begin with: SHOW DATASETS;  SHOW CHANNELS;  EXPLAIN CHANNEL name;  "
    "SELECT ...;  Tab completes, Ctrl-R searches the history, Ctrl-D or exit leaves."
)
_WORDS = """
    ACTIVE ADD ALTER AND AS AT BETWEEN BROKER BROKERS BY CHANGE CHANNEL CHANNELS COLUMN CONTINUOUS CREATE DATASET
    DATASETS DEAD DELETE DESCRIBE DROP EXECUTIONS EXISTS EXPLAIN FEED FEEDS FROM GROUP HAVING IF IN INSERT INTO IS
    JOIN KEY LATERAL LEFT LETTERS LIKE LIMIT LOAD NOT NULL OF ON OR ORDER PAUSE PERIOD PRIMARY PUSH REPLACE RESUME
    RETAIN SELECT SHOW SUBSCRIBE SUBSCRIPTION SUBSCRIPTIONS TO UNION UNSUBSCRIBE VALUES WHERE WITH
"""
KEYWORDS = tuple(_WORDS.split())
_NAMED = ("datasets", "channels", "brokers", "feeds")
_CHANGING = re.compile(r"\b(CREATE|DROP|ALTER)\b", re.IGNORECASE)


class Names(Completer):
    """Completes keywords, and the names the cluster knows."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self.words: tuple[str, ...] = KEYWORDS

    def refresh(self) -> None:
        """Ask for the names again; a cluster that does not answer leaves them as they are."""
        try:
            found = [one for kind in _NAMED for one in self._client.get(f"/{kind}")[kind]]
        except TocsinError:
            return
        columns = [column["name"] for one in found for column in one.get("columns", [])]
        self.words = tuple(dict.fromkeys([*KEYWORDS, *(one["name"] for one in found), *columns]))

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        word = document.get_word_before_cursor()
        if word:
            matching = (w for w in self.words if w.casefold().startswith(word.casefold()))
            yield from (Completion(w, -len(word)) for w in matching)


class Shell:
    def __init__(
        self,
        client: ClusterClient,
        *,
        history: History | None = None,
        terminal: tuple[Input, Output] | None = None,
    ) -> None:
        keyboard, screen = terminal or (None, None)
        self._client, self._names = client, Names(client)
        self._prompt: PromptSession[str] = PromptSession(
            history=history or _history(),
            completer=self._names,
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_enter_sends_whole_statements(),
            multiline=True,
            prompt_continuation="     -> ",
            input=keyboard,
            output=screen,
        )

    def run(self) -> None:
        """Until the person leaves; at once, with the reason, where no cluster answers."""
        version = self._client.get("/version")["version"]
        note(f"Tocsin {version} at {self._client.url}. Statements end with ;  'help' tells more.")
        self._names.refresh()
        while (text := self._ask()) is not None:
            if text:
                self._handle(text)

    def _ask(self) -> str | None:
        try:
            text = self._prompt.prompt("tocsin> ").strip()
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None
        return None if text.rstrip(";").lower() in LEAVE else text

    def _handle(self, text: str) -> None:
        if text.rstrip(";").lower() == "help":
            note(HELP)
            return
        try:
            for answer in run_script(self._client, text):
                print_answer(answer)
        except TocsinError as error:
            tell(str(error))
        except KeyboardInterrupt:
            note("Interrupted; the statement may still run on the cluster.")
        if _CHANGING.search(text):
            self._names.refresh()


def is_whole(text: str) -> bool:
    """Whether Enter should send the text: it ends with ``;``, or is a word to the shell itself."""
    if text.strip().rstrip(";").lower() in (*LEAVE, "help", ""):
        return True
    try:
        *_, last, _end = [None, *scan(Source(text))]
    except SyntaxProblem:
        return False
    return last is not None and last.kind is Kind.SYMBOL and last.text == ";"


def _enter_sends_whole_statements() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _history() -> History:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(base) / "tocsin" / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
