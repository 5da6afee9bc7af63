"""``tocsin cluster``: the data cluster behind its HTTP interface, until it is told to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tocsin.config import Config
from tocsin.datacluster.api.app import create_app
from tocsin.datacluster.api.limits import ApiLimits
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.spark.session import SPARK_IS_GONE, wait_for_jvm
from tocsin.errors import Unavailable
from tocsin.jwks import verifier
from tocsin.tokens import ensure_secret, read_secret
from tocsin.web.server import ApiServer, ServerOptions

log = logging.getLogger(__name__)


def run(config: Config, on_ready: Callable[[str], None] = lambda url: None) -> None:
    """Serve until SIGTERM or SIGINT; returns when everything is stopped. ``on_ready`` hears the address.

    Without Spark's Java process nothing is evaluated, and a new one cannot take over its views and caches:
    then the cluster drains and Unavailable ends the program, so that whoever supervises it starts it again.
    """
    cluster = Cluster(config)
    ensure_secret(config.secret_path)
    server = make_server(cluster, config)  # a port that is taken is told before Spark starts
    log.info("starting Spark on %s", config.cluster.master)
    cluster.open()
    try:
        log.info("serving at %s", server.url)
        on_ready(server.url)
        is_lost = _watch_spark(server)
        server.run()
    finally:
        cluster.close()
    if is_lost.is_set():
        raise Unavailable(SPARK_IS_GONE)


def _watch_spark(server: ApiServer) -> threading.Event:
    """Drain the server when the JVM ends; the event tells that it was no drain that ended it."""
    is_lost = threading.Event()

    def watch() -> None:
        wait_for_jvm()
        if not server.is_stopping:
            log.error("Spark's Java process has ended")
            is_lost.set()
            server.stop()

    threading.Thread(target=watch, name="spark-watch", daemon=True).start()
    return is_lost


def make_server(cluster: Cluster, config: Config) -> ApiServer:
    """The HTTP interface of a cluster, which must be open before it runs."""
    secret = read_secret(config.secret_path)

    app = create_app(
        cluster,
        verify=verifier(config.auth, secret),
        insecure=config.cluster.insecure,
        limits=ApiLimits.of(config),
        metrics=cluster.metrics,
        allowed_origins=config.http.allowed_origins.split(),
        open_metrics=config.http.open_metrics,
    )
    return ApiServer(app, ServerOptions.of(config.cluster.host, config.cluster.port, config))
