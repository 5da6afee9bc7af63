"""``tocsin coordinator``: the coordinator behind its HTTP interface, until it is told to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import SystemRandom

import msgspec

from tocsin.config import Config, url_of
from tocsin.config import Coordinator as Settings
from tocsin.coordinator.api.app import create_app
from tocsin.coordinator.api.context import ApiLimits
from tocsin.coordinator.balancer import BalancingOptions
from tocsin.coordinator.choices import BalancingChoice, PolicyChoice, check
from tocsin.coordinator.detaching import HttpCluster
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.service import Coordinator, ServiceOptions
from tocsin.coordinator.state import State
from tocsin.coordinator.store.base import open_store
from tocsin.jwks import verifier
from tocsin.policies.registry import placement_policy
from tocsin.tls import trusting
from tocsin.tokens import ensure_secret, mint
from tocsin.web.server import ApiServer, ServerOptions

log = logging.getLogger(__name__)
_TOKEN_S = 300.0


def run(config: Config, on_ready: Callable[[str], None] = lambda url: None) -> None:
    """Serve until SIGTERM or SIGINT. Unavailable if the state could not be made durable: start again then."""
    secret = ensure_secret(config.secret_path)
    service = make_service(config, secret)
    try:
        server = make_server(service, config, secret)
        log.info("serving at %s", server.url)
        on_ready(server.url)
        server.run()
    finally:
        service.close()
    if service.failure is not None:
        raise service.failure


def make_service(config: Config, secret: bytes) -> Coordinator:
    settings = config.coordinator
    policy = placement_policy(settings.placement, settings.placement_options)
    check(balancing_of(settings))
    store = open_store(settings.store, config.data_dir, settings.store_wait)
    tls = trusting("http.ca_file", config.http.ca_file)
    cluster = HttpCluster(_cluster_url(config), lambda broker: _token(secret, broker), settings.cluster_timeout, tls)
    service = Coordinator(
        State(rules_of(settings), policy, SystemRandom()), store, cluster, secret=secret, options=_options(settings)
    )
    _restore_policy(service, configured(settings))
    return service


def make_server(service: Coordinator, config: Config, secret: bytes) -> ApiServer:
    settings, http = config.coordinator, config.http

    async def beside() -> None:
        try:
            await service.run()
        finally:
            await service.stop()

    app = create_app(
        service,
        verify=verifier(config.auth, secret),
        insecure=settings.insecure,
        limits=ApiLimits(settings.max_body_bytes, http.body_timeout, settings.max_wait),
        configured=configured(settings),
        allowed_origins=http.allowed_origins.split(),
        open_metrics=http.open_metrics,
    )
    return ApiServer(app, ServerOptions.of(settings.host, settings.port, config), beside=beside)


def rules_of(settings: Settings) -> Rules:
    return Rules(
        silent_after_s=settings.silent_after,
        refused_after_s=settings.refused_after,
        dead_after_s=settings.dead_after,
        longest_tick_s=4 * settings.tick,
        adopt_timeout_s=settings.adopt_timeout,
        move_timeout_s=settings.move_timeout,
        follow_timeout_s=settings.follow_timeout,
        retry_s=settings.retry,
        moves_in_flight=settings.moves_in_flight,
        moves_per_s=settings.moves_per_s,
        drain_moves_per_s=settings.drain_moves_per_s,
        kept_moves=settings.kept_moves,
        kept_plans=settings.kept_plans,
        offline_ttl_s=settings.offline_ttl,
        forget_broker_s=settings.forget_broker,
        detach_after_s=settings.detach_after,
        late_words_s=settings.late_words,
        max_users=settings.max_users,
        max_subscriptions=settings.max_subscriptions,
    )


def configured(settings: Settings) -> str:
    """The placement policy in the configuration, as one text."""
    return msgspec.json.encode([settings.placement, dict(settings.placement_options)], order="sorted").decode()


def _restore_policy(service: Coordinator, configured: str) -> None:
    """A policy that was chosen while running holds as long as the configuration says what it said then."""
    chosen = service.state.world.counters.policy
    if chosen is not None and chosen.configured == configured:
        service.state.world.policy = placement_policy(chosen.name, chosen.options)


def _options(settings: Settings) -> ServiceOptions:
    return ServiceOptions(
        settings.report_interval,
        settings.tick,
        settings.ticket_ttl,
        settings.ask_timeout,
        settings.page_instructions,
        settings.max_instructions,
        BalancingOptions(
            balancing_of(settings), settings.balance_every, settings.moves_per_plan, settings.kept_decisions
        ),
    )


def balancing_of(settings: Settings) -> BalancingChoice:
    """How to balance, as the configuration says."""
    return BalancingChoice(
        PolicyChoice(settings.migrate, dict(settings.migrate_options)) if settings.migrate else None,
        PolicyChoice(settings.shuffle, dict(settings.shuffle_options)) if settings.shuffle else None,
        dict(settings.balancing_options),
    )


def _cluster_url(config: Config) -> str:
    return config.coordinator.cluster or url_of(config.http.scheme, config.cluster.host, config.cluster.port)


def _token(secret: bytes, broker: str) -> str:
    return mint(secret, "coordinator", [f"broker:{broker}"], _TOKEN_S)
