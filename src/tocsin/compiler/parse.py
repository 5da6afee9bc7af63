"""Text to tree: one query, bounded in length and depth, with places for error messages.

sqlglot reads the Spark dialect. Nothing of the text goes further than this module; later parts see
the tree only, and what Spark gets is printed from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sqlglot import TokenType, exp, parse, tokenize
from sqlglot.errors import ParseError, TokenError

from tocsin.errors import InvalidQuery, Span, StatementError, SyntaxProblem

DIALECT = "spark"
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}


@dataclass(frozen=True, slots=True)
class Source:
    """The query's text and where it began in the user's script."""

    text: str
    start: Span

    def at(self, offset: int) -> Span:
        """The place in the script of a character of the text."""
        line = self.text.count("\n", 0, offset)
        column = offset - (self.text.rfind("\n", 0, offset) + 1)
        if line == 0:
            return Span(self.start.line, self.start.column + column)
        return Span(self.start.line + line, column + 1)

    def of(self, node: exp.Expr) -> Span | None:
        """The place of a node: its own, or that of the first of its parts that knows one."""
        if isinstance(node, exp.Placeholder):
            return self._of_parameter(node.name)
        known = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        return self.at(min(known)) if known else None

    def _of_parameter(self, name: str) -> Span | None:
        # The parser keeps no places for markers, the tokens do.
        tokens = tokenize(self.text, dialect=DIALECT)
        for colon, word in pairwise(tokens):
            if colon.token_type == TokenType.COLON and word.text.lower() == name.lower():
                return self.at(colon.start)
        return None

    def invalid(self, problem: str, node: exp.Expr | None = None, expected: str | None = None) -> InvalidQuery:
        return InvalidQuery(problem, self.of(node) if node is not None else self.start, expected=expected)


def parse_query(source: Source, max_chars: int, max_depth: int) -> exp.Query:
    """The one query of the text; SyntaxProblem or InvalidQuery with its place otherwise."""
    if len(source.text) > max_chars:
        raise source.invalid(f"the query has {len(source.text):,} characters", expected=f"at most {max_chars:,}")
    _check_depth(source, max_depth)
    try:
        trees = [tree for tree in parse(source.text, dialect=DIALECT) if tree is not None]
    except ParseError as error:
        raise _syntax(source, error) from None
    except RecursionError:
        raise source.invalid("the query is nested too deeply", expected=f"a depth of at most {max_depth}") from None
    if len(trees) != 1:
        raise source.invalid(f"found {len(trees)} statements", expected="exactly one SELECT")
    tree = trees[0]
    if not isinstance(tree, exp.Query):
        raise source.invalid(f"found a {tree.key.upper()} statement", tree, "a SELECT")
    return _checked_tree(source, tree, max_depth)


def _check_depth(source: Source, max_depth: int) -> None:
    depth = 0
    try:
        tokens = tokenize(source.text, dialect=DIALECT)
    except TokenError as error:
        raise SyntaxProblem(f"the query cannot be read: {str(error).splitlines()[0]}", source.start) from None
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > max_depth:
            raise InvalidQuery(
                "the query is nested too deeply",
                source.at(token.start),
                expected=f"parentheses at most {max_depth} deep",
            )


def _checked_tree(source: Source, tree: exp.Query, max_depth: int) -> exp.Query:
    """A tree can be deep without parentheses (``NOT NOT NOT …``), so its own depth is bounded too.

    Chains of AND, OR and ``+`` lean to one side and are as deep as they are long; the factor leaves
    room for such lists.
    """
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        if deepest > 20 * max_depth:
            raise source.invalid("the query is nested too deeply", tree, f"a depth of at most {max_depth}")
        level = [child for node in level for child in node.iter_expressions()]
    return tree


def _syntax(source: Source, error: ParseError) -> StatementError:
    first = error.errors[0] if error.errors else {}
    problem = str(first.get("description") or "the query does not parse").rstrip(".")
    found = str(first.get("highlight") or "")
    line, end = int(first.get("line") or 1), int(first.get("col") or 1)
    column = max(1, end - len(found) + 1)
    offset = source.start.column - 1 if line == 1 else 0
    near = f" near {found!r}" if found else ""
    return SyntaxProblem(f"{problem}{near}", Span(source.start.line + line - 1, column + offset))
