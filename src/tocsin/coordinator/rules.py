"""The numbers by which the coordinator decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """As the settings of ``[coordinator]`` explain them; times in seconds."""

    silent_after_s: float = 2.5
    refused_after_s: float = 3.0
    dead_after_s: float = 10.0
    longest_tick_s: float = 1.0  # of a longer one, only so much counts as silence
    adopt_timeout_s: float = 10.0
    move_timeout_s: float = 30.0
    follow_timeout_s: float = 5.0
    retry_s: float = 2.0
    moves_in_flight: int = 64
    moves_per_s: float = 100.0
    drain_moves_per_s: float = 1000.0
    kept_moves: int = 10_000
    kept_plans: int = 1_000
    offline_ttl_s: float = 7 * 86400.0
    forget_broker_s: float = 86400.0
    detach_after_s: float = 30.0
    late_words_s: float = 10.0
    max_users: int = 1_000_000
    max_subscriptions: int = 1_000
