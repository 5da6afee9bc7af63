"""One attachment for all who hold a target, whatever the order in which they come and go."""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.broker.holding import Holding
from tocsin.broker.hub import Hub
from tocsin.broker.metering import Meters
from tocsin.broker.ports import Attached, Page
from tocsin.errors import Unavailable
from tocsin.protocol.targets import ChannelTarget


class Cluster:
    """Attaches after a while, sometimes not; complains where attaching and detaching overlap.

    Arguments are by name or in order; both ways lead to the same stream.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.attached: set[str] = set()
        self._busy: set[str] = set()

    async def attach(self, target):
        await self._alone(str(target), self.attached.add)
        number = next(iter(target.arguments.values() if isinstance(target.arguments, dict) else target.arguments))
        return Attached(f"channel:C/{number}", "0")

    async def detach(self, target):
        assert str(target) in self.attached
        await self._alone(str(target), self.attached.remove)

    async def check(self, target, principal, position=None): ...

    async def replay(self, stream, after, through):
        return Page((), through, True)

    async def _alone(self, key, change):
        assert key not in self._busy, "attaching and detaching overlap"
        self._busy.add(key)
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)
        self._busy.remove(key)
        if change == self.attached.add and self._random.random() < 0.2:
            raise Unavailable("the cluster is away")
        change(key)


TARGETS = [ChannelTarget("C", [1]), ChannelTarget("C", {"n": 1}), ChannelTarget("C", [2])]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.tuples(st.sampled_from(range(3)), st.integers(0, 3)), max_size=40))
def test_attached_exactly_while_held(seed, steps):
    async def story():
        hub = Hub(10**6, 0.0, Meters(10.0, 0.0), lambda: 0.0, lambda *_: None)
        cluster = Cluster(Random(seed))
        holding = Holding(hub, cluster, cluster, 4)
        held = []

        async def hold_for_a_while(target, turns):
            try:
                stream = await holding.hold(target)
            except Unavailable:
                return
            for _ in range(turns):
                assert hub[stream.name] is stream
                assert str(target) in cluster.attached
                await asyncio.sleep(0)
            await holding.let_go(stream, target)

        for which, turns in steps:
            held.append(asyncio.create_task(hold_for_a_while(TARGETS[which], turns * 2)))
            for _ in range(turns):
                await asyncio.sleep(0)
        await asyncio.gather(*held)
        assert not cluster.attached
        assert not hub.streams()

    asyncio.run(story())
