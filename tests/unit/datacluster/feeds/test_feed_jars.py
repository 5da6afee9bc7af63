from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.datacluster.feeds import jars

ALL = [f"{name}1.jar" for name in jars.NEEDED]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        pytest.param(ALL, True, id="all four"),
        pytest.param(ALL[1:], False, id="a set with one missing is no set"),
        pytest.param([], False, id="an empty directory"),
    ],
)
def test_the_connector_is_whole_or_absent(
    names: list[str], found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setenv("TOCSIN_JARS", str(tmp_path))
    assert bool(jars.connector_jars()) is found
    assert jars.main() == (0 if found else 1)
    told = capsys.readouterr()
    assert ("make kafka" in told.err) is not found
    assert len(told.out.strip().split(",")) == (4 if found else 1)
