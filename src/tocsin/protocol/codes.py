"""Why a connection ends, as numbers that say what to do next.

| range     | the client                                                          |
|-----------|---------------------------------------------------------------------|
| 4000-4099 | connects again, with back-off, to the broker that it is placed on     |
| 4100-4199 | asks the coordinator where it belongs, then connects there           |
| 4400-4499 | does not come back until its user did something (token, request)      |

A code outside these ranges, such as the standard 1001 and 1006, is treated as one of the first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    number: int
    name: str
    means: str


GOING_AWAY = Code(4000, "going-away", "the broker stops")
SLOW = Code(4001, "slow", "more waited for this connection than the broker holds")
SILENT = Code(4002, "silent", "nothing came from the client for too long")
INTERNAL = Code(4003, "internal", "the broker failed")
CROWDED = Code(4004, "crowded", "the broker or the user has as many connections as allowed")
MOVED = Code(4100, "moved", "the user belongs to another broker")
RELEASED = Code(4101, "released", "the user's move is done, and this connection was left behind")
BAD_TOKEN = Code(4400, "bad-token", "the token is missing, wrong or at its end")
BAD_MESSAGE = Code(4401, "bad-message", "a message that is not one of the protocol")
TOO_BIG = Code(4402, "too-big", "a message larger than allowed, by the broker or by the client itself")
LOGIN_FIRST = Code(4404, "login-first", "the first message was not a login, or came too late")
LOGGED_OUT = Code(4405, "logged-out", "the client said logout")
REPLACED = Code(4406, "replaced", "another connection logged in under this session's name")

ALL = (
    GOING_AWAY, SLOW, SILENT, INTERNAL, CROWDED, MOVED, RELEASED, BAD_TOKEN, BAD_MESSAGE, TOO_BIG,
    LOGIN_FIRST, LOGGED_OUT, REPLACED,
)  # fmt: skip


def comes_back(number: int) -> bool:
    """Whether a client whose connection ended so connects again by itself."""
    return not 4400 <= number < 4500


def asks_where(number: int) -> bool:
    """Whether it asks the coordinator first."""
    return 4100 <= number < 4200
