"""The data cluster over HTTP, as a broker uses it.

Each method is one request and one answer. What the cluster cannot do now (it is away, starting, full or
busy, or does not trust this broker) is Unavailable, and the caller may ask again; what does not exist is NotFound,
and everything else that it refuses is ClusterRefused with the cluster's own code and sentence.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from tocsin.errors import BadArgument, NotFound, TocsinError, Unavailable
from tocsin.unanswered import UNANSWERED

_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 507})
_PAGE = 10_000

Arguments = Mapping[str, Any] | Sequence[Any]
T = TypeVar("T")


class Made(msgspec.Struct, frozen=True):
    """Results of ``backend`` after ``position`` belong to the subscription, in this ``life`` of the channel."""

    id: str
    channel: str
    backend: int
    position: str
    life: int = 0
    making: int = 0


class Result(msgspec.Struct, frozen=True):
    position: str
    backends: list[int]
    payload: msgspec.Raw


class ResultGap(msgspec.Struct, frozen=True):
    after: str
    through: str
    count: int | None
    reason: str


class Span(msgspec.Struct, frozen=True):
    """What ``backend`` got in (after, through]."""

    channel: str
    backend: int
    after: str
    through: str


class ResultPage(msgspec.Struct, frozen=True):
    """What a channel has in (after, through]; a gap lies before all results."""

    channel: str
    after: str
    through: str
    end: bool
    gap: ResultGap | None
    results: list[Result]
    life: int = 0


class Rejected(msgspec.Struct, frozen=True):
    line: int
    reason: str


class Receipt(msgspec.Struct, frozen=True):
    accepted: int
    rejected: int
    problems: list[Rejected] = []


class Parameter(msgspec.Struct, frozen=True):
    name: str
    type: str


class Stood(msgspec.Struct, frozen=True):
    """What stands on a broker; others than the broker may own it."""

    id: str
    owner: str = ""
    making: int = 0


class _Subscriptions(msgspec.Struct, frozen=True):
    subscriptions: list[Stood]
    next: str | None


class _Made(msgspec.Struct, frozen=True):
    subscriptions: list[Made]


class _Pages(msgspec.Struct, frozen=True):
    pages: list[ResultPage]


class _Replayed(msgspec.Struct, frozen=True):
    page: ResultPage | None = None
    problem: _Problem | None = None


class _Replays(msgspec.Struct, frozen=True):
    replayed: list[_Replayed]


class _Positions(msgspec.Struct, frozen=True):
    positions: dict[str, str]


class _Broker(msgspec.Struct, frozen=True):
    name: str
    url: str


class _Brokers(msgspec.Struct, frozen=True):
    brokers: list[_Broker]


class _Channel(msgspec.Struct, frozen=True):
    parameters: list[Parameter]


class _Problem(msgspec.Struct, frozen=True):
    type: str = "urn:tocsin:error"
    status: int = 500
    detail: str = ""
    kind: str | None = None
    name: str | None = None


class ClusterRefused(BadArgument):
    """What the cluster will not take, however often it is asked, in its own words and with its own code."""

    def __init__(self, code: str, detail: str, name: str | None = None) -> None:
        super().__init__(name or "request", "what the data cluster takes", detail)
        self.code, self.detail = code, detail

    def __str__(self) -> str:
        return self.detail


def capabilities(broker: str) -> tuple[str, ...]:
    """What a broker needs of the cluster: to be itself, to subscribe and to append for whom it has checked.

    ``read`` is for parameters of channels, and for results from before this broker held their subscription.
    """
    return f"broker:{broker}", "subscribe:*", "ingest:*", "read"


class ClusterClient:
    """``token`` gives one that is good now, of ``capabilities``; ``timeout_s`` bounds a request beside its waiting."""

    def __init__(
        self,
        url: str,
        token: Callable[[], str],
        timeout_s: float,
        transport: httpx.AsyncBaseTransport | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._token, self._timeout_s = token, timeout_s
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        self._http = httpx.AsyncClient(
            base_url=url, timeout=timeout_s, limits=limits, trust_env=False, transport=transport, verify=tls or True
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def register(self, broker: str, notify_url: str) -> None:
        """Say where notices are to go; a broker that is known keeps its subscriptions, whatever its address was."""
        text = f"CREATE OR REPLACE BROKER `{broker}` AT '{notify_url}'"
        await self._ask("POST", "/statements", {"text": text})

    async def brokers(self) -> dict[str, str]:
        """Every broker that registered, with the address of its notices."""
        return {one.name: one.url for one in _read(_Brokers, await self._ask("GET", "/brokers")).brokers}

    async def subscribe(
        self, broker: str, channel: str, wanted: Sequence[tuple[str, Arguments]], making: int
    ) -> list[Made]:
        """All or none; (id, arguments) each, and asking again under an id changes nothing but its ``making``."""
        asked = [{"id": id, "arguments": arguments} for id, arguments in wanted]
        body = {"channel": channel, "broker": broker, "subscriptions": asked, "making": making}
        return _read(_Made, await self._ask("POST", "/subscriptions", body)).subscriptions

    async def unsubscribe(self, ids: Sequence[str], making: int) -> None:
        """End them; those that are not there, or were asked for after ``making``, are passed over."""
        await self._ask("POST", "/subscriptions/remove", {"ids": list(ids), "making": making})

    async def subscriptions(self, broker: str) -> list[Stood]:
        """Everything that stands on ``broker``."""
        found: list[Stood] = []
        after: str | None = ""
        while after is not None:
            params = {"broker": broker, "limit": _PAGE} | ({"after": after} if after else {})
            page = _read(_Subscriptions, await self._ask("GET", "/subscriptions", params=params))
            found += page.subscriptions
            after = page.next
        return found

    async def pull(self, broker: str, cursors: Mapping[str, str], max_rows: int, wait_s: float) -> list[ResultPage]:
        body = {"cursors": cursors, "max_rows": max_rows, "wait_s": wait_s}
        return _read(_Pages, await self._ask("POST", f"/brokers/{broker}/pull", body, waits_s=wait_s)).pages

    async def replay(self, spans: Sequence[Span], limit: int) -> list[ResultPage | TocsinError]:
        """For the first of ``spans``, at least for one: a page, or why there is none."""
        found = _read(_Replays, await self._ask("POST", "/results", {"spans": spans, "limit": limit})).replayed
        if not 0 < len(found) <= len(spans):
            raise Unavailable(f"the data cluster gave {len(found)} answers for {len(spans)} spans")
        return [one.page or _error(one.problem or _Problem()) for one in found]

    async def acknowledge(self, broker: str, positions: Mapping[str, str]) -> None:
        await self._ask("POST", f"/brokers/{broker}/ack", {"positions": positions})

    async def acknowledged(self, broker: str) -> dict[str, str]:
        return _read(_Positions, await self._ask("GET", f"/brokers/{broker}/ack")).positions

    async def parameters(self, channel: str) -> list[Parameter]:
        return _read(_Channel, await self._ask("GET", f"/channels/{_name('channel', channel)}")).parameters

    async def append(self, dataset: str, lines: bytes, key: str) -> Receipt:
        """The receipt of a batch of JSON lines; the same ``key`` again appends nothing."""
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        return _read(
            Receipt, await self._ask("POST", f"/datasets/{_name('dataset', dataset)}/records", lines, headers=headers)
        )

    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        waits_s: float = 0.0,
    ) -> bytes:
        content = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        sent = {"Authorization": f"Bearer {self._token()}", "Content-Type": "application/json"} | dict(headers or {})
        try:
            answer = await self._http.request(
                method, path, content=content, params=params, headers=sent, timeout=self._timeout_s + waits_s
            )
        except UNANSWERED as problem:
            raise Unavailable(f"the data cluster does not answer: {type(problem).__name__} {problem}".strip()) from None
        if answer.is_success:
            return answer.content
        raise _problem(answer)


def _name(kind: str, text: str) -> str:
    """A client's word as one step of a path; NotFound for what could be taken for another place."""
    if "/" in text or not text.strip(".") or not text.isprintable():
        raise NotFound(kind, text)
    return quote(text, safe="")


def _read(kind: type[T], body: bytes) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as problem:
        raise Unavailable(f"the data cluster answers in a way that is not understood: {problem}") from None


def _problem(answer: httpx.Response) -> TocsinError:
    try:
        told = msgspec.json.decode(answer.content, type=_Problem)
    except msgspec.DecodeError:
        told = _Problem(detail=f"status {answer.status_code}")
    return _error(msgspec.structs.replace(told, status=answer.status_code))


def _error(told: _Problem) -> TocsinError:
    if told.status in _RETRYABLE:
        return Unavailable(f"the data cluster cannot do it now: {told.detail}")
    if told.status in (401, 403):
        return Unavailable(f"the data cluster does not trust this broker: {told.detail}")
    code = told.type.rpartition(":")[2]
    if code == "not-found" and told.kind and told.name:
        return NotFound(told.kind, told.name)
    return ClusterRefused(code, told.detail, told.name)
