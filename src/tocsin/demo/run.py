"""One run: set up, feed, wait until the channels have seen everything, compare; then go on, where that is wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tocsin.demo.audience import NAME, Audience
from tocsin.demo.counters import Counted, read_counters
from tocsin.demo.crowd import PATIENCE_S, Crowd
from tocsin.demo.expected import foretell
from tocsin.demo.feeder import Ahead, Feeder, Show
from tocsin.demo.heard import Compared, Connected, compare
from tocsin.demo.link import Link
from tocsin.demo.plan import Plan
from tocsin.demo.puller import Puller
from tocsin.demo.receiver import NoticeReceiver
from tocsin.demo.summary import FEEDING, Summary, channel_line
from tocsin.demo.tally import quantiles_ms, waits_s
from tocsin.demo.verdict import problems_of
from tocsin.demo.work import Work
from tocsin.errors import TocsinError, Unavailable
from tocsin.units import counted

Watch = Callable[[Summary], None]
WatchLife = Callable[[int, float], None]  # how many reports there were, how far the channels are behind

CATCH_UP_S = 120.0
SETTLE_S = 60.0  # for a notice that was not taken at first and comes again
ECHO_S = 1.0  # in which a double would still come
RECENT_ROWS = 2_000  # whose latency is shown while it runs
LOOK_S = 0.5
_NOTHING = Compared()


class DemoRun:
    """``watch`` is called twice a second with how things stand; what it raises ends the run."""

    def __init__(
        self,
        link: Link,
        plan: Plan,
        ahead: Ahead,
        receiver: NoticeReceiver,
        crowd: Crowd,
        show: Show = lambda t, records: None,
    ) -> None:
        self._link, self._plan, self._receiver, self._crowd = link, plan, receiver, crowd
        self._audience = Audience(link, plan.channels, arrive=crowd.arrive)
        self._puller = Puller(link, self._audience)
        self._feeder = Feeder(link, ahead, self._audience, plan.seconds, lambda: self._lag_s, show)
        self._lag_s = 0.0

    def set_up(self, log: Path, told: Callable[[str], None] = lambda step: None) -> None:
        """Datasets, channels, the broker and the subscriptions of those who are there.

        ``told`` hears of each step; a problem names it, and the cluster's ``log``.
        """
        present = self._plan.present
        broker = f"CREATE BROKER {NAME} AT '{self._receiver.url}'"
        statements = ";\n".join([*self._plan.scenario.statements(), broker])
        steps: dict[str, Callable[[], object]] = {
            "Creating datasets and channels": lambda: self._link.run(statements),
            f"Making {counted(len(present), 'subscription')}": lambda: self._audience.subscribe(present),
            "Logging people in": lambda: self._crowd.arrive(present, PATIENCE_S),
        }
        for step, take in steps.items():
            told(step)
            try:
                take()
            except TocsinError as problem:
                raise Unavailable(f"{step}: {problem}; the cluster's log is {log}") from None

    def play(self, watch: Watch) -> Summary:
        """Feed, pull and compare; the summary has a problem for everything that was not as it should be."""
        pulling, feeding = Work("puller", self._puller.run), Work("feeder", self._feeder.run)
        pulling.start()
        try:
            self._feeder.warm_up()
            self._catch_up("Warming up", pulling, watch)
            feeding.start()
            self._watch(FEEDING, lambda: feeding.is_done, pulling, watch)
            self._catch_up("Catching up", pulling, watch)
        finally:
            feeding.stop()
            pulling.stop()
        return self.judge()

    def live(self, watch: WatchLife) -> None:
        """Go on after ``play``, until ``watch`` raises or the events end.

        Nothing is counted or compared any more: it may go on for days, and what grows with every notification would
        grow without end.
        """
        for counting in (self._puller, self._receiver, self._crowd):
            counting.end_counting()
        pulling, feeding = Work("puller", self._puller.run), Work("feeder", self._feeder.live)

        def look() -> None:
            self._lag_s = self._lag(self._link.get("/channels")["channels"])
            watch(self._feeder.sent["Reports"], self._lag_s)

        pulling.start()
        feeding.start()
        try:
            self._until(lambda: feeding.is_done, pulling, look)
        finally:
            feeding.stop()
            pulling.stop()

    def _watch(self, phase: str, is_over: Callable[[], bool], pulling: Work, watch: Watch) -> None:
        self._until(is_over, pulling, lambda: watch(self._look(phase)))

    def _until(self, is_over: Callable[[], bool], pulling: Work, look: Callable[[], None]) -> None:
        pause = threading.Event()
        while not is_over():
            if pulling.is_done:
                raise Unavailable("the broker of the demonstration stopped pulling")
            self._crowd.check()
            look()
            pause.wait(LOOK_S)

    def _lag(self, views: Iterable[Mapping[str, Any]]) -> float:
        """How far the slowest of the demonstration's channels is behind; there may be others."""
        return float(max(view["lag_s"] for view in views if view["name"] in self._plan.channels))

    def _catch_up(self, phase: str, pulling: Work, watch: Watch) -> None:
        deadline = time.monotonic() + CATCH_UP_S

        def is_over() -> bool:
            return self._has_seen_all() or time.monotonic() > deadline

        self._watch(phase, is_over, pulling, watch)

    def _has_seen_all(self) -> bool:
        return all(self._seen(channel) >= self._feeder.last_seq for channel in self._plan.channels)

    def _seen(self, channel: str) -> int:
        """Up to which of the reports the channel has executed."""
        return int(self._link.get(f"/channels/{channel}/explain")["explanation"]["seen"]["reports"])

    def _look(
        self,
        phase: str,
        problems: tuple[str, ...] = (),
        last: int | None = RECENT_ROWS,
        compared: Compared = _NOTHING,
    ) -> Summary:
        counted = read_counters(self._link)
        views = {view["name"]: view for view in self._link.get("/channels")["channels"]}
        self._lag_s = self._lag(views.values())
        feeder, tallies = self._feeder, self._puller.tallies
        lines = [
            channel_line(
                views[name] | self._audience.backends[name].counts,
                tallies[name],
                counted.get(name, Counted()),
                feeder.accepted_at,
                last,
            )
            for name in self._plan.channels
        ]
        return Summary(
            phase=phase,
            seconds=round(feeder.pace.run_s, 1),
            records=dict(feeder.sent),
            channels=lines,
            notices=self._receiver.notices,
            warm_up_reports=feeder.warm_up_reports,
            held_s=round(feeder.pace.held_s, 1),
            is_cut=feeder.is_cut,
            late_subscriptions=self._audience.late,
            other_subscriptions=sum(views[line.channel]["subscriptions"] - line.subscriptions for line in lines),
            problems=problems,
            connected=self._connected(last, compared),
        )

    def _connected(self, last: int | None, compared: Compared) -> Connected:
        crowd = self._crowd
        arrivals = crowd.arrivals[-last:] if last else crowd.arrivals.copy()
        p50, p99 = quantiles_ms(waits_s(arrivals, self._feeder.accepted_at)) or (None, None)
        return Connected(
            people=crowd.people,
            of_people=self._plan.people,
            brokers=len(crowd.brokers),
            subscriptions=len(crowd.heard),
            notifications=crowd.notifications,
            missing=compared.missing,
            doubled=compared.doubled,
            out_of_order=compared.out_of_order,
            p50_ms=p50,
            p99_ms=p99,
        )

    def judge(self) -> Summary:
        """Commits and their counters, notices and their delivery are a moment apart: look again before judging."""
        deadline = time.monotonic() + SETTLE_S
        while self._judged()[0] and time.monotonic() <= deadline:
            time.sleep(LOOK_S)
        time.sleep(ECHO_S)
        problems, compared = self._judged()
        return self._look("Done", problems, last=None, compared=compared)

    def _judged(self) -> tuple[tuple[str, ...], Compared]:
        self._puller.drain()
        compared = compare(self._crowd.heard, self._puller.tallies)
        return (*self._problems(read_counters(self._link)), *compared.problems), compared

    def _problems(self, counted: Mapping[str, Counted]) -> list[str]:
        late = [name for name in self._plan.channels if self._seen(name) < self._feeder.last_seq]
        problems = [f"{name}: had not seen all reports {CATCH_UP_S:.0f} s after the last" for name in late]
        for name in self._plan.channels:
            backends = self._audience.backends[name]
            foretold = foretell(self._feeder.reports, backends.arguments, backends.since)
            told = self._receiver.told_of(name)
            problems += problems_of(name, self._puller.tallies[name], counted.get(name, Counted()), foretold, told)
        return problems
