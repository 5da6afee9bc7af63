from __future__ import annotations

import pytest

from tocsin.datacluster.feeds.options import DirectoryOptions, KafkaOptions, feed_options
from tocsin.errors import BadArgument
from tocsin.model.catalog import FeedSpec


def directory(**options: str) -> FeedSpec:
    return FeedSpec("f", "d", "directory", (("path", "in"), *options.items()))


def kafka(*options: tuple[str, str]) -> FeedSpec:
    return FeedSpec("f", "d", "kafka", (("servers", "h:9092"), ("topic", "t"), *options))


@pytest.mark.parametrize(
    ("feed", "expected"),
    [
        pytest.param(directory(), DirectoryOptions("in"), id="a directory needs only its path"),
        pytest.param(
            directory(format="CSV", maxFilesPerTrigger="3", MAX_FILE_BYTES="1 MB", trigger="5s"),
            DirectoryOptions("in", "csv", max_files_per_trigger=3, max_file_bytes=10**6, trigger_s=5.0),
            id="names ignore case and underscores",
        ),
        pytest.param(
            directory(pattern=r"{a,[!b-d]*}-(\{?).{csv,}"),
            DirectoryOptions("in", pattern=r"{a,[!b-d]*}-(\{?).{csv,}"),
            id="a pattern is a glob",
        ),
        pytest.param(kafka(), KafkaOptions("h:9092", "t"), id="a topic begins at its earliest message"),
        pytest.param(
            kafka(("startingOffsets", "latest"), ("kafka.security.protocol", "SSL")),
            KafkaOptions("h:9092", "t", "latest", client=(("kafka.security.protocol", "SSL"),)),
            id="client settings go through as they are",
        ),
    ],
)
def test_feed_options(feed: FeedSpec, expected: object) -> None:
    assert feed_options(feed) == expected


@pytest.mark.parametrize(
    ("feed", "sentence"),
    [
        pytest.param(directory(fromat="csv"), "did you mean 'format'", id="a misspelt option names the nearest one"),
        pytest.param(directory(format="xml"), "json or csv or parquet", id="an unknown format lists the known ones"),
        pytest.param(directory(max_files_per_trigger="0"), "at least 1", id="a limit of nothing is refused"),
        pytest.param(
            directory(max_files_per_trigger="1", max_bytes_per_trigger="1 MB"), "not both", id="a batch has one limit"
        ),
        pytest.param(directory(max_file_bytes="2 GiB"), "at most 1 GiB", id="a file has to fit into memory"),
        *(
            pytest.param(directory(pattern=pattern), "a glob", id=f"{pattern} is no glob")
            for pattern in ("{{{[[", "a{b", "[a", "[z-a]", "a\\")
        ),
        pytest.param(directory(trigger="5"), "a duration", id="a number without a unit is refused"),
        pytest.param(FeedSpec("f", "d", "directory"), "the directory to watch", id="the path is needed"),
        pytest.param(FeedSpec("f", "d", "kafka", (("topic", "t"),)), "host:port", id="servers are needed"),
        pytest.param(kafka(("format", "csv")), "expected json", id="messages are JSON"),
        pytest.param(FeedSpec("f", "d", "http"), "'directory' or 'kafka'", id="an HTTP feed is not Spark's"),
    ],
)
def test_refused_options(feed: FeedSpec, sentence: str) -> None:
    with pytest.raises(BadArgument) as refused:
        feed_options(feed)
    assert sentence in str(refused.value)
