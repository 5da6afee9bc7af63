"""One program in a process of its own, with everything that it starts.

It runs in a session of its own: Ctrl-C is for whoever started it, and what the program started (a JVM, Python
workers) is found by that session, even where it made groups for itself or lost its parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import httpx

from tocsin.errors import Unavailable

PROGRAM = (sys.executable, "-m", "tocsin.cli.main")
READY_S = 180.0
STOP_S = 30.0
_POLL_S = 0.1
_SHOWN_LINES = 12
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Process:
    """One life of a program; make another for the next. Without a ``log`` file its ``lines`` are to be read."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        url: str,
        *,
        log: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.url, self.log_path = name, url, log
        self._is_asked = False
        with log.open("ab") if log else contextlib.nullcontext(subprocess.PIPE) as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environ,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """With what it ended; None while it runs."""
        return self._process.poll()

    def lines(self) -> Iterator[str]:
        """What it says, until it and all that it started have ended."""
        output: IO[bytes] | None = self._process.stdout
        if output is not None:
            for line in output:
                yield line.decode(errors="replace").rstrip("\n")

    def wait_ready(
        self, on_wait: Callable[[float], None] = lambda waited: None, timeout_s: float = READY_S, hint: str = ""
    ) -> None:
        """Return when it takes requests; ``on_wait`` hears how many seconds it has been."""
        began = time.monotonic()
        while not is_ready(self.url):
            waited = time.monotonic() - began
            if self.code is not None:
                raise Unavailable(
                    f"the {self.name} ended with code {self.code} before it was ready{self._last_words()}"
                )
            if waited > timeout_s:
                raise Unavailable(f"the {self.name} was not ready after {timeout_s:.0f} s{hint}{self._last_words()}")
            on_wait(waited)
            time.sleep(_POLL_S)
        self.check()  # it may be a stranger who answers there

    def check(self) -> None:
        """Raise if it is gone."""
        if self.code is not None:
            raise Unavailable(f"the {self.name} ended with code {self.code}{self._last_words()}")

    def ask_to_stop(self) -> None:
        """Once: a second signal would hurry it, or end it where it no longer listens."""
        if self.code is None and not self._is_asked:
            self._is_asked = True
            self._process.send_signal(signal.SIGTERM)

    def stop(self, timeout_s: float = STOP_S) -> int:
        """Ask it to end, and give its code; one that does not in time is killed."""
        self.ask_to_stop()
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def kill(self) -> None:
        """``kill -9`` for the program and all that it started; returns when they are gone."""
        self._process.kill()
        while members := self.members():
            for pid in members:
                _kill(pid)
            self._process.poll()
            time.sleep(0.01)
        self._process.wait()

    def members(self) -> list[int]:
        """Every living process of its session."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == self.pid]

    def _last_words(self) -> str:
        if self.log_path is None:
            return ""
        lines = self.log_path.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
        return f"; the end of {self.log_path}:\n" + "\n".join(lines) if lines else f"; {self.log_path} is empty"


def stop_all(processes: Iterable[Process], timeout_s: float = STOP_S) -> None:
    """One after the other; at a Ctrl-C, or another signal that would end us, all are killed."""
    waiting = list(processes)
    try:
        for process in waiting:
            process.stop(timeout_s)
    except (KeyboardInterrupt, SystemExit):
        kill_all(waiting)


def kill_all(processes: Iterable[Process]) -> None:
    """Whatever signal comes meanwhile: it must not leave some of them running."""
    with _deaf():
        for process in processes:
            process.kill()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Without the signals that would end us; only the main thread hears any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_ready(url: str) -> bool:
    """Asked often, of programs of ours, with no secret: so no certificates are loaded, which costs 30 ms each time."""
    try:
        return httpx.get(f"{url}/readyz", timeout=2.0, trust_env=False, verify=False).status_code == 200
    except httpx.HTTPError:
        return False


def without_settings(outer: Mapping[str, str]) -> dict[str, str]:
    """An environment in which no setting of the surroundings reaches the program."""
    return {name: value for name, value in outer.items() if not name.startswith("TOCSIN_")}


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _session(pid: int) -> int | None:
    """The session of a process that lives, as it stands after the name in ``/proc/<pid>/stat``."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[3]) if fields[0] not in "ZX" else None
