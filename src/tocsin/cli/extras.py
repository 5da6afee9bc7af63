"""Parts that only an extra brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tocsin.errors import Unavailable


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Imports in here may fail for want of ``extra``; then the error says how to get it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "tocsin":
            raise
        raise Unavailable(
            f"this command needs {missing.name!r}, which is not installed; run: pip install 'tocsin[{extra}]'"
        ) from None
