"""Every setting there is, declared once: kind, default, bounds, and one sentence.

Durations are held in seconds and sizes in bytes, whatever unit they were written in. ``load`` reads
file < environment < flags (see ``tocsin.settings.read``) and checks the whole: one ConfigError tells
all problems. Read once in ``cli/``, then passed down. One module holds the sections of one part of the
system.
"""

from __future__ import annotations

from tocsin.config.addresses import check_address, own_url, url_of
from tocsin.config.broker import Broker
from tocsin.config.channels import Channels
from tocsin.config.checks import is_loopback, page_origins
from tocsin.config.client import Client
from tocsin.config.cluster import Cluster, Ingest, Outbox, Results, Select, Statements
from tocsin.config.coordinator import Coordinator
from tocsin.config.dashboard import Dashboard
from tocsin.config.loading import Resolved, load, resolve
from tocsin.config.root import Config
from tocsin.config.servers import Auth, Http, Log
from tocsin.config.upstream import Upstream

__all__ = [
    "Auth",
    "Broker",
    "Channels",
    "Client",
    "Cluster",
    "Config",
    "Coordinator",
    "Dashboard",
    "Http",
    "Ingest",
    "Log",
    "Outbox",
    "Resolved",
    "Results",
    "Select",
    "Statements",
    "Upstream",
    "check_address",
    "is_loopback",
    "load",
    "own_url",
    "page_origins",
    "resolve",
    "url_of",
]
