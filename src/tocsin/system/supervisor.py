"""Starts the parts of a system in order, hands on what they say, notices who ends, and stops them in order.

Nothing is started again silently: whoever ends unasked is told to the audience, and comes back only where a
``backoff`` was given. Where the audience has gone, everything stops; until then what the parts say is read, so that
none of them waits for a reader.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

from tocsin.system.backoff import Backoff
from tocsin.system.parts import Part
from tocsin.system.process import PROGRAM, READY_S, STOP_S, Process, kill_all

_LOOK_S = 0.2


class Audience(Protocol):
    def line(self, part: str, text: str) -> None:
        """Something that a part said; comes from a thread of its own."""

    def event(self, part: str, what: str, *, is_bad: bool = False) -> None:
        """Something that happened to a part."""


@dataclass(slots=True)
class _Life:
    process: Process
    began: float
    reader: threading.Thread


class Supervisor:
    def __init__(
        self,
        parts: Sequence[Part],
        audience: Audience,
        *,
        config: Path | None = None,
        backoff: Backoff | None = None,
        program: Sequence[str] = PROGRAM,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._parts, self._audience = {part.name: part for part in parts}, audience
        self._config, self._backoff, self._program, self._environ = config, backoff, program, environ
        self._lives: dict[str, _Life] = {}
        self._due: dict[str, float] = {}  # who is to be started again, and when
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_stopping = False
        self.ended_unasked = 0
        self.unheard: BaseException | None = None  # why the audience hears no more

    def start(self, timeout_s: float = READY_S) -> None:
        """Return when every part is ready; Unavailable, with the others stopped, if one ends or is late."""
        try:
            for _, stage in groupby(self._parts.values(), key=lambda part: part.stage):
                waiting = [self._start(part) for part in stage]
                for process in waiting:
                    self._await(process, timeout_s)
            for life in self._lives.values():
                life.process.check()
        except BaseException:
            self.stop()
            raise

    def watch(self) -> None:
        """Until ``interrupt``, or until nobody is left: tell who ends, and start again whoever is due."""
        while not self._is_stopping and (self._lives or self._due):
            self._bury(time.monotonic())
            self._revive(time.monotonic())
            try:
                self._wake.get(timeout=_LOOK_S)
            except queue.Empty:
                continue

    def interrupt(self) -> None:
        """Have ``start`` and ``watch`` end; may be called from a signal handler."""
        self._is_stopping = True
        self._wake.put(None)

    def stop(self, timeout_s: float = STOP_S) -> None:
        """Those who started last end first; each stage is gone before the next is asked.

        At a Ctrl-C meanwhile, wherever it strikes, everybody who is left is killed.
        """
        self._is_stopping = True
        try:
            self._stop_in_order(timeout_s)
        except KeyboardInterrupt:
            kill_all(life.process for life in self._lives.values())
            while self._lives:
                name, _ = self._lives.popitem()
                self._event(name, "killed", is_bad=True)

    def _stop_in_order(self, timeout_s: float) -> None:
        living = sorted(self._lives, key=lambda name: -self._parts[name].stage)
        for _, stage in groupby(living, key=lambda name: self._parts[name].stage):
            names = list(stage)
            for name in names:
                self._event(name, "stopping")
                self._lives[name].process.ask_to_stop()
            for name in names:
                self._end(name, timeout_s)

    def pid(self, name: str) -> int:
        return self._lives[name].process.pid

    def _start(self, part: Part) -> Process:
        process = Process(part.name, part.command(self._config, self._program), part.url, environ=self._environ)
        reader = threading.Thread(target=self._read, args=(process,), name=f"log-{part.name}", daemon=True)
        self._lives[part.name] = _Life(process, time.monotonic(), reader)
        reader.start()
        self._event(part.name, f"starting, process {process.pid}")
        return process

    def _await(self, process: Process, timeout_s: float) -> None:
        def look(_: float) -> None:
            if self._is_stopping:
                raise KeyboardInterrupt

        process.wait_ready(look, timeout_s, hint="; up.start_timeout allows longer")
        self._event(process.name, f"ready at {process.url}")

    def _read(self, process: Process) -> None:
        for line in process.lines():
            self._hand_on(self._audience.line, process.name, line)
        self._wake.put(None)

    def _event(self, name: str, what: str, *, is_bad: bool = False) -> None:
        self._hand_on(self._audience.event, name, what, is_bad=is_bad)

    def _hand_on(self, tell: Callable[..., None], *what: str, **how: bool) -> None:
        """Rich makes an exit of a broken pipe."""
        if self.unheard is None:
            try:
                tell(*what, **how)
            except (Exception, SystemExit) as problem:
                self.unheard = problem
                self.interrupt()

    def _bury(self, now: float) -> None:
        for name, life in list(self._lives.items()):
            code = life.process.code
            if code is None:
                continue
            del self._lives[name]
            self.ended_unasked += 1
            pause_s = self._backoff.pause_s(name, now - life.began) if self._backoff else None
            again = f"; starting it again in {pause_s:.0f} s" if pause_s is not None else "; the others go on"
            self._event(name, f"ended unexpectedly with code {code}{again}", is_bad=True)
            if pause_s is not None:
                self._due[name] = now + pause_s

    def _revive(self, now: float) -> None:
        for name in [name for name, at in self._due.items() if at <= now]:
            del self._due[name]
            self._start(self._parts[name])

    def _end(self, name: str, timeout_s: float) -> None:
        life = self._lives[name]
        code = life.process.stop(timeout_s)
        life.reader.join(1.0)
        del self._lives[name]
        self._event(name, f"stopped with code {code}", is_bad=code != 0)
