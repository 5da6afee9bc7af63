"""Each route does what its operation says, with the service behind it."""

from __future__ import annotations

import pytest

from support.asgi import AppClient
from support.memory_cluster import MemoryCluster
from tocsin import __version__
from tocsin.model.position import START, Position


def subscribe(client: AppClient, *kinds: str) -> list[dict]:
    wanted = [{"arguments": {"kind": kind}} for kind in kinds]
    answer = client.post("/subscriptions", json={"channel": "ByKind", "broker": "north", "subscriptions": wanted})
    assert answer.status_code == 200, answer.text
    return answer.json()["subscriptions"]


def test_statements_give_one_result_each(client: AppClient):
    answer = client.post("/statements", json={"text": "SHOW DATASETS; SHOW DATASETS"})
    one = {
        "kind": "table",
        "message": "1 dataset",
        "columns": ["name", "records"],
        "rows": [["Reports", 0]],
        "truncated": False,
    }
    assert (answer.status_code, answer.json()) == (200, {"results": [one, one]})


def test_a_batch_is_acknowledged_with_its_bad_lines(client: AppClient, cluster: MemoryCluster):
    answer = client.post("/datasets/Reports/records", content=b'{"id": 1}\nnonsense\n{"id": 2}\n')
    assert answer.json() == {
        "accepted": 2,
        "rejected": 1,
        "first": 1,
        "last": 2,
        "duplicate": False,
        "problems": [{"line": 2, "reason": "expected a JSON object"}],
    }
    assert cluster.records == [{"id": 1}, {"id": 2}]


def test_a_batch_may_be_csv(client: AppClient):
    content = b"id,kind\n1,fire\n2\n"
    answer = client.post("/datasets/Reports/records", content=content, headers={"Content-Type": "text/csv"}).json()
    assert (answer["accepted"], [problem["line"] for problem in answer["problems"]]) == (1, [3])


@pytest.mark.parametrize(
    "media_type", ["application/x-ndjson", "application/json; charset=utf-8", "text/plain", "application/jsonl"]
)
def test_a_batch_may_be_of_any_kind_of_json_text(client: AppClient, media_type: str):
    answer = client.post("/datasets/Reports/records", content=b'{"id": 1}', headers={"Content-Type": media_type})
    assert (answer.status_code, answer.json()["accepted"]) == (200, 1)


def test_an_idempotency_key_reaches_the_service_and_gives_the_first_receipt(client: AppClient, cluster: MemoryCluster):
    for _ in range(2):
        answer = client.post("/datasets/Reports/records", content=b'{"id": 1}', headers={"Idempotency-Key": "batch-1"})
    assert answer.json()["duplicate"] is True
    assert [key for _, key in cluster.bodies] == ["batch-1", "batch-1"]
    assert cluster.records == [{"id": 1}]


def test_records_are_deleted_by_key(client: AppClient, cluster: MemoryCluster):
    client.post("/datasets/Reports/records", content=b'{"id": 1}\n{"id": 2}')
    answer = client.request("DELETE", "/datasets/Reports/records", json={"keys": [{"id": 1}]})
    assert answer.json() == {"deleted": 1}
    assert cluster.records == [{"id": 2}]


def test_datasets_are_listed_and_shown_whatever_the_case(client: AppClient):
    (listed,) = client.get("/datasets").json()["datasets"]
    assert listed["columns"][0] == {"name": "id", "type": "INT"}
    assert client.get("/datasets/REPORTS").json() == listed


def test_channels_are_listed_shown_and_explained(client: AppClient):
    (listed,) = client.get("/channels").json()["channels"]
    assert (listed["parameters"], listed["state"]) == ([{"name": "kind", "type": "STRING"}], "running")
    assert client.get("/channels/bykind").json() == listed
    explained = client.get("/channels/ByKind/explain").json()
    assert (explained["channel"], explained["explanation"]["strategy"]) == ("ByKind", "index")


