"""Load-based dynamic migration (LDM): Algorithm 1 and section 5.2 of the multistage paper.

While cov is above ``stop_cov``, the heaviest subscriber of the most loaded broker that may go to the least loaded one
goes there. Where this departs from what is printed, which need not end:

- A move is valid if the target's load after it is *below* the source's load before it. The print has "not above", and
  lets mirror images alternate for ever; the prose says that the load after the move is meant.
- Without a valid move the print makes the last one all the same and repeats it for ever. Here the next heaviest broker
  above the mean is tried, and when none is left the plan is ``stalled``.
- Subscribers without load stay; a source is never its own target.
- Loads follow every move exactly, with sharing; a subscriber is ranked by what it is sent, as printed.
- The plan has net moves; the print overwrites a broker's earlier ones.
- Brokers are compared by load over capacity. Equal brokers make that the paper's rule.

Ties go to the first number, of sources to the last. Near balance it overshoots and stalls at a cov of about 2e-4;
``xbal`` does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tocsin.policies.checks import at_least
from tocsin.policies.multistage import descending
from tocsin.policies.multistage.board import Board, trivial
from tocsin.policies.multistage.load import weights
from tocsin.policies.multistage.plan import Plan, nothing
from tocsin.policies.multistage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Ldm:
    """``stop_cov`` is α of the paper, as the loop's end."""

    stop_cov: float = 0.15

    def __post_init__(self) -> None:
        at_least("stop_cov", self.stop_cov, 0)

    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        sent = weights(snapshot)
        if reason := trivial(snapshot, sent):
            return nothing("ldm", snapshot, reason)
        board = Board(snapshot, sent)
        return board.plan("ldm", board.run(descending.descend, self.stop_cov, 1.0, descending.LDM))
