"""``tocsin login``, ``subscribe`` and ``publish`` as programs, at a broker in this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker_world import SECRET, World, eventually, token_of, world
from support.authority import Certificate
from tocsin.broker.server import tls_context

CAN = ("topic:*", "publish:*")


class People:
    """The commands of one person, whose login is kept in ``home``."""

    def __init__(self, broker: World, home: Path) -> None:
        self.broker, self._home = broker, home
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}

    async def start(self, *words: str) -> Process:
        command = [sys.executable, "-m", "tocsin.cli.main", *words, f"--set=client.login_file={self._home / 'login'}"]
        return await asyncio.create_subprocess_exec(
            *command, cwd=self._home, env=self.environ, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )

    async def run(self, *words: str) -> tuple[int | None, str, str]:
        process = await self.start(*words)
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    async def log_in(self, *more: str) -> dict[str, Any]:
        token = token_of("ann", CAN)
        code, out, err = await self.run("login", "--broker", self.broker.server.url, "--token", token, "--json", *more)
        assert code == 0, err
        return json.loads(out)


def tell(story: Callable[[People], Awaitable[None]], home: Path, **options: Any) -> None:
    async def told() -> None:
        async with world(**options) as broker:
            await asyncio.wait_for(story(People(broker, home)), 60)

    asyncio.run(told())


def test_a_login_is_kept_for_the_other_commands(tmp_path: Path):
    async def story(people: People) -> None:
        found = await people.log_in()
        assert (found["user"], found["subscriptions"]) == ("ann", [])
        assert (tmp_path / "login").stat().st_mode & 0o777 == 0o600
        following = await people.start("subscribe", "news", "--topic", "--count", "2")
        await eventually(lambda: bool(people.broker.directory.kept))
        assert await people.run("publish", "news", '{"n": 1}') == (0, "0001\n", "")
        assert await people.run("publish", "news", "plain words") == (0, "0002\n", "")
        out, err = await following.communicate()
        assert (following.returncode, out.decode().splitlines()) == (0, ['{"n":1}', '"plain words"']), err
        assert people.broker.directory.kept, "the subscription stays"

    tell(story, tmp_path)


def test_a_data_directory_that_is_named_counts_more_than_a_login(tmp_path: Path):
    async def story(people: People) -> None:
        await people.log_in()
        secret = tmp_path / "data" / "secret"
        secret.parent.mkdir()
        secret.touch(0o600)
        secret.write_bytes(SECRET)
        here = ("--broker", people.broker.server.url, "--data-dir", "data")
        following = await people.start("subscribe", "news", "--topic", "--count", "1", *here)
        await eventually(lambda: bool(people.broker.directory.kept))
        assert (await people.run("publish", "news", "1", *here))[:2] == (0, "0001\n")
        _, err = await following.communicate()
        assert b"Subscribed as 'local' at" in err
        shown = await people.run("publish", "news", "2", *here, "--token", token_of("bob", ("publish:no",)))
        assert (shown[0], "publishing 'news' needs" in shown[2]) == (1, True), "a token counts more than both"

    tell(story, tmp_path)


def test_a_login_that_is_forgotten_is_told(tmp_path: Path):
    async def story(people: People) -> None:
        await people.log_in()
        path = tmp_path / "login"
        assert await people.run("login", "--forget") == (0, "", f"Removed the login that was kept in {path}.\n")
        assert not path.exists()
        assert await people.run("login", "--forget") == (0, "", f"No login was kept in {path}.\n")

    tell(story, tmp_path)


@pytest.mark.parametrize("words", [("subscribe", "news", "--topic"), ("publish", "news", "1")])
def test_a_coordinator_that_does_not_answer_is_told_while_it_is_tried(tmp_path: Path, words: tuple[str, ...]):
    async def story(people: People) -> None:
        following = await people.start(
            *words, "--coordinator", "http://127.0.0.1:1", "--set", "client.connect_timeout=1h"
        )
        assert following.stderr is not None
        line = (await following.stderr.readline()).decode()
        assert line.startswith("Not connected yet: no coordinator answers at http://127.0.0.1:1 ("), line
        assert line.endswith("; trying for 3600 s (client.connect_timeout).\n"), line
        following.terminate()
        out, _ = await following.communicate()
        assert out == b""

    tell(story, tmp_path)


def test_a_connection_that_is_lost_and_found_again_is_told_once_each(tmp_path: Path):
    async def story(people: People) -> None:
        await people.log_in()
        following = await people.start("subscribe", "news", "--topic", "--set", "client.backoff_max=500ms")
        assert following.stderr is not None
        assert b"Subscribed as 'ann'" in await following.stderr.readline()
        port, name = people.broker.server.port, people.broker.settings.name
        await people.broker.server.stop()
        lost = f"The connection to the broker {name!r} is lost; trying until there is one again.\n"
        assert await following.stderr.readline() == lost.encode()
        async with world(port=port):
            assert await following.stderr.readline() == f"Connected again, at the broker {name!r}.\n".encode()
            following.terminate()
            out, err = await following.communicate()
            assert (out, err) == (b"", b"")

    tell(story, tmp_path)


def test_commands_trust_the_configured_authorities(tmp_path: Path, certificate: Certificate):
    async def story(people: People) -> None:
        people.environ["TOCSIN_HTTP_CA_FILE"] = certificate.ca
        assert (await people.log_in())["user"] == "ann"
        assert await people.run("publish", "news", "1") == (0, "0001\n", "")

    tell(story, tmp_path, tls=tls_context(certificate.chain, certificate.key))


def test_a_login_that_fails_is_not_kept(tmp_path: Path):
    async def story(people: People) -> None:
        code, _, err = await people.run("login", "--broker", people.broker.server.url, "--token", "nonsense")
        assert (code, "JSON Web Token" in err) == (1, True), err
        assert not (tmp_path / "login").exists()

    tell(story, tmp_path)


def test_a_subscription_that_is_to_end_ends_with_the_command(tmp_path: Path):
    async def story(people: People) -> None:
        await people.log_in()
        for number in (signal.SIGINT, signal.SIGTERM):
            following = await people.start("subscribe", "news", "--topic", "--end")
            await eventually(lambda: bool(people.broker.directory.kept))
            following.send_signal(number)
            await following.communicate()
            assert not people.broker.directory.kept, number

    tell(story, tmp_path)


def test_a_line_that_is_no_json_ends_a_publisher_with_one_line(tmp_path: Path):
    async def story(people: People) -> None:
        await people.log_in()
        publishing = await people.start("publish", "news", "-")
        out, err = await publishing.communicate(b"1\nnonsense\n" + b"3\n" * 1000)
        assert (publishing.returncode, out) == (1, b"0001\n")
        assert err.decode().startswith("tocsin: line 2: expected a JSON value")
        assert err.count(b"\n") == 1, err.decode()

    tell(story, tmp_path)


def test_a_publisher_that_waits_for_its_input_stays_connected(tmp_path: Path):
    async def story(people: People) -> None:
        await people.log_in()
        publishing = await people.start("publish", "news", "-")
        assert publishing.stdin is not None
        assert publishing.stdout is not None
        publishing.stdin.write(b"1\n")
        assert await publishing.stdout.readline() == b"0001\n"
        before = set(people.broker.core.outlets)
        await asyncio.sleep(4 * people.broker.settings.idle_timeout)
        assert set(people.broker.core.outlets) == before, "it answered no ping"
        publishing.stdin.write(b"2\n")
        assert await publishing.stdout.readline() == b"0002\n"
        publishing.stdin.close()
        assert await publishing.wait() == 0

    tell(story, tmp_path, ping=0.2, idle_timeout=0.6)
