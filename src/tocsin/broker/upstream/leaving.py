"""A broker's own word that it leaves, for when the coordinator cannot give it.

A broker that drains waits a moment for the coordinator to name the others alone. While it does not, the broker tells
every other one that it goes: they share out the topics without it, the next owners fetch its logs in their
epochs, and it refers to them whoever still takes it for the owner. It says so again and again, for a coordinator that
comes back may count it once more. Who stays has to agree who owns a topic, so the leaving broker takes over what most
of them believe.

Whom it did not reach with its last word may be dead, and nobody has found out. Topics that such a one should take are
offered to the next of those that answer, which keeps them until the owner is there and asks. So the word is given,
too, where the coordinator named the others and went away, as long as there are logs that nobody has taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.handover import PeerClient
from tocsin.broker.upstream.members import Members
from tocsin.broker.upstream.topics import owner_of
from tocsin.protocol.coordination import BrokerInfo


class Leaving:
    """``stamped`` are the topics to be taken; ``shared`` is called when topics have to be shared out anew."""

    def __init__(
        self,
        me: Callable[[], BrokerInfo],
        members: Members,
        client: PeerClient,
        stamped: Callable[[], Collection[str]],
        shared: Callable[[], None],
    ) -> None:
        self._me, self._members, self._client = me, members, client
        self._stamped, self._shared = stamped, shared
        self._informed: set[str] = set()
        self._silent: set[str] = set()  # were told with the last word, and did not answer

    @property
    def is_known(self) -> bool:
        """Whether everybody who stays knows that this broker goes."""
        staying = {broker.name for broker in self._members.staying}
        return not self._members.is_counted or staying <= self._informed

    def counted_anew(self) -> None:
        """Others may have been told the same, and count this broker again."""
        self._informed.clear()

    async def run(self, backoff: Backoff) -> None:
        while True:
            await backoff.pause()
            if self._members.staying and (self._members.is_counted or self._stamped()):
                await self._tell()

    async def _tell(self) -> None:
        told = self._members.staying
        answers = await self._client.leave(self._me(), told, self._offers())
        self._informed = set(answers)
        self._silent = {broker.name for broker in told} - self._informed
        views = Counter(known.brokers for known in answers.values() if known.brokers)
        staying = [broker for view, _ in views.most_common(1) for broker in view if broker.name != self._me().name]
        if staying and self._members.is_counted and self._members.leave(staying):
            self._shared()

    def _offers(self) -> Mapping[str, Sequence[str]]:
        """Topics whose next owner did not answer, by the broker that is to keep them."""
        answering = {broker.name for broker in self._members.staying} & self._informed
        offers: defaultdict[str, list[str]] = defaultdict(list)
        for topic in self._stamped() if self._members.is_leaving or not self._members.is_counted else ():
            owner, keeper = self._members.owner(topic), owner_of(topic, answering)
            if keeper is not None and owner is not None and owner.name in self._silent:
                offers[keeper].append(topic)
        return offers
