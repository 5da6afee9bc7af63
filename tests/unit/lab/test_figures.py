"""What stands beside a figure and in a claim, from small runs and made ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from tocsin.lab import drawing
from tocsin.lab.claims import Claim
from tocsin.lab.debs19 import figure13, prototype_claims
from tocsin.lab.debs19 import run as debs19
from tocsin.lab.debs19.simulation import Simulation
from tocsin.lab.trace import Trace

SMALL = Simulation(brokers=3, subscribers=60, per_channel=3, shares=(6, 3, 1), duration_s=600)
EMPTY = np.zeros((0, 1))


def _steady(load: float) -> Trace:
    """One broker that sends so many bytes in every second, and nobody moves."""
    sent = np.full((600, 1), load)
    nobody = np.zeros((60, 1), np.int64)
    return Trace(10, 1, 0 * sent, sent, nobody, np.zeros(600, np.int64), (), {}, 0, 0, 0, 0, 0, EMPTY, EMPTY)


def _of_the_shuffle(ldm: float, sdm: float) -> Claim:
    """What is said of it where LDM and SDM alone carry 100."""
    runs = {"NR LDM": 100.0, "NR SDM": 100.0, "NR LDM + GSH": ldm, "NR SDM + GSH": sdm}
    found = prototype_claims.claims({label: [_steady(load)] for label, load in runs.items()})
    return next(claim for claim in found if "GSH brings little" in claim.claim)


@pytest.mark.parametrize(
    ("ldm", "sdm", "told", "agrees"),
    [
        (98, 97, "maximum 2.0 % lower than LDM's, 3.0 % lower than SDM's", True),
        (102, 97, "maximum 2.0 % higher than LDM's, 3.0 % lower than SDM's", True),
        (112, 97, "maximum 12.0 % higher than LDM's, 3.0 % lower than SDM's", False),
        (98, 90, "maximum 2.0 % lower than LDM's, 10.0 % lower than SDM's", False),
    ],
)
def test_a_shuffle_that_costs_is_told_as_such_and_is_not_little(
    ldm: float, sdm: float, told: str, agrees: bool
) -> None:
    claim = _of_the_shuffle(ldm, sdm)
    assert (claim.measured, claim.agrees) == (told, agrees)


@pytest.mark.parametrize(("seeds", "shown"), [(1, "One run, seed 0."), (2, "Over time: seed 0 of 2.")])
def test_figure_13_explains_its_lines_and_whose_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int, shown: str
) -> None:
    figures = []
    monkeypatch.setattr(drawing, "save", lambda figure, path: figures.append(figure) or path)
    jobs = {label: replace(job, settings=SMALL) for label, job in figure13.jobs().items()}
    figure13.draw(debs19.runs(jobs, range(seeds)), tmp_path)
    caption = figures[0].get_supxlabel()
    assert caption.endswith(shown)
    assert all(word in caption for word in ("broker", "dashed", "red ticks"))


def test_a_caption_is_no_wider_than_its_figure() -> None:
    figure, _ = drawing.canvas(1, 1, "narrow")
    drawing.caption(figure, drawing.COURSES, "", "the last")
    lines = figure.get_supxlabel().splitlines()
    assert (len(lines) > 2, lines[-1]) == (True, "the last")
    label = next(text for text in figure.findobj(Text) if text.get_text().endswith("the last"))
    assert label.get_window_extent(FigureCanvasAgg(figure).get_renderer()).width < figure.bbox.width


def test_panels_with_one_scale_show_the_highest_of_them_whole() -> None:
    _, axes = drawing.canvas(1, 3, "loads", sharey="row")
    for panel, load in zip(axes[0], (10.0, 30.0, 20.0), strict=True):
        drawing.loads(panel, _steady(load), 1.0, "B/s", "")
    assert axes[0][0].get_ylim()[1] > 30.0
