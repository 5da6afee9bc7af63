"""``/plans`` and ``/moves``: who shall move, and how every move ended."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tocsin.coordinator import events
from tocsin.coordinator.api.context import Shared, check_reads, check_rules
from tocsin.coordinator.decisions import Decision
from tocsin.coordinator.moves import Expected, Move, MoveState
from tocsin.coordinator.names import check_broker
from tocsin.coordinator.plans import Plan
from tocsin.coordinator.world import World
from tocsin.errors import BadArgument, NotFound
from tocsin.protocol.names import check_name
from tocsin.web.auth import Who
from tocsin.web.bodies import check_items, read_json
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["plans"])
MAX_MOVES = 100_000


class PlannedMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without a ``reason`` the plan's is its own."""

    user: str
    to: str
    reason: str = ""


class NewPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    moves: list[PlannedMove]
    cause: str = "asked for"


class MoveView(msgspec.Struct, frozen=True):
    """``cause`` is why it was wanted, ``outcome`` why it ended as it did; ``expected`` is there where it balances."""

    id: str
    plan: str
    user: str
    source: str | None
    to: str
    state: str
    version: int
    cause: str
    outcome: str
    created_at: float
    ended_at: float | None
    expected: Expected | None


class Moves(msgspec.Struct, frozen=True):
    moves: list[MoveView]


class PlanView(msgspec.Struct, frozen=True):
    """``states`` counts its moves, of those that are remembered. ``decision`` is how balancing came to it, in this run
    of the coordinator."""

    id: str
    kind: str
    cause: str
    created_at: float
    states: dict[str, int]
    decision: Decision | None


class Plans(msgspec.Struct, frozen=True):
    plans: list[PlanView]


class WholePlan(PlanView, frozen=True):
    moves: list[MoveView]


MESSAGES = (NewPlan, Plans, WholePlan, Moves)


@router.post("/plans", **operation(takes=NewPlan, gives=WholePlan, status=201, summary="Have users moved"))
async def propose_plan(request: Request, api: Shared, who: Who) -> Response:
    """A newer move of a user takes the place of an older one. What cannot be is recorded as refused."""
    check_rules(who)
    asked = await read_json(request, NewPlan, api.limits)
    check_items("moves in one plan", len(asked.moves), MAX_MOVES)
    check_name("cause", asked.cause)
    plan = await api.service.propose([_wanted(move, asked.cause) for move in asked.moves], asked.cause)
    return reply(_whole(api.service.state.world, plan), 201)


@router.get("/plans", **operation(gives=Plans, summary="List plans, newest first"))
async def list_plans(api: Shared, who: Who) -> Response:
    check_reads(who)
    world = await api.world()
    states: dict[str, Counter[str]] = {}
    for move in world.moves:
        states.setdefault(move.plan, Counter())[move.state] += 1
    decided, newest = api.service.balancer.by_plan(), reversed(list(world.plans))
    views = (PlanView(p.id, p.kind, p.cause, p.created_at, states.get(p.id, {}), decided.get(p.id)) for p in newest)
    return reply(Plans(list(views)))


@router.get("/plans/{id}", **operation(gives=WholePlan, summary="Show a plan and its moves"))
async def show_plan(id: str, api: Shared, who: Who) -> Response:
    check_reads(who)
    world = await api.world()
    if id not in world.plans:
        raise NotFound("plan", id)
    return reply(_whole(world, id, api.service.balancer.by_plan().get(id)))


@router.get("/moves", **operation(gives=Moves, summary="List moves, newest first"))
async def list_moves(
    api: Shared,
    who: Who,
    user: str | None = None,
    state: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    check_reads(who)
    if state is not None and state not in list(MoveState):
        raise BadArgument("state", f"one of {', '.join(MoveState)}", state)
    world = await api.world()
    newest = reversed(list(world.moves))
    found = (m for m in newest if user in (None, m.user) and state in (None, m.state))
    return reply(Moves([_move(move) for move in islice(found, limit)]))


def _wanted(move: PlannedMove, cause: str) -> events.WantedMove:
    return events.WantedMove(check_name("user", move.user), check_broker(move.to), move.reason[:500] or cause)


def _whole(world: World, id: str, decision: Decision | None = None) -> WholePlan:
    plan: Plan = world.plans[id]
    moves = [move for move in world.moves if move.plan == id]
    states = dict(Counter(str(move.state) for move in moves))
    about = (plan.id, plan.kind, plan.cause, plan.created_at, states, decision)
    return WholePlan(*about, [_move(move) for move in moves])


def _move(move: Move) -> MoveView:
    return MoveView(
        move.id, move.plan, move.user, move.source, move.to, move.state, move.version, move.cause, move.outcome,
        move.created_at, move.ended_at, move.expected,
    )  # fmt: skip
