"""A Kafka feed against a real broker: each message once, whatever is killed on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import kafka_broker
import pytest
from pyspark.sql import SparkSession

from feed_sinks import MemorySink
from tocsin.datacluster.feeds.jars import connector_jars
from tocsin.datacluster.feeds.stream import start_feed
from tocsin.model.catalog import Column, DatasetSpec, FeedSpec
from tocsin.model.types import SqlType

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.integration,
    pytest.mark.skipif(not connector_jars(), reason="Spark's Kafka connector is not in .jars/spark; run kafka/fetch"),
    pytest.mark.skipif(kafka_broker.missing() is not None, reason=str(kafka_broker.missing())),
]
confluent_kafka = pytest.importorskip("confluent_kafka")

READINGS = DatasetSpec("readings", (Column("id", SqlType("INT"), not_null=True), Column("note", SqlType("STRING"))))
BAD = [b"nonsense", b'{"id": "x"}', b"", b'{"note": "no id"}', b"\xff\xfe"]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with kafka_broker.kafka_broker() as address:
        yield address


def produce(servers: str, topic: str, values: list[bytes]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
    assert producer.flush(30) == 0


def records(*ids: int) -> list[bytes]:
    return [json.dumps({"id": i, "note": f"n{i}"}).encode() for i in ids]


def topic_feed(servers: str, topic: str, **options: str) -> FeedSpec:
    return FeedSpec("f", "readings", "kafka", (("servers", servers), ("topic", topic), *options.items()))


def make_topic(servers: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})  # kept: its answers end when it is collected
    for done in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        done.result(30)


def test_each_message_arrives_once_through_kills_and_restarts(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    make_topic(servers, "readings")
    sink, spec = MemorySink(), topic_feed(servers, "readings", max_offsets_per_trigger="150")
    sink.fail_after = 2
    produce(servers, "readings", [*records(*range(600)), *BAD])

    feed = start_feed(spark, spec, READINGS, sink, tmp_path)
    sink.await_rows(200)
    for query in spark.streams.active:
        query.stop()
    feed.await_idle()
    feed.stop()
    produce(servers, "readings", records(*range(600, 1000)))
    resumed = start_feed(spark, spec, READINGS, sink, tmp_path)
    resumed.await_idle()
    resumed.stop()

    assert sorted(row["id"] for row in sink.rows()) == list(range(1000))
    assert all(row["note"] == f"n{row['id']}" for row in sink.rows())
    assert sink.duplicates == 2
    assert len(sink.rejected()) == len(BAD)
    assert {text for text, _ in sink.rejected()} >= {"nonsense", '{"id": "x"}', '{"note": "no id"}'}
    assert all(reason for _, reason in sink.rejected())


def test_messages_of_a_partition_keep_their_order(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    make_topic(servers, "ordered")
    produce(servers, "ordered", records(*range(200)))
    sink = MemorySink()
    feed = start_feed(spark, topic_feed(servers, "ordered"), READINGS, sink, tmp_path)
    feed.await_idle()
    feed.stop()
    ids = [row["id"] for row in sink.rows()]
    assert [i for i in ids if i % 2 == 0] == list(range(0, 200, 2))
    assert [i for i in ids if i % 2] == list(range(1, 200, 2))


def test_a_message_with_line_breaks_is_one_record(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    make_topic(servers, "pretty")
    produce(servers, "pretty", [b'{\r\n  "id": 1,\n  "note": "a"\n}\n'])
    sink = MemorySink()
    feed = start_feed(spark, topic_feed(servers, "pretty"), READINGS, sink, tmp_path)
    feed.await_idle()
    feed.stop()
    assert sink.rows() == [{"id": 1, "note": "a"}]
    assert sink.rejected() == []
