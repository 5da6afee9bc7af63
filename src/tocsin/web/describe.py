"""Describing operations: the OpenAPI document says what msgspec checks on the way in and writes on the way out.

Each route module lists its message types as ``MESSAGES``; ``operation`` refers to them by name, and
``add_components`` puts their schemas where the references point.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import Response

from tocsin.web.problems import MEDIA_TYPE, Problem

_REF = "#/components/schemas/{name}"


def operation(
    *, takes: type | None = None, gives: type | None = None, status: int = 200, **more: Any
) -> dict[str, Any]:
    """Arguments for a route's decorator: what it reads and what it answers, errors included."""
    success: dict[str, Any] = {"description": "Done"}
    if gives is not None:
        success["content"] = {"application/json": {"schema": _ref(gives)}}
    refusal = {"description": "A problem", "content": {MEDIA_TYPE: {"schema": _ref(Problem)}}}
    described = {"status_code": status, "response_class": Response, "responses": {status: success, "default": refusal}}
    if takes is not None:
        described["openapi_extra"] = {"requestBody": _body({"application/json": {"schema": _ref(takes)}})}
    return described | more


def lines_body(*media_types: str) -> dict[str, Any]:
    """A body of JSON lines, which is one object where the media type is plain JSON, or of CSV."""
    lines = {"type": "string", "description": "One JSON object a line, columns as members."}
    special = {
        "application/json": {"type": "object", "description": "One record, columns as members."},
        "text/csv": {"type": "string", "description": "A line of column names, then one record a line."},
    }
    schemas = {media_type: special.get(media_type, lines) for media_type in media_types}
    return {"requestBody": _body({media_type: {"schema": schema} for media_type, schema in schemas.items()})}


def reply(message: Any, status: int = 200) -> Response:
    """``message`` as JSON."""
    return Response(encode(message), status, media_type="application/json")


def reply_bytes(body: bytes) -> Response:
    """JSON that is encoded already."""
    return Response(body, media_type="application/json")


def encode(message: Any) -> bytes:
    return _encoder.encode(message)


def add_components(document: dict[str, Any], messages: Iterable[type]) -> dict[str, Any]:
    """The OpenAPI document with the schemas of ``messages``."""
    _, schemas = msgspec.json.schema_components([*messages, Problem], ref_template=_REF)
    components = document.setdefault("components", {})
    components["schemas"] = {**components.get("schemas", {}), **schemas}
    return document


def _ref(message: type) -> dict[str, str]:
    return {"$ref": _REF.format(name=message.__name__)}


def _body(content: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": content}


def _plain(value: Any) -> Any:
    """Values of other libraries (NumPy's numbers, for one) by their nearest plain one."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


_encoder = msgspec.json.Encoder(enc_hook=_plain)
