"""A walk over the tokens of one statement.

Whatever is tried at a place and not found is remembered until the walk moves on, so that an error can say all
that was possible there. Keywords are reserved only where they would be ambiguous: a dataset may be called
``period``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tocsin.errors import Span, SyntaxProblem, nearest
from tocsin.language.tokens import Kind, Source, Token

MAX_NAME = 64
RESERVED_PREFIXES = ("__", "tocsin_")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_T = TypeVar("_T")


def either(choices: Sequence[str]) -> str:
    """``A``, ``A or B``, ``A, B or C``."""
    *head, last = dict.fromkeys(choices)
    return f"{', '.join(head)} or {last}" if head else last


class Cursor:
    """``tokens`` end with an END, placed where the statement ends."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source, self._tokens, self._at = source, tokens, 0
        self._tried: list[str] = []

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        token = self.token
        self._at = min(self._at + 1, len(self._tokens) - 1)
        self._tried.clear()
        return token

    def rest(self) -> Sequence[Token]:
        """What is left, END included."""
        return self._tokens[self._at :]

    def span(self, token: Token | None = None) -> Span:
        return self.source.span((token or self.token).start)

    @property
    def first_span(self) -> Span:
        return self.span(self._tokens[0])

    def at(self, *words: str) -> bool:
        """Do these keywords come next? Remembered as possible where they do not."""
        found = all(self.peek(i).keyword == word for i, word in enumerate(words))
        if not found:
            self._tried.append(" ".join(words))
        return found

    def accept(self, *words: str) -> bool:
        """Step over these keywords if they come next, all of them or none."""
        found = self.at(*words)
        if found:
            for _ in words:
                self.advance()
        return found

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self.unexpected()

    def choose(self, table: Mapping[str, _T]) -> _T:
        """The entry for the keyword that comes next, which stays there."""
        if self.token.keyword not in table:
            self._tried.extend(table)
            raise self.unexpected()
        return table[self.token.keyword]

    def at_symbol(self, symbol: str) -> bool:
        found = self.token.kind is Kind.SYMBOL and self.token.text == symbol
        if not found:
            self._tried.append(f"'{symbol}'")
        return found

    def accept_symbol(self, symbol: str) -> bool:
        found = self.at_symbol(symbol)
        if found:
            self.advance()
        return found

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.unexpected()

    def name(self, what: str) -> str:
        """A name as written, without back-quotes; ``what`` says which, such as ``a dataset name``."""
        token = self.token
        if token.kind not in (Kind.WORD, Kind.NAME):
            self._tried.append(what)
            raise self.unexpected()
        text = token.text.strip("`")
        if not _NAME.fullmatch(text):
            raise self.problem(f"{text!r} is not a name", expected="letters, digits and '_', not first a digit")
        if len(text) > MAX_NAME:
            raise self.problem(f"a name of {len(text)} characters", expected=f"at most {MAX_NAME}")
        if text.lower().startswith(RESERVED_PREFIXES):
            raise self.problem(f"the name {text!r} is reserved", expected="one without '__' or 'tocsin_' in front")
        self.advance()
        return text

    def string(self, what: str) -> str:
        """The value of a string in single quotes."""
        if self.token.kind is not Kind.STRING:
            self._tried.append(what)
            raise self.unexpected()
        return self.advance().text[1:-1].replace("''", "'")

    def whole(self, what: str) -> int:
        """A number without sign, point or exponent."""
        if self.token.kind is not Kind.NUMBER or not self.token.text.isdigit() or len(self.token.text) > 18:
            self._tried.append(what)
            raise self.unexpected()
        return int(self.advance().text)

    def end(self) -> None:
        if self.token.kind is not Kind.END:
            self._tried.append("';'")
            raise self.unexpected()

    def tried(self, what: str) -> None:
        """Remember something that was possible here."""
        self._tried.append(what)

    def unexpected(self) -> SyntaxProblem:
        """The error for the token that is here, with all that was possible."""
        suggestion = nearest(self.token.keyword, self._tried) if self.token.keyword else ""
        return SyntaxProblem(_found(self.token), self.span(), expected=either(self._tried), suggestion=suggestion)

    def problem(self, text: str, *, at: Token | None = None, expected: str | None = None) -> SyntaxProblem:
        return SyntaxProblem(text, self.span(at), expected=expected)


def _found(token: Token) -> str:
    if token.kind is Kind.END:
        return "the statement ends too early"
    if token.kind is Kind.DOUBLE_QUOTED:
        return f"unexpected {token.text:.40} (strings take single quotes, names back-quotes)"
    return f"unexpected string {token.text:.40}" if token.kind is Kind.STRING else f"unexpected {token.text[:40]!r}"
