from __future__ import annotations

import json
from pathlib import Path

import pytest

from tocsin.errors import ConfigError
from tocsin.lab import claims
from tocsin.lab.claims import Claim

ONE = Claim("debs19", "5.2", "It ends", "yes", "no", False, "as printed it does not | really")
OTHER = Claim("peer", "3", "It is fast", "3 s", "2 s", True)


def test_a_report_keeps_other_papers_and_renews_its_own(tmp_path: Path) -> None:
    claims.write(tmp_path, [OTHER], whole="peer")
    claims.write(tmp_path, [ONE], whole="debs19")
    told = claims.write(tmp_path, [Claim("debs19", "6", "New", "1", "1", True)], whole="debs19")
    assert [claim.claim for claim in told] == ["New", "It is fast"]
    assert claims.read(tmp_path / "report.json") == told
    assert json.loads((tmp_path / "report.json").read_text())[1] == {
        "paper": "peer",
        "section": "3",
        "claim": "It is fast",
        "published": "3 s",
        "measured": "2 s",
        "agrees": True,
        "note": "",
    }


def test_simulation_and_living_system_do_not_lose_what_the_other_found(tmp_path: Path) -> None:
    live = Claim("debs19", "5.2, live", "It ends", "yes", "yes", True)
    claims.write(tmp_path, [ONE], whole="debs19")
    claims.write(tmp_path, [live], whole="debs19", live=True)
    assert claims.write(tmp_path, [ONE], whole="debs19") == [live, ONE]
    again = Claim("debs19", "6, live", "New", "1", "1", True)
    assert claims.write(tmp_path, [again], whole="debs19", live=True) == [ONE, again]


def test_a_figure_alone_renews_its_claims_only() -> None:
    again = Claim("debs19", "5.2", "It ends", "yes", "yes", True)
    assert claims.merged([ONE, OTHER], [again]) == [again, OTHER]


def test_what_is_not_reproduced_is_told_with_its_reason() -> None:
    told = claims.markdown([ONE, OTHER])
    assert "| 5.2 | It ends | yes | no | **no** | as printed it does not \\| really |" in told
    assert "0 of 1 agree." in told


def test_a_report_explains_the_letters_that_it_uses() -> None:
    told = claims.markdown([ONE])
    assert told.index("RND (random), RR (round robin), NR (nearest)") < told.index("| section |")
    assert "NR (nearest)" not in claims.markdown([OTHER])


def test_a_broken_report_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"a": 1}')
    with pytest.raises(ConfigError, match="expected a list of claims"):
        claims.write(tmp_path, [ONE])
