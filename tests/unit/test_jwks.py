"""Tokens of an identity provider, with real keys and a real server."""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from support.authority import Certificate
from tocsin import jwks, tokens
from tocsin.config import Auth
from tocsin.errors import Unauthenticated, Unavailable

SECRET = b"s" * 48
RSA, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
EC = ec.generate_private_key(ec.SECP256R1())
PUBLIC = {
    "keys": [
        json.loads(RSAAlgorithm.to_jwk(RSA.public_key())) | {"kid": "r1", "alg": "RS256"},
        json.loads(ECAlgorithm.to_jwk(EC.public_key())) | {"kid": "e1", "alg": "ES256"},
    ]
}


def signed(key: Any, algorithm: str, kid: str, **claims: Any) -> str:
    own = {"sub": "ann", "exp": int(time.time()) + 60, "capabilities": ["read"], "iss": "idp", "aud": "tocsin"}
    return jwt.encode(own | claims, key, algorithm=algorithm, headers={"kid": kid})


@pytest.fixture
def auth(tmp_path: Path) -> Auth:
    (tmp_path / "keys.json").write_text(json.dumps(PUBLIC))
    return Auth(jwks=str(tmp_path / "keys.json"), issuer="idp", audience="tocsin")


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA, "RS256", "r1"), (EC, "ES256", "e1")], ids=["RSA", "EC"])
def test_a_providers_token_names_its_subject_and_grants(auth: Auth, key: Any, algorithm: str, kid: str) -> None:
    found = jwks.verifier(auth, SECRET)(signed(key, algorithm, kid))
    assert (found.subject, found.capabilities) == ("ann", ("read",))


def test_our_own_tokens_go_on_verifying(auth: Auth) -> None:
    assert jwks.verifier(auth, SECRET)(tokens.mint(SECRET, "me", ["admin"], 60)).may("admin")


@pytest.mark.parametrize(
    "token",
    [
        signed(OTHER, "RS256", "r1"),
        signed(RSA, "RS256", "nobody"),
        signed(RSA, "PS256", "r1"),
        signed(RSA, "RS256", "r1", iss="somebody"),
        signed(RSA, "RS256", "r1", aud="elsewhere"),
        signed(RSA, "RS256", "r1", exp=1),
        signed(b"s" * 64, "HS512", "r1"),
        jwt.encode({"sub": "ann", "exp": 2**40}, None, algorithm="none"),
        "no.token",
    ],
    ids=["another key", "unknown kid", "another algorithm", "issuer", "audience", "expired", "HS512", "none", "noise"],
)  # fmt: skip
def test_everything_else_is_refused(auth: Auth, token: str) -> None:
    with pytest.raises(Unauthenticated):
        jwks.verifier(auth, SECRET)(token)


def part(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def test_a_public_key_is_no_secret_of_ours(auth: Auth) -> None:
    """The old trick: the provider's public key as the secret of an HS256 token."""
    claims = {"sub": "eve", "exp": 2**40, "capabilities": ["admin"]}
    head = b".".join(part(json.dumps(p).encode()) for p in ({"alg": "HS256", "kid": "r1"}, claims))
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    fake = b".".join([head, part(hmac.digest(public, head, "sha256"))]).decode()
    with pytest.raises(Unauthenticated):
        jwks.verifier(auth, SECRET)(fake)


@pytest.mark.parametrize("content", ["nothing", "[]", '"keys"', "{}", '{"keys": 5}', '{"keys": ["k"]}'])
def test_a_file_that_holds_no_keys_stops_the_start(auth: Auth, content: str) -> None:
    Path(auth.jwks).write_text(content)
    with pytest.raises(Unavailable, match=r"keys\.json"):
        jwks.verifier(auth, SECRET)


@contextmanager
def served(answer: dict[str, Any], certificate: Certificate | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.chain, certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        server.server_close()


def test_a_provider_with_a_certificate_of_a_private_authority(auth: Auth, certificate: Certificate) -> None:
    token = signed(RSA, "RS256", "r1")
    with served(PUBLIC, certificate) as url:
        known, unknown = replace(auth, jwks=url, jwks_ca_file=certificate.ca), replace(auth, jwks=url)
        assert jwks.verifier(known, SECRET)(token).subject == "ann"
        with pytest.raises(Unauthenticated, match="not known"):
            jwks.verifier(unknown, SECRET)(token)


def test_a_provider_that_is_away_at_the_start_stops_nothing(auth: Auth, caplog: pytest.LogCaptureFixture) -> None:
    verify = jwks.verifier(replace(auth, jwks="http://127.0.0.1:9/keys"), SECRET)
    assert "could not be fetched yet" in caplog.text
    assert verify(tokens.mint(SECRET, "me", ["admin"], 60)).may("admin")
    with pytest.raises(Unauthenticated, match="not known"):
        verify(signed(RSA, "RS256", "r1"))


def test_a_new_key_at_the_url_is_learned_when_a_token_names_it(auth: Auth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks, "MIN_FETCH_S", 0.0)
    answer: dict[str, Any] = {"keys": PUBLIC["keys"][:1]}
    with served(answer) as url:
        verify = jwks.verifier(replace(auth, jwks=url), SECRET)
        assert verify(signed(RSA, "RS256", "r1")).subject == "ann"
        answer["keys"] = PUBLIC["keys"]
        with pytest.raises(Unauthenticated):
            verify(signed(EC, "ES256", "e1"))
        deadline = time.monotonic() + 30
        while True:
            try:
                assert verify(signed(EC, "ES256", "e1")).subject == "ann"
                return
            except Unauthenticated:
                assert time.monotonic() < deadline
                time.sleep(0.02)
