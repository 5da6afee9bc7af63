"""Text into tokens.

- A word is ``[A-Za-z_][A-Za-z0-9_]*``; a name in back-quotes is never a keyword.
- In statements a string is in single quotes, a quote in it is doubled and a backslash is a backslash.
- In a query, strings follow Spark, where a backslash also escapes and double quotes also make strings. A query
  starts with the statement's first word where that is SELECT, WITH or a bracket, and after the AS of CREATE.
- ``-- to the end of the line`` and ``/* nested /* comments */ */`` are skipped.

Only an unclosed quote or comment is an error here; every other odd character becomes a symbol that the
parser refuses where it stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from tocsin.errors import Span, SyntaxProblem


class Kind(Enum):
    WORD = auto()
    NAME = auto()  # in back-quotes
    STRING = auto()
    DOUBLE_QUOTED = auto()
    NUMBER = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """``text`` is as written, quotes included; ``start`` and ``end`` are offsets in the script."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """Upper case for a word, empty for everything else."""
        return self.text.upper() if self.kind is Kind.WORD else ""


class Source:
    """A script that knows its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def span(self, offset: int) -> Span:
        line = bisect_right(self._starts, offset)
        return Span(line, offset - self._starts[line - 1] + 1)


_COMMON = r"""
    (?P<SKIP>[\s\ufeff]+|--[^\n]*)
  | (?P<COMMENT>/\*)
  | (?P<WORD>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<NUMBER>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<NAME>`[^`]*+`)
"""
_SYMBOL = "| (?P<SYMBOL>=>|.)"
_STATEMENT = re.compile(
    rf"""{_COMMON}
  | (?P<STRING>'(?:[^']++|'')*+')
  | (?P<DOUBLE_QUOTED>"(?:[^"]++|"")*+")
  {_SYMBOL}""",
    re.VERBOSE | re.DOTALL,
)
_QUERY = re.compile(
    rf"""(?P<STRING>'(?:[^'\\]++|\\.|'')*+'|[rR]'[^']*+')
  | (?P<DOUBLE_QUOTED>"(?:[^"\\]++|\\.|"")*+"|[rR]"[^"]*+")
  | {_COMMON}
  {_SYMBOL}""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_UNCLOSED = {"'": "string", '"': "string", "`": "name in back-quotes"}


class _Mode:
    """Which rules hold: follows the tokens of one statement and notices where a query starts."""

    def __init__(self) -> None:
        self.in_query, self._first, self._depth = False, "", 0

    def after(self, token: Token) -> _Mode:
        if token.text == ";":
            return _Mode()
        if self.in_query:
            return self
        if not self._first:
            self._first = token.keyword or token.text
            self.in_query = self._first in ("SELECT", "WITH", "(")
        elif token.kind is Kind.SYMBOL:
            self._depth += (token.text == "(") - (token.text == ")")
        elif token.kind is Kind.WORD and self._first == "CREATE" and not self._depth:
            self.in_query = token.keyword == "AS"
        return self


_KINDS = {kind.name: kind for kind in Kind}


def scan(source: Source) -> Iterator[Token]:
    """The tokens of a script, with ``;`` as a symbol and END last."""
    text, at, mode = source.text, 0, _Mode()
    while at < len(text):
        found = (_QUERY if mode.in_query else _STATEMENT).match(text, at)
        assert found is not None  # the last alternative takes any character
        kind = _KINDS.get(str(found.lastgroup))
        start, at = at, found.end()
        if kind is None:
            at = _comment_end(source, start) if found.lastgroup == "COMMENT" else at
            continue
        token = Token(kind, found[0], start, at)
        if kind is Kind.SYMBOL and token.text in _UNCLOSED:
            raise SyntaxProblem(f"this {_UNCLOSED[token.text]} is not closed", source.span(start), expected=token.text)
        mode = mode.after(token)
        yield token
    yield Token(Kind.END, "", len(text), len(text))


def _comment_end(source: Source, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(source.text, start):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    raise SyntaxProblem("this comment is not closed", source.span(start), expected="*/")
