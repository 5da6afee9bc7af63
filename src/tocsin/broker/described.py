"""What the OpenAPI document says of ``GET /events``, which the listener serves itself and FastAPI never sees."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from tocsin.web.describe import operation

_TEXT = {"schema": {"type": "string"}}
_PARAMETERS = {
    "subscribe": "A target as JSON; may be repeated. What the user holds is followed in any case.",
    "last_event_id": "The `id` of the last event that came, where `Last-Event-ID` cannot be sent.",
    "token": "The token, where `Authorization` cannot be sent.",
    "ticket": "A ticket, as a placement gives it.",
    "referral": "What a broker that redirected a page says of it; nobody else writes it.",
    "session": "The client's name for this session: up to 255 bytes of printable characters.",
}
_STREAM = {"description": "Events, until the client leaves", "content": {"text/event-stream": _TEXT}}
_MOVED = {"description": "The user belongs to another broker; `Location` has its address"}


def describe_events(app: FastAPI) -> None:
    """Let the document have it."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        found = generate()
        found["paths"]["/events"] = {"get": _operation()}
        return found

    app.openapi = openapi  # type: ignore[method-assign]


def _operation() -> dict[str, Any]:
    asked = [{"name": n, "in": "query", "description": d, **_TEXT} for n, d in _PARAMETERS.items()]
    return {
        "tags": ["broker"],
        "summary": "Follow streams as server-sent events",
        "operationId": "events",
        "security": [{"token": []}],
        "parameters": [*asked, {"name": "Last-Event-ID", "in": "header", **_TEXT}],
        "responses": {"200": _STREAM, "307": _MOVED, "default": operation()["responses"]["default"]},
    }
