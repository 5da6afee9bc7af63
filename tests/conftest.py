"""What all tests share: one Spark session, started by the first test that asks for it.

Helpers beside the tests (``feed_sinks``, ``integration/standalone``) are imported by their bare names.
"""

from __future__ import annotations

import os
import signal
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

# How long an example takes is the machine's affair. The same examples each time, so that what passed passes again;
# TOCSIN_TEST_RANDOM=1 looks for others.
settings.register_profile("tocsin", deadline=None, derandomize=not os.environ.get("TOCSIN_TEST_RANDOM"))
settings.load_profile("tocsin")

# A shell lets what it runs in the background ignore Ctrl-C, and every process that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
