"""Pages before a system that is made up: for what a real one does not do when it is asked to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from mimetypes import guess_type
from time import time
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, WebSocketRoute, expect

from support.usable import check_fits, check_usable
from tocsin.client import JAVASCRIPT
from tocsin.dashboard.pages import HEADERS, STATIC
from tocsin.tokens import mint

HERE = "http://dashboard.test"
BROKER = "http://broker.test"
SECRET = b"s" * 32
Opener = Callable[..., "Alone"]
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
LONG = "A-word-that-is-longer-than-a-telephone-is-wide-" * 3


class Broker:
    """One that answers by the protocol, unless it is told not to."""

    def __init__(self) -> None:
        self.open = list[WebSocketRoute]()
        self.logins = 0
        self.held = dict[str, Any]()
        self.is_mute = False
        self.refuses = False
        self.breaks_at: str | None = None
        self.number = 0

    def __call__(self, socket: WebSocketRoute) -> None:
        self.open.append(socket)
        socket.on_message(lambda text: self._answer(socket, json.loads(text)))
        socket.on_close(lambda *_: self._left(socket))

    def _answer(self, socket: WebSocketRoute, asked: dict[str, Any]) -> None:
        kind, request = asked["type"], asked.get("request")
        if kind == self.breaks_at:
            self.breaks_at = None
            self.end(4000)
        elif kind == "login" and self.refuses:
            self.end(4400)
        elif not self.is_mute and (answer := self._answer_to(kind, asked)):
            socket.send(json.dumps({"request": request} | answer))

    def _answer_to(self, kind: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        if kind == "login":
            self.logins += 1
            stand = [_standing(one["id"]) | {"recovered": True} for one in asked["subscriptions"]]
            return {"type": "welcome", "user": "ann", "broker": "b1", "ping_s": 30, "subscriptions": stand}
        if kind == "subscribe":
            self.held[asked["id"]] = asked["target"]
            return {"type": "subscribed", "subscription": _standing(asked["id"])}
        if kind == "list":
            return {
                "type": "subscriptions",
                "subscriptions": [_standing(id) | {"target": target} for id, target in self.held.items()],
            }
        if kind == "unsubscribe":
            self.held.pop(asked["id"], None)
        return None if kind == "ack" else {"type": "done"}

    def tell(self, payload: Any) -> None:
        """To whoever holds the only subscription."""
        self._send({"type": "notification", "payload": payload} | self._next())

    def miss(self) -> None:
        """The next of it is lost."""
        stream, place = (found := self._next()).pop("stream"), found
        self._send({"type": "gap", "stream": stream, "holes": [place | {"count": 1}], "reason": "lost"})

    def _next(self) -> dict[str, str]:
        (id,) = self.held
        self.number += 1
        return {"stream": f"s-{id}", "after": f"{self.number:09}", "through": f"{self.number + 1:09}"}

    def _send(self, message: dict[str, Any]) -> None:
        self.open[-1].send(json.dumps(message))

    def end(self, code: int) -> None:
        for socket in self.open[:]:
            socket.close(code=code, reason="closed by a test")
            self._left(socket)

    def _left(self, socket: WebSocketRoute) -> None:
        if socket in self.open:
            self.open.remove(socket)


def _standing(id: str) -> dict[str, Any]:
    return {"id": id, "stream": f"s-{id}", "position": f"{1:09}"}


class Alone:
    """A page whose every question is answered here; ``answers`` are by path, with a status where it is not 200."""

    def __init__(self, page: Page) -> None:
        self.page, self.broker, self.own = page, Broker(), Broker()
        self.answers: dict[str, Any] = {
            "/api/addresses": {"coordinator": HERE, "cluster": HERE, "insecure": False, "replay": False},
            "/api/channels": {"channels": [_channel("Near")]},
            "/api/city": {"position": None, "world": None},
            "/api/lab/claims": {"papers": []},
            "/users/ann/placement": {"url": BROKER, "ticket": "t"},
        }
        page.route(f"{HERE}/**", self._answer)
        page.route_web_socket(f"{BROKER.replace('http', 'ws')}/connect", self.broker)
        page.route_web_socket(f"{HERE.replace('http', 'ws')}/connect", self.own)

    def open(self, path: str, *capabilities: str) -> Page:
        if capabilities:
            shown = json.dumps(mint(SECRET, "ann", capabilities, 3600))
            self.page.add_init_script(f"sessionStorage.setItem('tocsin.token', {shown})")
        self.page.goto(HERE + path)
        return self.page

    def _answer(self, route: Route) -> None:
        path = route.request.url.removeprefix(HERE).split("?")[0]
        if path in self.answers:
            found = self.answers[path]
            status, body = found if isinstance(found, tuple) else (200, found)
            route.fulfill(status=status, body=json.dumps(body), content_type="application/json")
            return
        name = path.removeprefix("/static/") if path.startswith("/static/") else f"{path.strip('/')}.html"
        file = JAVASCRIPT if name == "tocsin.js" else STATIC / name
        if name == "plotly.js":
            route.fulfill(body="", content_type="text/javascript")  # no chart is looked at here
        else:
            kind = {"Content-Type": guess_type(name)[0] or "text/plain"}
            route.fulfill(path=file, headers=HEADERS | kind)


def _channel(name: str) -> dict[str, Any]:
    return {"name": name, "parameters": [{"name": "kind", "type": "STRING"}], "mode": "continuous", "state": "running"}


@pytest.fixture
def alone(browser: Browser) -> Iterator[Opener]:
    made = []

    def prepare(**window: Any) -> Alone:
        context = browser.new_context(**window)
        made.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.clock.install()
        return Alone(page)

    yield prepare
    for context in made:
        context.close()


def subscribed(it: Alone, kind: str = "fire") -> Page:
    page = it.open("/me", "subscribe:*")
    page.get_by_label("kind").fill(kind)
    page.get_by_role("button", name="Subscribe").click()
    expect(page.locator("#mine li")).to_have_count(1)
    return page


def paste(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_label("Token").press("Enter")


def test_who_needs_a_token_is_asked_until_there_is_one(alone: Opener) -> None:
    page = alone().open("/me")
    for _ in range(3):
        page.keyboard.press("Escape")  # a browser lets a page refuse only the first
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_label("Token")).to_have_attribute("type", "password")
    paste(page, mint(SECRET, "ann", ["subscribe:*"], 3600))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".state")).to_have_text("at b1")


def test_who_needs_no_token_may_leave_the_question(alone: Opener) -> None:
    page = alone().open("/lab")
    for leave in (page.get_by_role("button", name="Cancel").click, lambda: page.keyboard.press("Escape")):
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        leave()
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_my_page_comes_back_after_its_session_has_ended(alone: Opener) -> None:
    it = alone()
    page = subscribed(it)
    it.broker.end(4401)
    expect(page.locator("#link li").first).to_contain_text("the session ended")
    page.clock.fast_forward(5_000)
    expect(page.locator("#link li").first).to_contain_text("back at b1")
    expect(page.locator("#mine li")).to_have_count(1)
    it.broker.tell({"text": "told again"})
    expect(page.locator("#told > li")).to_contain_text("told again")

    it.broker.refuses = True
    it.broker.end(4400)
    for is_last in (False, True):
        expect(page.get_by_role("dialog")).to_contain_text("closed by a test")
        it.broker.refuses = not is_last
        paste(page, mint(SECRET, "ann", ["subscribe:*"], 3600))
    expect(page.locator("#mine li")).to_have_count(1)
    expect(page.locator(".state")).to_have_text("at b1")


def test_my_page_has_one_session_whatever_breaks_while_it_begins(alone: Opener) -> None:
    it = alone()
    it.broker.breaks_at = "list"
    page = it.open("/me", "subscribe:*")
    expect(page.locator("#absent")).not_to_be_empty()
    page.clock.fast_forward(5_000)
    expect(page.locator("#absent")).to_be_empty()
    page.clock.fast_forward(5_000)
    expect(page.locator(".state")).to_have_text("at b1")
    assert len(it.broker.open) == 1


def test_what_is_ended_and_wanted_again_at_once_is_held(alone: Opener) -> None:
    it = alone()
    page = subscribed(it)
    it.broker.is_mute = True
    page.get_by_role("button", name="End").press("Enter")
    expect(page.locator("#mine li")).to_have_count(0)
    expect(page.get_by_role("heading", name="My subscriptions")).to_be_focused()
    it.broker.is_mute = False
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_text("Subscribed.")).to_be_visible()
    expect(page.locator("#mine li")).to_have_count(1)
    it.broker.tell({"text": "still told"})
    expect(page.locator("#told > li")).to_contain_text("still told")


def test_channels_that_come_later_can_be_chosen_and_nothing_that_was_written_is_lost(alone: Opener) -> None:
    it = alone()
    page = it.open("/me", "subscribe:*")
    options = page.locator("#channel option")
    expect(options).to_have_count(1)
    page.get_by_label("kind").fill("half a wor")
    for names in (["Area", "Near"], [], ["Near", "Zone"]):
        it.answers["/api/channels"] = {"channels": [_channel(name) for name in names]}
        page.clock.fast_forward(5_000)
        expect(page.locator("#subscribe")).to_be_visible(visible=bool(names))
        if names:
            expect(options).to_have_text([f"{name} (continuous)" for name in names])
            expect(page.locator("#channel")).to_have_value("Near")
    expect(page.get_by_label("kind")).to_have_value("half a wor")


def test_a_card_fits_a_phone_and_says_nothing_of_what_is_null(alone: Opener) -> None:
    it = alone(**PHONE)
    page = subscribed(it, LONG)
    it.broker.tell({"kind": LONG, "text": LONG, LONG: LONG, "shelters": [{"name": LONG}]})
    it.broker.tell({"kind": None, "severity": None, "metres": None, "x": None, "y": None, "text": None, "note": None})
    expect(page.locator("#told > li")).to_have_count(2)
    expect(page.locator("#told > li").first).to_have_text(re.compile(r"^Near Near · received [\d:]+note–$"))
    check_fits(page)
    check_usable(page, "light", "dark")


def sample(n: int, **told: Any) -> dict[str, Any]:
    cluster = {"is_ready": True, "reason": "", "spark": {}, "totals": {}, "latency_ms": None}
    figures = {"cov": 0.0, "maximum": 0.0, "mean": 0.0, "total": 0.0}
    empty = {name: [] for name in ("brokers", "channels", "decisions", "plans", "moves", "alerts", "problems")}
    return {"n": n, "at": time(), "figures": figures, "cluster": cluster, "policies": None} | empty | told


def past(now: dict[str, Any]) -> dict[str, Any]:
    columns = {name: [] for name in ("at", "cov", "maximum", "mean")}
    return {"position": None, "past": {"kept": 9, "n": now["n"], "brokers": {}, "now": now} | columns}


def behind(seconds: int) -> dict[str, Any]:
    """A sample of a channel that is late since a day of another year."""
    figures = dict.fromkeys(("results_per_s", "matched_per_s", "considered_per_s"), 0.5)
    counts = {"subscriptions": 1, "backends": 1, "executions": seconds, "lag_s": seconds}
    texts = {"mode": "continuous", "state": "running", "strategy": "index"}
    channel = {"name": "Near", "latency_ms": 9.0, "execution_ms": None, "problem": None} | figures | counts | texts
    alert = {"id": "lag Near", "text": f"Near is {seconds} s behind {LONG}", "since": 1e6}
    return sample(seconds, channels=[channel], alerts=[alert], problems=[LONG])


def test_alerts_fit_a_phone_and_are_read_out_once(alone: Opener) -> None:
    it = alone(**PHONE)
    it.answers["/api/history"] = past(behind(31))
    page = it.open("/operator", "read", "topic:system")
    alerts, heard, line = page.locator("#alerts"), page.locator("#heard"), page.locator("#channels tbody tr")
    expect(alerts).to_contain_text("31 s behind")
    expect(alerts).to_contain_text("1970")
    expect(heard).to_contain_text("2 alerts; newest: ")
    check_fits(page)
    check_usable(page, "light", "dark")
    expect(page.locator("#theme")).to_have_accessible_name("Switch to light")
    line.evaluate("(found) => (found.id = 'same')")
    expect(page.locator(".state")).to_have_text("live")
    it.own.tell(behind(32))
    expect(alerts).to_contain_text("32 s behind")
    expect(line).to_contain_text("32.0 s")
    expect(line).to_have_id("same")
    it.own.tell(sample(33))
    expect(alerts).to_have_text("Everything is within its budgets: lag, balance, loss.")
    page.clock.fast_forward(5_000)
    expect(heard).to_have_text("Everything is within its budgets: lag, balance, loss.")


def test_after_a_gap_there_are_no_events_of_before(alone: Opener) -> None:
    it = alone()
    decided = {"at": 86_400.0 + 2e9, "action": "nothing", "reason": "all is even", "is_asked": False}
    it.answers["/api/history"] = past(sample(1, decisions=[decided]))
    page = it.open("/operator", "read", "topic:system")
    expect(page.locator("#events li")).to_contain_text("2033")
    expect(page.locator("#no-events")).to_be_hidden()
    expect(page.locator(".state")).to_have_text("live")
    it.answers["/api/history"] = past(sample(2))
    it.own.miss()
    expect(page.locator("#no-events")).to_be_visible()
    expect(page.locator("#events")).to_be_hidden()


def test_who_may_not_follow_the_city_can_read_that(alone: Opener) -> None:
    it = alone()
    refused = "The token does not allow following the topic 'city'."
    it.answers["/api/city"] = (403, {"detail": refused})
    page = it.open("/city", "read")
    said = page.get_by_text(refused)
    expect(said).to_be_visible()
    said.evaluate("(found) => (found.style.pointerEvents = 'auto')")  # as a click tells what lies on top
    said.click()
    check_usable(page, "light", "dark")
