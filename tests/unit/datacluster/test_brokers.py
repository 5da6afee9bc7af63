"""Brokers and their addresses, in a real ledger."""

from pathlib import Path

from tocsin.clock import SystemClock
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.model.catalog import BrokerSpec


def test_a_broker_that_comes_back_elsewhere_keeps_its_id_and_gets_its_new_address(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        brokers = Brokers(ledger, SystemClock())
        assert brokers.put(BrokerSpec("north", "http://here:1/notify"))
        first = brokers.id_of("north")
        assert not brokers.put(BrokerSpec("north", "http://here:2/notify"))
        again = Brokers(ledger, SystemClock())
        again.open()
        assert again.specs() == brokers.specs() == {first: BrokerSpec("north", "http://here:2/notify")}
