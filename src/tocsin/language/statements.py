"""What a script says: one frozen class per statement.

``span`` is the place of the statement's first word, ``name_span`` that of the name it is about. Places do not
take part in comparison: two statements are equal when they say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

from tocsin.errors import Span
from tocsin.model.catalog import BrokerSpec, ChannelSpec, Column, DatasetSpec, FeedSpec

Scalar: TypeAlias = str | int | float | bool | Decimal | None
Literal: TypeAlias = Scalar | tuple[Scalar, ...]  # a tuple is an array; Decimal where a float would lose digits

FIRST = Span(1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    span: Span = field(default=FIRST, compare=False)
    name_span: Span = field(default=FIRST, compare=False)


@dataclass(frozen=True, slots=True)
class CreateDataset(Statement):
    spec: DatasetSpec
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropDataset(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatasetAddColumn(Statement):
    name: str
    column: Column
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatasetDropColumn(Statement):
    name: str
    column: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class LoadDataset(Statement):
    """``format`` is ``json`` (one object a line), ``csv`` or ``parquet``."""

    name: str
    path: str
    format: str


@dataclass(frozen=True, slots=True)
class InsertRecords(Statement):
    """Every row is as long as ``columns``; no columns means all of the dataset, in order."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True, slots=True)
class DeleteRecords(Statement):
    """One entry of ``keys`` per record to delete, its values in the order of ``columns``."""

    name: str
    columns: tuple[str, ...]
    keys: tuple[tuple[Scalar, ...], ...]

    @property
    def where(self) -> tuple[tuple[tuple[str, Scalar], ...], ...]:
        """Per record to delete, its (column, value) pairs."""
        return tuple(tuple(zip(self.columns, key, strict=True)) for key in self.keys)


@dataclass(frozen=True, slots=True)
class CreateFeed(Statement):
    spec: FeedSpec
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFeed(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PauseFeed(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class ResumeFeed(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class CreateChannel(Statement):
    """``spec.query`` is the SELECT as written; ``query_span`` is where it starts in the script."""

    spec: ChannelSpec
    if_not_exists: bool = False
    or_replace: bool = False
    query_span: Span = field(default=FIRST, compare=False)


@dataclass(frozen=True, slots=True)
class DropChannel(Statement):
    """With ``cascade`` its subscriptions go, too; otherwise one that has some is not dropped."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class PauseChannel(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class ResumeChannel(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class ExplainChannel(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class CreateBroker(Statement):
    spec: BrokerSpec
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropBroker(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe(Statement):
    """``args`` are (name, value) pairs, positional ones first and without a name."""

    channel: str
    args: tuple[tuple[str | None, Literal], ...]
    broker: str


@dataclass(frozen=True, slots=True)
class Unsubscribe(Statement):
    subscription: str
    channel: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeSubscription(Statement):
    subscription: str
    broker: str


class Shown(StrEnum):
    """What SHOW lists; the value is how it is written."""

    DATASETS = "DATASETS"
    CHANNELS = "CHANNELS"
    BROKERS = "BROKERS"
    FEEDS = "FEEDS"
    SUBSCRIPTIONS = "SUBSCRIPTIONS"
    EXECUTIONS = "EXECUTIONS"
    DEAD_LETTERS = "DEAD LETTERS"


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """``name`` narrows SUBSCRIPTIONS and EXECUTIONS to a channel, DEAD LETTERS to a dataset."""

    what: Shown
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """``kind`` is ``dataset``, ``channel`` or, where the statement leaves it open, ``None``."""

    name: str
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Select(Statement):
    """A read-only query as written; ``span`` is where it starts."""

    query: str
