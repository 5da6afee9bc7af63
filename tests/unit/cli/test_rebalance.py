"""``tocsin rebalance`` against what the coordinator answers."""

from __future__ import annotations

import json

import pytest

from tocsin.errors import BadArgument, Unavailable
from tocsin.tokens import ensure_secret, verify

NOW = {"maximum": 3000.0, "ratio": 3.0, "mean": 1000.0, "cov": 1.414, "total": 3000.0}
AFTER = {"maximum": 1234.5, "ratio": 1.2345, "mean": 1100.0, "cov": 0.01, "total": 3300.0}
XBAL = {"policy": "xbal", "status": "done", "reason": "balance reached", "moves": 7, "after": AFTER, "rejected": {}}
FOUND = {"brokers": 3, "users": 60, "streams": 30, "pinned": 2, "now": NOW, "trials": [XBAL | {"milliseconds": 2.345}]}


def asked(cluster):
    return json.loads(cluster.requests[-1].body)


def test_a_dry_run_shows_what_every_policy_would_do(run, cluster):
    cluster.on("POST", "/rebalance", FOUND | {"plan": None})
    result = run("rebalance", "--dry-run", "--coordinator", cluster.url)
    assert result.exit_code == 0, result.output
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    assert rows == [
        ["(now)", "3,000.0", "3.000", "1.4140", "3,000.0", "0", "", ""],
        ["xbal", "1,234.5", "1.234", "0.0100", "3,300.0", "7", "2.3", "done: balance reached"],
    ]
    assert "60 users online at 3 brokers, 30 streams, 2 not to be moved now; nobody was moved" in result.stderr
    assert asked(cluster) == {"policy": None, "options": {}, "dry_run": True}


def test_one_is_not_told_as_many(run, cluster):
    cluster.on("POST", "/rebalance", FOUND | {"users": 1, "brokers": 1, "streams": 1, "plan": None})
    told = run("rebalance", "--dry-run", "--coordinator", cluster.url).stderr
    assert "1 user online at 1 broker, 1 stream, 2 not to be moved now" in told


def test_a_policy_with_options_is_followed(run, cluster):
    cluster.on("POST", "/rebalance", FOUND | {"plan": "p000000007"})
    command = ("rebalance", "--policy", "ldm", "--option", "stop_cov = 0.1", "--coordinator", cluster.url)
    assert "plan p000000007 moves them" in run(*command).stderr
    assert asked(cluster) == {"policy": "ldm", "options": {"stop_cov": "0.1"}, "dry_run": False}
    assert json.loads(run(*command, "--json").stdout)["plan"] == "p000000007"


def test_the_local_secret_makes_the_token(run, cluster, tmp_path):
    cluster.on("POST", "/rebalance", FOUND | {"plan": None})
    secret = ensure_secret(tmp_path / ".tocsin" / "secret")
    assert run("rebalance", "--set", f"client.coordinator={cluster.url}").exit_code == 0
    shown = cluster.requests[-1].headers["Authorization"].removeprefix("Bearer ")
    assert verify(shown, secret).may("coordinator")


@pytest.mark.parametrize(
    ("words", "kind", "problem"),
    [
        (["--option", "fast"], BadArgument, "NAME=VALUE"),
        (["--coordinator", "here"], BadArgument, "--coordinator: expected a URL"),
        (["--coordinator", "http://127.0.0.1:1"], Unavailable, "start one with 'tocsin coordinator'"),
    ],
)
def test_what_is_wrong_is_told(run, words, kind, problem):
    result = run("rebalance", *words)
    assert isinstance(result.exception, kind)
    assert problem in str(result.exception)
