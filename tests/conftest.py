"""What all tests share: one Spark session, started by the first test that asks for it.

Helpers beside the tests (``feed_sinks``, ``integration/standalone``) are imported by their bare names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.authority import Certificate

for helpers in (Path(__file__).parent, Path(__file__).parent / "integration"):
    sys.path.insert(0, str(helpers))

settings.register_profile("tocsin", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("tocsin")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A server's certificate, signed by a private authority."""
    from support.authority import make

    return make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with the product's own settings, and the Kafka connector where it was fetched."""
    from tocsin.datacluster.feeds.jars import connector_jars
    from tocsin.datacluster.spark.session import SparkOptions, start_session, stop_session

    options = SparkOptions(master="local[2]", driver_memory="1g", jars=connector_jars(), app_name="tocsin-tests")
    session = start_session(options)
    yield session
    stop_session(session)
