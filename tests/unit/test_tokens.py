import base64
import json
import stat
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadArgument, Refused, Unauthenticated, Unavailable
from tocsin.tokens import MAX_TOKEN_BYTES, Principal, bearer, ensure_secret, mint, read_secret, verify

SECRET = b"k" * 48
NEAR_ME = {"channel": "NearMe", "pin": {"user": "sub"}}


def principal(*capabilities, subject="ann", **claims):
    return verify(mint(SECRET, subject, capabilities, 60, claims=claims), SECRET)


def signed(claims, secret=SECRET, algorithm="HS256"):
    return jwt.encode(claims, secret, algorithm=algorithm)


def unsigned(claims):
    parts = [json.dumps({"alg": "none", "typ": "JWT"}), json.dumps(claims)]
    return ".".join(base64.urlsafe_b64encode(p.encode()).decode().rstrip("=") for p in parts) + "."


FAR = 4_000_000_000


def test_a_minted_token_names_its_subject_capabilities_and_further_claims():
    who = principal("read", "ingest:Reports", team="red")
    assert (who.subject, who.capabilities, who.claims["team"]) == ("ann", ("read", "ingest:Reports"), "red")


@pytest.mark.parametrize(
    ("capabilities", "action", "name", "allowed"),
    [
        pytest.param(["admin"], "ingest", "Reports", True, id="admin may ingest anywhere"),
        pytest.param(["admin"], "read", None, True, id="admin may read"),
        pytest.param(["ingest:Reports"], "ingest", "Reports", True, id="a named dataset"),
        pytest.param(["ingest:reports"], "ingest", "Reports", True, id="names ignore case"),
        pytest.param(["ingest:Reports"], "ingest", "Users", False, id="another dataset"),
        pytest.param(["ingest:*"], "ingest", "Users", True, id="a star is any name"),
        pytest.param(["ingest:*"], "subscribe", "Users", False, id="a star stays within its action"),
        pytest.param(["read"], "ingest", "Reports", False, id="reading is not writing"),
        pytest.param(["broker:b1"], "broker", "b1", True, id="a broker is itself"),
        pytest.param(["broker:b1"], "broker", "b2", False, id="a broker is no other broker"),
        pytest.param(["broker:b1"], "admin", None, False, id="a broker is no admin"),
        pytest.param([NEAR_ME], "subscribe", "nearme", True, id="a pinned channel may be subscribed to"),
        pytest.param([NEAR_ME], "subscribe", "Fires", False, id="a pin opens its own channel only"),
        pytest.param([], "read", None, False, id="no capability, no right"),
    ],
)
def test_may(capabilities, action, name, allowed):
    assert principal(*capabilities).may(action, name) is allowed


@pytest.mark.parametrize(
    ("who", "pins"),
    [
        pytest.param(principal(NEAR_ME), [{"user": "ann"}], id="the parameter takes the claim's value"),
        pytest.param(
            principal({"channel": "NearMe", "pin": {"team": "team", "user": "sub"}}, team=7),
            [{"team": 7, "user": "ann"}],
            id="several parameters, any claim",
        ),
        pytest.param(
            principal(NEAR_ME, {"channel": "nearme", "pin": {"user": "boss"}}, boss="eve"),
            [{"user": "ann"}, {"user": "eve"}],
            id="two grants for a channel are two ways in",
        ),
        pytest.param(
            principal(NEAR_ME, {"channel": "NearMe", "pin": {"user": "boss"}}),
            [{"user": "ann"}],
            id="a grant whose claim is missing takes nothing from the others",
        ),
        pytest.param(principal("subscribe:NearMe"), [{}], id="a plain grant pins nothing"),
        pytest.param(principal(NEAR_ME, "admin"), [{}], id="grants add up: admin beside a pin is free"),
    ],
)
def test_pins(who, pins):
    assert who.pins("NearMe") == pins


