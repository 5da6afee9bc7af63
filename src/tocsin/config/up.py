"""Settings of ``tocsin up``."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.settings.declare import Seconds, duration


@dataclass(frozen=True, slots=True)
class Up:
    start_timeout: Seconds = duration(
        "5m", "How long each process may take until it answers; on a busy machine Spark takes its time.", low="1s"
    )
    stop_timeout: Seconds = duration("30s", "How long each process may take to end before it is killed.", low="1s")
