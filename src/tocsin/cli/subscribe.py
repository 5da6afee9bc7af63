"""``tocsin subscribe``: follow a channel or a topic, one line a notification."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import Annotated, Any

import msgspec
import typer

from tocsin.cli.breaks import breaks_told
from tocsin.cli.options import ConfigFile, Json, Sets, settings
from tocsin.cli.output import note, print_json
from tocsin.cli.people import BrokerUrl, CoordinatorUrl, PersonDataDir, PersonToken, UserName, session_options
from tocsin.cli.signals import run_until_signalled
from tocsin.client import Gap, Notification, Subscription, channel, connect, topic
from tocsin.errors import BadArgument, NotFound, SessionEnded
from tocsin.protocol.targets import Target

_REASONS = {
    "slow": "it came faster than it was taken",
    "retention": "it is older than what is kept",
    "owner": "the broker that kept the topic's history has died",
    "unheld": "nobody was subscribed to this for a while",
}


def subscribe(
    name: Annotated[str, typer.Argument(help="A channel, or with --topic a topic.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARG=VALUE]...", help="The channel's arguments.")
    ] = None,
    is_topic: Annotated[bool, typer.Option("--topic", help="The name is a topic's.")] = False,
    count: Annotated[int | None, typer.Option(help="End after so many notifications.", min=1)] = None,
    id: Annotated[str | None, typer.Option(help="Name of the subscription.", show_default="from what it names")] = None,
    end: Annotated[bool, typer.Option("--end", help="End the subscription when the command ends.")] = False,
    coordinator: CoordinatorUrl = None,
    broker: BrokerUrl = None,
    token: PersonToken = None,
    user: UserName = None,
    config: ConfigFile = None,
    data_dir: PersonDataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """Print the notifications of a [bold]channel[/bold] or a [bold]topic[/bold], one line of JSON each.

    The subscription stays when the command ends, and goes on where it stopped when the command is run again, unless
    --end is given. Gaps are told on standard error, with --json among the notifications; connections that are lost
    and come back always on standard error.

    Example: tocsin subscribe Near kind=fire x=0 y=0 radius=500
    """
    chosen = settings(config, sets, {"cluster.data_dir": data_dir}).config
    target = parse_target(name, arguments or [], is_topic=is_topic)
    options = session_options(chosen, coordinator, broker, token, user, is_local=data_dir is not None)
    end_s = chosen.client.login_timeout if end else None
    run_until_signalled(_follow(options, target, id, count, end_s, as_json))


def parse_target(name: str, arguments: list[str], *, is_topic: bool) -> Target:
    if is_topic and arguments:
        raise BadArgument("arguments", "none for a topic", " ".join(arguments))
    return topic(name) if is_topic else channel(name, **dict(map(_argument, arguments)))


async def _follow(
    options: dict[str, Any], target: Target, id: str | None, count: int | None, end_s: float | None, as_json: bool
) -> None:
    """``end_s``: how long the end of the subscription may take; ``None`` leaves it standing."""
    session = connect(**options)
    async with breaks_told(session, options), session:
        subscription = session.subscribe(target, id=id)
        try:
            await subscription
            note(f"Subscribed as {session.user!r} at the broker {session.broker!r}: {subscription.id}")
            await _print_items(subscription, count, as_json)
        finally:
            if end_s is not None:
                await _end(subscription, end_s)


async def _end(subscription: Subscription, end_s: float) -> None:
    try:
        with suppress(SessionEnded, NotFound):
            await asyncio.wait_for(subscription.unsubscribe(), end_s)
    except TimeoutError:
        note(f"No broker answered within {end_s:g} s, and the subscription may stay: {subscription.id}")


async def _print_items(subscription: Subscription, count: int | None, as_json: bool) -> None:
    async for item in subscription:
        _print(item, as_json)
        if count is not None and isinstance(item, Notification):
            count -= 1
            if count == 0:
                return


def _print(item: Notification | Gap, as_json: bool) -> None:
    if isinstance(item, Gap):
        gap = {"gap": {"after": item.after, "through": item.through, "count": item.count, "reason": item.reason}}
        if as_json:
            print_json(gap)
        else:
            missed = "an unknown number" if item.count is None else item.count
            note(f"Missed {missed} here: {_REASONS.get(item.reason, item.reason)}.")
    elif as_json:
        print_json({"position": item.through, "payload": item.payload})
    else:
        print_json(item.payload)
    sys.stdout.flush()


def _argument(text: str) -> tuple[str, Any]:
    """``name=value``; the value is JSON where it reads as such, else a text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise BadArgument("arguments", "NAME=VALUE", text)
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value
