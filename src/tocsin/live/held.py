"""What section 6.1.3 says of the prototype, held against the living system; and what a migration costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tocsin.lab.claims import LIVE, Claim
from tocsin.lab.debs19 import prototype_claims
from tocsin.lab.debs19.schemes import Runs
from tocsin.live.cost import Cost
from tocsin.live.experiment import Experiment
from tocsin.live.notes import Notes

LIGHT_MS, LIGHT_BYTES = 1_000, 16_000  # ours: a second, and what a few dozen notifications take


def claims(runs: Runs, measured: Mapping[str, Sequence[Notes]], experiment: Experiment) -> list[Claim]:
    everything = [notes for seeds in measured.values() for notes in seeds]
    found = [_live(claim, experiment) for claim in prototype_claims.claims(runs)]
    return [*found, _whole(everything), _light(Cost.of(everything))]


def _live(claim: Claim, experiment: Experiment) -> Claim:
    """The claim with what has to be known of its measurement."""
    note = f"{claim.note} {_CAUSES.get(claim.claim, '') if not claim.agrees else ''}".strip()
    return replace(claim, section=claim.section + LIVE, note=f"{note} Measured {experiment.told()}.".strip())


_CAUSES: dict[str, str] = {}


def _light(cost: Cost | None) -> Claim:
    measured, agrees = "nobody was migrated", False
    if cost is not None:
        measured = (
            f"{cost.moves:,} migrations: from the broker's word to the new broker's {cost.ms[0]:.0f} ms in the median, "
            f"{cost.ms[1]:.0f} ms at the 95th percentile; {cost.bytes[0] / 1000:.1f} and {cost.bytes[1] / 1000:.1f} KB"
        )
        agrees = cost.ms[0] <= LIGHT_MS and cost.bytes[0] <= LIGHT_BYTES
    waits = "" if cost is None else (
        f" From the plan to its end, with waiting for its turn in a plan: {cost.whole_ms[0]:.0f} and "
        f"{cost.whole_ms[1]:.0f} ms."
    )  # fmt: skip
    return Claim(
        *("debs19", "2" + LIVE, "Migrating a subscriber is lightweight", "minimal state migration", measured, agrees),
        f"The paper states no number; ours is a second and {LIGHT_BYTES / 1000:g} KB. Bytes are those of all messages: "
        "move, opening, login with positions, welcome, confirmation, and what coordinator and brokers tell each other."
        + waits,
    )


def _whole(runs: Sequence[Notes]) -> Claim:
    """The paper takes it for granted."""
    lost = sum(notes.holes + notes.gaps for notes in runs)
    moves = sum(len(notes.done) for notes in runs)
    return Claim(
        *("debs19", "3.2" + LIVE, "Subscribers are moved while they are served"),
        "taken for granted",
        f"{moves:,} migrations, {sum(notes.notifications for notes in runs):,} notifications, {lost} holes in what "
        "somebody got",
        lost == 0,
    )
