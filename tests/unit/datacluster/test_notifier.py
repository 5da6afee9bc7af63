from __future__ import annotations

import json
import logging
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.authority import Certificate
from support.http_broker import http_broker
from support.waiting import until
from tocsin.clock import SystemClock
from tocsin.datacluster.notifier import Notifier, NotifierOptions
from tocsin.datacluster.storage import catalog, outbox
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.model.catalog import BrokerSpec, ChannelSpec
from tocsin.tls import trusting

ENDLESS_BODY = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\nmore\r\n"
ENDLESS_HEAD = b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"


@contextmanager
def endless(begin: bytes, more: bytes) -> Iterator[str]:
    """The address of a broker that begins an answer and never ends it."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with suppress(OSError):
                self.request.sendall(begin)
                while not is_over.wait(0.01):
                    self.request.sendall(more)

    is_over = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        is_over.set()
        server.shutdown()


@contextmanager
def notifying(
    directory: Path,
    url: str,
    attempts: list[str],
    timeout_s: float = 5.0,
    brokers: dict[int, BrokerSpec] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Notifier]:
    """A notifier with one notice for one broker, which is entered in ``brokers``."""
    known = {} if brokers is None else brokers
    with Ledger(directory / "ledger.db") as ledger:
        broker = ledger.write(lambda tx: catalog.create_broker(tx, BrokerSpec("north", url))).id
        known[broker] = BrokerSpec("north", url)
        channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        ledger.write(lambda tx: outbox.enqueue(tx, channel, 1, [outbox.Notice(broker, b'{"channel": "C"}')], 0.0))
        notifier = Notifier(
            ledger, lambda: known, lambda _, body: json.loads(body), lambda: "token", SystemClock(),
            NotifierOptions(timeout_s, 0.01, 0.02, tls=tls), attempts.append,
        )  # fmt: skip
        notifier.start()
        yield notifier
        notifier.stop()


def test_the_log_says_once_that_a_broker_fails_and_that_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    attempts: list[str] = []
    with http_broker() as web:
        web.status = 500
        with notifying(tmp_path, web.url.replace("http://", "http://user:secret@"), attempts):
            until(lambda: len(attempts) >= 3, "three attempts", 20)
            web.status = 204
            until(lambda: attempts[-1] == "delivered", "the notice is delivered", 20)
    said = [record.getMessage() for record in caplog.records if record.name.endswith("notifier")]
    assert ["does not take notices" in said[0], "takes notices again" in said[1], len(said)] == [True, True, 2]
    assert "broker north at 127.0.0.1:" in said[0]
    assert "500" in said[0]
    assert not any("secret" in line for line in said)


def test_a_broker_with_a_certificate_of_a_private_authority_is_told_where_that_is_named(
    tmp_path: Path, certificate: Certificate
) -> None:
    attempts: list[str] = []
    (tmp_path / "stranger").mkdir()
    with http_broker(certificate=certificate) as web:
        with notifying(tmp_path / "stranger", web.url, attempts) as notifier:
            until(lambda: "failed" in attempts, "an attempt fails", 20)
            assert "CERTIFICATE_VERIFY_FAILED" in next(iter(notifier.problems.values()))
        with notifying(tmp_path, web.url, attempts, tls=trusting("http.ca_file", certificate.ca)):
            until(lambda: attempts[-1] == "delivered", "the notice is delivered", 20)
    assert web.about("C")


def test_the_status_suffices_whatever_body_follows(tmp_path: Path) -> None:
    attempts: list[str] = []
    with endless(*ENDLESS_BODY) as url, notifying(tmp_path, url, attempts):
        until(lambda: attempts == ["delivered"], "the notice is delivered", 20)


def test_an_answer_whose_head_never_ends_fails_at_the_deadline(tmp_path: Path) -> None:
    attempts: list[str] = []
    with endless(*ENDLESS_HEAD) as url, notifying(tmp_path, url, attempts, timeout_s=0.1) as notifier:
        until(lambda: len(attempts) >= 2, "two attempts", 20)
        assert set(attempts) == {"failed"}
        assert "no answer within 0.1 s" in next(iter(notifier.problems.values()))


def test_a_stop_does_not_wait_for_a_broker(tmp_path: Path) -> None:
    attempts: list[str] = []
    with endless(*ENDLESS_HEAD) as url, notifying(tmp_path, url, attempts, timeout_s=600.0) as notifier:
        until(lambda: bool(notifier._busy), "an attempt is under way", 20)
    assert attempts == []


def test_what_was_wrong_with_a_broker_goes_with_it(tmp_path: Path) -> None:
    attempts: list[str] = []
    brokers: dict[int, BrokerSpec] = {}
    with http_broker() as web:
        web.status = 500
        with notifying(tmp_path, web.url, attempts, brokers=brokers) as notifier:
            until(lambda: bool(notifier.problems), "an attempt has failed", 20)
            brokers.clear()
            until(lambda: not notifier.problems and not notifier._pauses, "nothing is kept of the broker", 20)
