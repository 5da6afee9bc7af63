"""The client without asyncio, and the commands, at a real broker that runs in a thread of its own."""

from __future__ import annotations

import asyncio
import io
import json
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from broker_world import World, place, token_of, world
from support.authority import Certificate
from tocsin import client
from tocsin.broker.server import tls_context
from tocsin.cli.main import app
from tocsin.client import Gap, Notification, topic
from tocsin.client.sync import connect
from tocsin.config import Client
from tocsin.errors import BadArgument, BrokerRefused, SessionEnded, TocsinError, Unauthenticated, Unavailable
from tocsin.protocol.coordination import Placement
from tocsin.web.app import new_app
from tocsin.web.describe import reply
from tocsin.web.server import ApiServer, ServerOptions, Tls


class Running:
    """A broker's world, and a way to act in it from here."""

    def __init__(self, made: World, loop: asyncio.AbstractEventLoop) -> None:
        self.world, self._loop = made, loop
        self.url = made.server.url

    def put(self, payload: bytes) -> None:
        self._loop.call_soon_threadsafe(self.world.topics.put, "news", payload)


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    ready, found = threading.Event(), []
    over = asyncio.Event()

    async def run() -> None:
        async with world() as made:
            found.append(Running(made, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(20)
    yield found[0]
    found[0]._loop.call_soon_threadsafe(over.set)
    thread.join(20)


def test_a_session_where_a_private_authority_is_named(certificate: Certificate) -> None:
    """At a real broker with TLS, which a coordinator with TLS names."""

    async def told() -> None:
        async with world(tls=tls_context(certificate.chain, certificate.key)) as made:
            placed, token = Placement("bob", made.settings.name, made.server.url, 1, "", "test"), token_of("bob")
            with coordinator_of(placed, certificate) as url:
                trusting = Client(ca_file=certificate.ca, connect_timeout=20)
                async with client.connect(coordinator=url, token=token, settings=trusting) as session:
                    assert session.broker == made.settings.name
                    assert await session.publish("talk", 1) == place(1)
                for where in ({"coordinator": url}, {"broker": made.server.url}):
                    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
                        async with client.connect(**where, token=token, settings=Client(connect_timeout=0.5)):
                            pass

    asyncio.run(told())


@contextmanager
def coordinator_of(placed: Placement, certificate: Certificate) -> Iterator[str]:
    """Places everybody at one broker, over TLS."""

    class Drains:
        def drain(self) -> None:
            return

    app = new_app("coordinator", Drains())
    app.add_api_route("/users/{user}/placement", lambda user: reply(placed), methods=["POST"])
    server = ApiServer(app, ServerOptions(port=0, tls=Tls(Path(certificate.chain), Path(certificate.key))))
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def test_a_session_without_asyncio(broker: Running) -> None:
    with connect(broker=broker.url, token=token_of("bob", ("topic:*", "publish:*"))) as session:
        subscription = session.topic("talk")
        assert (session.user, session.broker) == ("bob", broker.world.settings.name)
        assert session.publish("talk", {"a": 1}) == place(1)
        item = subscription.next(timeout_s=20)
        assert isinstance(item, Notification)
        assert (item.payload, item.through) == ({"a": 1}, place(1))
        assert session.records("Places", [{"x": 1}, {"x": 2}]) == (2, 0)
        assert [standing.id for standing in session.held()] == [subscription.id]
        session.refresh(token_of("bob", ("topic:*", "publish:*")))
        assert session.positions == {subscription.id: place(1)}
        with pytest.raises(TimeoutError):
            subscription.next(timeout_s=0.05)
        session.publish("talk", 2)
        assert [item.payload for item in _first(subscription, 1)] == [2]
        subscription.unsubscribe()
        assert subscription.next(timeout_s=20) is None
    with pytest.raises(SessionEnded):
        session.publish("talk", 3)
    session.__exit__(None, None, None)  # as harmless as closing twice


def _first(items: Iterator[Notification | Gap], count: int) -> list[Notification]:
    return [item for _, item in zip(range(count), items, strict=False) if isinstance(item, Notification)]


def test_errors_come_through(broker: Running) -> None:
    with connect(broker=broker.url, token=token_of("eve", ("topic:mine",))) as session:
        with pytest.raises(BrokerRefused) as refused:
            session.subscribe(topic("yours"))
        assert refused.value.code == "forbidden"
        with pytest.raises(BadArgument):
            session.topic("")
    with pytest.raises(SessionEnded), connect(broker=broker.url, token="nonsense"):
        pass
    with (
        pytest.raises(Unavailable, match="no login"),
        connect(broker="http://127.0.0.1:9", settings=Client(connect_timeout=0.3, backoff_min=0.01, backoff_max=0.05)),
    ):
        pass


# --- the commands -----------------------------------------------------------------------------------------


@pytest.fixture
def login_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kept" / "login.json"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOCSIN_CLIENT_LOGIN_FILE", str(path))
    return path


def run(*arguments: str, text: str | None = None) -> str:
    done = CliRunner().invoke(app, list(arguments), input=text)
    if isinstance(done.exception, TocsinError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_login_is_kept_for_its_owner_and_used(broker: Running, login_file: Path) -> None:
    token = token_of("carl", ("topic:*", "publish:*"))
    told = json.loads(run("login", "--broker", broker.url, "--token", token, "--json"))
    assert (told["user"], told["broker"]) == ("carl", broker.world.settings.name)
    assert stat.S_IMODE(login_file.stat().st_mode) == 0o600
    positions = run("publish", "lines", "-", text='{"n": 1}\n\n[2]\n').split()
    assert positions == [place(1), place(2)]
    run("login", "--forget")
    assert not login_file.exists()


def test_a_kept_token_is_not_shown_to_another_address(broker: Running, login_file: Path) -> None:
    run("login", "--broker", broker.url, "--token", token_of("dora", ("topic:*", "publish:*")))
    kept = json.loads(login_file.read_text())
    login_file.write_text(json.dumps({**kept, "broker": "http://elsewhere.example:1"}))
    with pytest.raises(Unauthenticated, match="TOCSIN_TOKEN"):
        run("publish", "news", "1", "--broker", broker.url, "--set", "client.connect_timeout=5s")


def test_a_login_that_fails_keeps_nothing(broker: Running, login_file: Path) -> None:
    with pytest.raises(Unauthenticated, match="JSON Web Token"):
        run("login", "--broker", broker.url, "--token", "nonsense")
    assert not login_file.exists()


@pytest.mark.usefixtures("login_file")
def test_a_subscription_goes_on_where_the_command_stopped(broker: Running) -> None:
    token = token_of("fay", ("topic:*", "publish:*"))
    options = ("--topic", "--broker", broker.url, "--token", token)
    first = threading.Thread(target=lambda: [broker.put(b'{"n": %d}' % n) for n in range(4)])
    seen = io.StringIO()
    _publish_when_subscribed(broker, "fay", first)
    seen.write(run("subscribe", "news", "--count", "2", *options))
    first.join(20)
    seen.write(run("subscribe", "news", "--count", "2", "--end", "--json", *options))
    lines = [json.loads(line) for line in seen.getvalue().splitlines()]
    assert [line.get("payload", line)["n"] for line in lines] == [0, 1, 2, 3]
    assert [user for user, _ in broker.world.directory.kept if user == "fay"] == []


def _publish_when_subscribed(broker: Running, user: str, publish: threading.Thread) -> None:
    def wait() -> None:
        while not any(name == user for name, _ in list(broker.world.directory.kept)):
            threading.Event().wait(0.01)
        publish.start()
        publish.join()

    threading.Thread(target=wait).start()


@pytest.mark.parametrize("arguments", [["news", "x=1", "--topic"], ["Near", "x"], ["Near", "=1"]])
@pytest.mark.usefixtures("login_file")
def test_arguments_that_are_none(arguments: list[str]) -> None:
    with pytest.raises(BadArgument, match="arguments"):
        run("subscribe", *arguments, "--broker", "http://127.0.0.1:9")
