"""XBAL: an incremental rebalancer that reaches a shuffle's balance with a fraction of its moves. Ours, not the paper's.

Where LDM sends the heaviest subscriber to the least loaded broker, this takes the one whose weight is nearest to what
would make both equal: of ``reach`` members on either side of that weight, and of the ``lightest`` targets, the best by

    gain = sum over the two brokers of c (level / highest level) ^ power, before minus after

with exact loads, sharing included. The power trades balance against total load: 2 stalls when every move duplicates
what brokers fetch, 64 is LDM again, 16 was best on the workloads of the benchmark. If no move gains, two subscribers
swap. Nothing may reach the source's level, so the maximum never rises, and the sum falls by ``least_gain`` with every
step, so that it ends and cannot oscillate. While the gap is more than ``bulk`` heaviest subscribers wide, a fourth of
the candidates will do.

``least_gain`` unset is 1e-6, and 1e-3 from a hundred brokers on, where swaps for less take minutes; from 10,000
subscribers on it falls with their number, as what one of them can gain does.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tocsin.policies.checks import above, at_least, between
from tocsin.policies.multistage import repairing
from tocsin.policies.multistage.board import Board, trivial
from tocsin.policies.multistage.load import weights
from tocsin.policies.multistage.plan import Plan, Reason, Status, nothing
from tocsin.policies.multistage.snapshot import Snapshot

MANY_BROKERS = 100
MANY_SUBSCRIBERS = 10_000
MOST_POWER, MOST_CANDIDATES = 1_000, 100_000


@dataclass(frozen=True, slots=True)
class Xbal:
    """``stop_cov`` is where it stops; the framework's threshold, where it starts, is higher."""

    stop_cov: float = 0.005
    power: int = 16
    reach: int = 16
    lightest: int = 10
    bulk: float = 20.0
    least_gain: float | None = None

    def __post_init__(self) -> None:
        at_least("stop_cov", self.stop_cov, 0)
        between("power", self.power, 2, MOST_POWER)
        for name in ("reach", "lightest"):
            between(name, getattr(self, name), 1, MOST_CANDIDATES)
        above("bulk", self.bulk, 0)
        above("least_gain", 1 if self.least_gain is None else self.least_gain, 0)

    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        sent = weights(snapshot)
        if reason := trivial(snapshot, sent):
            return nothing("xbal", snapshot, reason)
        board = Board(snapshot, sent)
        return board.plan("xbal", self.repair(board))

    def repair(self, board: Board) -> tuple[Status, Reason]:
        """Go on with what another policy began."""
        s = board.snapshot
        least = self.least_gain or (1e-3 if s.m >= MANY_BROKERS else 1e-6) * min(1.0, MANY_SUBSCRIBERS / s.n)
        return board.run(
            repairing.repair,
            *(self.stop_cov, self.power, self.reach, self.lightest, self.bulk),
            least * float(s.capacities.mean()),
        )
