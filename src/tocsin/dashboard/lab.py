"""The lab page: the papers' report and figures, and one study at a time, bounded, in a process of its own."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tocsin.config import Dashboard
from tocsin.errors import BadArgument, LimitExceeded, NotFound, TocsinError, Unavailable
from tocsin.lab import claims
from tocsin.lab.debs19.prototype import SPOTS
from tocsin.policies.registry import BALANCING, PLACEMENT

PROGRAM = (sys.executable, "-m", "tocsin.dashboard.studying")
_NAME = re.compile(r"[a-z0-9]{1,40}")
_FIGURE = re.compile(r"[a-z0-9_-]{1,60}\.png")
_RETRY_S = 5.0


class SchemeAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Policies by name; neither ``migrate`` nor ``shuffle`` moves nobody."""

    placement: str = "nearest"
    migrate: str | None = None
    shuffle: str | None = None

    @property
    def name(self) -> str:
        balancing = " + ".join(name for name in (self.migrate, self.shuffle) if name)
        return f"{self.placement}, {balancing or 'no balancing'}"


class StudyAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``alpha`` is the cov beyond which users are moved; ``moves_per_s`` left out, migrations take no time.

    The world ``prototype``, the emergency city, has its five brokers and no other number.
    """

    schemes: Annotated[list[SchemeAsked], msgspec.Meta(min_length=1, max_length=4)]
    world: Literal["simulation", "prototype"] = "simulation"
    subscribers: Annotated[int, msgspec.Meta(ge=10)] = 2_000
    brokers: Annotated[int, msgspec.Meta(ge=2, le=50)] = 5
    duration_s: Annotated[int, msgspec.Meta(ge=60)] = 1_800
    alpha: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.1
    moves_per_s: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = 20
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0


class SchemeShown(msgspec.Struct, frozen=True):
    """Columns over ``minutes``; loads in bytes a second, ``cov`` over time, and what it came to."""

    name: str
    minutes: list[float]
    cov: list[float]
    loads: list[list[float]]
    migrations: int
    plans: int
    mean_cov: float
    peak: float


class StudyShown(msgspec.Struct, frozen=True):
    schemes: list[SchemeShown]
    seconds: float


class Lab:
    def __init__(self, settings: Dashboard) -> None:
        self._settings, self._papers = settings, Path(settings.papers)
        self._is_busy = False

    def report(self) -> dict[str, Any]:
        """Claims by paper, and the figures there are; both empty before ``make papers`` was run."""
        known = claims.read(self._papers / "report.json")
        return {
            "papers": [
                {
                    "id": paper,
                    "title": title,
                    "claims": [claim for claim in known if claim.paper == paper],
                    "figures": sorted(path.name for path in (self._papers / paper).glob("*.png")),
                }
                for paper, title in claims.PAPERS.items()
            ]
        }

    def figure(self, paper: str, name: str) -> bytes:
        path = self._papers / paper / name
        if not (_NAME.fullmatch(paper) and _FIGURE.fullmatch(name) and path.is_file()):
            raise NotFound("figure", f"{paper}/{name}")
        return path.read_bytes()

    async def study(self, asked: StudyAsked) -> bytes:
        """What came out, as JSON of ``StudyShown``."""
        check(asked, self._settings)
        if self._is_busy:
            raise LimitExceeded("studies at once", 1, retry_after_s=_RETRY_S)
        self._is_busy = True
        try:
            return await self._run(msgspec.json.encode(asked))
        finally:
            self._is_busy = False

    async def _run(self, asked: bytes) -> bytes:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*PROGRAM, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            async with asyncio.timeout(self._settings.study_timeout):
                out, errors = await process.communicate(asked)
        except TimeoutError:
            raise Unavailable(f"the study was ended after {self._settings.study_timeout:g} s; ask for less") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise StudyFailed(errors.decode(errors="replace").strip().splitlines()[-1:] or ["no reason was given"])
        return out


class StudyFailed(TocsinError):
    """The process of a study ended with an error."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(f"the study failed: {said[-1]:.300}")


def check(asked: StudyAsked, settings: Dashboard) -> None:
    if asked.world == "prototype" and asked.brokers != len(SPOTS):
        raise BadArgument("brokers", f"{len(SPOTS)}, for so many stand in the emergency city", asked.brokers)
    if asked.subscribers > settings.study_subscribers:
        raise BadArgument("subscribers", f"at most {settings.study_subscribers:,}", asked.subscribers)
    if asked.duration_s > settings.study_seconds:
        raise BadArgument("duration_s", f"at most {settings.study_seconds:,}", asked.duration_s)
    for scheme in asked.schemes:
        _check_policy("placement", PLACEMENT, scheme.placement)
        for kind, name in (("migrate", scheme.migrate), ("shuffle", scheme.shuffle)):
            if name is not None:
                _check_policy(kind, BALANCING, name)


def _check_policy(kind: str, known: Iterable[str], name: str) -> None:
    """Before a process is started for it."""
    if name not in known:
        raise BadArgument(kind, f"one of {', '.join(known)}", name)
