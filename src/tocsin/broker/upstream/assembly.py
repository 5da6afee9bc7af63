"""Upstreams and the link to the coordinator, made from the configuration."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from uuid import uuid4

from tocsin.broker.alone import Alone
from tocsin.broker.coordination import Coordination, CoordinationOptions
from tocsin.broker.coordinator_client import CoordinatorClient
from tocsin.broker.core import Upstreams
from tocsin.broker.ports import Delivery, Notices, Residents
from tocsin.broker.upstream.channels import ChannelOptions, ChannelUpstream
from tocsin.broker.upstream.cluster import ClusterClient, capabilities
from tocsin.broker.upstream.nowhere import Nowhere
from tocsin.broker.upstream.owners import TopicOptions, TopicUpstream
from tocsin.broker.upstream.peers import PeerOptions
from tocsin.broker.upstream.records import RecordForwarder, RecordOptions
from tocsin.broker.upstream.topics import Bounds
from tocsin.clock import SystemClock
from tocsin.config import Config
from tocsin.errors import TocsinError
from tocsin.protocol.coordination import BrokerInfo
from tocsin.tls import trusting
from tocsin.tokens import mint

TOKEN_TTL_S = 3600.0
NOTIFY = "/notify"

log = logging.getLogger(__name__)


class Sources:
    """Everything beside the core. ``url`` must be set before ``start``; it is known when the broker listens."""

    def __init__(self, config: Config, secret: bytes, delivery: Delivery) -> None:
        self._config, self._secret = config, secret
        self.url = ""
        self._tls = trusting("http.ca_file", config.http.ca_file)
        self._incarnation = uuid4().hex
        self._tokens: dict[tuple[str, ...], tuple[float, str]] = {}
        self.directory = self._coordination() if config.broker.coordinator else Alone(self.me)
        self.topics = TopicUpstream(self.me, delivery, self._as_peer, SystemClock(), self._topic_options())
        self.cluster: ClusterClient | None = None
        self.channels: ChannelUpstream | Nowhere = Nowhere()
        self.records: RecordForwarder | Nowhere = Nowhere()
        if config.broker.cluster:
            self.cluster = ClusterClient(config.broker.cluster, self._as_client, config.upstream.timeout, tls=self._tls)
            self.channels = ChannelUpstream(self.cluster, delivery, self._channel_options())
            self.records = RecordForwarder(self.cluster, self._record_options())

    def me(self) -> BrokerInfo:
        return BrokerInfo(self._config.broker.name, self.url)

    @property
    def upstreams(self) -> Upstreams:
        return Upstreams(self.channels, self.topics, self.topics, self.records)

    @property
    def notices(self) -> Notices:
        return self.channels

    def start(self, residents: Residents) -> None:
        self.topics.start()
        if isinstance(self.channels, ChannelUpstream):
            self.channels.start(self.url + NOTIFY)
        if isinstance(self.directory, Coordination):
            self.directory.start(residents)
        else:
            self.topics.set_topology([self.me()])

    async def stop(self, is_hurried: asyncio.Event | None = None) -> None:
        """``is_hurried`` where nobody waits for the coordinator to take what was noted."""
        if isinstance(self.directory, Coordination):
            await self.directory.stop(is_hurried)
        await self.topics.stop()
        if isinstance(self.records, RecordForwarder):
            await self.records.stop()
        if isinstance(self.channels, ChannelUpstream):
            await self.channels.stop()
        if self.cluster is not None:
            await self.cluster.close()

    # --- what hears from the coordinator ------------------------------------------------------------------

    def set_topology(self, brokers: Sequence[BrokerInfo], leaving: Sequence[BrokerInfo] = ()) -> None:
        self.topics.set_topology(brokers, leaving)

    async def ask_around(self) -> None:
        """The data cluster knows where brokers are, and they know who lives."""
        if self.cluster is None or self.topics.known.brokers is not None:
            return
        try:
            registered = await self.cluster.brokers()
        except TocsinError as problem:
            log.info("who lives is not known, and there is nobody to ask: %s", problem)
            return
        others = [BrokerInfo(name, url.removesuffix(NOTIFY)) for name, url in registered.items()]
        await self.topics.ask_around(other for other in others if other.name != self.me().name)

    def restore(self) -> None:
        self.channels.restore()

    # --- tokens -------------------------------------------------------------------------------------------

    def _as_client(self) -> str:
        """For the data cluster, which this broker registers at, reads from and writes to for its subscribers."""
        return self._token(*capabilities(self._config.broker.name))

    def _as_peer(self) -> str:
        """For other brokers and the coordinator."""
        return self._token(f"broker:{self._config.broker.name}")

    def _token(self, *granted: str) -> str:
        until, token = self._tokens.get(granted, (0.0, ""))
        if until < time.time():
            token = mint(self._secret, self._config.broker.name, granted, TOKEN_TTL_S)
            self._tokens[granted] = (time.time() + TOKEN_TTL_S / 2, token)
        return token

    # --- options ------------------------------------------------------------------------------------------

    def _coordination(self) -> Coordination:
        broker, upstream = self._config.broker, self._config.upstream
        client = CoordinatorClient(
            broker.coordinator, broker.name, self._as_peer, upstream.timeout, upstream.parallel, tls=self._tls
        )
        options = CoordinationOptions(
            self._incarnation, upstream.pull_wait, upstream.backoff_min, upstream.backoff_max, upstream.keep_batch,
            upstream.report_batch, upstream.noted, _location(broker.location),
            float(broker.capacity) if broker.capacity else None, broker.drain_timeout, upstream.hand_in,
        )  # fmt: skip
        return Coordination(client, self.me, self, options)

    def _channel_options(self) -> ChannelOptions:
        upstream = self._config.upstream
        return ChannelOptions(
            broker=self._config.broker.name,
            wait_s=upstream.pull_wait,
            page_rows=upstream.pull_rows,
            ack_s=upstream.ack_interval,
            orphan_s=upstream.orphan_grace,
            backoff_min_s=upstream.backoff_min,
            backoff_max_s=upstream.backoff_max,
            max_waiting=upstream.fill_waiting,
            may_drop=self._is_briefed,
        )

    def _is_briefed(self) -> bool:
        return self.directory.is_briefed

    def _record_options(self) -> RecordOptions:
        upstream = self._config.upstream
        return RecordOptions(
            f"{self._config.broker.name}-{self._incarnation}", upstream.record_delay, upstream.record_batch,
            upstream.record_lines, upstream.record_pending, upstream.record_give_up, upstream.backoff_min,
            upstream.backoff_max,
        )  # fmt: skip

    def _topic_options(self) -> TopicOptions:
        upstream = self._config.upstream
        peer = PeerOptions(
            upstream.timeout,
            upstream.backoff_min,
            upstream.backoff_max,
            2 * self._config.broker.max_message_bytes,
            upstream.parallel,
            TOKEN_TTL_S / 4,
            self._tls,
        )
        return TopicOptions(
            bounds=Bounds(upstream.topic_messages, upstream.topic_bytes),
            max_topics=upstream.max_topics,
            idle_s=upstream.topic_idle,
            settle_s=upstream.settle,
            leaving_s=upstream.leaving,
            page_bytes=upstream.topic_page,
            handover_topics=upstream.handover_topics,
            peer=peer,
        )


def _location(text: str) -> tuple[float, float] | None:
    x, _, y = text.partition(",")
    return (float(x), float(y)) if y else None
