"""Which of the server's files statements may read: those below ``cluster.load_dir``, none if it is not set."""

from __future__ import annotations

from pathlib import Path

from tocsin.errors import BadArgument, Refused


def fenced(root: Path | None, path: str, what: str, instead: str = "") -> Path:
    """``path`` below ``root``, links followed; ``Refused`` if it leads out, or if there is no root.

    It need not exist, but has to be a path that could: ``BadArgument`` otherwise.
    """
    if root is None:
        raise Refused(f"{what} reads the server's files, which is switched off; set cluster.load_dir{instead}")
    try:
        place = (root / path).resolve()
        place.exists()
    except (OSError, ValueError, RuntimeError):  # too long, with a zero byte, links in a circle
        raise BadArgument("path", "one that the system can open", path) from None
    if not place.is_relative_to(root.resolve()):
        raise Refused(f"{path!r} is outside cluster.load_dir, the directory that {what} may read")
    return place
