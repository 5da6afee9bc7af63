"""The real cluster behind the real HTTP interface, with tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from support.clusters import ME, feed, running_cluster, seen, subscribe, until
from support.openapi import check_operation, operation_names
from tocsin.datacluster.api import ApiLimits, create_app
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.server import make_server
from tocsin.model.position import START
from tocsin.tokens import mint, verify

pytestmark = [pytest.mark.spark, pytest.mark.integration]

SCHEMA = """
CREATE ACTIVE DATASET Reports (id STRING, kind STRING, n BIGINT);
CREATE DATASET Users (user STRING, zone INT) PRIMARY KEY (user);
CREATE BROKER b1 AT 'http://127.0.0.1:9/nobody';
CREATE CONTINUOUS CHANNEL Alerts(kind STRING) AS SELECT r.id, r.n FROM Reports r WHERE r.kind = :kind;
CREATE CONTINUOUS CHANNEL Mine(user STRING, kind STRING) AS
    SELECT r.id, u.zone FROM Reports r JOIN Users u ON u.user = r.id WHERE u.user = :user AND r.kind = :kind;
"""
LINES = {"Content-Type": "application/x-ndjson"}
MAX_BATCH = 10_000

Client = Callable[..., httpx.Client]


@pytest.fixture(scope="module")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"cluster__port": 0, "ingest__max_record_bytes": "1 kB", "ingest__max_batch_bytes": f"{MAX_BATCH} B"}
    with running_cluster(tmp_path_factory.mktemp("cluster"), spark, **settings) as running:
        running.execute(SCHEMA, ME)
        yield running


@pytest.fixture(scope="module")
def url(cluster: Cluster) -> Iterator[str]:
    server = make_server(cluster, cluster._config)
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def client(cluster: Cluster, url: str) -> Iterator[Client]:
    """Makes a client whose token has the given capabilities."""
    made = []

    def make(*capabilities: Any, subject: str = "ann", **claims: Any) -> httpx.Client:
        token = mint(cluster._secret, subject, capabilities, 600, claims=claims)
        made.append(_client(url, token))
        return made[-1]

    yield make
    for one in made:
        one.close()


def _client(url: str, token: str | None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=120)


def ingest(client: httpx.Client, lines: str, key: str | None = None, dataset: str = "Reports") -> httpx.Response:
    headers = LINES | ({"Idempotency-Key": key} if key else {})
    return client.post(f"/datasets/{dataset}/records", content=lines, headers=headers)


def wanted(channel: str, *arguments: list[Any]) -> dict[str, Any]:
    return {"channel": channel, "broker": "b1", "subscriptions": [{"arguments": list(a)} for a in arguments]}


def code(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["type"].removeprefix("urn:tocsin:")


def test_a_token_that_may_only_ingest_does_nothing_else(client: Client) -> None:
    feeder = client("ingest:Reports")
    assert ingest(feeder, '{"id": "a", "kind": "calm"}').status_code == 200
    assert code(ingest(feeder, '{"user": "a"}', dataset="Users")) == (403, "forbidden")
    for text in ("CREATE DATASET Other (id STRING)", "DROP CHANNEL Alerts", "SHOW DATASETS", "SELECT * FROM Reports"):
        assert code(feeder.post("/statements", json={"text": text})) == (403, "forbidden"), text
    assert code(feeder.post("/subscriptions", json=wanted("Alerts", ["fire"]))) == (403, "forbidden")
    assert code(feeder.post("/brokers/b1/pull", json={"cursors": {}})) == (403, "forbidden")
    assert code(feeder.get("/channels")) == (403, "forbidden")
    inserted = feeder.post("/statements", json={"text": "INSERT INTO Reports VALUES ('b', 'calm', 1)"})
    assert inserted.status_code == 200


def test_a_pinned_parameter_has_the_value_of_the_claim(client: Client, cluster: Cluster) -> None:
    ada = client({"channel": "Mine", "pin": {"user": "sub"}}, subject="ada")
    refused = ada.post("/subscriptions", json=wanted("Mine", ["bob", "fire"]))
    assert code(refused) == (403, "forbidden")
    assert "pins 'user'" in refused.json()["detail"]
    mixed = ada.post("/subscriptions", json=wanted("Mine", ["ada", "fire"], ["bob", "fire"]))
    assert code(mixed) == (403, "forbidden")
    assert cluster._channels["Mine"].subscriptions.subscriptions == 0
    text = "SUBSCRIBE TO Mine('bob', 'fire') ON b1"
    assert code(ada.post("/statements", json={"text": text})) == (403, "forbidden")
    assert code(ada.post("/subscriptions", json=wanted("Alerts", ["fire"]))) == (403, "forbidden")
    (made,) = ada.post("/subscriptions", json=wanted("Mine", ["ada", "fire"])).json()["subscriptions"]
    bob = client({"channel": "Mine", "pin": {"user": "sub"}}, subject="bob")
    assert code(bob.delete(f"/subscriptions/{made['id']}")) == (403, "forbidden")
    assert ada.delete(f"/subscriptions/{made['id']}").json() == {"removed": 1}


def test_tokens_that_are_not_good_are_answered_401(cluster: Cluster, url: str) -> None:
    secret, past = cluster._secret, time.time() - 3600
    bad = {
        "none at all": None,
        "not a token": "nonsense",
        "of another secret": mint(b"another secret of thirty-two bytes!", "ann", ["admin"], 600),
        "expired": mint(secret, "ann", ["admin"], 60, now=past),
    }
    for why, token in bad.items():
        with _client(url, token) as client:
            answer = client.get("/datasets")
            assert code(answer) == (401, "unauthenticated"), why
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), why
            if token:
                assert token not in answer.text, why
            assert client.get("/healthz").status_code == 200


def test_the_same_idempotency_key_gives_the_first_receipt(client: Client) -> None:
    admin = client("admin")
    first = ingest(admin, '{"id": "i1", "kind": "calm"}\nnonsense\n', "once").json()
    again = ingest(admin, '{"id": "i1", "kind": "calm"}\nnonsense\n', "once").json()
    assert (first["accepted"], first["rejected"], first["duplicate"]) == (1, 1, False)
    assert again == first | {"duplicate": True, "problems": again["problems"]}
    found = admin.post("/statements", json={"text": "SELECT count(*) AS c FROM Reports WHERE id = 'i1'"}).json()
    assert found["results"][0]["rows"] == [["1"]]


def test_what_is_too_large_is_refused_with_the_limit(client: Client) -> None:
    admin = client("admin")
    answer = ingest(admin, '{"id": "x", "kind": "calm"}\n' * 500)
    assert code(answer) == (413, "limit-exceeded")
    assert answer.json()["limit"] == MAX_BATCH
    long = ingest(admin, '{"id": "' + "x" * 2000 + '"}').json()
    assert (long["accepted"], long["rejected"]) == (0, 1)


def test_a_pull_that_waits_is_answered_when_results_come(client: Client, cluster: Cluster) -> None:
    admin = client("admin")
    (made,) = admin.post("/subscriptions", json=wanted("Alerts", ["quake"])).json()["subscriptions"]
    answers: list[httpx.Response] = []
    waiting = client("broker:b1")
    ask = {"cursors": {"Alerts": made["position"]}, "wait_s": 25}
    thread = threading.Thread(target=lambda: answers.append(waiting.post("/brokers/b1/pull", json=ask)))
    thread.start()
    assert not answers
    ingest(admin, '{"id": "q1", "kind": "quake", "n": 9007199254740993}')
    thread.join(120)
    (page,) = answers[0].json()["pages"]
    assert [r["payload"] for r in page["results"]] == [{"id": "q1", "n": "9007199254740993"}]
    assert [r["backends"] for r in page["results"]] == [[made["backend"]]]
    acknowledge = {"positions": {"Alerts": page["through"]}}
    assert waiting.post("/brokers/b1/ack", json=acknowledge).status_code == 204
    assert waiting.get("/brokers/b1/ack").json() == acknowledge
    assert code(client("broker:b2").post("/brokers/b1/pull", json=ask)) == (403, "forbidden")
    replayed = admin.get("/channels/Alerts/results", params={"backend": made["backend"], "after": made["position"]})
    assert replayed.json()["results"] == page["results"]


@pytest.mark.parametrize(
    ("text", "problem", "line", "column"),
    [
        ("SHOW DATASETS;\nCREATE DATSET X (id STRING)", (400, "syntax"), 2, 8),
        ("CREATE CONTINUOUS CHANNEL X() AS\nSELECT r.id,\n  r.nothing FROM Reports r", (422, "invalid-query"), 3, 3),
        ("SELECT id\nFROM Nowhere", (422, "invalid-query"), 2, 6),
    ],
    ids=["a word misspelt", "a column that is not there", "a dataset that is not there"],
)
def test_a_statement_in_error_is_told_with_its_place(
    client: Client, text: str, problem: tuple[int, str], line: int, column: int
) -> None:
    answer = client("admin").post("/statements", json={"text": text})
    assert code(answer) == problem, answer.text
    assert (answer.json()["line"], answer.json()["column"]) == (line, column), answer.text


def test_what_is_in_use_is_not_dropped(client: Client) -> None:
    answer = client("admin").post("/statements", json={"text": "DROP DATASET Reports"})
    assert code(answer) == (409, "in-use")
    assert answer.json()["users"] == ["channel Alerts", "channel Mine"]


def test_metrics_count_what_happened(client: Client, cluster: Cluster) -> None:
    admin = client("admin")
    subscribe(cluster, "Alerts", "hail")
    before = metrics(admin)
    assert ingest(admin, '{"id": "h1", "kind": "hail"}\n{"id": "h2", "kind": "hail"}\n{"id": 5}').status_code == 200
    seen(cluster, "Reports", "Alerts")
    until(lambda: grown(before, metrics(admin), 'tocsin_results_total{channel="Alerts"}') == 2, "results are counted")
    after = metrics(admin)
    assert grown(before, after, 'tocsin_records_total{dataset="Reports"}') == 2
    assert grown(before, after, 'tocsin_rejected_records_total{dataset="Reports"}') == 1
    assert grown(before, after, 'tocsin_executions_total{channel="Alerts",outcome="done"}') >= 1
    assert grown(before, after, 'tocsin_record_to_result_seconds_count{channel="Alerts"}') >= 1
    assert after['tocsin_subscriptions{channel="Alerts"}'] == cluster._channels["Alerts"].subscriptions.subscriptions
    assert after["tocsin_outbox_waiting"] >= 1
    assert code(client("ingest:Reports").get("/metrics"))[0] == 403


def metrics(client: httpx.Client) -> dict[str, float]:
    lines = [line for line in client.get("/metrics").text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def grown(before: dict[str, float], after: dict[str, float], name: str) -> float:
    return after.get(name, 0.0) - before.get(name, 0.0)


def test_answers_are_those_that_the_document_describes(cluster: Cluster) -> None:
    app = create_app(
        cluster,
        verify=partial(verify, secret=cluster._secret),
        limits=ApiLimits(wait_s=0.01),
        metrics=cluster.metrics,
    )
    made = subscribe(cluster, "Alerts", "documented")
    feed(cluster, "Reports", [{"id": "d", "kind": "documented"}])
    in_dataset, in_channel, at_broker = ({"path_parameters": {"name": n}} for n in ("Reports", "Alerts", "b1"))
    known = {
        "/statements": {"body": {"text": "SHOW CHANNELS"}},
        "/datasets/{name}": in_dataset,
        "/datasets/{name}/records": in_dataset,
        "/channels/{name}": in_channel,
        "/channels/{name}/explain": in_channel,
        "/channels/{name}/results": in_channel | {"query": {"backend": made.backend, "after": str(START)}},
        "/subscriptions": {"body": wanted("Alerts", ["documented"])},
        "/subscriptions/change": {"body": {"ids": [made.id], "broker": "b1"}},
        "/brokers/{name}/pull": at_broker | {"body": {"cursors": {"Alerts": str(START)}}},
        "/brokers/{name}/ack": at_broker | {"body": {"positions": {"Alerts": str(START)}}},
    }
    headers = {"Authorization": f"Bearer {mint(cluster._secret, 'ann', ['admin'], 600)}"}
    for name in operation_names(app.openapi()):
        assert check_operation(app, name, headers=headers, examples=10, known=known) > 0
