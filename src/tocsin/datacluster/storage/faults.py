"""Places where a test may stop the world.

``point(name)`` does nothing unless a handler is installed. Every durable step is surrounded by two
points, and ``POINTS`` lists them all, so that a test can kill a process at each.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "log.before-write": "a group of frames is ready, none is in the file",
    "log.after-write": "the frames are in the file, not synced",
    "log.after-sync": "the frames are durable, nobody was told",
    "log.before-head": "the frames are durable and readable, the head does not show them",
    "log.roll": "a new segment exists, its directory entry is not synced",
    "manifest.before-switch": "the new manifest is written and synced under a temporary name",
    "manifest.after-switch": "the new manifest is in place, what it replaced still lies there",
    "compact.after-file": "the compacted file is synced, the manifest does not name it",
    "compact.before-delete": "the manifest no longer needs some segments, which still exist",
    "schema.before-switch": "a new version of the columns is written under a temporary name",
    "result.before-write": "an execution has begun, its result file does not exist",
    "result.before-rename": "the result file is synced under a temporary name",
    "result.after-rename": "the result file has its name, the ledger does not know it",
    "expire.before-delete": "the ledger forgot some result files, which still exist",
    "ledger.before-commit": "a group of works has run, the transaction is open",
    "ledger.after-commit": "the transaction is durable, nobody was told",
}

_handler: Callable[[str], None] | None = None


def point(name: str) -> None:
    """Pass a named place; calls the handler that a test installed, if any."""
    if _handler is not None:
        _handler(name)


def install(handler: Callable[[str], None] | None) -> None:
    """Call ``handler`` at every point from now on; ``None`` takes it away."""
    global _handler
    _handler = handler