def test_brokers_feeds_and_status_are_shown(client: AppClient):
    assert client.get("/brokers").json()["brokers"][0]["name"] == "north"
    assert client.get("/feeds").json()["feeds"][0]["kind"] == "http"
    status = client.get("/status").json()
    assert (status["ready"], status["started_at"]) == (True, "2023-11-14T22:13:20Z")


def test_identical_subscriptions_share_a_backend_and_all_say_where_they_begin(client: AppClient):
    fire, again, flood = subscribe(client, "fire", "fire", "flood")
    assert fire["backend"] == again["backend"] != flood["backend"]
    assert {one["position"] for one in (fire, again, flood)} == {str(START)}


def test_arguments_may_come_in_order_and_ids_from_the_caller(client: AppClient, cluster: MemoryCluster):
    wanted = [{"arguments": ["fire"], "id": "mine"}]
    client.post("/subscriptions", json={"channel": "ByKind", "broker": "north", "subscriptions": wanted})
    assert cluster.held["mine"].arguments == {"kind": "fire"}


def test_subscriptions_are_listed_page_by_page(client: AppClient):
    made = [one["id"] for one in subscribe(client, "fire", "flood", "storm")]
    first = client.get("/subscriptions", params={"limit": 2, "channel": "ByKind"}).json()
    second = client.get("/subscriptions", params={"limit": 2, "after": first["next"]}).json()
    assert [one["id"] for one in first["subscriptions"] + second["subscriptions"]] == made
    assert second["next"] is None


def test_subscriptions_end_one_by_one_and_in_bulk(client: AppClient, cluster: MemoryCluster):
    made = [one["id"] for one in subscribe(client, "fire", "flood", "storm")]
    assert client.delete(f"/subscriptions/{made[0]}").json() == {"removed": 1}
    assert client.delete(f"/subscriptions/{made[0]}").status_code == 404
    assert client.post("/subscriptions/remove", json={"ids": made}).json() == {"removed": 2}
    assert cluster.held == {}


def test_a_removal_may_name_the_making_that_it_means(client: AppClient):
    asked = {"channel": "ByKind", "broker": "north", "subscriptions": [{"arguments": ["fire"], "id": "x"}], "making": 7}
    assert client.post("/subscriptions", json=asked).json()["subscriptions"][0]["making"] == 7
    assert client.get("/subscriptions").json()["subscriptions"][0]["making"] == 7
    assert client.delete("/subscriptions/x", params={"making": 6}).status_code == 404
    assert client.post("/subscriptions/remove", json={"ids": ["x"], "making": 6}).json() == {"removed": 0}
    assert client.post("/subscriptions/remove", json={"ids": ["x"], "making": -1}).status_code == 422
    assert client.delete("/subscriptions/x", params={"making": 7}).json() == {"removed": 1}


def test_subscriptions_move_to_another_broker(client: AppClient):
    (made,) = subscribe(client, "fire")
    answer = client.post("/subscriptions/change", json={"ids": [made["id"]], "broker": "north"})
    assert answer.json()["subscriptions"] == [made]


def test_a_pull_copies_payloads_as_they_are(client: AppClient, cluster: MemoryCluster):
    odd = b'{"text" :  "caf\\u00e9", "big": 123456789012345678901234567890, "n":1.50}'
    cluster.publish("fire", odd)
    answer = client.post("/brokers/north/pull", json={"cursors": {"ByKind": str(START)}})
    assert odd in answer.content
    (page,) = answer.json()["pages"]
    (result,) = page.pop("results")
    assert (result["id"], result["position"], result["backends"]) == ("r1", str(Position(1, 1)), [0])
    ends = {"after": str(START), "through": str(Position(1, 1)), "end": True, "gap": None}
    assert page == {"channel": "ByKind", "life": 0, **ends}


def test_a_pull_takes_no_more_rows_than_asked_for_and_says_that_there_is_more(
    client: AppClient, cluster: MemoryCluster
):
    for number in range(3):
        cluster.publish("fire", b"%d" % number)
    answer = client.post("/brokers/north/pull", json={"cursors": {"ByKind": None}, "max_rows": 2})
    (page,) = answer.json()["pages"]
    assert ([one["payload"] for one in page["results"]], page["end"]) == ([0, 1], False)


