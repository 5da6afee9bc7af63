"""The one token scheme: JSON Web Tokens signed with HS256, and what their bearer may do.

Rules kept here:

* Only HS256 verifies, whatever the token's header asks for; the library compares in constant time.
* A token must name its subject (``sub``) and its end (``exp``). Claims unknown to us are kept.
* The reason for a refusal never contains the token or the secret.
* Capabilities are grants: what one gives, no other takes away. ``admin`` gives everything.

A capability is ``admin``, ``read``, ``coordinator``, ``notify`` to tell a broker of results,
``ingest:<dataset>``, ``subscribe:<channel>``, ``broker:<name>``, ``publish:<topic>``, ``topic:<topic>`` to follow
one (``*`` for any name; names ignore case), or an object that lets its bearer subscribe to one channel with
parameters pinned to claims: ``{"channel": "NearMe", "pin": {"user": "sub"}}``. Of several such objects for a
channel, a subscription has to fit one.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt

from tocsin.errors import BadArgument, Refused, Unauthenticated, Unavailable

ALGORITHM = "HS256"
MAX_TOKEN_BYTES = 8192
MIN_SECRET_BYTES = 32
PLAIN_ACTIONS = ("admin", "read", "coordinator", "notify")
NAMED_ACTIONS = ("ingest", "subscribe", "broker", "publish", "topic")

Scalar = str | int | float | bool
Capability = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and what they were granted."""

    subject: str
    capabilities: tuple[Capability, ...] = ()
    claims: Mapping[str, Any] = field(default_factory=dict)

    def may(self, action: str, name: str | None = None) -> bool:
        """Whether ``action`` on ``name`` was granted, pinned or not."""
        return self._granted(action, name) or (action == "subscribe" and bool(self._pinned(name)))

    def need(self, action: str, name: str | None = None) -> None:
        """Refused unless ``action`` on ``name`` was granted."""
        if not self.may(action, name):
            wanted = f"{action}:{name}" if name else action
            raise Refused(f"this needs the capability {wanted!r}, which the token does not have")

    def pins(self, channel: str) -> list[dict[str, Any]]:
        """What parameters of ``channel`` must be, one set a grant: a subscription has to fit one of them.

        A grant that pins to a claim that the token lacks gives nothing; Refused if there is no other.
        """
        if self._granted("subscribe", channel):
            return [{}]
        pins = [capability["pin"] for capability in self._pinned(channel)]
        usable = [pin for pin in pins if all(isinstance(self.claims.get(c), Scalar) for c in pin.values())]
        if pins and not usable:
            raise Refused(
                f"the token pins {channel!r} to the claims {sorted(pins[0].values())}, which it does not have"
            )
        return [{parameter: self.claims[claim] for parameter, claim in pin.items()} for pin in usable]

    def _granted(self, action: str, name: str | None) -> bool:
        wanted = {"admin", action} if name is None else {"admin", f"{action}:*", f"{action}:{name}".casefold()}
        return any(c.casefold() in wanted for c in self.capabilities if isinstance(c, str))

    def _pinned(self, channel: str | None) -> list[Mapping[str, Any]]:
        objects = (c for c in self.capabilities if not isinstance(c, str))
        return [c for c in objects if channel is not None and c["channel"].casefold() == channel.casefold()]


LOCAL_ADMIN = Principal("local", ("admin",), {"sub": "local"})
"""Who everyone is where tokens are switched off (``cluster.insecure``, on loopback only)."""


def mint(
    secret: bytes,
    subject: str,
    capabilities: Iterable[Capability],
    ttl_s: float,
    *,
    claims: Mapping[str, Any] | None = None,
    now: float | None = None,
) -> str:
    """A signed token that ends ``ttl_s`` from now."""
    issued = int(time.time() if now is None else now)
    granted = [check_capability(c) for c in capabilities]
    if not subject:
        raise BadArgument("subject", "a name", subject)
    if ttl_s <= 0:
        raise BadArgument("ttl", "a duration above zero", ttl_s)
    own = {"sub": subject, "iat": issued, "exp": issued + max(1, round(ttl_s)), "capabilities": granted}
    token = jwt.encode({**(claims or {}), **own}, _usable(secret), algorithm=ALGORITHM)
    if len(token) > MAX_TOKEN_BYTES:
        raise BadArgument("token", f"claims that fit in {MAX_TOKEN_BYTES} bytes", f"{len(token)} bytes")
    return token


def verify(token: str, secret: bytes, *, leeway_s: float = 0.0) -> Principal:
    """The principal a token names, or Unauthenticated with the reason."""
    if len(token) > MAX_TOKEN_BYTES:
        raise Unauthenticated(f"the token is longer than {MAX_TOKEN_BYTES} bytes")
    return principal_of(decoded(token, _usable(secret), [ALGORITHM], leeway_s))


