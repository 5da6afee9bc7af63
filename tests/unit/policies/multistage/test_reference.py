"""The reference page names every policy, option and reason."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from tocsin.policies.multistage.framework import Framework
from tocsin.policies.multistage.plan import Reason, Status
from tocsin.policies.registry import BALANCING, balancing_policy

PAGE = " ".join((Path(__file__).parents[4] / "docs/reference/balancing.md").read_text().split())
OPTIONS = {f.name for name in BALANCING for f in fields(balancing_policy(name))}
THRESHOLDS = {f.name for f in fields(Framework)} - {"migrate", "shuffle"}


@pytest.mark.parametrize("word", sorted({*BALANCING, *OPTIONS, *THRESHOLDS, *Reason, *Status}))
def test_the_page_has(word: str):
    assert f"`{word}`" in PAGE
