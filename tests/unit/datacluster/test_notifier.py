from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from support.http_broker import http_broker
from support.waiting import until
from tocsin.clock import SystemClock
from tocsin.datacluster.notifier import Notifier, NotifierOptions
from tocsin.datacluster.storage import catalog, outbox
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.model.catalog import BrokerSpec, ChannelSpec


def test_the_log_says_once_that_a_broker_fails_and_that_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    attempts: list[str] = []
    with Ledger(tmp_path / "ledger.db") as ledger, http_broker() as web:
        web.status = 500
        broker = ledger.write(lambda tx: catalog.create_broker(tx, BrokerSpec("b", web.url))).id
        channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        ledger.write(lambda tx: outbox.enqueue(tx, channel, 1, [outbox.Notice(broker, b'{"channel": "C"}')], 0.0))
        address = web.url.replace("http://", "http://user:secret@")
        notifier = Notifier(
            ledger, lambda: {broker: address}, lambda _, body: json.loads(body), lambda: "token", SystemClock(),
            NotifierOptions(5.0, 0.01, 0.02), attempts.append,
        )  # fmt: skip
        notifier.start()
        until(lambda: len(attempts) >= 3, "three attempts", 20)
        web.status = 204
        until(lambda: attempts[-1] == "delivered", "the notice is delivered", 20)
        notifier.stop()
    said = [record.getMessage() for record in caplog.records if record.name.endswith("notifier")]
    assert ["does not take notices" in said[0], "takes notices again" in said[1], len(said)] == [True, True, 2]
    assert "500" in said[0]
    assert not any("secret" in line for line in said)
