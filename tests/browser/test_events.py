"""A page at the wrong broker: its browser follows the redirect, and says no more where the page is from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

Opener = Callable[..., Any]

FIRST_EVENTS = """
async ({ address, last }) => {
    const source = new EventSource(address);
    const seen = [];
    try {
        return await new Promise((resolve, reject) => {
            source.onerror = () => reject(new Error("the stream was refused"));
            source.addEventListener("welcome", ({ data }) => seen.push(JSON.parse(data).broker));
            source.addEventListener("notification", ({ data }) => {
                seen.push(JSON.parse(data).payload);
                if (seen.at(-1) === last) resolve(seen);
            });
        });
    } finally {
        source.close();
    }
}
"""


def publish(system: Any, broker: str, payload: str) -> None:
    system.ask(broker, "POST", "/topics/pages/messages", payload)


def test_a_page_is_redirected_to_its_broker_and_goes_on_behind_what_it_was_sent(visit: Opener, system: Any) -> None:
    placed = system.ask("coordinator", "POST", "/users/paula/placement", {})["url"]
    brokers = {name: url for name, url in system.where.items() if name.startswith("broker")}
    (home,) = [name for name, url in brokers.items() if url == placed]
    (other,) = brokers.keys() - {home}
    query = urlencode({"token": system.token("paula"), "subscribe": json.dumps({"kind": "topic", "name": "pages"})})
    page = visit("/lab").page

    def open_stream(last: str) -> Any:
        return page.evaluate(FIRST_EVENTS, {"address": f"{system.where[other]}/events?{query}", "last": last})

    first = json.dumps({"address": f"{placed}/events?{query}", "last": "0"})
    page.evaluate(f"void (window.opened = ({FIRST_EVENTS})({first}))")
    while not system.ask("coordinator", "GET", "/users/paula")["subscriptions"]:
        page.wait_for_timeout(50)
    publish(system, home, "0")
    assert page.evaluate("window.opened") == [home, "0"]
    publish(system, home, "1")
    assert open_stream("1") == [home, "1"]
    publish(system, other, "2")
    assert open_stream("2") == [home, "2"]
