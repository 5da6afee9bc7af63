"""Carries out statements: one method a statement, each gives an ``Answer``.

A statement that fails changes nothing. Dropping what is in use is refused with the list of its users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.explain import explain_lines
from tocsin.datacluster.feeding import Feeding
from tocsin.datacluster.fence import fenced
from tocsin.datacluster.loading import load_file
from tocsin.datacluster.selecting import Selecting, tables_of
from tocsin.datacluster.service import Answer, Wanted
from tocsin.datacluster.showing import Showing
from tocsin.datacluster.subscribing import Subscribing
from tocsin.errors import BadArgument, LimitExceeded, NameTaken, NotFound, Refused
from tocsin.language import statements as st
from tocsin.language.parser import parse_script
from tocsin.tokens import Principal
from tocsin.units import counted

S = TypeVar("S", bound=st.Statement)
_READ_ONLY = (st.Show, st.Describe, st.Select, st.ExplainChannel)
_BY_SUBSCRIBERS = (st.Subscribe, st.Unsubscribe, st.ChangeSubscription)


@dataclass(frozen=True, slots=True)
class Asking:
    """Who sent a script, and a check that raises when it should end: before a statement, or within a long one."""

    who: Principal
    go_on: Callable[[], None]


class Statements:
    def __init__(
        self,
        datasets: Datasets,
        channels: Channels,
        brokers: Brokers,
        feeds: Feeding,
        subscribing: Subscribing,
        selecting: Selecting,
        showing: Showing,
        load_root: Path | None,
        max_statements: int,
    ) -> None:
        self._datasets, self._channels, self._brokers, self._feeds = datasets, channels, brokers, feeds
        self._subscribing, self._selecting, self._showing = subscribing, selecting, showing
        self._load_root, self._max_statements = load_root, max_statements

    def run(self, text: str, who: Principal, go_on: Callable[[], None]) -> list[Answer]:
        """Run a script. It is parsed whole first, so a syntax error anywhere changes nothing."""
        script = parse_script(text)
        if len(script) > self._max_statements:
            raise LimitExceeded("statements in a script", self._max_statements, len(script))
        return [self._one(statement, Asking(who, go_on)) for statement in script]

    def _one(self, statement: st.Statement, asking: Asking) -> Answer:
        asking.go_on()
        check_allowed(statement, asking.who)
        handler: Callable[[Any, Asking], Answer] = _HANDLERS[type(statement)]
        return handler(self, statement, asking)  # type: ignore[call-arg, arg-type]

    # --- datasets ------------------------------------------------------------------------------

    def _create_dataset(self, s: st.CreateDataset, _: Asking) -> Answer:
        if s.if_not_exists and s.spec.name in self._datasets:
            return _done(f"dataset {s.spec.name} exists already")
        for channel in self._channels.values():
            if s.spec.name.lower() in tables_of(channel.spec.name):
                raise NameTaken("dataset", s.spec.name, f"the tables of channel {channel.spec.name}")
        self._datasets.create(s.spec)
        return _done(f"created dataset {s.spec.name}")

    def _drop_dataset(self, s: st.DropDataset, _: Asking) -> Answer:
        if s.if_exists and s.name not in self._datasets:
            return _done(f"there is no dataset {s.name}")
        self._datasets.drop(s.name, lambda: self._users_of(s.name))
        return _done(f"dropped dataset {s.name}")

    def _add_column(self, s: st.AlterDatasetAddColumn, _: Asking) -> Answer:
        if s.if_not_exists and self._datasets[s.name].spec.column(s.column.name):
            return _done(f"column {s.column.name} exists already")
        self._channels.add_column(s.name, s.column)
        return _done(f"added column {s.column.name} to {s.name}")

    def _drop_column(self, s: st.AlterDatasetDropColumn, _: Asking) -> Answer:
        if s.if_exists and not self._datasets[s.name].spec.column(s.column):
            return _done(f"there is no column {s.column}")
        self._datasets.drop_column(s.name, s.column, lambda: self._users_of(s.name))
        return _done(f"dropped column {s.column} of {s.name}")

    def _users_of(self, dataset: str) -> list[str]:
        return self._channels.users_of(dataset) + self._feeds.users_of(dataset)

    def _load(self, s: st.LoadDataset, asking: Asking) -> Answer:
        place = fenced(self._load_root, s.path, "LOAD DATASET", " or use the command 'tocsin load'")
        return _done(load_file(self._datasets, s.name, place, s.format, asking.go_on).sentence(s.name))

    def _insert(self, s: st.InsertRecords, _: Asking) -> Answer:
        columns = s.columns or tuple(c.name for c in self._datasets[s.name].spec.columns)
        for row in s.rows:
            if len(row) != len(columns):
                raise BadArgument(s.name, f"{len(columns)} values ({', '.join(columns)})", len(row))
        receipt = self._datasets.insert(s.name, [dict(zip(columns, row, strict=True)) for row in s.rows])
        return _done(f"inserted {counted(receipt.accepted, 'record')} into {s.name}")

    def _delete(self, s: st.DeleteRecords, _: Asking) -> Answer:
        count = self._datasets.delete(s.name, [dict(pairs) for pairs in s.where])
        return _done(f"deleted {counted(count, 'key')} of {s.name}")

    # --- feeds, channels, brokers --------------------------------------------------------------

    def _create_feed(self, s: st.CreateFeed, _: Asking) -> Answer:
        if s.if_not_exists and s.spec.name in self._feeds:
            return _done(f"feed {s.spec.name} exists already")
        self._feeds.create(s.spec)
        return _done(f"created feed {s.spec.name} into {s.spec.dataset}")

    def _drop_feed(self, s: st.DropFeed, _: Asking) -> Answer:
        if s.if_exists and s.name not in self._feeds:
            return _done(f"there is no feed {s.name}")
        self._feeds.drop(s.name)
        return _done(f"dropped feed {s.name}")

    def _pause_feed(self, s: st.PauseFeed, _: Asking) -> Answer:
        self._feeds.pause(s.name)
        return _done(f"paused feed {s.name}")

    def _resume_feed(self, s: st.ResumeFeed, _: Asking) -> Answer:
        self._feeds.resume(s.name)
        return _done(f"resumed feed {s.name}")

    def _create_channel(self, s: st.CreateChannel, _: Asking) -> Answer:
        name = s.spec.name
        for table in tables_of(name):
            if table in self._datasets:
                raise NameTaken("channel", name, f"dataset {self._datasets[table].spec.name}")
        if name in self._channels:
            if s.or_replace:
                kept = self._channels.replace(s.spec, s.query_span)
                fate = "subscriptions kept" if kept else "subscriptions dropped, since the parameters changed"
                return _done(f"replaced channel {name}, {fate}")
            if s.if_not_exists:
                return _done(f"channel {name} exists already")
        self._channels.create(s.spec, s.query_span)
        channel = self._channels[name]
        return _done(f"created channel {name}: {channel.prepared.plan.why}")

    def _drop_channel(self, s: st.DropChannel, _: Asking) -> Answer:
        if s.if_exists and s.name not in self._channels:
            return _done(f"there is no channel {s.name}")
        self._channels.drop(s.name, cascade=s.cascade)
        return _done(f"dropped channel {s.name}")

    def _pause_channel(self, s: st.PauseChannel, _: Asking) -> Answer:
        self._channels.pause(s.name)
        return _done(f"paused channel {s.name}")

    def _resume_channel(self, s: st.ResumeChannel, _: Asking) -> Answer:
        self._channels.resume(s.name)
        return _done(f"resumed channel {s.name}")

    def _explain(self, s: st.ExplainChannel, _: Asking) -> Answer:
        explained = self._showing.explain(s.name)
        return Answer("explain", "\n".join(explain_lines(explained, self._showing.spark_plan(s.name))))

    def _create_broker(self, s: st.CreateBroker, _: Asking) -> Answer:
        if s.if_not_exists and s.spec.name.lower() in (n.lower() for n in self._brokers.names().values()):
            return _done(f"broker {s.spec.name} exists already")
        if s.or_replace:
            was_made = self._brokers.put(s.spec)
        else:
            self._brokers.create(s.spec)
            was_made = True
        return _done(f"{'created' if was_made else 'replaced'} broker {s.spec.name} at {s.spec.url}")

    def _drop_broker(self, s: st.DropBroker, _: Asking) -> Answer:
        if s.if_exists and s.name.lower() not in (n.lower() for n in self._brokers.names().values()):
            return _done(f"there is no broker {s.name}")
        self._brokers.drop(s.name)
        return _done(f"dropped broker {s.name}")

    # --- subscriptions -------------------------------------------------------------------------

    def _subscribe(self, s: st.Subscribe, asking: Asking) -> Answer:
        arguments = _arguments(self._channels[s.channel].spec.parameters, s.args)
        done = self._subscribing.subscribe(s.channel, s.broker, [Wanted(arguments)], asking.who)[0]
        row = (done.id, done.backend, str(done.position))
        return Answer("table", f"subscribed to {done.channel}", ("subscription", "backend", "position"), (row,))

    def _unsubscribe(self, s: st.Unsubscribe, asking: Asking) -> Answer:
        where = f" of {s.channel}" if s.channel else ""
        is_known = s.channel is None or s.channel in self._channels or not s.if_exists
        if is_known and self._subscribing.unsubscribe([s.subscription], asking.who, s.channel):
            return _done(f"unsubscribed {s.subscription}")
        if not s.if_exists:
            raise NotFound("subscription", s.subscription + where)
        return _done(f"there is no subscription {s.subscription}{where}")

    def _change(self, s: st.ChangeSubscription, asking: Asking) -> Answer:
        moved = self._subscribing.change([s.subscription], s.broker, asking.who)[0]
        row = (moved.id, moved.backend, str(moved.position))
        return Answer("table", f"moved to {s.broker}", ("subscription", "backend", "position"), (row,))

    # --- reading -------------------------------------------------------------------------------

    def _show(self, s: st.Show, asking: Asking) -> Answer:
        return self._showing.show(s.what, s.name, asking.who)

    def _describe(self, s: st.Describe, _: Asking) -> Answer:
        return self._showing.describe(s.name, s.kind)

    def _select(self, s: st.Select, asking: Asking) -> Answer:
        return self._selecting.select(s.query, s.span, asking.who, asking.go_on)


_HANDLERS: dict[type[st.Statement], Any] = {
    st.CreateDataset: Statements._create_dataset,
    st.DropDataset: Statements._drop_dataset,
    st.AlterDatasetAddColumn: Statements._add_column,
    st.AlterDatasetDropColumn: Statements._drop_column,
    st.LoadDataset: Statements._load,
    st.InsertRecords: Statements._insert,
    st.DeleteRecords: Statements._delete,
    st.CreateFeed: Statements._create_feed,
    st.DropFeed: Statements._drop_feed,
    st.PauseFeed: Statements._pause_feed,
    st.ResumeFeed: Statements._resume_feed,
    st.CreateChannel: Statements._create_channel,
    st.DropChannel: Statements._drop_channel,
    st.PauseChannel: Statements._pause_channel,
    st.ResumeChannel: Statements._resume_channel,
    st.ExplainChannel: Statements._explain,
    st.CreateBroker: Statements._create_broker,
    st.DropBroker: Statements._drop_broker,
    st.Subscribe: Statements._subscribe,
    st.Unsubscribe: Statements._unsubscribe,
    st.ChangeSubscription: Statements._change,
    st.Show: Statements._show,
    st.Describe: Statements._describe,
    st.Select: Statements._select,
}


def _done(message: str) -> Answer:
    return Answer("done", message)


def check_allowed(statement: st.Statement, who: Principal) -> None:
    """Reading needs ``read``, writing ``ingest``; a broker creates itself, subscribing is checked with the channel.

    The rest needs ``admin``.
    """
    if isinstance(statement, _BY_SUBSCRIBERS) or who.may("admin"):
        return
    if isinstance(statement, _READ_ONLY) and who.may("read"):
        return
    if isinstance(statement, st.InsertRecords | st.DeleteRecords) and who.may("ingest", statement.name):
        return
    if isinstance(statement, st.CreateBroker) and who.may("broker", statement.spec.name):
        return
    raise Refused(f"{_written(statement)} needs the capability {_need(statement)!r}, which the token does not have")


def _need(statement: st.Statement) -> str:
    if isinstance(statement, st.InsertRecords | st.DeleteRecords):
        return f"ingest:{statement.name}"
    return "read" if isinstance(statement, _READ_ONLY) else "admin"


def _written(statement: st.Statement) -> str:
    """How it begins: ``CREATE CHANNEL``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(statement).__name__.removesuffix("Records")).upper()


def _arguments(parameters: Sequence[Any], args: Sequence[tuple[str | None, Any]]) -> dict[str, Any] | list[Any]:
    if all(name is None for name, _ in args):
        return [list(v) if isinstance(v, tuple) else v for _, v in args]
    named: dict[str, Any] = {}
    for place, (name, value) in enumerate(args):
        key = name if name is not None else (parameters[place].name if place < len(parameters) else f"#{place + 1}")
        if key.lower() in (n.lower() for n in named):
            raise BadArgument(key, "one value", "two")
        named[key] = list(value) if isinstance(value, tuple) else value
    return named
