"""Delivers the outbox: one POST a broker with everything that waits for it, retried with back-off.

A notice is an accelerator; a broker that never hears one still gets everything by pulling. Brokers are
served in parallel, so one that hangs delays only itself, and one that does not answer is left alone for
longer each time, however much comes for it meanwhile.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

from tocsin.clock import Clock
from tocsin.datacluster.metrics import DeliveryOutcome
from tocsin.datacluster.posting import Posting
from tocsin.datacluster.storage import outbox
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.model.catalog import BrokerSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NotifierOptions:
    timeout_s: float
    backoff_min_s: float
    backoff_max_s: float
    batch: int = 256
    parallel: int = 8
    tls: ssl.SSLContext | None = None  # whom to trust; None for the machine's authorities


@dataclass(frozen=True, slots=True)
class _Pause:
    """A broker that did not answer ``failures`` times in a row is left alone until then."""

    failures: int
    until: float


class Notifier:
    """One thread that looks for due notices, and a small pool that sends them."""

    def __init__(
        self,
        ledger: Ledger,
        brokers: Callable[[], Mapping[int, BrokerSpec]],
        payload: Callable[[int, bytes], Mapping[str, Any]],
        token: Callable[[], str],
        clock: Clock,
        options: NotifierOptions,
        count: Callable[[DeliveryOutcome], None],
    ) -> None:
        self._ledger, self._brokers, self._payload, self._token = ledger, brokers, payload, token
        self._clock, self._options, self._count = clock, options, count
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._busy: dict[int, Future[None]] = {}
        self._pauses: dict[int, _Pause] = {}
        self._pool = ThreadPoolExecutor(options.parallel, thread_name_prefix="notify")
        self._posting = Posting(options.timeout_s, options.tls)
        self._thread = threading.Thread(target=self._loop, name="notifier", daemon=True)
        self.problems: dict[int, str] = {}

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There may be something new to send."""
        self._wake.set()

    def stop(self) -> None:
        """Cancels what is under way; it is sent again after the next start."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._posting.close()
        self._pool.shutdown(wait=True)

    def _loop(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(timeout=self._options.backoff_min_s)
            self._wake.clear()
            try:
                self._send_due()
            except Exception:
                log.exception("the outbox could not be read; trying again")

    def _send_due(self) -> None:
        now = self._clock.now()
        self._busy = {broker: sending for broker, sending in self._busy.items() if not sending.done()}
        pausing = [broker for broker, pause in list(self._pauses.items()) if pause.until > now]
        besides = [*self._busy, *pausing]
        rows = self._ledger.read(lambda tx: outbox.due(tx, now, self._options.batch, besides))
        brokers = self._brokers()
        self._forget_all_but(brokers)
        by_broker: dict[int, list[outbox.WaitingNotice]] = {}
        for row in rows:
            by_broker.setdefault(row.broker_id, []).append(row)
        for broker, mine in by_broker.items():
            if broker in brokers:
                self._busy[broker] = self._pool.submit(self._send, broker, brokers[broker], mine)

    def _forget_all_but(self, brokers: Mapping[int, BrokerSpec]) -> None:
        """A broker that was dropped has neither a pause nor a problem."""
        for broker in [b for b in (*self._pauses, *self.problems) if b not in brokers]:
            self._pauses.pop(broker, None)
            self.problems.pop(broker, None)

    def _send(self, broker: int, spec: BrokerSpec, rows: Sequence[outbox.WaitingNotice]) -> None:
        ids = [row.id for row in rows]
        try:
            body = {"notices": [self._payload(broker, row.body) for row in rows]}
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token()}"}
            answer = self._posting.post(spec.url, json.dumps(body, separators=(",", ":")), headers)
            if not answer.is_success:
                self._postpone(broker, spec, ids, f"it answers {answer.status} {answer.reason:.100}")
                return
        except CancelledError:
            return
        except (httpx.HTTPError, TimeoutError) as problem:
            self._postpone(broker, spec, ids, f"{type(problem).__name__}: {problem}"[:300])
            return
        except Exception as problem:
            log.exception("notices for broker %s could not be made", spec.name)
            self._postpone(broker, spec, ids, type(problem).__name__)
            return
        self._pauses.pop(broker, None)
        if self.problems.pop(broker, None) is not None:
            log.info("broker %s at %s takes notices again", spec.name, _place(spec.url))
        self._count("delivered")
        self._ledger.write(lambda tx: outbox.delivered(tx, ids))
        self._wake.set()

    def _postpone(self, broker: int, spec: BrokerSpec, ids: Sequence[int], problem: str) -> None:
        """Try them again later; what comes for the broker meanwhile waits with them."""
        if problem != self.problems.get(broker):  # once for each reason, not for each attempt
            log.warning("broker %s at %s does not take notices, which wait: %s", spec.name, _place(spec.url), problem)
        self.problems[broker] = problem
        self._count("failed")
        failures = self._pauses[broker].failures + 1 if broker in self._pauses else 1
        wait = min(self._options.backoff_max_s, self._options.backoff_min_s * 2 ** min(failures - 1, 20))
        due_at = self._clock.now() + wait
        self._pauses[broker] = _Pause(failures, due_at)
        self._ledger.write(lambda tx: outbox.postpone(tx, ids, due_at, problem))


def _place(url: str) -> str:
    """Host and port, without a password that the address may have."""
    return httpx.URL(url).netloc.decode()
