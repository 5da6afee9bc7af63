"""Shows the city of the demonstration on the dashboard's map, as far as that keeps up: it never holds up the feed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx

from tocsin.dashboard import city
from tocsin.dashboard.asking import AsOneself
from tocsin.dashboard.city import Scene
from tocsin.demo.work import Work
from tocsin.scenarios.city import Scenario

TIMEOUT_S = 5.0
_WAITING = 4  # messages; further ones are not shown
_JSON = {"Content-Type": "application/json"}


class Onlooker:
    """``show`` may be called from any thread and returns at once; ``tell`` hears, once, that something was refused."""

    def __init__(self, url: str, secret: bytes, scenario: Scenario, tell: Callable[[str], None]) -> None:
        auth = AsOneself(secret, "demo", ["read", f"publish:{city.TOPIC}"])
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_S, auth=auth, trust_env=False)
        self._tell, self._has_told = tell, False
        self._scenario = scenario
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue(_WAITING)
        self._work = Work("onlooker", self._run)

    def start(self) -> None:
        self._work.start()

    def stop(self) -> None:
        self._work.stop()
        self._client.close()

    def show(self, t: float, records: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """What is sent to the datasets at ``t``; the last place of everybody counts."""
        scenario = self._scenario
        if places := records.get("UserLocations", ())[-scenario.people :]:
            x, y = [one["x"] for one in places], [one["y"] for one in places]
            self._put(city.people(t, x, y, scenario.size_m))
        if reports := records.get("Reports"):
            self._put(city.reports(t, reports))

    def past(self) -> dict[str, Any] | None:
        """What the dashboard has seen of the run, if it answers."""
        try:
            found = self._client.get("/api/history").raise_for_status().json()
        except httpx.HTTPError:
            return None
        past: dict[str, Any] = found["past"]
        return past

    def _put(self, message: dict[str, Any]) -> None:
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            return

    def _run(self, stopping: threading.Event) -> None:
        scenario = self._scenario
        scene = Scene(scenario.seed, scenario.size_m, scenario.districts, scenario.shelters, scenario.people)
        self._ask("PUT", "/api/city", scene)
        while not stopping.is_set():
            try:
                message = self._waiting.get(timeout=0.2)
            except queue.Empty:
                continue
            self._ask("POST", f"/topics/{city.TOPIC}/messages", message)

    def _ask(self, method: str, path: str, message: Scene | dict[str, Any]) -> None:
        """A dashboard that is slow or gone, or refuses, is no reason to end the demonstration."""
        try:
            answer = self._client.request(method, path, content=city.encoded(message), headers=_JSON)
        except httpx.HTTPError:
            return
        if answer.is_error and not self._has_told:
            self._has_told = True
            self._tell(f"The dashboard's map does not show all of the city ({answer.status_code}: {_why(answer)})")


def _why(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]
