from __future__ import annotations

import pytest

from tocsin.scenarios.city import City


@pytest.fixture(scope="session")
def city() -> City:
    return City.generate(1)


@pytest.fixture(scope="session")
def town() -> City:
    """A small city, for what must be asked often."""
    return City.generate(7, (2_000, 1_500), districts=3, shelters=10, places=8)
