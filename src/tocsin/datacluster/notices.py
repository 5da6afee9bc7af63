"""What brokers are told of an execution: ids and counts, small; the results themselves are pulled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tocsin.datacluster.attachments import Attachments, Ids
from tocsin.model.position import Position


def notice_bodies(
    channel: str, execution: int, backends: Ids | None, pairs: int, attachments: Attachments, *, is_push: bool
) -> dict[int, Mapping[str, Any]]:
    """The notice for each broker that gets something of ``execution``.

    Where the matched backend subscriptions are listed, a broker learns its own with their counts. Where
    they were too many to list, every attached broker is told to look.
    """
    if pairs == 0:
        return {}
    head = {"channel": channel, "through": str(Position.end_of(execution)), "push": is_push}
    if backends is None:
        return {broker: {**head, "count": None, "backends": None} for broker in attachments.brokers()}
    numbers, counts = np.unique(backends, return_counts=True)
    bodies: dict[int, Mapping[str, Any]] = {}
    for broker in attachments.brokers():
        mine = attachments.wanted(broker, execution, numbers)
        if mine.any():
            listed = [[int(n), int(c)] for n, c in zip(numbers[mine], counts[mine], strict=True)]
            bodies[broker] = {**head, "count": int(counts[mine].sum()), "backends": listed}
    return bodies
