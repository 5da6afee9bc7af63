"""The directory of fault runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tocsin.chaos.series import alone, make_room, play
from tocsin.errors import Unavailable


def test_a_directory_in_which_others_run_is_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "chaos"
    with alone(root):
        (root / "cluster").mkdir()
        with pytest.raises(Unavailable, match="other fault runs use"):
            asyncio.run(anext(play([1], root)))
        assert (root / "cluster").exists()
    with alone(root):
        make_room(root)
    assert list(root.iterdir()) == []


def test_a_directory_with_anything_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "seed-1").mkdir()
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Unavailable, match=r"thesis\.tex"):
        make_room(tmp_path)
    assert (tmp_path / "seed-1").exists()
