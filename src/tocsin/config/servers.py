"""Settings that hold for every server of the system alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.settings.declare import Seconds, choice, duration, flag, integer, text


@dataclass(frozen=True, slots=True)
class Http:
    max_connections: int = integer(
        2048,
        "With so many connections the longest silent one is closed for the next; if none is, requests get 503.",
        low=1,
        high=1_000_000,
    )
    head_timeout: Seconds = duration(
        "10s", "A connection whose request's head is not complete after so long is closed.", low="100ms", high="10m"
    )
    body_timeout: Seconds = duration(
        "30s", "A request whose body is not complete after so long is answered 408.", low="100ms", high="1h"
    )
    keep_alive: Seconds = duration(
        "20s",
        "A connection without a request is closed after so long: later than clients do it themselves, whose next "
        "request would be lost in one that just closes.",
        low="1s",
        high="1h",
    )
    stall_timeout: Seconds = duration(
        "30s", "A connection whose peer takes nothing of an answer for so long is closed.", low="100ms", high="1h"
    )
    drain_timeout: Seconds = duration(
        "10s",
        "How long cluster and coordinator wait at a stop for requests under way; then these are answered 503.",
        low="1s",
        high="10m",
    )
    allowed_origins: str = text(
        "",
        "Origins of web pages that may ask, such as `https://board.example`, separated by spaces.",
        pattern=r"(https?://[^\s/]+( +https?://[^\s/]+)*)?",
        expected="origins (scheme://host[:port]) separated by spaces",
    )
    open_metrics: bool = flag(False, "Metrics may be read without a token.")
    tls_certificate: str = text("", "PEM file with the certificate chain; with it, the interface is HTTPS only.")
    tls_key: str = text("", "PEM file with the certificate's private key.")
    ca_file: str = text(
        "",
        "PEM file of the authorities that sign the certificates of the system's servers, for every program that asks "
        "another; empty for those that the machine trusts.",
    )

    @property
    def scheme(self) -> str:
        return "https" if self.tls_certificate else "http"

    def problems(self) -> Iterator[str]:
        if bool(self.tls_certificate) != bool(self.tls_key):
            yield "http.tls_certificate, http.tls_key: expected both or neither"


@dataclass(frozen=True, slots=True)
class Auth:
    secret_file: str = text("", "File with the secret that signs tokens; empty means `secret` in the data directory.")
    token_ttl: Seconds = duration("12h", "How long a token lasts where its maker does not say.", low="1s", high="3660d")
    leeway: Seconds = duration(
        "30s", "How far clocks may differ when a token's times are checked.", low="0s", high="1h"
    )
    jwks: str = text("", "File or URL of an identity provider's public keys (JWKS); empty takes our own tokens only.")
    jwks_ca_file: str = text(
        "", "PEM file of the authorities that sign the provider's certificate; empty for those that the machine trusts."
    )
    jwks_refresh: Seconds = duration("5m", "How often the provider's keys are fetched again.", low="10s")
    issuer: str = text("", "What `iss` of a provider's token must be; empty takes any.")
    audience: str = text("", "What `aud` of a provider's token must be; empty takes any.")


@dataclass(frozen=True, slots=True)
class Log:
    level: str = choice("info", ("debug", "info", "warning", "error"), "Least important message that is written.")
    format: str = choice("text", ("text", "json"), "How a message is written.")
