"""Streams of channels: attach, pull, fill, acknowledge.

One loop pulls for all channels at once and is the truth; a notice from the cluster only ends a pause. The rules by
which pulls, replays and attachments come together are in ``merging``. While the cluster is away, attaching is
answered with Unavailable and everything else waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from weakref import WeakValueDictionary

import msgspec

from tocsin.broker.ports import Attached, Delivery, Page
from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.attaching import Attaching
from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.cluster import ClusterClient, ClusterRefused, Made, Parameter, ResultPage, Span, Stood
from tocsin.broker.upstream.merging import Merge, Stream
from tocsin.broker.upstream.pins import check_pins
from tocsin.broker.upstream.replaying import Replaying
from tocsin.errors import BadArgument, NotFound, Refused, TocsinError, Unavailable
from tocsin.protocol.messages import Gap, Hole
from tocsin.protocol.targets import ChannelTarget, Target, target_key
from tocsin.tokens import Principal

_UNFINISHED_S = 0.05  # how long filling waits for an execution that runs
_PARAMETERS_S = 5.0  # how long a channel's parameters are believed
_UNKNOWN_S = 0.01  # how long a fill waits for the hub to know a stream

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """``may_drop`` says whether everybody who holds something here has been heard of."""

    broker: str
    wait_s: float
    page_rows: int
    ack_s: float
    orphan_s: float
    backoff_min_s: float
    backoff_max_s: float
    max_waiting: int
    may_drop: Callable[[], bool] = lambda: True


class ChannelUpstream:
    """``start`` it in the event loop; it goes on by itself until ``stop``."""

    def __init__(self, cluster: ClusterClient, delivery: Delivery, options: ChannelOptions) -> None:
        self._cluster, self._delivery, self._options = cluster, delivery, options
        self._merge = Merge(delivery, options.max_waiting)
        self._attaching = Attaching(cluster, options.broker, self._backoff(), self._is_left)
        self._replaying = Replaying(cluster, options.page_rows)
        self._before: set[str] = set()
        self._targets: dict[str, ChannelTarget] = {}
        self._gates: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._notify_url, self._is_away = "", False
        self._parameters: dict[str, tuple[float, list[Parameter]]] = {}  # by the channel's name in one case
        self._ready, self._wake, self._changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._filling: set[str] = set()
        self._look: asyncio.TimerHandle | None = None
        self._registering: asyncio.Task[None] | None = None
        self._tasks = Tasks("channels")

    def start(self, notify_url: str) -> None:
        """``notify_url`` is where the cluster is to post its notices."""
        self._notify_url = notify_url
        self._tasks.spawn(self._run())

    async def stop(self) -> None:
        """Stop pulling, and acknowledge what was pulled."""
        if self._look is not None:
            self._look.cancel()
        await self._tasks.stop()
        await self._attaching.stop()
        await self._replaying.stop()
        if self._ready.is_set():
            with contextlib.suppress(TocsinError):
                await self._acknowledge({})

    @property
    def is_ready(self) -> bool:
        """Whether the cluster has been reached in this life of the broker."""
        return self._ready.is_set()

    # --- Upstream -----------------------------------------------------------------------------------------

    async def check(self, target: Target, principal: Principal, position: str | None = None) -> None:
        channel = _channel(target)
        if not principal.may("subscribe", channel.name):
            raise Refused(f"the token does not allow subscribing to {channel.name!r}")
        pins = principal.pins(channel.name)
        if all(pins):
            check_pins(channel.name, await self._parameters_of(channel.name), channel.arguments, pins)

    async def attach(self, target: Target) -> Attached:
        channel, id = _channel(target), self._id(target)
        if known := self._merge.attachment(id):
            return known
        if not self._ready.is_set():
            raise Unavailable("the data cluster has not been reached yet")
        async with self._gate(id):
            made = await self._attaching.make(channel.name, id, channel.arguments)
            return self._attached(channel, made)

    def _attached(self, target: ChannelTarget, made: Made) -> Attached:
        self._heed_life(made.channel, made.life)
        is_new = made.channel not in self._merge.channels
        attached = self._merge.attached(made, is_again=made.id in self._before)
        self._before.discard(made.id)
        self._targets[made.id] = target
        if is_new:
            self._changed.set()
        self._fill_all()
        return attached

    async def detach(self, target: Target) -> None:
        id = self._id(target)
        self._before.discard(id)
        self._targets.pop(id, None)
        self._attaching.end(self._merge.detached(id))

    async def replay(self, stream: str, after: str, through: str) -> Page:
        """A page; an empty one where (after, through] ends in an execution that is still running."""
        known = self._merge.stream(stream)
        if known is None:
            raise NotFound("stream", stream)
        page = await self._replayed(known, after, through)
        if self._merge.stream(stream) is not known:
            raise NotFound("stream", stream)
        holes = [Hole(page.gap.after, page.gap.through, None)] if page.gap else []
        gap = Gap(stream, holes, page.gap.reason) if page.gap else None
        items = [(r.position, bytes(r.payload)) for r in page.results]
        return Page(items, page.through, page.through >= through, gap)

    async def is_beyond(self, stream: str, position: str) -> bool:
        known = self._merge.stream(stream)
        if known is None:
            raise NotFound("stream", stream)
        if position <= self._merge.channels[known.channel].cursor:
            return False
        try:
            page = await self._replaying.page(Span(known.channel, known.backend, position, position))
        except ClusterRefused as refused:
            if refused.code != BadArgument.code:
                raise
            return True
        self._heed_life(known.channel, page.life)
        return False

    def restore(self) -> None:
        """Attachments here may have been removed at the cluster: make them again, and fill what was missed."""
        for id, target in self._targets.items():
            self._merge.doubt(id)
            self._tasks.spawn(self._restore(id, target))

    async def _restore(self, id: str, target: ChannelTarget) -> None:
        backoff = self._backoff()
        async with self._gate(id):
            while self._targets.get(id) is target:
                self._merge.doubt(id)  # again: a request before this one may have ended it
                try:
                    self._renewed(target, await self._attaching.make(target.name, id, target.arguments))
                    return
                except NotFound as problem:
                    await self._lost(problem, self._merge.channel_of(id), backoff)
                except ClusterRefused as problem:
                    self._end(self._merge.refused(id), "replaced", str(problem))
                except TocsinError as problem:
                    self._tell_away(problem)
                    await backoff.pause()

    def _renewed(self, target: ChannelTarget, made: Made) -> None:
        self._heed_life(made.channel, made.life)
        if self._targets.get(made.id) is target:
            self._merge.renewed(made)
            self._fill_all()
        else:  # it was detached meanwhile
            self._attaching.end([made.id])

    def _is_left(self, id: str) -> bool:
        """Whether it may stand at the cluster for somebody here, whatever becomes of one request for it."""
        return id in self._before or id in self._targets

    def _gate(self, id: str) -> asyncio.Lock:
        """Held while a subscription is being made: what one request ends, another must not have made."""
        return self._gates.setdefault(id, asyncio.Lock())

    # --- Notices ------------------------------------------------------------------------------------------

    async def noticed(self, body: bytes, principal: Principal) -> None:
        try:
            msgspec.json.decode(body, type=_Notices)
        except msgspec.DecodeError as problem:
            raise BadArgument("notices", "what the data cluster posts", str(problem)) from None
        self._wake.set()

    # --- the loops ----------------------------------------------------------------------------------------

    async def _run(self) -> None:
        await self._begin()
        self._tasks.spawn(self._acknowledging())
        self._tasks.spawn(self._drop_orphans())
        backoff = self._backoff()
        while True:
            try:
                await self._pull()
                backoff.succeeded()
                self._is_away = False
            except Unavailable as problem:
                self._tell_away(problem)
                await self._pause(backoff)
            except NotFound as problem:
                await self._lost(problem, problem.name, backoff)
            except TocsinError as problem:
                if self._end_outrun(problem):
                    continue
                log.error("the data cluster refuses a pull, so everything is attached anew: %s", problem)
                await self._pause(backoff)
                self.restore()
            except Exception:
                log.exception("a pull failed; trying again")
                await self._pause(backoff)

    async def _begin(self) -> None:
        """Register, and learn what an earlier life of this broker left."""
        backoff = self._backoff()
        while True:
            try:
                await self._cluster.register(self._options.broker, self._notify_url)
                self._merge.acknowledged = await self._cluster.acknowledged(self._options.broker)
                self._heed_before(await self._cluster.subscriptions(self._options.broker))
                self._ready.set()
                return
            except TocsinError as problem:
                self._tell_away(problem)
                await self._pause(backoff)

    def _heed_before(self, stood: Sequence[Stood]) -> None:
        """Numbers of makings go on from the greatest of this broker's own; another's says nothing."""
        self._before = {one.id for one in stood}
        self._attaching.heed(max((one.making for one in stood if one.owner == self._options.broker), default=0))

    async def _pull(self) -> None:
        self._changed.clear()
        cursors = self._merge.cursors()
        if not cursors:
            await self._changed.wait()
            return
        asking = asyncio.create_task(
            self._cluster.pull(self._options.broker, cursors, self._options.page_rows, self._options.wait_s)
        )
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({asking, changed}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                self._take(asking.result())
        finally:
            for task in (asking, changed):
                task.cancel()
            await asyncio.gather(asking, changed, return_exceptions=True)

    def _take(self, pages: list[ResultPage]) -> None:
        for page in pages:
            if self._heed_life(page.channel, page.life):
                self._merge.take(page)
        self._fill_all()

    async def _lost(self, problem: NotFound, channel: str | None, backoff: Backoff) -> None:
        """``channel`` was dropped, which nothing else is lost with; or the broker itself is not known any more.

        ``channel`` is not the problem's name: the cluster names it as it was asked, in whatever case that was.
        """
        if problem.kind != "channel":
            await self._lost_all(problem, backoff)
        elif channel in self._merge.channels:
            self._end_channel(channel, "dropped", f"the channel {channel!r} was dropped at the data cluster")
        elif channel is not None:
            await self._pause(backoff)

    async def _lost_all(self, problem: NotFound, backoff: Backoff) -> None:
        """Register again and attach everything anew, once for all who found out meanwhile."""
        if self._registering is None or self._registering.done():
            log.error("the data cluster lost something: %s", problem)
            self._registering = self._tasks.spawn(self._register_again(backoff))
        await asyncio.wait({self._registering})

    async def _register_again(self, backoff: Backoff) -> None:
        await self._pause(backoff)
        with contextlib.suppress(TocsinError):
            await self._cluster.register(self._options.broker, self._notify_url)
            self.restore()

    def _end_outrun(self, problem: TocsinError) -> bool:
        """Whether a channel has never been where we stand: its data were made anew, and what was followed is over."""
        if not isinstance(problem, BadArgument) or problem.name not in self._merge.channels:
            return False
        self._end_channel(problem.name, "replaced", f"the channel {problem.name!r} was made anew: {problem}")
        return True

    def _heed_life(self, channel: str, life: int) -> bool:
        """Whether ``channel`` is the one that is followed; what was followed of the one before ends here."""
        is_other = self._merge.is_other(channel, life)
        if is_other:
            self._end_channel(channel, "replaced", f"the channel {channel!r} was replaced by one with other parameters")
        return not is_other

    def _end_channel(self, channel: str, code: str, detail: str) -> None:
        self._parameters.pop(channel.casefold(), None)
        self._end(self._merge.forget(channel), code, detail)

    def _end(self, streams: Sequence[str], code: str, detail: str) -> None:
        log.warning("what is followed ends here (%d): %s", len(streams), detail)
        ids = self._merge.ids()
        self._targets = {id: target for id, target in self._targets.items() if id in ids}
        self._changed.set()
        for stream in streams:
            self._delivery.end(stream, code, detail)

    async def _acknowledging(self) -> None:
        told: dict[str, str] = {}
        while True:
            await asyncio.sleep(self._options.ack_s)
            try:
                told |= await self._acknowledge(told)
            except TocsinError as problem:
                self._tell_away(problem)

    async def _acknowledge(self, told: dict[str, str]) -> dict[str, str]:
        news = {name: at for name, at in self._merge.settled().items() if told.get(name) != at}
        if news:
            await self._cluster.acknowledge(self._options.broker, news)
        return news

    async def _drop_orphans(self) -> None:
        """End what an earlier life left and nobody has asked for since."""
        await asyncio.sleep(self._options.orphan_s)
        while not self._options.may_drop():
            await asyncio.sleep(self._options.orphan_s)
        needed = self._merge.ids()
        orphans = {id for id in self._before if id not in needed and not self._attaching.is_awaited(id)}
        self._before -= orphans
        if orphans:
            log.info("%d subscriptions of an earlier life are ended", len(orphans))
            self._attaching.end(orphans)

    # --- filling ------------------------------------------------------------------------------------------

    def _fill_all(self) -> None:
        for stream in self._merge.behind():
            if stream.name not in self._filling:
                self._filling.add(stream.name)
                self._tasks.spawn(self._fill(stream))
        if self._look is None and self._merge.is_waiting_for_hub():
            self._look = asyncio.get_running_loop().call_later(_UNKNOWN_S, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        self._fill_all()

    async def _fill(self, stream: Stream) -> None:
        backoff = self._backoff()
        try:
            while stream.is_behind and (due := self._merge.begin_fill(stream)):
                try:
                    await self._fill_round(stream, *due)
                    backoff.succeeded()
                    continue
                except TocsinError as problem:
                    log.info("filling %s waits: %s", stream.name, problem)
                except Exception:
                    log.exception("filling %s failed; trying again", stream.name)
                self._merge.abandon_fill(stream)
                await backoff.pause()
        finally:
            self._filling.discard(stream.name)

    async def _fill_round(self, stream: Stream, after: str, through: str) -> None:
        at: str | None = after
        while at is not None:
            page = await self._replayed(stream, at, through)
            if page.end and page.through < through and not page.results:
                await asyncio.sleep(_UNFINISHED_S)
            at = self._merge.filled(stream, page)

    async def _replayed(self, stream: Stream, after: str, through: str) -> ResultPage:
        page = await self._replaying.page(Span(stream.channel, stream.backend, after, through))
        self._heed_life(stream.channel, page.life)
        return page

    # --- small things -------------------------------------------------------------------------------------

    def _tell_away(self, problem: TocsinError) -> None:
        """Once each time that the cluster goes away."""
        if not self._is_away:
            log.warning("channels wait for the data cluster: %s", problem)
        self._is_away = True

    async def _parameters_of(self, channel: str) -> list[Parameter]:
        now, key = asyncio.get_running_loop().time(), channel.casefold()
        known = self._parameters.get(key)
        if known is None or known[0] < now - _PARAMETERS_S:
            known = self._parameters[key] = (now, await self._cluster.parameters(channel))
        return known[1]

    def _id(self, target: Target) -> str:
        return f"{self._options.broker}:{blake2b(target_key(target).encode(), digest_size=16).hexdigest()}"

    def _backoff(self) -> Backoff:
        return Backoff(self._options.backoff_min_s, self._options.backoff_max_s)

    async def _pause(self, backoff: Backoff) -> None:
        self._wake.clear()
        await backoff.pause(self._wake)


class _Notice(msgspec.Struct, frozen=True):
    channel: str
    through: str


class _Notices(msgspec.Struct, frozen=True):
    notices: list[_Notice]


def _channel(target: Target) -> ChannelTarget:
    if not isinstance(target, ChannelTarget):
        raise BadArgument("target", "a channel", target)
    return target
