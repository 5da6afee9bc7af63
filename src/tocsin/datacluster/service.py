"""What the data cluster does for others: the one door behind REST, tests and the demo.

All methods are synchronous, may be called from many threads at once, and return when their effect is
durable. Errors are those of ``tocsin.errors``. Who may do what is checked in here, once, so that every
interface gives the same answer: each method takes the principal that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tocsin.model.position import Position
from tocsin.tokens import Principal


@dataclass(frozen=True, slots=True)
class Answer:
    """What one statement gave: a sentence, and rows where it asked for some."""

    kind: str  # "done", "table" or "explain"
    message: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that did not fit; it is in the dead letters, whole."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """An acknowledged batch: durable, and given the sequence numbers ``first`` to ``last``."""

    accepted: int
    rejected: int
    first: int
    last: int
    is_duplicate: bool
    problems: tuple[Rejected, ...] = ()  # the first few


SUBSCRIPTION_ID = r"[^/\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}"
"""What an id of the caller's looks like: it stands in addresses and logs."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription asked for; with an ``id`` of the caller's, asking again changes nothing."""

    arguments: Mapping[str, Any] | Sequence[Any]
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Results of ``backend`` after ``position`` belong to this subscription.

    ``life`` is another one after the channel was dropped and made again: backends and positions then mean others.
    ``making`` is the latest that asked for it, see ``ClusterService.subscribe``.
    """

    id: str
    channel: str
    backend: int
    position: Position
    life: int = 0
    making: int = 0


@dataclass(frozen=True, slots=True)
class SubscriptionView:
    id: str
    channel: str
    broker: str
    backend: int
    arguments: Mapping[str, Any]
    owner: str
    making: int = 0


@dataclass(frozen=True, slots=True)
class ResultView:
    """One row for all backend subscriptions that get it; ``payload`` is JSON text as bytes."""

    id: str
    position: Position
    backends: tuple[int, ...]
    payload: bytes


@dataclass(frozen=True, slots=True)
class GapView:
    """Results between ``after`` and ``through`` are no longer kept; ``count`` where it is known."""

    after: Position
    through: Position
    count: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ChannelPage:
    """What a channel has for the asker in ``(after, through]``; ask again from ``through``. ``life`` as subscribed."""

    channel: str
    after: Position
    through: Position
    results: tuple[ResultView, ...]
    is_end: bool
    gap: GapView | None = None
    life: int = 0


@dataclass(frozen=True, slots=True)
class DatasetView:
    name: str
    columns: tuple[tuple[str, str], ...]
    primary_key: tuple[str, ...]
    is_active: bool
    retain: str
    records: int
    head: int
    rejected: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ChannelView:
    name: str
    parameters: tuple[tuple[str, str], ...]
    mode: str  # "continuous" or "every 10s"
    is_push: bool
    state: str  # "running", "paused", "failing"
    strategy: str
    subscriptions: int
    backends: int
    executions: int
    lag_s: float
    problem: str | None
    query: str


@dataclass(frozen=True, slots=True)
class BrokerView:
    name: str
    url: str
    subscriptions: int
    waiting_notices: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class FeedView:
    name: str
    dataset: str
    kind: str
    state: str
    records: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Status:
    is_ready: bool
    reason: str
    started_at: float
    spark: Mapping[str, Any] = field(default_factory=dict)
    totals: Mapping[str, Any] = field(default_factory=dict)


class ClusterService(Protocol):
    def execute(self, text: str, who: Principal, go_on: Callable[[], None] = lambda: None) -> list[Answer]:
        """Run a script up to the first statement that fails.

        ``go_on`` is called before each, and again and again within those that may take long; what it raises ends it.
        """

    def ingest(self, dataset: str, body: bytes, key: str | None, who: Principal, form: str = "json") -> Receipt:
        """Append JSON lines or ``csv``. The same key again gives the first receipt, with another body KeyReused."""

    def delete_records(self, dataset: str, keys: Sequence[Mapping[str, Any]], who: Principal) -> int:
        """Delete keyed records; gives how many keys were named."""

    def subscribe(
        self, channel: str, broker: str, wanted: Sequence[Wanted], who: Principal, making: int = 0
    ) -> list[Subscribed]:
        """Subscribe; ``making`` is the caller's number of this request, greater than those before."""

    def unsubscribe(self, ids: Sequence[str], who: Principal, making: int | None = None) -> int:
        """End subscriptions, if ``making`` is given those made up to it; gives how many there were."""

    def change(self, ids: Sequence[str], broker: str, who: Principal) -> list[Subscribed]:
        """Move subscriptions to another broker."""

    def subscriptions(
        self, who: Principal, channel: str | None, broker: str | None, limit: int, after: str | None
    ) -> list[SubscriptionView]: ...

    def pull(
        self,
        broker: str,
        cursors: Mapping[str, Position],
        who: Principal,
        *,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        wait_s: float = 0.0,
    ) -> list[ChannelPage]:
        """Results for everything attached to ``broker``, for each channel named in ``cursors``.

        Waits up to ``wait_s`` for the first one.
        """

    def replay(
        self, channel: str, backend: int, after: Position, through: Position | None, limit: int, who: Principal
    ) -> ChannelPage: ...

    def acknowledge(self, broker: str, positions: Mapping[str, Position], who: Principal) -> None: ...

    def acknowledged(self, broker: str, who: Principal) -> dict[str, Position]: ...

    def datasets(self, who: Principal) -> list[DatasetView]: ...

    def channels(self, who: Principal) -> list[ChannelView]: ...

    def explain(self, channel: str, who: Principal) -> Mapping[str, Any]: ...

    def brokers(self, who: Principal) -> list[BrokerView]: ...

    def feeds(self, who: Principal) -> list[FeedView]: ...

    def unready(self) -> str | None:
        """Why no requests are taken, ``None`` where they are; asked often, so it costs nothing."""

    def status(self) -> Status: ...
