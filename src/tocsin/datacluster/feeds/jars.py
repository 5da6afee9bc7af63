"""Where the Java packages of Spark's Kafka connector are.

They are not in PySpark's wheel. ``kafka/fetch`` puts them into ``.jars/spark`` of the checkout;
``TOCSIN_JARS`` names another directory. ``python -m tocsin.datacluster.feeds.jars`` prints them as
``spark.jars`` wants them, and fails with a sentence if they are missing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tocsin.errors import Unavailable

DEFAULT_DIRECTORY = Path(".jars") / "spark"
NEEDED = ("spark-sql-kafka-0-10_", "spark-token-provider-kafka-0-10_", "kafka-clients-", "commons-pool2-")


def connector_jars(directory: Path | None = None) -> tuple[Path, ...]:
    """The connector's jars, or nothing if any of the four is missing."""
    where = directory or Path(os.environ.get("TOCSIN_JARS", DEFAULT_DIRECTORY))
    jars = tuple(sorted(where.glob("*.jar")))
    complete = all(any(jar.name.startswith(name) for jar in jars) for name in NEEDED)
    return jars if complete else ()


def missing_connector() -> Unavailable:
    return Unavailable(
        "Kafka feeds need Spark's Kafka connector, which this cluster was started without: "
        "run `make kafka` in a checkout, or set TOCSIN_JARS to a directory that holds its jars, and start again"
    )


def main() -> int:
    jars = connector_jars()
    print(
        ",".join(str(jar.resolve()) for jar in jars) if jars else missing_connector(), file=None if jars else sys.stderr
    )
    return 0 if jars else 1


if __name__ == "__main__":
    sys.exit(main())
