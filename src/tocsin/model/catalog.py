"""What statements declare: datasets, channels, feeds, brokers."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.model.types import SqlType


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: SqlType
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: at most so old, so many records, so many bytes; ``None`` is no limit."""

    age_s: float | None = None
    records: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A dataset; with a primary key it keeps the latest record per key, without one it appends.

    ``active`` says that it may drive channels without ``is_new``.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    active: bool = False
    retain: Retention = field(default_factory=Retention)

    @property
    def is_keyed(self) -> bool:
        return bool(self.primary_key)

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A parameterized query; ``continuous`` runs as data arrives, otherwise every ``period_s``."""

    name: str
    parameters: tuple[Parameter, ...]
    query: str
    continuous: bool = False
    push: bool = False
    period_s: float | None = None
    retain: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """How records reach a dataset; ``kind`` is ``http``, ``directory`` or ``kafka``."""

    name: str
    dataset: str
    kind: str = "http"
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str, default: str | None = None) -> str | None:
        return dict(self.options).get(name, default)


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    name: str
    url: str
