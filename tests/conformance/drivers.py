"""The clients under test behind one face: commands in, answers and events out."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tocsin import client
from tocsin.config import Client
from tocsin.errors import TocsinError
from tocsin.protocol.targets import Target

HERE = Path(__file__).parent
WAIT_S = 20.0


class Refused(Exception):
    """A command that the client answered with an error."""

    def __init__(self, code: str, number: int | None, detail: str) -> None:
        self.code, self.number, self.detail = code, number, detail
        super().__init__(code, number, detail)


class Driver:
    """What both clients can do. Every subscription is read as soon as something comes, unless reading is off."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def ask(self, name: str, **arguments: Any) -> Any:
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError

    async def event(self) -> dict[str, Any]:
        return await asyncio.wait_for(self._events.get(), WAIT_S)

    async def items(self, wanted: int) -> list[tuple[Any, ...]]:
        """So many items, short: ("1", payload) for a notification up to 1, ("gap", after, through, count, reason)."""
        return [_short((await self.event())["item"]) for _ in range(wanted)]

    def waiting(self) -> int:
        return self._events.qsize()


def _short(item: dict[str, Any]) -> tuple[Any, ...]:
    if item["type"] == "gap":
        return ("gap", item["after"], item["through"], item["count"], item["reason"])
    return (item["through"], item["payload"])


