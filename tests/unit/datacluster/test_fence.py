"""Which paths of statements lead to files of the server's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.datacluster.fence import fenced
from tocsin.errors import BadArgument, Refused


def test_a_path_below_the_root_leads_there_whether_it_exists_or_not(tmp_path: Path) -> None:
    assert fenced(tmp_path, "a/../b.csv", "LOAD") == tmp_path.resolve() / "b.csv"


def test_a_path_that_leads_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"outside cluster\.load_dir"):
        fenced(tmp_path, "../b.csv", "LOAD")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "x" * 300, "circle"])
def test_a_path_that_cannot_be_is_told_as_such(tmp_path: Path, path: str) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(BadArgument, match="path: expected one that the system can open"):
        fenced(tmp_path, path, "LOAD")
