"""What section 6.1.3 says of the prototype, held against the living system; and what a migration costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tocsin.lab.claims import LIVE, Claim
from tocsin.lab.debs19 import prototype_claims
from tocsin.lab.debs19.schemes import Runs
from tocsin.live.cost import Cost
from tocsin.live.experiment import Experiment
from tocsin.live.notes import Notes

NOTABLE = 1.1
TIMING = "The maximum depends on when the first moves come, while the load still grows."
CAUSES = {  # why what the paper says was not found, by claim
    "Balancing lowers cov and maximum load under round robin placement (RR)": (
        "Round robin is within α by itself, so there is next to nothing to lower."
    ),
    "SDM and LDM perform alike": TIMING,
    "In the prototype GSH brings little beyond migration alone": TIMING,
    "Migrating a subscriber is lightweight": (
        "Nobody waits: the old broker serves until the new one does. The time is the data cluster's, which has to know "
        "that the new broker holds what the subscriber brings, while seven channels, all brokers and all subscribers "
        "share two cores. With two channels and twenty subscribers (tests/integration/test_debs19_live.py) the median "
        "was 52 ms."
    ),
}
LIGHT_MS, LIGHT_BYTES = 1_000, 16_000  # ours: a second, and what a few dozen notifications take


def claims(runs: Runs, measured: Mapping[str, Sequence[Notes]], experiment: Experiment) -> list[Claim]:
    """Those that these runs can say something of."""
    everything = [notes for seeds in measured.values() for notes in seeds]
    how, cost = _how(everything, experiment), Cost.of(everything)
    found = prototype_claims.claims(runs)
    found += [_whole(everything), _light(cost)] if cost else []
    return [_live(claim, how) for claim in found]


def _live(claim: Claim, how: str) -> Claim:
    cause = "" if claim.agrees else CAUSES.get(claim.claim, "")
    note = " ".join(filter(None, (claim.note, cause, how)))
    return replace(claim, section=claim.section + LIVE, note=note)


def _how(runs: Sequence[Notes], experiment: Experiment) -> str:
    """What has to be known of all of them."""
    stretched = 1 + sum(notes.held_s for notes in runs) / (len(runs) * experiment.run_s)
    busy = (
        f" On a machine that was too slow for it, and so {stretched:.1f} times longer." if stretched > NOTABLE else ""
    )
    times = max(Counter(notes.label for notes in runs).values())
    return f"{experiment.told()}. Each was run {'once' if times == 1 else f'{times} times'}.{busy}"


def _light(cost: Cost) -> Claim:
    measured = (
        f"{cost.moves:,} migrations: from the broker's word to the new broker's {cost.ms[0]:.0f} ms in the median, "
        f"{cost.ms[1]:.0f} ms at the 95th percentile; {cost.bytes[0] / 1000:.1f} and {cost.bytes[1] / 1000:.1f} KB"
    )
    agrees = cost.ms[0] <= LIGHT_MS and cost.bytes[0] <= LIGHT_BYTES
    return Claim(
        *("debs19", "2", "Migrating a subscriber is lightweight", "minimal state migration", measured, agrees),
        f"The paper states no number; ours is a second and {LIGHT_BYTES / 1000:g} KB. Bytes are those of all messages: "
        "move, opening, login with positions, welcome, confirmation, and what coordinator and brokers tell each other. "
        f"From the plan to its end, with waiting for a turn: {cost.whole_ms[0]:.0f} and {cost.whole_ms[1]:.0f} ms.",
    )


def _whole(runs: Sequence[Notes]) -> Claim:
    """The paper takes it for granted."""
    lost = sum(notes.holes + notes.gaps for notes in runs)
    moves = sum(len(notes.done) for notes in runs)
    breaks, problems = sum(notes.breaks for notes in runs), [p for notes in runs for p in notes.problems]
    told = (
        f" {breaks} connections broke and {len(problems)} requests failed, such as: {problems[0]}." if problems else ""
    )
    return Claim(
        *("debs19", "3.2", "Subscribers are moved while they are served"),
        "taken for granted",
        f"{moves:,} migrations, {sum(notes.notifications for notes in runs):,} notifications, {lost} holes in what "
        "somebody got",
        lost == 0,
        told.strip(),
    )