class PythonDriver(Driver):
    name = "python"

    def __init__(self) -> None:
        super().__init__()
        self._session: Any = None
        self._subscriptions: dict[str, client.Subscription] = {}
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._tokens: list[str] = []
        self._token_takes_s = 0.0
        self._tokens_asked = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Nothing to start."""

    async def ask(self, name: str, **arguments: Any) -> Any:
        try:
            return await asyncio.wait_for(getattr(self, f"_{name}")(**arguments), WAIT_S)
        except TocsinError as error:
            raise Refused(error.code, getattr(error, "number", None), str(error)) from None

    async def stop(self) -> None:
        if self._session:
            await self._session.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, options: dict[str, Any]) -> Any:
        chosen = dict(options)
        self._tokens = list(chosen.pop("tokens", []))
        self._token_takes_s = chosen.pop("token_takes_ms", 0) / 1000
        times = {name: value / 1000 for name, value in chosen.pop("settings_ms", {}).items()}
        settings = Client(**times, **chosen.pop("settings", {}))
        if self._tokens:
            chosen["token"] = self._next_token
        session = client.connect(settings=settings, **chosen)
        self._session = session
        await session.__aenter__()
        return {"user": session.user, "broker": session.broker}

    async def _next_token(self) -> str:
        self._tokens_asked += 1
        await asyncio.sleep(self._token_takes_s)
        return self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]

    async def _asked_tokens(self) -> int:
        return self._tokens_asked

    async def _subscribe(self, id: str, target: dict[str, Any], position: str | None = None) -> Any:
        subscription = self._session.subscribe(msgspec.convert(target, Target), id=id, position=position)
        self._subscriptions[id] = subscription
        self._tasks.append(asyncio.create_task(self._read(subscription)))
        standing = (await subscription).standing
        return {"stream": standing.stream, "position": standing.position} if standing else {}

    async def _read(self, subscription: client.Subscription) -> None:
        try:
            await self._may_read.wait()
            async for item in subscription:
                kind = "gap" if isinstance(item, client.Gap) else "notification"
                told = {"type": kind, **asdict(item)}
                if isinstance(item, client.Notification):
                    told["payload"] = item.payload
                self._events.put_nowait({"event": "item", "item": told})
                await self._may_read.wait()
            self._events.put_nowait({"event": "over", "id": subscription.id})
        except TocsinError as error:
            told = {"code": error.code, "number": getattr(error, "number", None)}
            self._events.put_nowait({"event": "stopped", "id": subscription.id, "error": told})

    async def _reading(self, on: bool) -> None:
        if on:
            self._may_read.set()
        else:
            self._may_read.clear()

    async def _unsubscribe(self, id: str) -> None:
        await self._subscriptions[id].unsubscribe()

    async def _publish(self, topic: str, payload: Any) -> Any:
        return {"position": await self._session.publish(topic, payload)}

    async def _records(self, dataset: str, records: list[Any]) -> Any:
        accepted, rejected = await self._session.records(dataset, records)
        return {"accepted": accepted, "rejected": rejected}

    async def _misuse(self, what: str) -> None:
        session, news = self._session, client.topic("news")
        wrong: dict[str, Callable[[], Any]] = {
            "a target without JSON": lambda: session.subscribe(client.channel("Near", object()), id="bad"),
            "a target with no number": lambda: session.subscribe(client.channel("Near", x=[float("nan")]), id="bad"),
            "a target that is none": lambda: session.subscribe("news", id="bad"),
            "a target with half a character": lambda: session.subscribe(client.channel("Near", "\ud800"), id="bad"),
            "an id that is no text": lambda: session.subscribe(news, id=5),
            "a position that is no text": lambda: session.subscribe(news, id="bad", position=5),
            "a position that is too long": lambda: session.subscribe(news, id="bad", position="x" * 65),
            "a payload without JSON": lambda: session.publish("t", object()),
            "a payload that is no number": lambda: session.publish("t", {"x": [None, float("inf")]}),
            "a payload that is nothing": lambda: session.publish("t", float("nan")),
            "a topic that is no text": lambda: session.publish(5, 1),
            "a dataset that is no text": lambda: session.records(None, [1]),
            "records that are no list": lambda: session.records("Places", None),
            "one record instead of a list": lambda: session.records("Places", {"x": 1}),
            "a record without JSON": lambda: session.records("Places", [object()]),
            "a token that is no text": lambda: session.refresh(5),
        }
        await wrong[what]()

    async def _held(self) -> Any:
        return {"ids": [standing.id for standing in await self._session.held()]}

    async def _refresh(self, token: str) -> None:
        await self._session.refresh(token)

    async def _positions(self) -> Any:
        return self._session.positions

    async def _close(self, forget: bool = False) -> None:
        await self._session.close(forget=forget)


class Node:
    """One Node process for all stories; each driver is a story of it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.stories: dict[int, NodeDriver] = {}
        self._task = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, node: str) -> Node:
        environment = {name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"}
        return cls(
            await asyncio.create_subprocess_exec(
                node, "--no-warnings", "--experimental-websocket", str(HERE / "driver.mjs"), str(client.JAVASCRIPT),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment, limit=2**24,
            )
        )  # fmt: skip

    def tell(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.wait_for(self._process.wait(), WAIT_S)
        await self._task

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            told = json.loads(line)
            if told["story"] in self.stories:
                self.stories[told["story"]].hear(told)
        for story in self.stories.values():
            story.lost()


class NodeDriver(Driver):
    name = "javascript"
    node: Node | None = None
    _stories = count(1)

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._numbers, self._story = count(1), next(self._stories)

    async def start(self) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.skip("Node is not here")
        if NodeDriver.node is None:
            NodeDriver.node = await Node.start(node)
        NodeDriver.node.stories[self._story] = self

    async def ask(self, name: str, **arguments: Any) -> Any:
        assert NodeDriver.node is not None
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        NodeDriver.node.tell({"story": self._story, "number": number, "do": name, **arguments})
        return await asyncio.wait_for(answer, WAIT_S)

    async def stop(self) -> None:
        assert NodeDriver.node is not None
        await self.ask("close")
        del NodeDriver.node.stories[self._story]

    def hear(self, told: dict[str, Any]) -> None:
        if "event" in told:
            self._events.put_nowait(told)
            return
        answer = self._answers.pop(told["number"])
        if answer.done():
            return
        if "error" in told:
            answer.set_exception(Refused(**told["error"]))
        else:
            answer.set_result(told["value"])

    def lost(self) -> None:
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(EOFError("Node has ended"))
