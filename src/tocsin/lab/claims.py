"""What a paper says beside what was measured: one form for all papers.

``report.json`` is a list of claims, ``report.md`` the same for people. A claim that is not reproduced stands there
with its reason. Papers are reproduced one at a time, so a new report keeps what the old one has of the others. So are
simulation and living system: what was measured live says so at the end of its section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from tocsin.errors import ConfigError

LIVE = ", live"
PAPERS = {
    "debs19": "Multistage adaptive load balancing (DEBS 2019)",
    "peer": "PEER",
    "epeer": "ePEER",
    "dynamoth": "Dynamoth",
}
WORDS = {  # of a paper, for who has not read it
    "debs19": (
        "Placement of newcomers: RND (random), RR (round robin), NR (nearest), LL (least loaded). Balancing: No LB "
        "(none), LDM (load-based migration), SDM (similarity-based migration), GSH (greedy shuffle: everybody anew). "
        "cov is the deviation of the brokers' loads by their mean. Subscribers are migrated where cov is above α "
        "and the mean load above β, shuffled where they are above γ and θ. Numbers are means over the seeds."
    ),
}


@dataclass(frozen=True, slots=True)
class Claim:
    """``published`` is what the paper says or shows, ``measured`` what came out here, ``note`` why they differ."""

    paper: str
    section: str
    claim: str
    published: str
    measured: str
    agrees: bool
    note: str = ""

    @property
    def is_live(self) -> bool:
        return self.section.endswith(LIVE)


def merged(old: Sequence[Claim], new: Sequence[Claim]) -> list[Claim]:
    """New claims in place of old ones of the same words, the rest as it was; papers in their order."""
    fresh = {(claim.paper, claim.section, claim.claim): claim for claim in new}
    kept = [fresh.pop((claim.paper, claim.section, claim.claim), claim) for claim in old]
    return sorted([*kept, *fresh.values()], key=lambda claim: list(PAPERS).index(claim.paper))


def read(path: Path) -> list[Claim]:
    """Those of a report; none where there is no file."""
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Claim])
    except msgspec.DecodeError as problem:
        raise ConfigError(f"{path}: expected a list of claims, {problem}") from None


def write(directory: Path, claims: Sequence[Claim], *, whole: str | None = None, live: bool = False) -> list[Claim]:
    """Renew both reports in ``directory``. ``whole`` names a paper of which these are all the claims: all that were
    measured live, or all the others."""
    before = read(directory / "report.json")
    old = [claim for claim in before if claim.paper != whole or claim.is_live is not live]
    everything = merged(old, claims)
    directory.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.encode([asdict(claim) for claim in everything])
    (directory / "report.json").write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
    (directory / "report.md").write_text(markdown(everything))
    return everything


def markdown(claims: Sequence[Claim]) -> str:
    """A table for each paper."""
    written = "Written by `make papers` and, where a section says so, `make papers-live`."
    parts = [f"# What the papers claim, and what was measured\n\n{written}\n"]
    for paper, title in PAPERS.items():
        rows = [claim for claim in claims if claim.paper == paper]
        if rows:
            agreed = sum(claim.agrees for claim in rows)
            head = "| section | claim | published | measured | agrees | note |\n|---|---|---|---|---|---|\n"
            words = f"{WORDS[paper]}\n\n" if paper in WORDS else ""
            count = f"{agreed} of {len(rows)} agree."
            parts.append(f"\n## {title}\n\n{words}{count}\n\n{head}{''.join(map(_row, rows))}")
    return "".join(parts)


def _row(claim: Claim) -> str:
    cells = (
        claim.section,
        claim.claim,
        claim.published,
        claim.measured,
        "yes" if claim.agrees else "**no**",
        claim.note,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
