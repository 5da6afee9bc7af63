"""What one request may ask for, and how many requests may be under way.

Every refusal names the limit that it hit. Sizes are bytes, times seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.config import Config

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """The defaults suit one machine; a request over a size is answered 413, one too many 429."""

    body_bytes: int = 16 * MB  # a JSON body
    ingest_bytes: int = 16 * MB  # one batch of records
    ingest_requests: int = 64  # batches under way at once
    ingest_inflight_bytes: int = 256 * MB  # and their bytes together
    body_timeout_s: float = 30.0  # until the whole body has arrived
    items: int = 10_000  # subscriptions, ids or keys in one request
    page_rows: int = 10_000  # rows in one page of results or subscriptions
    page_bytes: int = 4 * MB  # payload bytes in one pull
    wait_s: float = 30.0  # a pull waits no longer than this
    waiting_pulls: int = 128  # pulls that wait at once
    ingest_threads: int = 16
    statement_threads: int = 4
    waiting_scripts: int = 16  # of one subject
    script_s: float = 300.0  # no statement of a script begins later
    other_threads: int = 16
    retry_after_s: float = 1.0  # what a 429 advises

    @staticmethod
    def of(config: Config) -> ApiLimits:
        """As the configuration has them; how many threads serve ingest and the rest is not a limit of anybody's."""
        return ApiLimits(
            body_bytes=config.cluster.max_body_bytes,
            items=config.cluster.max_items,
            wait_s=config.results.pull_max_wait,
            waiting_pulls=config.results.max_waiting_pulls,
            body_timeout_s=config.http.body_timeout,
            ingest_requests=config.ingest.max_pending_batches,
            ingest_bytes=config.ingest.max_batch_bytes,
            ingest_inflight_bytes=config.ingest.max_pending_bytes,
            statement_threads=config.statements.parallel,
            waiting_scripts=config.statements.max_waiting,
            script_s=config.statements.timeout,
            page_rows=config.results.pull_max_rows,
            page_bytes=config.results.pull_max_bytes,
        )
