import socket

import pytest

from tocsin.cli.http import MAX_ATTEMPTS, ClusterClient, ClusterProblem, connect
from tocsin.cli.local import own_cluster
from tocsin.config import load
from tocsin.errors import Unavailable
from tocsin.tokens import ensure_secret, verify

RECORDS = "/datasets/Reports/records"


def client(cluster, token=None, pauses=None):
    return ClusterClient(cluster.url, token, sleep=(pauses if pauses is not None else []).append)


def test_statements_are_sent_as_text_with_the_token(cluster):
    cluster.on("POST", "/statements", {"results": [{"kind": "done"}]})
    with client(cluster, "abc") as c:
        assert c.run("SHOW CHANNELS") == [{"kind": "done"}]
    (request,) = cluster.requests
    assert (request.body, request.headers["Authorization"]) == (b'{"text":"SHOW CHANNELS"}', "Bearer abc")


def test_a_problem_is_told_by_its_detail(cluster):
    cluster.on("GET", "/status", {"detail": "line 1, column 2: no"}, status=400)
    with pytest.raises(ClusterProblem, match=r"^line 1, column 2: no$") as caught:
        client(cluster).get("/status")
    assert caught.value.status == 400


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"title": "x"}'])
def test_an_error_that_is_no_problem_document_is_told_by_its_status(cluster, body):
    cluster.on("GET", "/status", body, status=502)
    with pytest.raises(ClusterProblem, match="answered 502 Bad Gateway"):
        client(cluster).get("/status")


def test_something_else_at_the_address_is_recognised(cluster):
    cluster.on("GET", "/status", b"<html>hello</html>")
    with pytest.raises(Unavailable, match="is not a Tocsin cluster"):
        client(cluster).get("/status")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://127.0.0.1", "nonsense"])
def test_nobody_there_says_how_to_start_a_cluster(url):
    with pytest.raises(Unavailable, match="'tocsin cluster'"):
        ClusterClient(url, None).get("/status")


def test_a_silent_cluster_is_told_with_how_long_it_was_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = ClusterClient(f"http://127.0.0.1:{silent.getsockname()[1]}", None, timeout_s=0.2)
        with client, pytest.raises(Unavailable, match=r"did not answer within 0\.2 s; it may still do what was asked"):
            client.run("SHOW CHANNELS")


def test_a_busy_cluster_is_asked_again_with_the_same_key_when_it_says(cluster):
    cluster.on("POST", RECORDS, {"detail": "busy"}, status=429, headers={"Retry-After": "7"})
    cluster.on("POST", RECORDS, {"detail": "draining"}, status=503)
    cluster.on("POST", RECORDS, {"accepted": 1, "rejected": 0})
    pauses = []
    assert client(cluster, pauses=pauses).append("Reports", b"{}\n", "k1")["accepted"] == 1
    assert [r.headers["Idempotency-Key"] for r in cluster.requests] == ["k1"] * 3
    assert pauses == [7.0, 0.4]


def test_a_cluster_that_stays_busy_is_given_up(cluster):
    cluster.on("POST", RECORDS, {"detail": "busy"}, status=503)
    with pytest.raises(ClusterProblem, match="busy"):
        client(cluster).append("Reports", b"{}\n", "k1")
    assert len(cluster.requests) == MAX_ATTEMPTS


def test_a_refusal_is_not_repeated(cluster):
    cluster.on("POST", RECORDS, {"detail": "too long"}, status=413)
    with pytest.raises(ClusterProblem, match="too long"):
        client(cluster).append("Reports", b"{}\n", "k1")
    assert len(cluster.requests) == 1


def test_names_are_escaped_in_addresses(cluster):
    with pytest.raises(ClusterProblem):
        client(cluster).append("a/../b?c", b"", "k")
    assert cluster.requests[0].path == "/datasets/a%2F..%2Fb%3Fc/records"


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8420"), ("0.0.0.0", "http://127.0.0.1:8420"), ("::", "http://[::1]:8420")],
)
def test_the_configuration_names_the_cluster(host, url):
    assert own_cluster(load(overrides={"cluster.host": host})) == url


def sent_token(cluster, config, token=None):
    cluster.on("GET", "/status", {})
    with connect(config, cluster.url, token) as c:
        c.get("/status")
    return cluster.requests[-1].headers.get("Authorization", "").removeprefix("Bearer ")


def test_the_local_secret_makes_an_admin_token(cluster, tmp_path):
    secret = ensure_secret(tmp_path / ".tocsin" / "secret")
    assert verify(sent_token(cluster, load()), secret).may("admin")


def test_a_given_token_comes_first(cluster, tmp_path):
    ensure_secret(tmp_path / ".tocsin" / "secret")
    assert sent_token(cluster, load(), "mine") == "mine"


def test_without_a_secret_no_token_is_sent(cluster):
    assert sent_token(cluster, load()) == ""


def test_a_token_made_from_the_local_secret_never_leaves_the_machine(tmp_path):
    ensure_secret(tmp_path / ".tocsin" / "secret")
    with connect(load(), "http://example.org:8420", None) as c:
        assert "Authorization" not in c._http.headers
