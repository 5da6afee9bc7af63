"""``/users``: where they belong, and what they subscribed to. ``/assignments`` lists who is where."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tocsin.coordinator import events
from tocsin.coordinator.api.context import (
    Shared,
    broker_of,
    check_for_user,
    check_keeps,
    check_reads,
    check_rules,
)
from tocsin.coordinator.users import User
from tocsin.coordinator.world import World
from tocsin.errors import BadArgument
from tocsin.protocol.coordination import Keep, KeepAnswer, Kept, NotKept, Placement, PlacementRequest
from tocsin.protocol.messages import Wanted
from tocsin.protocol.names import check_name
from tocsin.web.auth import Who
from tocsin.web.bodies import read_json
from tocsin.web.describe import operation, reply
from tocsin.web.segments import name_of

router = APIRouter(tags=["users"])
USER = f"/users/{name_of('user')}"
SUBSCRIPTION = f"{USER}/subscriptions/{name_of('id')}"
Limit = Annotated[int, Query(ge=1, le=10_000)]


class Assignment(msgspec.Struct, frozen=True):
    user: str
    broker: str | None
    version: int
    online: bool


class Assignments(msgspec.Struct, frozen=True):
    """``next`` is what to pass as ``after`` for the following page, or null at the end."""

    assignments: list[Assignment]
    next: str | None


class UserView(msgspec.Struct, frozen=True):
    """``reason`` is why it is where it is. Positions are those that were acknowledged last."""

    user: str
    broker: str | None
    url: str | None
    version: int
    reason: str
    online: bool
    location: tuple[float, float] | None
    seen_at: float
    subscriptions: list[Wanted]


MESSAGES = (Placement, PlacementRequest, Wanted, Keep, KeepAnswer, Assignments, UserView)


@router.post(f"{USER}/placement", **operation(takes=PlacementRequest, gives=Placement, summary="Ask for a broker"))
async def place_user(user: str, request: Request, api: Shared, who: Who) -> Response:
    """The broker that the user is placed at, which stays the same while it lives; 503 while none lives."""
    check_for_user(who, check_name("user", user))
    asked = await read_json(request, PlacementRequest, api.limits)
    return reply(await api.service.place(user, asked))


@router.put(
    SUBSCRIPTION,
    **operation(takes=Wanted, status=204, summary="Keep a subscription"),
)
async def keep_subscription(user: str, id: str, request: Request, api: Shared, who: Who) -> Response:
    check_keeps(who)
    wanted = await read_json(request, Wanted, api.limits)
    if wanted.id != check_name("subscription", id):
        raise BadArgument("id", id, wanted.id)
    await api.service.handle(events.SubscriptionKept(check_name("user", user), wanted, broker_of(who)))
    return Response(status_code=204)


@router.post("/subscriptions", **operation(takes=Keep, gives=KeepAnswer, summary="Keep or end many subscriptions"))
async def keep_subscriptions(request: Request, api: Shared, who: Who) -> Response:
    """Of any users, in their order; each is refused for itself, and the others are durable when this is answered."""
    check_keeps(who)
    asked = await read_json(request, Keep, api.limits)
    problems = await api.service.handle_all([partial(_told, kept, broker_of(who)) for kept in asked.kept])
    refused = [NotKept(i, problem.code, str(problem)) for i, problem in enumerate(problems) if problem]
    return reply(KeepAnswer(refused))


@router.delete(SUBSCRIPTION, **operation(status=204, summary="End a subscription"))
async def end_subscription(user: str, id: str, api: Shared, who: Who) -> Response:
    check_keeps(who)
    ended = events.SubscriptionEnded(check_name("user", user), check_name("subscription", id), broker_of(who))
    await api.service.handle(ended)
    return Response(status_code=204)


@router.get("/users", **operation(gives=Assignments, summary="List users"))
async def list_users(api: Shared, who: Who, after: str = "", limit: Limit = 1000) -> Response:
    return reply(await _assignments(api, who, after, limit))


@router.get("/assignments", **operation(gives=Assignments, summary="List who is where"))
async def list_assignments(api: Shared, who: Who, after: str = "", limit: Limit = 1000) -> Response:
    return reply(await _assignments(api, who, after, limit))


@router.get(USER, **operation(gives=UserView, summary="Show a user"))
async def show_user(user: str, api: Shared, who: Who) -> Response:
    check_reads(who, check_name("user", user))
    world = await api.world()
    return reply(_view(world, api.service.state.keeping.find(user)))


@router.delete(USER, **operation(status=204, summary="Forget a user"))
async def remove_user(user: str, api: Shared, who: Who) -> Response:
    """With all of its subscriptions; its connections are closed."""
    check_rules(who)
    await api.service.handle(events.UserRemoved(check_name("user", user)))
    return Response(status_code=204)


def _told(kept: Kept, by: str | None) -> events.Event:
    user, id = check_name("user", kept.user), check_name("subscription", kept.id)
    if kept.wanted is None:
        return events.SubscriptionEnded(user, id, by)
    if kept.wanted.id != id:
        raise BadArgument("id", id, kept.wanted.id)
    return events.SubscriptionKept(user, kept.wanted, by)


async def _assignments(api: Shared, who: Who, after: str, limit: int) -> Assignments:
    check_reads(who)
    world, count = await api.world(), min(limit, api.limits.page)
    later = (user for user in world.users.after(after) if not user.is_removed)
    found = [_assignment(world, user) for user in islice(later, count + 1)]
    return Assignments(found[:count], found[count - 1].user if len(found) > count else None)


def _assignment(world: World, user: User) -> Assignment:
    return Assignment(user.name, user.broker, user.version, world.is_online(user.name, user.broker))


def _view(world: World, user: User) -> UserView:
    url = world.brokers[user.broker].url if user.broker else None
    return UserView(
        user.name, user.broker, url, user.version, user.reason, world.is_online(user.name, user.broker),
        user.location, user.seen_at, list(user.subscriptions.values()),
    )  # fmt: skip
