"""Whatever goes wrong is told as problem+json, with the status that the one table gives."""

from __future__ import annotations

import logging

import msgspec
import pytest

from support.asgi import AppClient
from support.memory_cluster import MemoryCluster
from tocsin import errors
from tocsin.web.problems import MAX_USERS, MEDIA_TYPE, STATUS, code_of, problem_of

SPAN = errors.Span(3, 14)


def body(error: errors.TocsinError) -> dict:
    return msgspec.json.decode(problem_of(error).body)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.SyntaxProblem("bad", SPAN, expected="SELECT"), {"status": 400, "line": 3, "column": 14}),
        (errors.InvalidQuery("bad", SPAN, expected="a dataset"), {"status": 422, "expected": "a dataset"}),
        (errors.StatementError("bad"), {"status": 422, "detail": "bad"}),
        (errors.NotFound("dataset", "x"), {"status": 404, "kind": "dataset", "name": "x"}),
        (errors.AlreadyExists("channel", "x"), {"status": 409, "kind": "channel", "name": "x"}),
        (errors.InUse("dataset", "x", ["c"]), {"status": 409, "users": ["c"], "users_total": 1}),
        (errors.BadArgument("radius", "DOUBLE", "wide"), {"status": 422, "name": "radius", "expected": "DOUBLE"}),
        (errors.BadRecords("bad"), {"status": 422}),
        (errors.Refused("no"), {"status": 403}),
        (errors.Unauthenticated("no"), {"status": 401}),
        (errors.LimitExceeded("bytes", 10, 11), {"status": 413, "limit": 10, "got": 11}),
        (errors.LimitExceeded("batches", 2, retry_after_s=1.2), {"status": 429, "limit": 2, "retry_after_s": 1.2}),
        (errors.StorageFull("full"), {"status": 507}),
        (errors.ExecutionFailed("c", "bad", "SELECT 1"), {"status": 500, "channel": "c", "sql": "SELECT 1"}),
        (errors.Corrupt("bad"), {"status": 500}),
        (errors.Unavailable("no Java"), {"status": 503}),
        (errors.Uncertain("the publication"), {"status": 504}),
        (errors.ConfigError("bad"), {"status": 422}),
        (errors.TocsinError("bad"), {"status": 500}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_error_of_ours_has_a_status_and_its_fields(error: errors.TocsinError, expected: dict):
    found = body(error)
    assert {name: found.get(name) for name in expected} == expected
    assert found["type"] == f"urn:tocsin:{code_of(error)}"
    assert found["title"]
    assert problem_of(error).media_type == MEDIA_TYPE


def family(kind: type) -> list[type]:
    return [kind, *(one for child in kind.__subclasses__() for one in family(child))]


AT_CLIENTS = (errors.SessionEnded,)  # never an answer over HTTP
ELSEWHERE = ("tocsin.client", "tocsin.broker")  # whose errors of their own travel in other ways
ANSWERED = [
    kind for kind in family(errors.TocsinError)
    if not issubclass(kind, AT_CLIENTS) and not kind.__module__.startswith(ELSEWHERE)
]  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERED, ids=lambda kind: kind.__name__)
def test_no_code_is_without_a_row_in_the_table(kind: type[errors.TocsinError]):
    assert kind.code in STATUS


def test_an_unknown_member_of_a_family_is_answered_like_its_parent():
    class Odd(errors.NotFound):
        code = "odd"

    assert code_of(Odd("dataset", "x")) == "not-found"