def test_a_pin_to_a_claim_the_token_lacks_is_refused():
    with pytest.raises(Refused, match="'team'"):
        principal({"channel": "NearMe", "pin": {"user": "team"}}).pins("NearMe")


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        pytest.param(signed({"sub": "a", "exp": 1}), "expired", id="expired"),
        pytest.param(signed({"sub": "a", "exp": FAR, "nbf": FAR}), "not valid yet", id="not yet valid"),
        pytest.param(signed({"sub": "a"}), "lacks the claim 'exp'", id="without an end"),
        pytest.param(signed({"sub": "a", "exp": 10**400}), "valid claims", id="an end that is no time"),
        pytest.param(signed({"exp": FAR}), "lacks the claim 'sub'", id="without a subject"),
        pytest.param(signed({"sub": "", "exp": FAR}), "names no subject", id="with an empty subject"),
        pytest.param(signed({"sub": 7, "exp": FAR}), "valid claims", id="with a number for a subject"),
        pytest.param(signed({"sub": "a", "exp": FAR}, b"x" * 48), "another secret", id="another secret"),
        pytest.param(
            signed({"sub": "a", "exp": FAR}, b"k" * 64, "HS512"), "not signed with HS256", id="another algorithm"
        ),
        pytest.param(unsigned({"sub": "a", "exp": FAR}), "not signed with HS256", id="no signature at all"),
        *(
            pytest.param(signed({"sub": "a", "exp": FAR, "capabilities": not_a_list}), "capabilities")
            for not_a_list in (7, "admin", {}, None)
        ),
        pytest.param(signed({"sub": "a", "exp": FAR, "capabilities": [{"x": 1}]}), "capabilities", id="a bad pin"),
        pytest.param("not.a.token", "not a JSON Web Token", id="not a token"),
        pytest.param("ü", "not a JSON Web Token", id="not even ASCII"),
        pytest.param("a" * (MAX_TOKEN_BYTES + 1), "longer than", id="too long"),
    ],
)
def test_what_does_not_verify_is_refused_with_a_reason_that_hides_the_token(token, reason):
    with pytest.raises(Unauthenticated, match=reason) as refused:
        verify(token, SECRET)
    assert len(token) < 4 or token[:20] not in str(refused.value)


@given(st.text(max_size=200))
def test_no_text_makes_verify_fail_otherwise(token):
    with pytest.raises(Unauthenticated):
        verify(token, SECRET)


def test_leeway_forgives_a_clock_that_is_a_little_off():
    token = mint(SECRET, "ann", ["read"], 60, now=0)
    with pytest.raises(Unauthenticated):
        verify(token, SECRET)
    assert verify(token, SECRET, leeway_s=10**10).subject == "ann"


def test_an_action_of_a_later_version_verifies_and_grants_nothing_known():
    who = verify(signed({"sub": "a", "exp": FAR, "capabilities": ["fly:high"]}), SECRET)
    assert not who.may("read")


@pytest.mark.parametrize(
    "capability", ["amdin", "ingest", "ingest:", "read:x", {"channel": "A"}, {"channel": "A", "pin": {}}, 7]
)
def test_a_malformed_capability_is_not_minted(capability):
    with pytest.raises(BadArgument, match="capability"):
        mint(SECRET, "ann", [capability], 60)


@pytest.mark.parametrize(("subject", "ttl_s"), [("", 60), ("ann", 0), ("ann", -1)])
def test_a_token_without_subject_or_time_is_not_minted(subject, ttl_s):
    with pytest.raises(BadArgument):
        mint(SECRET, subject, ["read"], ttl_s)


def test_further_claims_cannot_replace_our_own():
    who = principal("read", sub="eve", capabilities=["admin"])
    assert (who.subject, who.may("admin")) == ("ann", False)


def test_a_secret_is_created_once_and_readable_by_its_owner_only(tmp_path):
    path = tmp_path / "data" / "secret"
    first = ensure_secret(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ensure_secret(path) == first
    assert [p.name for p in path.parent.iterdir()] == ["secret"]


def test_many_makers_at_once_agree_on_one_secret(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ensure_secret, [tmp_path / "secret"] * 32))
    assert len(found) == 1


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o666])
def test_a_secret_open_to_others_is_refused(tmp_path, mode):
    path = tmp_path / "secret"
    ensure_secret(path)
    path.chmod(mode)
    with pytest.raises(Unavailable, match="chmod 600"):
        read_secret(path)


def test_a_short_or_missing_secret_is_refused(tmp_path):
    short = tmp_path / "short"
    short.write_text("hunter2")
    short.chmod(0o600)
    with pytest.raises(Unavailable, match="at least 32 bytes, got 7"):
        read_secret(short)
    with pytest.raises(Unavailable, match="cannot be read"):
        read_secret(tmp_path / "none")


@pytest.mark.parametrize("header", ["Bearer abc", "bearer abc", " Bearer  abc "])
def test_the_header_gives_the_token(header):
    assert bearer(header) == "abc"


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic abc", "abc"])
def test_a_header_without_a_token_says_how_to_send_one(header):
    with pytest.raises(Unauthenticated, match="Authorization: Bearer"):
        bearer(header)


def test_a_principal_holds_no_right_by_default():
    assert not Principal("ann").may("subscribe", "NearMe")
