"""Tokens that somebody else signed: an identity provider's public keys, by file or by URL (RFC 7517).

Rules kept here:

* A token with ``HS256`` is ours and verifies with our secret; any other is looked up by its ``kid`` among
  the provider's keys and verifies with the algorithm that its key is for. Neither can pass for the other.
* What ``iss`` and ``aud`` have to be is configured, and then demanded.
* No request waits for the provider. The keys are fetched at the start, then by a thread, again when a
  token names a key that is not known, though never more often than ``MIN_FETCH_S``. Keys that cannot be
  fetched stay as they were.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import jwt

from tocsin.config import Auth
from tocsin.errors import Unauthenticated, Unavailable
from tocsin.tls import trusting
from tocsin.tokens import ALGORITHM, MAX_TOKEN_BYTES, Principal, decoded, principal_of, verify

log = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MIN_FETCH_S = 10.0
FETCH_TIMEOUT_S = 5.0
MAX_BYTES = 1_000_000

Verify = Callable[[str], Principal]


def verifier(auth: Auth, secret: bytes) -> Verify:
    """What tells a token's principal under this configuration."""
    if not auth.jwks:
        return lambda token: verify(token, secret, leeway_s=auth.leeway)
    keys = Keys(auth.jwks, auth.jwks_refresh, trusting("auth.jwks_ca_file", auth.jwks_ca_file))
    keys.start()
    return lambda token: _verified(token, secret, auth, keys)


def _verified(token: str, secret: bytes, auth: Auth, keys: Keys) -> Principal:
    if len(token) > MAX_TOKEN_BYTES:
        raise Unauthenticated(f"the token is longer than {MAX_TOKEN_BYTES} bytes")
    try:
        header = jwt.get_unverified_header(token)
    except jwt.InvalidTokenError:
        raise Unauthenticated("the token is not a JSON Web Token with valid claims") from None
    if header.get("alg") == ALGORITHM:
        return verify(token, secret, leeway_s=auth.leeway)
    key = keys.get(header.get("kid"))
    claims = decoded(
        token, key.key, [key.algorithm_name], auth.leeway, issuer=auth.issuer or None, audience=auth.audience or None
    )
    return principal_of(claims)


class Keys:
    """A provider's signing keys by their ``kid``."""

    def __init__(self, source: str, refresh_s: float, tls: ssl.SSLContext | None = None) -> None:
        self._source, self._refresh_s, self._tls = source, refresh_s, tls
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._wanted = threading.Event()
        self._fetched_at = -MIN_FETCH_S

    def start(self) -> None:
        """Fetch once, then go on in a thread; Unavailable where a file of keys cannot be used."""
        try:
            self._fetch()
        except Unavailable:
            if not _is_url(self._source):
                raise
            log.warning("the keys of %s could not be fetched yet", self._source)
        threading.Thread(target=self._run, name="jwks", daemon=True).start()

    def get(self, kid: Any) -> jwt.PyJWK:
        """The key that a token names; Unauthenticated where it is not known."""
        found = self._keys.get(kid) if isinstance(kid, str) else None
        if found is None:
            self._wanted.set()
            raise Unauthenticated("the token is signed with a key that is not known (yet)")
        return found

    def _run(self) -> None:
        while True:
            is_asked = self._wanted.wait(self._refresh_s)
            self._wanted.clear()
            if is_asked:
                time.sleep(max(0.0, self._fetched_at + MIN_FETCH_S - time.monotonic()))
            try:
                self._fetch()
            except Unavailable as problem:
                log.warning("%s; the keys stay as they were", problem)

    def _fetch(self) -> None:
        self._fetched_at = time.monotonic()
        try:
            found = jwt.PyJWKSet.from_dict(_object(_content(self._source, self._tls))).keys
        except (OSError, httpx.HTTPError, ValueError, jwt.PyJWTError) as problem:
            raise Unavailable(f"no keys at {self._source}: {problem}") from None
        self._keys = {key.key_id: key for key in found if key.key_id and key.algorithm_name in ALGORITHMS}


def _content(source: str, tls: ssl.SSLContext | None) -> str:
    if not _is_url(source):
        return Path(source).read_text("utf-8")
    with httpx.stream("GET", source, timeout=FETCH_TIMEOUT_S, follow_redirects=False, verify=tls or True) as answer:
        answer.raise_for_status()
        data = b""
        for chunk in answer.iter_bytes():
            data += chunk
            if len(data) > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES:,} bytes")
    return data.decode("utf-8")


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found


def _is_url(source: str) -> bool:
    return source.startswith(("https://", "http://"))
