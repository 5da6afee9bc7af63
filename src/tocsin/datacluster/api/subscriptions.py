"""``/subscriptions``: asking for results, in bulk, and ending it again."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tocsin.datacluster.api.context import Shared
from tocsin.datacluster.service import Subscribed, SubscriptionView, Wanted
from tocsin.errors import NotFound
from tocsin.web.auth import Who
from tocsin.web.bodies import check_items, read_json
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["subscriptions"])

Limit = Annotated[int, Query(ge=1, description="Subscriptions wanted; the cluster may give fewer.")]
After = Annotated[str | None, Query(description="``next`` of the page before.")]
_MOST = 2**63 - 1
Making = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
Through = Annotated[int | None, Query(ge=0, le=_MOST, description="End it only if it was made up to this making.")]


class WantedSubscription(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments by name or in order; with an ``id`` of yours, asking again changes nothing."""

    arguments: dict[str, Any] | list[Any]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[^/\x00-\x1f\x7f-\x9f]+$")] | None = None


class NewSubscriptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``making`` is a number of yours that grows with each request, so that a removal can tell what it means."""

    channel: str
    broker: str
    subscriptions: list[WantedSubscription]
    making: Making = 0


class MadeSubscription(msgspec.Struct, frozen=True):
    """Results of ``backend`` after ``position`` belong to this subscription; ``making`` is the latest that asked."""

    id: str
    channel: str
    backend: int
    position: str
    life: int
    making: int


class MadeSubscriptions(msgspec.Struct, frozen=True):
    subscriptions: list[MadeSubscription]


class SubscriptionIds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With a ``making``, what was asked for later stays."""

    ids: list[str]
    making: Making | None = None


class SubscriptionMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Subscriptions, and the broker that is to have them."""

    ids: list[str]
    broker: str


class Removal(msgspec.Struct, frozen=True):
    removed: int


class Subscription(msgspec.Struct, frozen=True):
    id: str
    channel: str
    broker: str
    backend: int
    arguments: dict[str, Any]
    owner: str
    making: int


class Subscriptions(msgspec.Struct, frozen=True):
    """``next`` is what to pass as ``after`` for the following page, or null at the end."""

    subscriptions: list[Subscription]
    next: str | None


MESSAGES = (NewSubscriptions, MadeSubscriptions, SubscriptionIds, SubscriptionMove, Removal, Subscriptions)


@router.post("/subscriptions", **operation(takes=NewSubscriptions, gives=MadeSubscriptions, summary="Subscribe"))
async def subscribe(request: Request, api: Shared, who: Who) -> Response:
    """Subscribe once or many times to one channel; all of them or none."""
    asked = await read_json(request, NewSubscriptions, api.limits)
    check_items("subscriptions in one request", len(asked.subscriptions), api.limits.items)
    wanted = [Wanted(one.arguments, one.id) for one in asked.subscriptions]
    made = await api.call(api.service.subscribe, asked.channel, asked.broker, wanted, who, asked.making)
    return reply(_made(made))


@router.get("/subscriptions", **operation(gives=Subscriptions, summary="List subscriptions"))
async def list_subscriptions(
    api: Shared,
    who: Who,
    channel: str | None = None,
    broker: str | None = None,
    limit: Limit = 1000,
    after: After = None,
) -> Response:
    """A page of subscriptions in the order of their ids."""
    rows = min(limit, api.limits.page_rows)
    views = await api.call(api.service.subscriptions, who, channel, broker, rows, after)
    following = views[-1].id if len(views) == rows else None
    return reply(Subscriptions([_subscription(view) for view in views], following))


@router.delete("/subscriptions/{id}", **operation(gives=Removal, summary="Unsubscribe"))
async def unsubscribe(id: str, api: Shared, who: Who, making: Through = None) -> Response:
    removed = await api.call(api.service.unsubscribe, [id], who, making)
    if not removed:
        raise NotFound("subscription", id)
    return reply(Removal(removed))


@router.post("/subscriptions/remove", **operation(takes=SubscriptionIds, gives=Removal, summary="Unsubscribe in bulk"))
async def remove_subscriptions(request: Request, api: Shared, who: Who) -> Response:
    """End subscriptions; ids that do not exist are passed over."""
    asked = await read_json(request, SubscriptionIds, api.limits)
    check_items("ids in one request", len(asked.ids), api.limits.items)
    return reply(Removal(await api.call(api.service.unsubscribe, asked.ids, who, asked.making)))


@router.post(
    "/subscriptions/change",
    **operation(takes=SubscriptionMove, gives=MadeSubscriptions, summary="Move subscriptions to another broker"),
)
async def change_subscriptions(request: Request, api: Shared, who: Who) -> Response:
    asked = await read_json(request, SubscriptionMove, api.limits)
    check_items("ids in one request", len(asked.ids), api.limits.items)
    return reply(_made(await api.call(api.service.change, asked.ids, asked.broker, who)))


def _made(made: list[Subscribed]) -> MadeSubscriptions:
    return MadeSubscriptions(
        [MadeSubscription(one.id, one.channel, one.backend, str(one.position), one.life, one.making) for one in made]
    )


def _subscription(view: SubscriptionView) -> Subscription:
    return Subscription(view.id, view.channel, view.broker, view.backend, dict(view.arguments), view.owner, view.making)
