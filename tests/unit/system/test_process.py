"""Processes that are to end, and somebody who does not wait for it."""

import os
import signal
import sys
import threading
import time

import pytest

from tocsin.cli.signals import ended_by_signals
from tocsin.system.process import Process, kill_all, stop_all

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(120)"


@pytest.fixture
def deaf(tmp_path):
    made = []

    def make():
        log = tmp_path / f"{len(made)}.log"
        made.append(Process("deaf", [sys.executable, "-c", DEAF], "http://127.0.0.1:1", log=log))
        while "deaf" not in log.read_text():
            time.sleep(0.01)
        return made[-1]

    yield make
    for process in made:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_they_stop_in_order_kills_all_of_them(deaf, number):
    processes = [deaf(), deaf(), deaf()]
    with ended_by_signals():
        threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
        stop_all(processes, 60)
    assert [process.code for process in processes] == [-signal.SIGKILL] * 3


def test_no_signal_keeps_anybody_from_being_killed(deaf):
    processes = [deaf(), deaf()]

    def with_signals():
        for process in processes:
            signal.raise_signal(signal.SIGINT)
            yield process

    kill_all(with_signals())
    assert [process.code for process in processes] == [-signal.SIGKILL] * 2
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
