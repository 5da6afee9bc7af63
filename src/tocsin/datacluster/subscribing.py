"""Subscribing, unsubscribing, moving: the ledger first, then the arrays that ticks use, in its order.

What memory holds follows what the ledger committed, in the same order: the effects are applied by the
ledger's own thread as each write settles. A caller is answered after both, so an execution that starts
after the answer sees the subscription.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tocsin.clock import Clock
from tocsin.datacluster.arguments import bind_arguments, canonical_key, values_of
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.ordered import write_then_apply
from tocsin.datacluster.service import SUBSCRIPTION_ID, Subscribed, SubscriptionView, Wanted
from tocsin.datacluster.storage import subscriptions as table
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.transaction import Tx
from tocsin.errors import BadArgument, NotFound, Refused
from tocsin.model.catalog import ChannelSpec
from tocsin.model.position import Position
from tocsin.tokens import Principal


class Subscribing:
    def __init__(self, ledger: Ledger, channels: Channels, brokers: Brokers, clock: Clock, max_radius: float) -> None:
        self._ledger, self._channels, self._brokers, self._clock = ledger, channels, brokers, clock
        self._max_radius = max_radius

    def subscribe(
        self, channel_name: str, broker: str, wanted: Sequence[Wanted], who: Principal, making: int = 0
    ) -> list[Subscribed]:
        channel = self._channels[channel_name]
        broker_id = self._brokers.id_of(broker)
        for w in wanted:
            check_id(w.id)
        grants = _grants(channel.spec, who)
        values = [bind_arguments(channel.spec, w.arguments) for w in wanted]
        self._check_radii(channel, values)
        _check_pins(channel.spec, grants, values)
        rows = [
            table.Wanted(canonical_key(channel.spec, v), broker_id, who.subject, w.id)
            for w, v in zip(wanted, values, strict=True)
        ]
        with channel.subscriptions.coming:
            added = write_then_apply(
                self._ledger,
                lambda tx: table.add_subscriptions(tx, channel.id, rows, self._clock.now(), making),
                lambda answer: _apply_added(self._channels.by_id(channel.id), broker_id, answer, values),
            )
        positions = {since: Position.end_of(since - 1) for since in {a.since_execution for a in added}}
        return [
            Subscribed(a.id, channel.spec.name, a.backend_no, positions[a.since_execution], channel.id, a.making)
            for a in added
        ]

    def _check_radii(self, channel: Channel, values: Sequence[Sequence[Any]]) -> None:
        for place, name in enumerate(channel.radius_parameters()):
            for radius in (v[place] for v in values) if name is not None else ():
                if radius is not None and not 0 <= radius <= self._max_radius:
                    raise BadArgument(name or "", f"a radius from 0 to {self._max_radius:,}", radius)

    def unsubscribe(
        self, ids: Sequence[str], who: Principal, channel: str | None = None, making: int | None = None
    ) -> int:
        """End subscriptions, those of ``channel`` if it is given, made up to ``making``; gives how many there were."""
        channel_id = self._channels[channel].id if channel else None
        held = [id for id, name in self._brokers.names().items() if who.may("broker", name)]

        def work(tx: Tx) -> list[table.Removed]:
            _check_owner(tx, ids, who, held)
            return table.remove_subscriptions(tx, ids, channel_id, making)

        return len(write_then_apply(self._ledger, work, self._apply_removed))

    def change(self, ids: Sequence[str], broker: str, who: Principal) -> list[Subscribed]:
        broker_id = self._brokers.id_of(broker)

        def work(tx: Tx) -> tuple[list[table.Moved], set[tuple[int, int, int]]]:
            _check_owner(tx, ids, who)
            moved = table.move_subscriptions(tx, ids, broker_id)
            if len(moved) < len(set(ids)):
                raise NotFound("subscription", next(i for i in ids if i not in {m.id for m in moved}))
            left = {(m.channel_id, m.backend_no, m.from_broker_id) for m in moved}
            return moved, {place for place in left if not table.is_held(tx, place)}

        moved, _ = write_then_apply(self._ledger, work, self._apply_moved)
        names = {c.id: c.spec.name for c in self._channels.values()}
        return [
            Subscribed(
                m.id, names[m.channel_id], m.backend_no, Position.end_of(m.live_from - 1), m.channel_id, m.making
            )
            for m in moved
        ]

    def list(
        self, who: Principal, channel: str | None, broker: str | None, limit: int, after: str | None
    ) -> list[SubscriptionView]:
        """A page of those that the principal may see, see ``viewer``."""
        channel_id = self._channels[channel].id if channel else None
        broker_id = self._brokers.id_of(broker) if broker else None
        seen_by = viewer(who, self._brokers)
        rows = self._ledger.read(
            lambda tx: table.list_subscriptions(tx, channel_id, broker_id, limit, after or "", seen_by)
        )
        by_id = {c.id: c for c in self._channels.values()}
        brokers = self._brokers.names()
        return [self._view(by_id[r.channel_id], brokers, r) for r in rows if r.channel_id in by_id]

    def _view(self, channel: Channel, brokers: Mapping[int, str], row: table.SubscriptionRow) -> SubscriptionView:
        values = values_of(channel.spec, row.params_key)
        arguments = {p.name: p.type.to_json(v) for p, v in zip(channel.spec.parameters, values, strict=True)}
        broker = brokers.get(row.broker_id, "")
        return SubscriptionView(row.id, channel.spec.name, broker, row.backend_no, arguments, row.owner, row.making)

    def _apply_removed(self, removed: Sequence[table.Removed]) -> None:
        for channel_id in {r.channel_id for r in removed}:
            mine = [r for r in removed if r.channel_id == channel_id]
            channel = self._channels.by_id(channel_id)
            if channel is not None:
                gone_for_all = {r.backend_no for r in mine if r.backend_gone}  # once, though several held it
                channel.subscriptions.remove(_ids(sorted(gone_for_all)), len(mine))
                for broker_id in {r.broker_id for r in mine}:
                    gone = [r.backend_no for r in mine if r.broker_id == broker_id and r.is_detached]
                    channel.subscriptions.attachments.detach(broker_id, _ids(gone))

    def _apply_moved(self, answer: tuple[Sequence[table.Moved], set[tuple[int, int, int]]]) -> None:
        moved, left = answer
        for channel_id, backend, broker_id in left:
            channel = self._channels.by_id(channel_id)
            if channel is not None:
                channel.subscriptions.attachments.detach(broker_id, _ids([backend]))
        for m in moved:
            channel = self._channels.by_id(m.channel_id)
            if channel is not None:
                attachments = channel.subscriptions.attachments
                attachments.attach(m.broker_id, _ids([m.backend_no]), np.array([m.since_execution], np.int64))


def viewer(who: Principal, brokers: Brokers) -> table.Viewer | None:
    """Who sees which subscriptions: one's own and those on one's brokers; ``None``, an administrator, sees all."""
    if who.may("admin") or who.may("broker", "*"):
        return None
    return table.Viewer(who.subject, tuple(id for id, name in brokers.names().items() if who.may("broker", name)))


def check_id(id: str | None) -> None:
    """An id of the caller's stands in addresses and logs."""
    if id is not None and (not re.fullmatch(SUBSCRIPTION_ID, id) or id in (".", "..")):
        raise BadArgument("id", "1 to 255 characters, without control characters and /, and not . or ..", id)


