"""What the demonstration asks of its connection to the cluster; the command line has one."""

from __future__ import annotations

from typing import Any, Protocol


class Link(Protocol):
    """Requests to one cluster; all methods may be called from several threads."""

    def get(self, path: str) -> Any: ...

    def text(self, path: str) -> str:
        """As ``get``, for what is not JSON."""

    def post(self, path: str, body: Any) -> Any:
        """The answer, or ``None`` where there is nothing to say."""

    def run(self, text: str) -> list[dict[str, Any]]:
        """Execute statements."""

    def append(self, dataset: str, lines: bytes, key: str) -> dict[str, Any]:
        """Append JSON lines under an idempotency key; tries again while the cluster is busy."""
