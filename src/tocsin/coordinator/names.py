"""What may be a broker's name, and whether what a broker tells can be kept."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tocsin.errors import BadArgument
from tocsin.protocol.coordination import Registration, Report
from tocsin.protocol.names import check_name

_BROKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_URL = re.compile(r"https?://[^\s/]+")


def check_broker(name: str) -> str:
    if not _BROKER.fullmatch(name):
        raise BadArgument("broker", "up to 63 letters, digits, dots, dashes and underscores", name)
    return name


def check_registration(told: Registration) -> None:
    check_name("incarnation", told.incarnation)
    if not _is_address(told.url):
        raise BadArgument("url", "http://host:port", told.url)
    if told.capacity is not None and told.capacity <= 0:
        raise BadArgument("capacity", "a number above 0", told.capacity)


def _is_address(url: str) -> bool:
    """Whether users and other brokers, who are told it, could connect to it."""
    try:
        parts = urlsplit(url)
        return bool(_URL.fullmatch(url) and url.isprintable() and parts.hostname) and parts.port != 0
    except ValueError:  # a port or an address of IPv6 that cannot be
        return False


def check_report(report: Report) -> None:
    """BadArgument where a user's or subscription's name could not be kept."""
    for user in report.admitted:
        check_name("user", user)
    for holding in report.holdings:
        check_name("user", holding.user)
    for kept in report.kept:
        check_name("user", kept.user)
        check_name("subscription", kept.id)
        if kept.wanted is not None and kept.wanted.id != kept.id:
            raise BadArgument("subscription", kept.id, kept.wanted.id)
