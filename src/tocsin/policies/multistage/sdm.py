"""Similarity-based dynamic migration (SDM): Algorithm 1 and section 5.2 of the multistage paper.

As LDM, with another target: the broker that shares most with the subscriber, by the rates of what both have, among
those with a load below a threshold, "maybe the average load of all brokers": ``accept_below`` times the mean.

The departures of ``ldm`` hold here too, and one more: the print takes the most similar broker and gives the subscriber
up if that move is not valid, which ends with a higher maximum than LDM's; here it is the most similar of the *valid*
targets, the least loaded of those that tie. With no broker below the threshold the next source is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tocsin.policies.checks import above, at_least
from tocsin.policies.multistage import descending
from tocsin.policies.multistage.board import Board, trivial
from tocsin.policies.multistage.load import weights
from tocsin.policies.multistage.plan import Plan, nothing
from tocsin.policies.multistage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Sdm:
    stop_cov: float = 0.15
    accept_below: float = 1.0

    def __post_init__(self) -> None:
        at_least("stop_cov", self.stop_cov, 0)
        above("accept_below", self.accept_below, 0)

    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        sent = weights(snapshot)
        if reason := trivial(snapshot, sent):
            return nothing("sdm", snapshot, reason)
        board = Board(snapshot, sent)
        ended = board.run(descending.descend, self.stop_cov, self.accept_below, descending.SDM)
        return board.plan("sdm", ended)
