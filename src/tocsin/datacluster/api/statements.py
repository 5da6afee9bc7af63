"""``/statements``: scripts of the language, answered statement by statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from tocsin.datacluster.api.context import Api, Shared
from tocsin.datacluster.api.scripts import SenderLeft, watched, within
from tocsin.datacluster.service import Answer
from tocsin.errors import Unavailable
from tocsin.tokens import Principal
from tocsin.web.auth import Who
from tocsin.web.bodies import read_json
from tocsin.web.describe import encode, operation, reply_bytes

router = APIRouter(tags=["statements"])


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One or more statements, separated by semicolons."""

    text: str


class StatementResult(msgspec.Struct, frozen=True):
    """What one statement gave; rows only where it asked for some."""

    kind: str
    message: str
    columns: list[str]
    rows: list[list[Any]]
    truncated: bool


class ScriptResults(msgspec.Struct, frozen=True):
    results: list[StatementResult]


MESSAGES = (Script, ScriptResults)


@router.post("/statements", **operation(takes=Script, gives=ScriptResults, summary="Run statements"))
async def run_statements(request: Request, api: Shared, who: Who) -> Response:
    """Run a script up to the first statement that fails; what ran before it stays done.

    A script whose sender has left, or that takes too long, ends before its next statement.
    """
    script = await read_json(request, Script, api.limits)
    async with watched(request) as is_awaited, api.scripts.place(who.subject):
        try:
            return reply_bytes(await api.call_in(api.lanes.statements, _run, api, script.text, who, is_awaited))
        except SenderLeft:
            raise ClientDisconnect from None


def _run(api: Api, text: str, who: Principal, is_awaited: Callable[[], None]) -> bytes:
    is_in_time = within(api.limits.script_s)

    def go_on() -> None:
        is_awaited()
        is_in_time()
        if api.is_draining:
            raise Unavailable("the cluster is stopping; the rest of the script was not run")

    return encode(ScriptResults([_result(answer) for answer in api.service.execute(text, who, go_on)]))


def _result(answer: Answer) -> StatementResult:
    rows = [list(row) for row in answer.rows]
    return StatementResult(answer.kind, answer.message, list(answer.columns), rows, answer.is_truncated)
