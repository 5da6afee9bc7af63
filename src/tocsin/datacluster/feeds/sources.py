"""Where a feed's bytes come from, and how Spark reads and parses them.

**Directory.** Files are the unit: each is read whole (``binaryFile``) and decoded in one worker, so that
its records keep their order, JSON, CSV and Parquet are treated alike, and a file that cannot be read
becomes a dead letter instead of a batch that fails for ever. A batch is bounded by bytes or by files
(Spark takes one limit, not both).

**Kafka.** One message, one record; ``maxOffsetsPerTrigger`` bounds a batch. The client waits at most
50 ms for a fetch to fill (its default of 500 ms is most of a micro-batch's latency).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tocsin.datacluster.feeds.batches import PIECE_SQL
from tocsin.datacluster.feeds.options import DirectoryOptions, FeedOptions, KafkaOptions
from tocsin.datacluster.feeds.worker import parse_files, parse_messages, refuse_files
from tocsin.model.catalog import DatasetSpec

if TYPE_CHECKING:
    Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_FILE_SQL = "path string, modificationTime timestamp, length bigint, content binary"
_FETCH_WAIT_MS = "50"
_MESSAGES_PER_PIECE = "20000"


class Source(Protocol):
    trigger_s: float
    conf: Mapping[str, str]

    def read(self, session: SparkSession) -> DataFrame:
        """The stream of raw input."""
        ...

    def parsed(self, batch: DataFrame, dataset: DatasetSpec) -> DataFrame:
        """The pieces (see ``batches``) of one batch of it."""
        ...


def source_of(options: FeedOptions) -> Source:
    return DirectorySource(options) if isinstance(options, DirectoryOptions) else KafkaSource(options)


@dataclass(slots=True)
class DirectorySource:
    options: DirectoryOptions
    trigger_s: float = field(init=False)
    conf: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.trigger_s = self.options.trigger_s
        self.conf = {
            "spark.sql.execution.arrow.maxRecordsPerBatch": "1",  # one file at a time goes to a worker
            "spark.sql.files.openCostInBytes": "262144",  # many small files share a task
        }

    def read(self, session: SparkSession) -> DataFrame:
        reader = session.readStream.format("binaryFile").schema(_FILE_SQL)
        if self.options.max_files_per_trigger:
            reader = reader.option("maxFilesPerTrigger", self.options.max_files_per_trigger)
        else:
            reader = reader.option("maxBytesPerTrigger", self.options.max_bytes_per_trigger)
        if self.options.pattern:
            reader = reader.option("pathGlobFilter", self.options.pattern)
        files = reader.load(self.options.path)
        return files.select(
            f.unix_micros("modificationTime").alias("at"), f.col("path").alias("source"), "length", "content"
        )

    def parsed(self, batch: DataFrame, dataset: DatasetSpec) -> DataFrame:
        limit = self.options.max_file_bytes
        taken = batch.where(f.col("length") <= limit).select("at", "source", "content")
        refused = batch.where(f.col("length") > limit).select("at", "source", "length")
        return taken.mapInArrow(parse_files(dataset, self.options.format), PIECE_SQL).unionAll(
            refused.mapInArrow(refuse_files(limit), PIECE_SQL)
        )


@dataclass(slots=True)
class KafkaSource:
    options: KafkaOptions
    trigger_s: float = field(init=False)
    conf: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.trigger_s = self.options.trigger_s
        self.conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": _MESSAGES_PER_PIECE}

    def read(self, session: SparkSession) -> DataFrame:
        options = {
            "kafka.fetch.max.wait.ms": _FETCH_WAIT_MS,
            **dict(self.options.client),
            "kafka.bootstrap.servers": self.options.servers,
            "subscribe": self.options.topic,
            "startingOffsets": self.options.starting_offsets,
            "maxOffsetsPerTrigger": str(self.options.max_offsets_per_trigger),
        }
        return session.readStream.format("kafka").options(**options).load().select("partition", "offset", "value")

    def parsed(self, batch: DataFrame, dataset: DatasetSpec) -> DataFrame:
        return batch.mapInArrow(parse_messages(dataset), PIECE_SQL)
