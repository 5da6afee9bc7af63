"""``start_feed``: the Structured Streaming query behind a directory or Kafka feed.

Source → parsed in Spark's Python workers → ``foreachBatch`` → the sink, under the batch's key.

A feed has a Spark session of its own on the shared context (its settings disturb nobody) and its own
scheduler pool (its jobs take turns with those of channels).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tocsin.datacluster.feeds.batches import Sink, deliver
from tocsin.datacluster.feeds.checkpoint import Checkpoint, open_checkpoint
from tocsin.datacluster.feeds.jars import missing_connector
from tocsin.datacluster.feeds.options import KafkaOptions, feed_options
from tocsin.datacluster.feeds.running import OnBatch, RunningFeed
from tocsin.datacluster.feeds.sources import Source, source_of
from tocsin.datacluster.spark.reasons import with_cause
from tocsin.model.catalog import DatasetSpec, FeedSpec

if TYPE_CHECKING:
    import pyarrow as pa

_POOL = "feeds"
_LONGEST_ERROR = 2_000


Dataset = DatasetSpec | Callable[[], DatasetSpec]


def start_feed(spark: SparkSession, feed: FeedSpec, dataset: Dataset, sink: Sink, checkpoint_dir: Path) -> RunningFeed:
    """Start a directory or Kafka feed; bad options and a missing connector are raised at once.

    A ``dataset`` that may be altered while the feed runs is given as a function, asked for each batch.
    """
    options = feed_options(feed)
    if isinstance(options, KafkaOptions):
        check_connector(spark)
    stream = _Stream(spark, source_of(options), dataset, sink, open_checkpoint(checkpoint_dir))
    return RunningFeed(feed.name, stream.start, stream.describe)


def check_connector(spark: SparkSession) -> None:
    """Unavailable unless the session has Spark's Kafka connector; no server is contacted."""
    try:
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", "-").option("subscribe", "-").load()
    except PySparkException as failure:
        if "find data source" in str(failure):
            raise missing_connector() from None
        raise


class _Stream:
    """What is needed to start the query, again and again."""

    def __init__(
        self, spark: SparkSession, source: Source, dataset: Dataset, sink: Sink, checkpoint: Checkpoint
    ) -> None:
        self._spark, self._source, self._dataset = spark, source, dataset
        self._sink, self._checkpoint = sink, checkpoint
        self._failure: Exception | None = None

    def start(self, on_batch: OnBatch) -> _StreamingQuery:
        self._failure = None
        session = self._spark.newSession()
        for name, value in self._source.conf.items():
            session.conf.set(name, value)
        session.sparkContext.setLocalProperty("spark.scheduler.pool", _POOL)
        writer = (
            self._source.read(session)
            .writeStream.option("checkpointLocation", self._checkpoint.query.resolve().as_uri())
            .trigger(processingTime=f"{round(self._source.trigger_s * 1000)} milliseconds")
            .foreachBatch(lambda batch, batch_id: self._batch(batch, batch_id, on_batch))
        )
        return _StreamingQuery(writer.start())

    def describe(self, failure: Exception) -> str:
        """The sink's own words if it refused the batch, else Spark's without its dumps of the plan and stack."""
        if self._failure is not None:
            return f"{type(self._failure).__name__}: {self._failure}"[:_LONGEST_ERROR]
        told = re.split(r"\n\n|\n=== |\nJVM stacktrace", str(failure))[0]
        told = re.sub(r"^\[STREAM_FAILED].*?terminated with exception: |\s+SQLSTATE: \w+$", "", told)
        return with_cause(told, failure)[:_LONGEST_ERROR]

    def _batch(self, batch: DataFrame, batch_id: int, on_batch: OnBatch) -> None:
        dataset = self._dataset if isinstance(self._dataset, DatasetSpec) else self._dataset()
        pieces: pa.Table = self._source.parsed(batch, dataset).toArrow()
        try:
            self._checkpoint.secure(batch_id)
            delivered = deliver(pieces, self._checkpoint.key(batch_id), self._sink)
        except Exception as failure:
            self._failure = failure
            raise
        on_batch(batch_id, delivered)


class _StreamingQuery:
    """PySpark's query behind the few verbs that supervision needs."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    def wait(self) -> None:
        self._query.awaitTermination()

    def stop(self) -> None:
        """A query whose JVM has died has stopped, too."""
        try:
            self._query.stop()
        except Py4JJavaError:
            raise
        except (Py4JError, ConnectionError):
            return

    def finish_available(self) -> None:
        self._query.processAllAvailable()

    def rows_per_s(self) -> float:
        try:
            progress = self._query.lastProgress
        except (Py4JError, PySparkException):
            return 0.0
        rate = progress.inputRowsPerSecond if progress else 0.0
        return rate if math.isfinite(rate) else 0.0