def _apply_added(
    channel: Channel | None, broker_id: int, added: Sequence[table.Added], values: Sequence[Sequence[Any]]
) -> None:
    if channel is None:  # dropped meanwhile, and its subscriptions with it
        return
    fresh = {a.backend_no: v for a, v in zip(added, values, strict=True) if a.backend_changed}
    held = [a for a in added if a.is_new]  # one asked for again stays where it is
    channel.subscriptions.add(_ids(list(fresh)), list(fresh.values()), len(held))
    since = np.array([a.since_execution for a in held], np.int64)
    channel.subscriptions.attachments.attach(broker_id, _ids([a.backend_no for a in held]), since)


def _ids(numbers: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.array(numbers, np.uint32)


def _grants(spec: ChannelSpec, who: Principal) -> list[dict[int, Any]]:
    """The ways in: what parameters, by their place, must be; Refused where there is none."""
    if not who.may("subscribe", spec.name):
        raise Refused(f"the token does not allow subscribing to {spec.name!r}")
    places = {parameter.name.lower(): place for place, parameter in enumerate(spec.parameters)}
    pins = [{name.lower(): value for name, value in pin.items()} for pin in who.pins(spec.name)]
    usable = [pin for pin in pins if pin.keys() <= places.keys()]
    if not usable:
        unknown = sorted(pins[0].keys() - places.keys())
        raise Refused(f"the token pins {unknown}, which {spec.name!r} does not have as parameters")
    return [{places[n]: spec.parameters[places[n]].type.parse(v, n) for n, v in pin.items()} for pin in usable]


def _check_pins(spec: ChannelSpec, grants: Sequence[Mapping[int, Any]], values: Sequence[Sequence[Any]]) -> None:
    """Each subscription has to fit one of the grants."""
    for asked in values if all(grants) else ():
        if not any(all(asked[place] == must for place, must in grant.items()) for grant in grants):
            place = next(place for place, must in grants[0].items() if asked[place] != must)
            raise Refused(f"the token pins {spec.parameters[place].name!r}, and {asked[place]!r:.120} is not its value")


def _check_owner(tx: Tx, ids: Sequence[str], who: Principal, brokers: Sequence[int] = ()) -> None:
    """Refused unless all belong to ``who`` or stand on one of ``brokers``."""
    if who.may("admin") or who.may("broker", "*"):
        return
    for id, owner, broker in table.owners(tx, ids):
        if owner != who.subject and broker not in brokers:
            raise Refused(f"subscription {id!r} belongs to someone else")
