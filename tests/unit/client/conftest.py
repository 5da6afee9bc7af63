"""Node, where it is."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not here")
    return found
