"""Naming what to subscribe to."""

from __future__ import annotations

from typing import Any

from tocsin.errors import BadArgument
from tocsin.protocol.targets import ChannelTarget, Target, TopicTarget, check_topic, target_key

_FNV_OFFSET, _FNV_PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF


def channel(name: str, *in_order: Any, **by_name: Any) -> ChannelTarget:
    """A channel with its arguments, all by name or all in order."""
    if in_order and by_name:
        raise BadArgument("arguments", "all in order or all by name", f"{len(in_order)} and {len(by_name)}")
    return ChannelTarget(name, by_name or in_order)


def topic(name: str) -> TopicTarget:
    return TopicTarget(check_topic(name))


def default_id(target: Target) -> str:
    """The id of a subscription whose application chose none: the same for equal targets.

    A program that starts again so comes back to its subscription instead of leaving it behind.
    """
    digest = _FNV_OFFSET  # 64-bit FNV-1a, which JavaScript can do as well
    for byte in target_key(target).encode():
        digest = ((digest ^ byte) * _FNV_PRIME) & _MASK
    return f"{target.name[:40]}-{digest:016x}"
