"""What ``CREATE FEED`` may say about a directory or a Kafka topic, checked before anything starts.

Names ignore case and underscores (``maxFilesPerTrigger`` is ``max_files_per_trigger``). Options whose
name begins with ``kafka.`` go to the Kafka client as they are (security settings, for instance),
except those that exactly-once delivery rests on, which Spark itself refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin.errors import BadArgument, nearest
from tocsin.model.catalog import FeedSpec
from tocsin.units import parse_duration, parse_size

_ESCAPED, _SET, _CHOICE = re.compile(r"\\.", re.DOTALL), re.compile(r"\[[!^]?([^\[\]]+)\]"), re.compile(r"\{[^{}]*\}")
FORMATS = ("json", "csv", "parquet")


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """A directory into which complete files are moved.

    One batch takes about ``max_bytes_per_trigger`` (a single file may be larger), or at most
    ``max_files_per_trigger`` files if that is given instead; a file above ``max_file_bytes`` becomes
    a dead letter.
    """

    path: str
    format: str = "json"
    pattern: str | None = None
    max_files_per_trigger: int | None = None
    max_bytes_per_trigger: int = 64 * 2**20
    max_file_bytes: int = 256 * 2**20
    trigger_s: float = 1.0


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """A topic of JSON values, one record a message.

    A new feed begins with what the topic still holds (``starting_offsets`` = ``earliest``), so that
    nothing is lost between its creation and its first batch; after that its checkpoint decides.
    """

    servers: str
    topic: str
    starting_offsets: str = "earliest"
    max_offsets_per_trigger: int = 50_000
    trigger_s: float = 0.0
    client: tuple[tuple[str, str], ...] = ()


FeedOptions = DirectoryOptions | KafkaOptions

_DIRECTORY = {
    "path": "path",
    "format": "format",
    "pattern": "pattern",
    "maxfilespertrigger": "max_files_per_trigger",
    "maxbytespertrigger": "max_bytes_per_trigger",
    "maxfilebytes": "max_file_bytes",
    "trigger": "trigger",
}
_KAFKA = {
    "servers": "servers",
    "topic": "topic",
    "format": "format",
    "startingoffsets": "starting_offsets",
    "maxoffsetspertrigger": "max_offsets_per_trigger",
    "trigger": "trigger",
}


def feed_options(feed: FeedSpec) -> FeedOptions:
    """The checked options of a directory or Kafka feed; BadArgument names the option that is wrong."""
    if feed.kind == "directory":
        return _directory(_known(feed.options, _DIRECTORY))
    if feed.kind == "kafka":
        client = tuple((name, value) for name, value in feed.options if name.lower().startswith("kafka."))
        others = [pair for pair in feed.options if pair not in client]
        return _kafka(_known(others, _KAFKA), client)
    raise BadArgument("feed kind", "'directory' or 'kafka', which are the feeds that Spark runs", feed.kind)


def _known(options: Iterable[tuple[str, str]], names: Mapping[str, str]) -> dict[str, str]:
    known = {}
    for name, value in options:
        plain = name.lower().replace("_", "")
        if plain not in names:
            raise BadArgument("feed option", f"one of {', '.join(names.values())}{nearest(plain, names)}", name)
        known[names[plain]] = value
    return known


def _directory(given: Mapping[str, str]) -> DirectoryOptions:
    default = DirectoryOptions(path=_needed(given, "path", "the directory to watch"))
    if "max_files_per_trigger" in given and "max_bytes_per_trigger" in given:
        raise BadArgument("feed options", "max_files_per_trigger or max_bytes_per_trigger, not both", "both")
    files = _count(given, "max_files_per_trigger", 1) if "max_files_per_trigger" in given else None
    return DirectoryOptions(
        path=default.path,
        format=_one_of(given.get("format", default.format), FORMATS),
        pattern=_pattern(given),
        max_files_per_trigger=files,
        max_bytes_per_trigger=_size(given, "max_bytes_per_trigger", default.max_bytes_per_trigger),
        max_file_bytes=_size(given, "max_file_bytes", default.max_file_bytes),
        trigger_s=_trigger(given, default.trigger_s),
    )


def _kafka(given: Mapping[str, str], client: tuple[tuple[str, str], ...]) -> KafkaOptions:
    _one_of(given.get("format", "json"), ("json",))
    default = KafkaOptions(
        servers=_needed(given, "servers", "host:port of one or more Kafka servers, separated by commas"),
        topic=_needed(given, "topic", "the topic to read"),
    )
    return KafkaOptions(
        servers=default.servers,
        topic=default.topic,
        starting_offsets=given.get("starting_offsets", default.starting_offsets),
        max_offsets_per_trigger=_count(given, "max_offsets_per_trigger", default.max_offsets_per_trigger),
        trigger_s=_trigger(given, default.trigger_s),
        client=client,
    )


def _pattern(given: Mapping[str, str]) -> str | None:
    """The pattern if it is a glob as Hadoop reads them; a feed with another would fail for ever."""
    pattern = given.get("pattern")
    if pattern is not None and not _is_glob(pattern):
        expected = "a glob: *, ?, [a-z], {one,other}, and a backslash before what is meant as it is"
        raise BadArgument("feed option pattern", expected, pattern)
    return pattern


def _is_glob(pattern: str) -> bool:
    """Whether sets and choices are closed, and ranges go upward."""
    plain = _ESCAPED.sub("_", pattern)
    is_upward = all(low <= high for one in _SET.findall(plain) for low, high in re.findall("(.)-(.)", one))
    rest = _SET.sub("", plain)
    while _CHOICE.search(rest):
        rest = _CHOICE.sub("", rest)
    return is_upward and not set(rest) & {"[", "{", "\\"}


def _needed(given: Mapping[str, str], name: str, meaning: str) -> str:
    value = given.get(name, "")
    if not value.strip():
        raise BadArgument(f"feed option {name}", meaning, value)
    return value


def _one_of(value: str, allowed: tuple[str, ...]) -> str:
    if value.lower() not in allowed:
        raise BadArgument("feed option format", " or ".join(allowed), value)
    return value.lower()


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    value = given.get(name, str(default))
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 2**31:
        raise BadArgument(f"feed option {name}", "a whole number, at least 1", value)
    return int(value)


def _size(given: Mapping[str, str], name: str, default: int) -> int:
    size = parse_size(given[name], f"feed option {name}") if name in given else default
    if not 0 < size <= 2**30:
        raise BadArgument(f"feed option {name}", "more than nothing and at most 1 GiB", given[name])
    return size


def _trigger(given: Mapping[str, str], default: float) -> float:
    return parse_duration(given["trigger"], "feed option trigger") if "trigger" in given else default
