"""What may be a name: of a user, a session, a subscription. Brokers and the coordinator go by the same rule."""

from __future__ import annotations

from tocsin.errors import BadArgument

MAX_NAME_BYTES = 255


def check_name(kind: str, name: str) -> str:
    """1 to 255 bytes of printable characters; ``.`` and ``..`` mean something else in an address."""
    if name in (".", "..") or not name.isprintable() or not 0 < len(name.encode()) <= MAX_NAME_BYTES:
        raise BadArgument(kind, f"1 to {MAX_NAME_BYTES} bytes of printable characters, and not . or ..", name[:80])
    return name
