"""The brokers that the cluster knows: name, address, id."""

from __future__ import annotations

import threading

from tocsin.clock import Clock
from tocsin.datacluster.storage import catalog
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.errors import AlreadyExists, NotFound
from tocsin.model.catalog import BrokerSpec


class Brokers:
    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._lock = threading.Lock()
        self._rows: dict[str, catalog.BrokerRow] = {}

    def open(self) -> None:
        self._rows = {row.spec.name.lower(): row for row in self._ledger.read(catalog.list_brokers)}

    def create(self, spec: BrokerSpec) -> None:
        with self._lock:
            if spec.name.lower() in self._rows:
                raise AlreadyExists("broker", spec.name)
            row = self._ledger.write(lambda tx: catalog.create_broker(tx, spec, self._clock.now()))
            self._rows[spec.name.lower()] = row

    def put(self, spec: BrokerSpec) -> bool:
        """Create a broker, or give the one that goes by its name another address; whether it was created."""
        with self._lock:
            key = spec.name.lower()
            known = self._rows.get(key)
            if known is None:
                self._rows[key] = self._ledger.write(lambda tx: catalog.create_broker(tx, spec, self._clock.now()))
            elif known.spec != spec:
                self._rows[key] = self._ledger.write(lambda tx: catalog.replace_broker(tx, spec))
            return known is None

    def drop(self, name: str) -> None:
        """InUse while subscriptions are on it."""
        with self._lock:
            row = self.row(name)
            self._ledger.write(lambda tx: catalog.drop_broker(tx, row.spec.name))
            del self._rows[name.lower()]

    def row(self, name: str) -> catalog.BrokerRow:
        try:
            return self._rows[name.lower()]
        except KeyError:
            raise NotFound("broker", name, [r.spec.name for r in self._rows.values()]) from None

    def id_of(self, name: str) -> int:
        return self.row(name).id

    def names(self) -> dict[int, str]:
        return {row.id: row.spec.name for row in list(self._rows.values())}

    def specs(self) -> dict[int, BrokerSpec]:
        return {row.id: row.spec for row in list(self._rows.values())}

    def all(self) -> list[catalog.BrokerRow]:
        return list(self._rows.values())
