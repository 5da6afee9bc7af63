"""Which of the server's files statements may read: those below ``cluster.load_dir``, none if it is not set."""

from __future__ import annotations

from pathlib import Path

from tocsin.errors import Refused


def fenced(root: Path | None, path: str, what: str, instead: str = "") -> Path:
    """``path`` below ``root``, links followed; ``Refused`` if it leads out, or if there is no root."""
    if root is None:
        raise Refused(f"{what} reads the server's files, which is switched off; set cluster.load_dir{instead}")
    place = (root / path).resolve()
    if not place.is_relative_to(root.resolve()):
        raise Refused(f"{path!r} is outside cluster.load_dir, the directory that {what} may read")
    return place
