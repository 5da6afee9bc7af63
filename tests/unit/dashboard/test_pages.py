from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import msgspec
import pytest

from support.asgi import AppClient, client_of
from tocsin.config import Dashboard as Settings
from tocsin.dashboard import api, pages
from tocsin.dashboard.api import Addresses, Dashboard
from tocsin.dashboard.entering import Door
from tocsin.dashboard.history import History, Past
from tocsin.dashboard.lab import Lab
from tocsin.dashboard.stage import Stage
from tocsin.dashboard.telling import People, Speaker
from tocsin.tokens import Principal, mint, verify
from tocsin.web.app import add_errors, add_routes, new_app

SECRET = b"s" * 32
CHANNELS = [
    {"name": name, "parameters": [{"name": "kind", "type": "STRING"}], "mode": "continuous", "state": "running"}
    for name in ("Near", "Far")
]


class Guard:
    insecure = open_metrics = False

    def verify(self, token: str) -> object:
        return verify(token, SECRET)


class Source:
    channels = CHANNELS

    def past(self) -> Past:
        return History(2).past()


class Topics:
    """Where publications go."""

    def __init__(self, told: list[dict]) -> None:
        self._told = told

    async def publish(self, topic: str, payload: bytes, principal: Principal) -> str:
        principal.need("publish", topic)
        self._told.append(msgspec.json.decode(payload))
        return "p1"


@pytest.fixture
def told() -> list[dict]:
    return []


@pytest.fixture
def board(told: list[dict], tmp_path) -> Dashboard:
    addresses = Addresses("http://c", "http://d", False, False)
    lab = Lab(Settings(papers=str(tmp_path)))
    return Dashboard(Source(), Stage(), Door(SECRET, 60), lab, addresses, Speaker(Topics(told)))


@pytest.fixture
def client(board: Dashboard) -> Iterator[AppClient]:
    app = new_app("pages", Guard())
    add_routes(app, unguarded=[api.opened, pages.router], guarded=[api.guarded])
    add_errors(app)
    app.state.dashboard = board
    with client_of(app) as made:
        yield made


def bearer(*capabilities: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {mint(SECRET, 'ann', capabilities, 60)}"}


def texts() -> dict[str, str]:
    return {path.name: path.read_text() for path in pages.STATIC.iterdir()}


def test_everything_that_a_page_names_is_there(client: AppClient) -> None:
    wanted = {f"/static/{name}" for text in texts().values() for name in re.findall(r'from "\./([\w.]+)"', text)}
    wanted |= {found for text in texts().values() for found in re.findall(r'(?:src|href)="(/[\w./]+)"', text)}
    assert {"/static/tocsin.js", "/static/plotly.js", "/static/base.css"} <= wanted
    assert {path: client.get(path).status_code for path in wanted if client.get(path).status_code != 200} == {}


def test_nothing_is_taken_from_another_host(client: AppClient) -> None:
    for name, text in texts().items():
        hosts = set(re.findall(r"https?://([\w.-]+)", text)) - {"www.w3.org"}
        assert hosts == set(), name
    assert "script-src" not in pages.POLICY  # so that default-src holds for scripts
    assert "default-src 'self'" in client.get("/operator").headers["content-security-policy"]


def test_a_file_that_has_not_changed_is_not_sent_again(client: AppClient) -> None:
    first = client.get("/static/base.css")
    assert first.headers["content-encoding"] == "gzip"
    again = client.get("/static/base.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/static/nothing.js", "/static/..%2Fprogram.py", "/api/lab/figures/debs19/..%2Fx.png"]
)
def test_nothing_else_is_given_out(client: AppClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "capabilities", "status"),
    [
        ("GET", "/api/history", (), 403),
        ("GET", "/api/history", ("read",), 200),
        ("GET", "/api/history", ("coordinator",), 200),
        ("GET", "/api/city", (), 200),
        ("PUT", "/api/city", ("read",), 403),
        ("POST", "/api/lab/study", ("read",), 403),
    ],
)
def test_the_token_decides(client: AppClient, method: str, path: str, capabilities: tuple, status: int) -> None:
    assert client.request(method, path).status_code == 401
    assert client.request(method, path, headers=bearer(*capabilities)).status_code == status


def test_channels_are_those_that_the_token_may_subscribe_to(client: AppClient) -> None:
    def names(*capabilities: str) -> list[str]:
        found = client.get("/api/channels", headers=bearer(*capabilities)).json()["channels"]
        return [channel["name"] for channel in found]

    assert names("subscribe:near") == ["Near"]
    assert names("subscribe:*") == ["Near", "Far"]
    assert names("read") == []


def test_a_city_is_put_on_the_map_and_told(client: AppClient, told: list[dict]) -> None:
    assert client.get("/api/city", headers=bearer()).json()["world"] is None
    scene = {"seed": 3, "size_m": [2000, 1500], "districts": 2, "shelters": 4, "people": 5}
    answer: httpx.Response = client.request("PUT", "/api/city", json=scene, headers=bearer("publish:city"))
    assert (answer.status_code, told) == (204, [{"k": "world"}])
    shown = client.get("/api/city", headers=bearer()).json()
    world = shown["world"]
    assert shown["position"] == "p1"
    assert (world["size_m"], world["people"], len(world["shelters"])) == ([2000, 1500], 5, 4)
    assert len(world["edges"]) % 3 == 0
    assert max(world["edges"]) < len(world["points"]) // 2


def test_where_people_are_is_told_to_who_may_follow_the_city(client: AppClient, board: Dashboard) -> None:
    scene = {"size_m": [2000, 1500], "districts": 2, "shelters": 4, "people": 1}
    client.request("PUT", "/api/city", json=scene, headers=bearer("publish:city"))
    board.stage.place({"u00000": "b1"}, {"b1": None})
    board.speaker.people = People(2.0, bytes(4))

    def seen(*capabilities: str) -> list[bool]:
        found = client.get("/api/city", headers=bearer(*capabilities)).json()
        return [found["world"]["placed"] is not None, found["people"] is not None, bool(found["world"]["edges"])]

    assert (seen("topic:city"), seen("subscribe:*", "read")) == ([True, True, True], [False, False, True])
    assert board.stage.shown["placed"]["brokers"] == ["b1"]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"schemes": []}, id="no scheme"),
        pytest.param({"schemes": [{}], "subscribers": 10**6}, id="too many subscribers"),
        pytest.param({"schemes": [{}], "duration_s": 10**6}, id="too long"),
        pytest.param({"schemes": [{}], "unknown": 1}, id="a member that is not known"),
    ],
)
def test_a_study_is_bounded(client: AppClient, asked: dict) -> None:
    assert client.post("/api/lab/study", json=asked, headers=bearer("coordinator")).status_code == 422
