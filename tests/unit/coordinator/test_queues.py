from __future__ import annotations

from tocsin.coordinator.queues import Queue
from tocsin.protocol.coordination import Adopt, Release
from tocsin.protocol.messages import Wanted
from tocsin.protocol.targets import TopicTarget


def adopt(number: int, subscriptions: int) -> Adopt:
    return Adopt(number, f"u{number}", 1, [Wanted(f"s{n}", TopicTarget("news"), None) for n in range(subscriptions)])


def test_a_page_ends_where_its_subscriptions_would_be_too_many() -> None:
    queue = Queue("life", limit=100)
    for instruction in (adopt(1, 3), adopt(2, 3), Release(3, "u3", 1), adopt(4, 1_000), adopt(5, 1)):
        queue.put(instruction)

    def numbers(after: int) -> list[int]:
        return [one.number for one in queue.after(after, size=9)]

    assert numbers(0) == [1, 2, 3]
    assert numbers(1) == [2, 3]
    assert numbers(3) == [4], "one is given, however large it is"
    assert numbers(4) == [5]
    assert numbers(5) == []
