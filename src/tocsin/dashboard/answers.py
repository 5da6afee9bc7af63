"""What the sampler reads of the others' answers. One that is not of this form is passed over and told as a problem:
behind the address may be something else, or another version."""

from __future__ import annotations

from typing import Any, TypedDict


class LoadTold(TypedDict):
    model_in_per_s: float
    model_out_per_s: float
    loop_lag_s: float


class BrokerTold(TypedDict):
    name: str
    url: str
    state: str
    users: int
    online: int
    load: LoadTold
    capacity: float | None
    location: tuple[float, float] | None


class Brokers(TypedDict):
    brokers: list[BrokerTold]


class DecisionTold(TypedDict):
    """The least of what a decision has; pages get the rest, too."""

    at: float
    action: str
    reason: str


class Decisions(TypedDict):
    decisions: list[DecisionTold]


class Numbered(TypedDict):
    id: str


class Plans(TypedDict):
    plans: list[Numbered]


class Moves(TypedDict):
    moves: list[Numbered]


class ChannelTold(TypedDict):
    name: str
    parameters: list[Any]
    mode: str
    state: str
    strategy: str
    subscriptions: int
    backends: int
    executions: int
    lag_s: float
    problem: str | None


class Channels(TypedDict):
    channels: list[ChannelTold]


class Status(TypedDict):
    ready: bool
    reason: str
    started_at: str | None
    spark: dict[str, Any]
    totals: dict[str, Any]


class AssignmentTold(TypedDict):
    user: str
    broker: str | None
    online: bool


class Assignments(TypedDict):
    assignments: list[AssignmentTold]
    next: str | None
