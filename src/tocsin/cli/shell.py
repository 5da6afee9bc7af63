"""The interactive shell: statements end with ``;``, an error leaves the shell running.

A few words are to the shell itself: ``help``, with whatever follows on its line, and ``exit``, ``quit`` and
``\\q``, which leave from the middle of a statement, too. History is kept in the user's state directory, readable
by its owner only.
"""

from __future__ import annotations

import os
import re
from collections import deque
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from pygments.lexers.sql import SqlLexer

from tocsin.cli.answers import print_answer
from tocsin.cli.completion import Names
from tocsin.cli.http import ClusterClient
from tocsin.cli.output import note, tell
from tocsin.cli.scripts import run_script
from tocsin.errors import SyntaxProblem, TocsinError
from tocsin.language.parser import complete_statement
from tocsin.language.tokens import Source, scan

LEAVE = ("exit", "quit", "\\q")
_HELP_WORDS = ("help", "?", "\\?", "\\h")
HELP = (
    "Statements end with ;  A few to begin with: SHOW DATASETS;  SHOW CHANNELS;  EXPLAIN CHANNEL name;  "
    "SELECT ...;  Tab completes, Ctrl-R searches the history, Ctrl-D or exit leaves."
)
_CHANGING = re.compile(r"\b(CREATE|DROP|ALTER)\b", re.IGNORECASE)


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
        return None if leaves(text) else text

    def _handle(self, text: str) -> None:
        if asks_for_help(text):
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
    return not text.strip(" \n;") or leaves(text) or asks_for_help(text) or complete_statement(text)


def leaves(text: str) -> bool:
    """Whether the last line, outside of strings and comments, is a word that leaves."""
    *before, last = text.strip().split("\n")
    return last.strip(" ;").lower() in LEAVE and not _is_open("\n".join(before))


def asks_for_help(text: str) -> bool:
    words = text.strip(" \n;").lower().split()
    return bool(words) and words[0] in _HELP_WORDS and "\n" not in text.strip()


def _is_open(text: str) -> bool:
    """Whether a string, a name or a comment is not closed."""
    try:
        deque(scan(Source(text)), maxlen=0)
    except SyntaxProblem:
        return True
    return False


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
