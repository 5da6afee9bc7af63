from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tocsin.datacluster.storage import faults
from tocsin.datacluster.storage.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_faults_left() -> Iterator[None]:
    yield
    faults.install(None)