def test_replay_gives_one_backend_between_two_positions(client: AppClient, cluster: MemoryCluster):
    for kind in ("fire", "flood", "fire", "fire"):
        cluster.publish(kind, b"{}")
    bounds = {"backend": 0, "after": str(Position(1, 1)), "through": str(Position(3, 1))}
    page = client.get("/channels/ByKind/results", params=bounds).json()
    assert [one["id"] for one in page["results"]] == ["r3"]


def spans(*bounds: tuple[int, Position, Position]) -> list[dict[str, object]]:
    return [
        {"channel": "ByKind", "backend": backend, "after": str(after), "through": str(through)}
        for backend, after, through in bounds
    ]


def test_many_replays_are_answered_each_by_its_page(client: AppClient, cluster: MemoryCluster):
    for kind in ("fire", "flood", "fire", "fire"):
        cluster.publish(kind, b"{}")
    asked = spans((0, Position(1, 1), Position(3, 1)), (0, START, Position(1, 1)), (0, Position(2, 1), Position(2, 1)))
    found = client.post("/results", json={"spans": asked}).json()["replayed"]
    assert [[one["id"] for one in answer["page"]["results"]] for answer in found] == [["r3"], ["r1"], []]


def test_a_bad_replay_among_many_harms_no_other(client: AppClient, cluster: MemoryCluster):
    cluster.publish("fire", b"{}")
    good, bad = spans((0, START, Position(1, 1)), (0, START, Position(1, 1)))
    asked = [bad | {"channel": "Nobody"}, bad | {"after": "soon"}, good]
    found = client.post("/results", json={"spans": asked}).json()["replayed"]
    assert [one["problem"] and one["problem"]["status"] for one in found] == [404, 422, None]
    assert len(found[2]["page"]["results"]) == 1


def test_what_is_no_longer_kept_is_a_gap(client: AppClient, cluster: MemoryCluster):
    cluster.publish("fire", b"{}")
    cluster.forget_through(Position(1, 1))
    page = client.get("/channels/ByKind/results", params={"backend": 0}).json()
    assert page["gap"] == {
        "after": str(START),
        "through": str(Position(1, 1)),
        "count": None,
        "reason": "no longer kept",
    }


def test_what_was_acknowledged_can_be_read_back(client: AppClient):
    positions = {"positions": {"ByKind": str(Position(7, 2))}}
    assert client.post("/brokers/north/ack", json=positions).status_code == 204
    assert client.get("/brokers/north/ack").json() == positions


def test_probes_need_no_token(anyone: AppClient):
    assert anyone.get("/healthz").json() == {"alive": True}
    assert anyone.get("/readyz").json() == {"ready": True}
    assert anyone.get("/version").json() == {"name": "tocsin", "version": __version__}


def test_readiness_says_why_not(anyone: AppClient, cluster: MemoryCluster):
    cluster.ready, cluster.reason = False, "Spark is starting"
    answer = anyone.get("/readyz")
    assert (answer.status_code, answer.json()["detail"]) == (503, "Spark is starting")


def test_readiness_counts_nothing(anyone: AppClient, cluster: MemoryCluster):
    cluster.status = None  # type: ignore[method-assign, assignment]
    assert anyone.get("/readyz").status_code == 200


def test_readiness_ends_when_a_drain_begins(app, anyone: AppClient):
    app.state.api.drain()
    assert (anyone.get("/readyz").status_code, anyone.get("/healthz").status_code) == (503, 200)


@pytest.mark.parametrize("id", ["a/b", "a\0b", "a\x1fb", ""])
def test_an_id_that_cannot_stand_in_an_address_is_refused(client: AppClient, cluster: MemoryCluster, id: str):
    asked = {"channel": "ByKind", "broker": "north", "subscriptions": [{"arguments": ["fire"], "id": id}]}
    answer = client.post("/subscriptions", json=asked)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:tocsin:invalid-request")
    assert cluster.held == {}
