"""Every store keeps to the same contract; PostgreSQL's on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.coordinators import MemoryStore, Story
from support.postgres import running_postgres
from tocsin.coordinator.rows import Change
from tocsin.coordinator.store.base import Store, open_store
from tocsin.errors import ConfigError, Corrupt, Unavailable

Open = Callable[[], Store]
PATIENCE_S = 2.0  # until PostgreSQL knows that a connection has gone
DROPPED = "DROP TABLE IF EXISTS tocsin_coordinator, tocsin_coordinator_schema"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_postgres(tmp_path_factory.mktemp("pg")) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same store again and again."""
    if request.param == "sqlite":
        return lambda: open_store("", tmp_path)
    url = request.getfixturevalue("postgres")
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(DROPPED)
    return lambda: open_store(url, tmp_path, PATIENCE_S)


def test_an_empty_store_has_no_rows(opened: Open):
    store = opened()
    assert list(store.load()) == []
    store.close()


def test_rows_are_there_after_a_restart(opened: Open):
    store = opened()
    store.save([Change("user", "ann", b"1"), Change("user", "bob", b"2"), Change("move", "ann", b"\x003")])
    store.save([Change("user", "ann", b"4"), Change("user", "bob", None), Change("user", "nobody", None)])
    store.close()
    again = opened()
    assert sorted(again.load()) == [("move", "ann", b"\x003"), ("user", "ann", b"4")]
    again.close()


def test_names_are_kept_as_they_are(opened: Open):
    names = ["Ann", "ann", "änn", "a'nn\"", "安", "x" * 255]
    store = opened()
    store.save([Change("user", name, name.encode()) for name in names])
    assert {key: body.decode() for _, key, body in store.load()} == {name: name for name in names}
    store.close()


def test_a_commit_is_all_or_nothing(opened: Open):
    store = opened()
    with pytest.raises(Exception):  # noqa: B017
        store.save([Change("user", "ann", b"1"), Change("user", None, b"2")])  # type: ignore[arg-type]
    assert list(store.load()) == []
    store.save([Change("user", "bob", b"1")])
    assert len(store.load()) == 1
    store.close()


def test_a_second_coordinator_is_kept_out(opened: Open):
    store = opened()
    with pytest.raises(Unavailable, match="another coordinator"):
        opened()
    store.close()
    opened().close()


def test_a_whole_state_comes_back(opened: Open):
    store = opened()
    made = Story("a", "b", store=store)  # type: ignore[arg-type]
    for n in range(20):
        made.place(f"u{n}")
        made.keep(f"u{n}", "1")
    made.plan("u0", "b")
    before = {user.name: (user.broker, user.version) for user in made.state.world.users}
    store.close()
    made.store = opened()  # type: ignore[assignment]
    made.begin()
    assert {user.name: (user.broker, user.version) for user in made.state.world.users} == before
    assert made.move[0] == "adopting"
    made.store.close()


def test_a_store_of_a_later_version_is_refused(tmp_path: Path):
    import sqlite3

    open_store("", tmp_path).close()
    with sqlite3.connect(tmp_path / "coordinator.db") as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(Unavailable, match="version 9"):
        open_store("", tmp_path)


def test_a_file_that_was_deleted_meanwhile_takes_no_more_rows(tmp_path: Path):
    store = open_store("", tmp_path)
    store.save([Change("user", "ann", b"1")])
    (tmp_path / "coordinator.db").unlink()
    with pytest.raises(Unavailable, match="deleted or replaced"):
        store.save([Change("user", "bob", b"2")])
    store.close()


def test_a_file_that_is_no_database_is_told(tmp_path: Path):
    (tmp_path / "coordinator.db").write_bytes(b"not a database at all, but long enough to be looked at" * 30)
    with pytest.raises(Corrupt, match="not a SQLite file"):
        open_store("", tmp_path)


def test_a_file_whose_pages_are_damaged_is_told(tmp_path: Path):
    store, file = open_store("", tmp_path), tmp_path / "coordinator.db"
    store.save([Change("user", f"u{number}", b"1" * 100) for number in range(1000)])
    store.close()
    sound = file.read_bytes()
    file.write_bytes(sound[:8192] + b"\xff" * (len(sound) - 8192))
    store = open_store("", tmp_path)
    with pytest.raises(Corrupt, match="cannot be read"):
        store.load()
    store.close()


@pytest.mark.parametrize(
    ("kind", "body"), [("user", b'{"name": '), ("user", b"null"), ("user", b"\xff"), ("martian", b"{}")]
)
def test_a_row_that_cannot_be_understood_is_named(kind: str, body: bytes):
    rows = MemoryStore()
    rows.save([Change(kind, "ann", body)])
    with pytest.raises(Corrupt, match=f"{kind} 'ann'"):
        Story(store=rows)


@pytest.mark.parametrize("place", ["a file/coordinator.db", "a directory"])
def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, place: str):
    (tmp_path / "a file").touch()
    (tmp_path / "a directory").mkdir()
    with pytest.raises(Unavailable, match="can this program read and write it"):
        open_store(f"sqlite:///{tmp_path / place}", tmp_path)


@pytest.mark.parametrize(
    ("configured", "used"),
    [
        pytest.param("off", "on", id="a commit that returns is durable"),
        pytest.param("remote_apply", "remote_apply", id="what is stricter stays"),
    ],
)
def test_commits_of_postgresql_are_synchronous(postgres: str, configured: str, used: str, tmp_path: Path):
    store = open_store(f"{postgres}&options=-c%20synchronous_commit%3D{configured}", tmp_path, PATIENCE_S)
    try:
        assert store._db.execute("SHOW synchronous_commit").fetchone() == (used,)  # type: ignore[attr-defined]
    finally:
        store.close()


def test_a_postgresql_that_cannot_be_read_is_told(postgres: str, tmp_path: Path):
    psycopg = pytest.importorskip("psycopg")
    store = open_store(postgres, tmp_path, PATIENCE_S)
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(DROPPED)
    with pytest.raises(Unavailable, match="PostgreSQL cannot be read"):
        store.load()
    store.close()


def test_a_postgresql_that_cannot_be_prepared_is_told(postgres: str, tmp_path: Path):
    with pytest.raises(Unavailable, match=r"PostgreSQL cannot be used: .*read-only"):
        open_store(f"{postgres}&options=-c%20default_transaction_read_only%3Don", tmp_path, PATIENCE_S)


def test_a_url_names_the_file(tmp_path: Path):
    open_store(f"sqlite:///{tmp_path}/x.db", tmp_path).close()
    assert (tmp_path / "x.db").exists()


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("mysql://u:secret@h/d", ConfigError, "got 'mysql'"),
        ("postgresql://u:secret@127.0.0.1:1/d", Unavailable, "PostgreSQL cannot be reached"),
    ],
)
def test_a_store_that_is_not_there_is_told_without_its_password(url: str, error: type, said: str, tmp_path: Path):
    with pytest.raises(error, match=said) as caught:
        open_store(url, tmp_path)
    assert "secret" not in str(caught.value)