def principal_of(claims: Mapping[str, Any]) -> Principal:
    """Whom verified claims name, and what they grant."""
    if not claims["sub"]:
        raise Unauthenticated("the token names no subject")
    return Principal(claims["sub"], _capabilities(claims.get("capabilities", [])), claims)


def bearer(header: str | None) -> str:
    """The token in an ``Authorization`` header."""
    scheme, _, token = (header or "").strip().partition(" ")
    if scheme.casefold() != "bearer" or not token.strip():
        raise Unauthenticated("a token is needed: send 'Authorization: Bearer <token>'")
    return token.strip()


def check_capability(capability: Any, *, known_only: bool = True) -> Capability:
    """The capability itself if it is well formed. Unknown actions are harmless: they grant nothing we ask for."""
    if isinstance(capability, str):
        if known_only:
            _check_action(capability)
        return capability
    if isinstance(capability, Mapping) and set(capability) == {"channel", "pin"}:
        pin = capability["pin"]
        is_map = isinstance(pin, Mapping) and pin and all(isinstance(x, str) for x in [*pin, *pin.values()])
        if is_map and isinstance(capability["channel"], str):
            return capability
    raise BadArgument("capability", 'a text or {"channel": name, "pin": {parameter: claim}}', capability)


def ensure_secret(path: Path) -> bytes:
    """The secret in ``path``; made first where there is none, readable by its owner only."""
    try:
        if not path.exists():
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            _create_secret(path)
    except OSError as error:
        raise Unavailable(f"the secret file {path} cannot be made: {error.strerror}") from None
    return read_secret(path)


def read_secret(path: Path) -> bytes:
    """The secret in ``path``; refused where everyone can read it or others can change it."""
    try:
        mode, text = path.stat().st_mode, path.read_bytes().strip()
    except OSError as error:
        raise Unavailable(f"the secret file {path} cannot be read: {error.strerror}") from None
    if mode & 0o027:
        raise Unavailable(f"the secret file {path} is open to others; run: chmod 600 {path}")
    return _usable(text)


def _create_secret(path: Path) -> None:
    """Write aside, then link into place: no reader sees half a secret, and the first of two makers wins."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _capabilities(claimed: Any) -> tuple[Capability, ...]:
    try:
        if isinstance(claimed, list):
            return tuple(check_capability(c, known_only=False) for c in claimed)
    except BadArgument:
        pass
    raise Unauthenticated("the token's capabilities are not a list of capabilities")


def _usable(secret: bytes) -> bytes:
    if len(secret) < MIN_SECRET_BYTES:
        raise Unavailable(f"the secret is too short: expected at least {MIN_SECRET_BYTES} bytes, got {len(secret)}")
    return secret


def decoded(
    token: str,
    key: Any,
    algorithms: Sequence[str],
    leeway_s: float,
    *,
    issuer: str | None = None,
    audience: str | None = None,
) -> dict[str, Any]:
    """The claims of a token that verifies, or Unauthenticated with the reason."""
    required = ["exp", "sub", *(["iss"] if issuer else []), *(["aud"] if audience else [])]
    options: Any = {"require": required, "verify_aud": audience is not None}
    try:
        claims = jwt.decode(
            token, key, algorithms=list(algorithms), leeway=leeway_s, options=options, issuer=issuer, audience=audience
        )
        float(claims["exp"])  # an integer of any length is JSON, but no time
        return claims
    except jwt.ExpiredSignatureError:
        raise Unauthenticated("the token has expired") from None
    except jwt.ImmatureSignatureError:
        raise Unauthenticated("the token is not valid yet; compare the clocks of issuer and cluster") from None
    except jwt.MissingRequiredClaimError as error:
        raise Unauthenticated(f"the token lacks the claim {error.claim!r}") from None
    except jwt.InvalidAlgorithmError:
        raise Unauthenticated(f"the token is not signed with {' or '.join(algorithms)}") from None
    except (jwt.InvalidIssuerError, jwt.InvalidAudienceError):
        raise Unauthenticated("the token is for somebody else: its iss or aud is not the configured one") from None
    except jwt.InvalidSignatureError:
        raise Unauthenticated("the token's signature does not verify; it was made with another secret") from None
    except (jwt.InvalidTokenError, ValueError, OverflowError):
        raise Unauthenticated("the token is not a JSON Web Token with valid claims") from None


def _check_action(capability: str) -> None:
    action, colon, name = capability.partition(":")
    if (action in PLAIN_ACTIONS and not colon) or (action in NAMED_ACTIONS and name):
        return
    known = [*PLAIN_ACTIONS, *(f"{a}:<name>" for a in NAMED_ACTIONS)]
    raise BadArgument("capability", f"one of {', '.join(known)}", capability)