def test_only_so_many_users_are_listed():
    found = body(errors.InUse("dataset", "x", [f"c{n}" for n in range(500)]))
    assert (len(found["users"]), found["users_total"]) == (MAX_USERS, 500)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        pytest.param(errors.LimitExceeded("x", 1, retry_after_s=1.2), "2", id="rounds up"),
        pytest.param(errors.LimitExceeded("x", 1, retry_after_s=0.0), "1", id="never at once"),
        pytest.param(errors.StorageFull("full"), "5", id="a full disk"),
        pytest.param(errors.LimitExceeded("x", 1), None, id="a size never fits, however late"),
        pytest.param(errors.Uncertain("x"), None, id="nobody is invited to do twice what may have been done"),
    ],
)
def test_who_should_come_back_is_told_when(error: errors.TocsinError, seconds: str | None):
    assert problem_of(error).headers.get("retry-after") == seconds


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        pytest.param(b"{", 400, "expected JSON", id="half an object"),
        pytest.param(b"\xff", 400, "expected JSON", id="not UTF-8"),
        pytest.param(b'{"text": "\xff"}', 400, "expected JSON", id="not UTF-8 inside a string"),
        pytest.param(b"", 400, "expected JSON", id="nothing"),
        pytest.param(b"[]", 422, "Expected `object`", id="not an object"),
        pytest.param(b'{"text": 3}', 422, "$.text", id="a member of the wrong type"),
        pytest.param(b'{"txt": "x", "text": ""}', 422, "txt", id="a misspelt member"),
    ],
)
def test_a_bad_body_is_told_where_it_is_bad(client: AppClient, content: bytes, status: int, said: str):
    answer = client.post("/statements", content=content)
    assert (answer.status_code, answer.headers["content-type"]) == (status, MEDIA_TYPE)
    assert said in answer.json()["detail"]


def test_arguments_nested_too_deeply_are_refused(client: AppClient):
    head = b'{"channel": "ByKind", "broker": "north", "subscriptions": [{"arguments": '
    answer = client.post("/subscriptions", content=head + b"[" * 1500 + b"]" * 1500 + b"}]}")
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:tocsin:malformed-body")


def test_a_bad_statement_points_at_line_and_column(client: AppClient):
    answer = client.post("/statements", json={"text": "SHOW NOTHING"}).json()
    assert (answer["status"], answer["line"], answer["column"], answer["expected"]) == (400, 1, 1, "SHOW DATASETS")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/channels/ByKind/results", "query.backend"),
        ("/channels/ByKind/results?backend=one", "query.backend"),
        ("/channels/ByKind/results?backend=99999999999999999999", "query.backend"),
        ("/channels/ByKind/results?backend=1&after=soon", "position"),
        ("/subscriptions?limit=0", "query.limit"),
    ],
)
def test_a_bad_parameter_is_named(client: AppClient, path: str, said: str):
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (422, MEDIA_TYPE)
    assert said in answer.json()["detail"]


def test_an_idempotency_key_must_be_printable_and_short(client: AppClient):
    for key in ("two words", "x" * 256):
        answer = client.post("/datasets/Reports/records", content=b"{}", headers={"Idempotency-Key": key})
        assert (answer.status_code, key in answer.text) == (422, False)


@pytest.mark.parametrize(
    ("path", "media_type"), [("/statements", "text/plain"), ("/datasets/Reports/records", "multipart/form-data")]
)
def test_another_kind_of_body_is_refused_with_those_that_are_read(client: AppClient, path: str, media_type: str):
    answer = client.post(path, content=b"{}", headers={"Content-Type": media_type})
    assert (answer.status_code, "application/json" in answer.json()["detail"]) == (415, True)


def test_an_unknown_name_suggests_the_nearest(client: AppClient):
    answer = client.get("/datasets/Report")
    assert (answer.status_code, "did you mean 'Reports'?" in answer.json()["detail"]) == (404, True)


def test_an_unknown_address_and_a_wrong_method_are_problems_too(client: AppClient):
    assert client.get("/nowhere").json()["type"] == "urn:tocsin:no-such-route"
    wrong = client.request("PUT", "/statements")
    assert (wrong.status_code, wrong.headers["allow"], wrong.headers["content-type"]) == (405, "POST", MEDIA_TYPE)


def test_an_unforeseen_failure_tells_nothing_but_an_id_that_the_log_has(
    client: AppClient, cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
):
    def explode(_: object) -> None:
        raise RuntimeError("the inner secret")

    cluster.datasets = explode  # type: ignore[method-assign, assignment]
    with caplog.at_level(logging.ERROR):
        answer = client.get("/datasets")
    assert (answer.status_code, answer.headers["content-type"]) == (500, MEDIA_TYPE)
    assert "secret" not in answer.text
    assert answer.json()["instance"] in caplog.text
    assert "the inner secret" in caplog.text
