"""What the parser says of a statement that is wrong."""

from __future__ import annotations

import pytest

from tocsin.errors import SyntaxProblem
from tocsin.language.parser import parse_statement


def check_refused(text: str, column: int, words: str) -> None:
    """The statement is refused at ``column`` with these words."""
    with pytest.raises(SyntaxProblem) as caught:
        parse_statement(text)
    assert words in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.column == column
