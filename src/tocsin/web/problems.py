"""Errors over HTTP: RFC 9457 ``application/problem+json``, for everything that goes wrong.

``type`` is ``urn:tocsin:<code>`` with the stable code of the error; ``title`` says in words what the code
means, ``detail`` what happened this time, and further members carry the error's fields (section 3.2).
``STATUS`` is the only place that maps codes to statuses. A status of 500 never tells internals: it carries
an ``instance`` that the log has beside the traceback.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
from starlette.responses import Response

from tocsin.errors import (
    AlreadyExists,
    BadArgument,
    ExecutionFailed,
    InUse,
    KeyReused,
    LimitExceeded,
    NotFound,
    StatementError,
    TocsinError,
)

MEDIA_TYPE = "application/problem+json"
MAX_USERS = 100  # names listed in one answer

log = logging.getLogger(__name__)


class MalformedBody(TocsinError):
    """The body is not JSON."""

    code = "malformed-body"


class InvalidRequest(TocsinError):
    """The body or a parameter is well formed, but not what the operation takes."""

    code = "invalid-request"


class UnsupportedBody(TocsinError):
    """The body is of a media type that the operation does not read."""

    code = "unsupported-media-type"


class SlowBody(TocsinError):
    """The body did not arrive in time."""

    code = "request-timeout"


STATUS: Mapping[str, tuple[int, str]] = {
    "malformed-body": (400, "The body is not well formed"),
    "syntax": (400, "The statement does not parse"),
    "unauthenticated": (401, "A valid token is needed"),
    "forbidden": (403, "The token does not allow this"),
    "not-found": (404, "There is no such thing"),
    "no-such-route": (404, "There is no such address"),
    "method-not-allowed": (405, "The address does not take this method"),
    "request-timeout": (408, "The body did not arrive in time"),
    "already-exists": (409, "The name is taken"),
    "key-reused": (409, "The idempotency key was used for other content"),
    "in-use": (409, "Others depend on it"),
    "limit-exceeded": (413, "The request is over a limit"),
    "too-many-requests": (429, "Too much is under way"),
    "unsupported-media-type": (415, "The body is of a kind that is not read here"),
    "invalid-request": (422, "The request does not fit the operation"),
    "config": (422, "A setting is not known or not valid"),
    "statement": (422, "The statement is wrong"),
    "invalid-query": (422, "The query is not possible"),
    "bad-argument": (422, "A value does not fit"),
    "bad-records": (422, "The batch was refused"),
    "error": (500, "The operation failed"),
    "internal": (500, "An unexpected failure"),
    "execution-failed": (500, "A Spark job failed"),
    "corrupt": (500, "Stored data does not verify"),
    "unavailable": (503, "A part that is needed is not there"),
    "uncertain": (504, "It may have been done or not"),
    "storage-full": (507, "The disk is full"),
}


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """What every error answers; further members depend on ``type``."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


def problem(code: str, detail: str, headers: Mapping[str, str] | None = None, **fields: Any) -> Response:
    """An answer for ``code``; fields that are ``None`` are left out."""
    status, title = STATUS[code]
    head = {"type": f"urn:tocsin:{code}", "title": title, "status": status, "detail": detail}
    body = head | {name: value for name, value in fields.items() if value is not None}
    return Response(msgspec.json.encode(body), status, dict(headers or {}), MEDIA_TYPE)


def problem_of(error: TocsinError) -> Response:
    """The answer to an error of ours."""
    code = code_of(error)
    if STATUS[code][0] >= 500:
        log.warning("%s: %s", code, error)
    return problem(code, str(error), _headers(error, code), **_fields(error))


def unexpected(error: BaseException) -> Response:
    """The answer to an error that nobody foresaw: the log has it all, the caller an id."""
    instance = f"urn:uuid:{uuid4()}"
    log.error("request failed unexpectedly (%s)", instance, exc_info=error)
    return problem("internal", "the request failed unexpectedly; the log has more under this id", instance=instance)


def code_of(error: TocsinError) -> str:
    """The nearest code in the error's family that has a status."""
    if isinstance(error, LimitExceeded) and error.retry_after_s is not None:
        return "too-many-requests"
    codes = [str(vars(kind).get("code")) for kind in type(error).__mro__]
    return next(code for code in codes if code in STATUS)


def _headers(error: TocsinError, code: str) -> dict[str, str]:
    if code == "unauthenticated":
        return {"WWW-Authenticate": 'Bearer realm="tocsin"'}
    if isinstance(error, LimitExceeded) and error.retry_after_s is not None:
        return {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
    return {"Retry-After": "5"} if code in ("unavailable", "storage-full") else {}


def _fields(error: TocsinError) -> dict[str, Any]:
    match error:
        case StatementError(span=span, expected=expected):
            place = {"line": span.line, "column": span.column} if span else {}
            return {**place, "expected": expected}
        case NotFound(kind=kind, name=name) | AlreadyExists(kind=kind, name=name):
            return {"kind": kind, "name": name}
        case KeyReused(key=key):
            return {"key": key}
        case InUse(kind=kind, name=name, users=users):
            return {"kind": kind, "name": name, "users": users[:MAX_USERS], "users_total": len(users)}
        case BadArgument(name=name, expected=expected):
            return {"name": name, "expected": expected}
        case LimitExceeded(what=what, limit=limit, got=got, retry_after_s=retry_after_s):
            return {"what": what, "limit": limit, "got": got, "retry_after_s": retry_after_s}
        case ExecutionFailed(channel=channel, sql=sql):
            return {"channel": channel, "sql": sql}
        case _:
            return {}
