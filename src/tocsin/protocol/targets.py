"""What a subscription asks for, and the stream that answers it.

A target is a channel with arguments, a topic, or a filter on a topic. Identical targets share a stream;
a stream's name means the same at every broker, so a client that moves keeps its positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tocsin.errors import BadArgument
from tocsin.protocol.names import check_name


class ChannelTarget(msgspec.Struct, frozen=True, tag="channel", tag_field="kind", forbid_unknown_fields=True):
    """A channel with its arguments, by name or in order."""

    name: str
    arguments: Mapping[str, Any] | Sequence[Any] = ()


class TopicTarget(msgspec.Struct, frozen=True, tag="topic", tag_field="kind", forbid_unknown_fields=True):
    """Everything that is published under a name."""

    name: str


Target = ChannelTarget | TopicTarget


def target_key(target: Target) -> str:
    """The same text for equal targets, however their objects are ordered."""
    return msgspec.json.encode(msgspec.to_builtins(target), order="sorted").decode()


def channel_stream(channel: str, life: int, backend: int) -> str:
    """The stream of a backend subscription; both numbers are the data cluster's, the same for every broker.

    A channel that was dropped and made again has another ``life``: it counts positions and backends anew.
    """
    return f"channel:{channel}/{life}/{backend}"


def topic_stream(topic: str) -> str:
    return f"topic:{topic}"


def stream_topic(stream: str) -> str:
    """The topic of a topic's stream."""
    return stream.removeprefix(topic_stream(""))


def check_topic(name: str) -> str:
    """``name`` if it can be a topic's: a name without spaces at its ends."""
    if not isinstance(name, str) or name != name.strip():
        raise BadArgument("topic", "a name without spaces at its ends", name)
    return check_name("topic", name)
