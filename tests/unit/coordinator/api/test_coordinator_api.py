"""The coordinator over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from support.asgi import AppClient
from tocsin.coordinator.service import Coordinator

WANTED = {"id": "1", "target": {"kind": "topic", "name": "news"}}


def register(client: AppClient, *names: str) -> None:
    for name in names:
        told = {"incarnation": "1", "url": f"http://{name}.invalid:1", "location": [1.0, 2.0]}
        assert client.request("PUT", f"/brokers/{name}", json=told).is_success


def report(client: AppClient, name: str, **more: object) -> dict:
    answer = client.post(f"/brokers/{name}/report", json={"incarnation": "1", "load": {}, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def instructions(client: AppClient, name: str, after: int = 0) -> list[dict]:
    path = f"/brokers/{name}/instructions?incarnation=1&after={after}"
    return client.get(path).json()["instructions"]


def place(client: AppClient, user: str) -> dict:
    answer = client.post(f"/users/{user}/placement", json={})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_broker_registers_reports_and_obeys(client: AppClient):
    assert client.get("/brokers/a/instructions?incarnation=1").status_code == 404
    assert report(client, "a") == {"is_known": False}
    register(client, "a")
    assert report(client, "a", load={"model_out_per_s": 5.0, "connections": 2}) == {"is_known": True}
    assert instructions(client, "a")[0]["do"] == "topology"
    [seen] = client.get("/brokers").json()["brokers"]
    assert (seen["name"], seen["state"], seen["load"]["model_out_per_s"], seen["reports"]) == ("a", "live", 5.0, 1)


def test_a_user_is_placed_and_seen(client: AppClient):
    assert client.post("/users/ann/placement", json={}).status_code == 503
    register(client, "a")
    placement = place(client, "ann")
    assert (placement["broker"], placement["url"]) == ("a", "http://a.invalid:1")
    assert client.request("PUT", "/users/ann/subscriptions/1", json=WANTED).status_code == 204
    report(client, "a", holdings=[{"user": "ann", "streams": ["topic:news"]}])
    report(client, "a", acknowledged=[{"user": "ann", "id": "1", "position": "07"}])
    ann = client.get("/users/ann").json()
    assert (ann["broker"], ann["online"], ann["reason"]) == ("a", True, "next in turn")
    assert ann["subscriptions"] == [WANTED | {"position": "07"}]
    assert client.delete("/users/ann/subscriptions/1").status_code == 204
    assert client.delete("/users/ann/subscriptions/1").status_code == 404
    assert client.delete("/users/ann").status_code == 204
    assert client.get("/users/ann").status_code == 404


def test_many_subscriptions_are_kept_and_ended_in_one_request_each_with_its_answer(client: AppClient):
    register(client, "a")
    place(client, "ann")
    kept = lambda user, id, named=None: {"user": user, "id": id, "wanted": WANTED | {"id": named or id}}  # noqa: E731
    asked = [
        kept("ann", "1"), kept("bob", "1"), {"user": "ann", "id": "1"}, kept("ann", "2"), kept("ann", "3", "4"),
        {"user": "cem", "id": "1"}, kept("a\nb", "1"), kept("ann", "5"),
    ]  # fmt: skip
    answer = client.post("/subscriptions", json={"kept": asked})
    assert answer.status_code == 200
    refused = [(one["index"], one["code"]) for one in answer.json()["refused"]]
    assert refused == [(4, "bad-argument"), (5, "not-found"), (6, "bad-argument")]
    held = lambda user: [one["id"] for one in client.get(f"/users/{user}").json()["subscriptions"]]  # noqa: E731
    assert (held("ann"), held("bob")) == (["2", "5"], ["1"])
    assert client.post("/subscriptions", json={"kept": [{"user": "ann"}]}).status_code == 422


@pytest.mark.parametrize("user", ["a b", "https%3A%2F%2Fid.example%2F7", "%E5%AE%89", "a%7Cb"])
def test_users_have_all_kinds_of_names(client: AppClient, user: str):
    register(client, "a")
    found = place(client, user)["user"]
    wanted = WANTED | {"id": "x/y z"}
    assert client.request("PUT", f"/users/{user}/subscriptions/x%2Fy%20z", json=wanted).status_code == 204
    seen = client.get(f"/users/{user}").json()
    assert (seen["user"], [one["id"] for one in seen["subscriptions"]]) == (found, ["x/y z"])


def test_the_list_of_users_comes_in_pages(client: AppClient):
    register(client, "a", "b")
    for user in ("cat", "ann", "bob"):
        place(client, user)
    first = client.get("/assignments?limit=2").json()
    assert [one["user"] for one in first["assignments"]] == ["ann", "bob"]
    second = client.get(f"/assignments?limit=2&after={first['next']}").json()
    assert ([one["user"] for one in second["assignments"]], second["next"]) == (["cat"], None)
    assert client.get("/users").json()["assignments"] == first["assignments"] + second["assignments"]


def test_a_plan_and_its_moves_are_told_with_their_reasons(client: AppClient):
    register(client, "a", "b")
    place(client, "ann")
    moves = [{"user": "ann", "to": "b", "reason": "balance"}, {"user": "bob", "to": "b"}]
    plan = client.post("/plans", json={"moves": moves, "cause": "a test"})
    assert (plan.status_code, plan.json()["states"]) == (201, {"adopting": 1, "refused": 1})
    adopt = instructions(client, "b")[-1]
    report(client, "b", outcomes=[{"number": adopt["number"], "ok": True}])
    send = instructions(client, "a")[-1]
    assert send["do"] == "send"
    report(client, "b", arrivals=[{"user": "ann", "version": adopt["version"]}])
    report(client, "a", outcomes=[{"number": send["number"], "ok": True}])
    assert client.get("/users/ann").json()["broker"] == "b"
    shown = client.get(f"/plans/{plan.json()['id']}").json()
    assert [(one["cause"], one["state"], one["outcome"]) for one in shown["moves"]] == [
        ("balance", "done", "arrived"),
        ("a test", "refused", "there is no such user"),
    ]
    assert [one["user"] for one in client.get("/moves?state=done").json()["moves"]] == ["ann"]
    assert client.get("/moves?user=bob").json()["moves"][0]["state"] == "refused"
    assert client.get("/plans").json()["plans"][0]["states"] == {"done": 1, "refused": 1}
    assert client.get("/moves?state=lost").status_code == 422
    assert client.get("/plans/none").status_code == 404


def test_loads_are_of_online_users_only(client: AppClient):
    register(client, "a", "b")
    for user in ("ann", "bob"):
        place(client, user)
    report(client, "a", holdings=[{"user": "ann", "streams": ["s", "t"]}], rates={"s": 3.0, "t": 1.0})
    report(client, "b", rates={"s": 5.0})
    loads = client.get("/loads").json()
    assert loads["users"] == [{"user": "ann", "broker": "a", "streams": ["s", "t"]}]
    assert loads["rates"] == {"s": 5.0, "t": 1.0}
    report(client, "a", rates={"t": 0.0})
    assert client.get("/loads").json()["rates"] == {"s": 5.0}, "nobody holds it there any more"
    report(client, "a", holdings=[{"user": "ann", "streams": []}])
    assert (client.get("/loads").json()["users"], client.get("/brokers/a").json()["online"]) == ([], 1)
    report(client, "a", holdings=[{"user": "ann"}])
    assert (client.get("/loads").json()["users"], client.get("/brokers/a").json()["online"]) == ([], 0)


def test_a_full_report_replaces_what_was_told_before(client: AppClient):
    register(client, "a")
    report(client, "a", holdings=[{"user": "ann", "streams": ["s"]}], rates={"s": 3.0})
    report(client, "a", is_full=True, holdings=[{"user": "bob", "streams": ["t"]}])
    loads = client.get("/loads").json()
    assert ([one["user"] for one in loads["users"]], loads["rates"]) == (["bob"], {})


def test_policies_are_chosen_while_running(client: AppClient):
    assert client.get("/policies").json()["placement"] == {"name": "round_robin", "options": {}}
    chosen = {"placement": {"name": "nearest", "options": {"metric": "sphere"}}}
    assert client.request("PUT", "/policies", json=chosen).json()["placement"] == chosen["placement"]
    refused = client.request("PUT", "/policies", json={"placement": {"name": "neerest"}})
    assert (refused.status_code, "did you mean 'nearest'" in refused.text) == (422, True)
    assert client.get("/policies").json()["placement"]["name"] == "nearest"


def test_how_to_balance_is_chosen_while_running(client: AppClient):
    before = client.get("/policies").json()
    assert (before["balancing"]["migrate"], before["balance_every_s"]) == (None, 30.0)
    chosen = {"migrate": {"name": "ldm", "options": {"stop_cov": "0.1"}}, "options": {"alpha": "0.2"}}
    found = client.request("PUT", "/policies", json={"balancing": chosen}).json()
    assert (found["placement"]["name"], found["balancing"]["migrate"]) == ("round_robin", chosen["migrate"])
    assert found["balancing"]["options"] == {"alpha": "0.2", "beta": "10000", "theta": "10000", "gamma": "1"}
    refused = client.request("PUT", "/policies", json={"balancing": {"migrate": {"name": "lmd"}}})
    assert (refused.status_code, "did you mean 'ldm'" in refused.text) == (422, True)


def skewed(client: AppClient) -> None:
    """Eight users at a, none at b."""
    register(client, "a")
    users = [f"u{n}" for n in range(8)]
    for user in users:
        place(client, user)
    register(client, "b")
    held = [{"user": user, "streams": ["s", user]} for user in users]
    report(client, "a", holdings=held, rates={"s": 100.0} | dict.fromkeys(users, 50.0))
    report(client, "b")


def test_a_dry_run_compares_every_policy_and_moves_nobody(client: AppClient):
    skewed(client)
    found = client.post("/rebalance", json={"dry_run": True}).json()
    assert [one["policy"] for one in found["trials"]] == ["ldm", "sdm", "gsh", "xbal", "simsh", "gmove"]
    assert (found["users"], found["brokers"], found["streams"], found["plan"]) == (8, 2, 9, None)
    assert (found["now"]["maximum"], found["now"]["cov"]) == (1700.0, 1.0)
    for one in found["trials"]:
        assert (one["after"]["maximum"], one["after"]["ratio"] >= 1, one["moves"]) == (900.0, True, 4), one
    assert (client.get("/plans").json()["plans"], client.get("/decisions").json()["decisions"]) == ([], [])


def test_one_policy_is_followed_and_its_decision_is_seen(client: AppClient):
    skewed(client)
    found = client.post("/rebalance", json={"policy": "ldm", "options": {"stop_cov": "0.1"}}).json()
    plan = client.get(f"/plans/{found['plan']}").json()
    assert (plan["kind"], plan["cause"], len(plan["moves"])) == ("balance", "migrate by ldm: balance reached", 4)
    assert {move["cause"] for move in plan["moves"]} == {"ldm: to the least loaded"}
    [decision] = client.get("/decisions").json()["decisions"]
    assert (decision["plan"], decision["is_asked"], decision["reason"]) == (found["plan"], True, "balance reached")
    assert (decision["before"]["maximum"], decision["after"]["maximum"]) == (1700.0, 900.0)
    assert plan["decision"] == client.get("/plans").json()["plans"][0]["decision"] == decision
    first, *_, last = (move["expected"] for move in plan["moves"])
    assert (first["source_before"], first["target_before"]) == (1700.0, 0.0)
    assert (first["source_after"], first["target_after"], first["maximum"]) == (1500.0, 300.0, 1500.0)
    assert (last["source_after"], last["target_after"], last["maximum"], last["cov"]) == (900.0, 900.0, 900.0, 0.0)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"policy": "all"}, "policy: expected one of ldm"),
        ({"dry_run": True, "options": {"stop_cov": "1"}}, "options: expected one policy"),
        ({"options": {"stop_cov": "1"}}, "options: expected one policy"),
        ({"policy": "gash"}, "did you mean 'gsh'"),
        ({"policy": "ldm", "options": {"stop": "1"}}, "did you mean 'stop_cov'"),
    ],
)
def test_a_rebalancing_that_cannot_be_is_refused(client: AppClient, body: dict, problem: str):
    answer = client.post("/rebalance", json=body)
    assert (answer.status_code in (400, 422), problem in answer.json()["detail"]) == (True, True), answer.text


def test_a_broker_is_drained_and_removed(client: AppClient):
    register(client, "a", "b")
    assert client.post("/brokers/a/drain").json()["state"] == "draining"
    assert client.delete("/brokers/a").json()["state"] == "gone"
    assert client.get("/brokers/c").status_code == 404
    assert client.delete("/brokers/c").status_code == 404


def test_names_with_slashes_are_told_apart(client: AppClient):
    """Each of these was once another user's, or another subscription's, address."""
    register(client, "a")
    names = ["ann", "ann/subscriptions/x", "ann/placement", "spiffe://org/ann", "100%", "a%2Fb", "subscriptions/x"]
    for user in names:
        assert place(client, quote(user, safe=""))["user"] == user
        for id in names:
            path = f"/users/{quote(user, safe='')}/subscriptions/{quote(id, safe='')}"
            assert client.request("PUT", path, json=WANTED | {"id": id}).status_code == 204
            assert client.delete(path).status_code == 204
    path = f"/users/ann/subscriptions/{quote('news/subscriptions/today', safe='')}"
    assert client.request("PUT", path, json=WANTED | {"id": "news/subscriptions/today"}).status_code == 204
    assert client.delete(f"/users/{quote('ann/subscriptions/x', safe='')}").status_code == 204
    users = [found["user"] for found in client.get("/users").json()["assignments"]]
    assert users == sorted(set(names) - {"ann/subscriptions/x"})
    [kept] = client.get("/users/ann").json()["subscriptions"]
    assert kept["id"] == "news/subscriptions/today"
    assert client.get("/users/ann/other").json()["type"] == "urn:tocsin:no-such-route"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/brokers/a%20b", {"incarnation": "1", "url": "http://a:1"}),
        ("PUT", "/brokers/a", {"incarnation": "1", "url": "ftp://a"}),
        ("PUT", "/brokers/a", {"incarnation": "1", "url": "http://a:84300"}),
        ("PUT", "/brokers/a", {"incarnation": "1", "url": "http://a:b"}),
        ("PUT", "/brokers/a", {"incarnation": "1", "url": "http://:8430"}),
        ("PUT", "/brokers/a", {"incarnation": "1", "url": "http://[::1"}),
        ("PUT", "/brokers/a", {"incarnation": "1", "url": "http://a:1", "capacity": 0}),
        ("PUT", "/brokers/a", {"incarnation": "", "url": "http://a:1"}),
        ("PUT", "/users/ann/subscriptions/2", WANTED),
        ("PUT", "/users/ann/subscriptions/1", WANTED | {"target": {"kind": "box"}}),
        ("POST", "/users/a%00b/placement", {}),
        ("POST", "/brokers/a/report", {"incarnation": "1", "load": {}, "admitted": ["a\u0000"]}),
        ("POST", "/brokers/a/report", {"incarnation": "1", "load": {}, "kept": [{"user": "a", "id": ""}]}),
        ("POST", "/plans", {"moves": [{"user": "ann"}]}),
    ],
)
def test_what_does_not_fit_is_refused(client: AppClient, method: str, path: str, body: dict):
    answer = client.request(method, path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


def test_one_subscription_too_many_is_refused(client: AppClient):
    register(client, "a")
    for id in "123":
        assert client.request("PUT", f"/users/ann/subscriptions/{id}", json=WANTED | {"id": id}).status_code == 204
    assert client.request("PUT", "/users/ann/subscriptions/4", json=WANTED | {"id": "4"}).status_code == 413


def test_metrics_count(client: AppClient, service: Coordinator):
    register(client, "a")
    place(client, "ann")
    client.post("/plans", json={"moves": [{"user": "ann", "to": "a"}]})
    text = client.get("/metrics").text
    assert 'tocsin_coordinator_brokers{state="live"} 1.0' in text
    assert "tocsin_coordinator_users 1.0" in text
    assert 'tocsin_coordinator_moves_total{state="refused"} 1.0' in text


def test_readiness_ends_with_a_drain(client: AppClient, app):
    assert client.get("/readyz").status_code == 200
    app.state.api.drain()
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
