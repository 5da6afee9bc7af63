import json

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tocsin.cli.completion import Names
from tocsin.cli.http import ClusterClient
from tocsin.cli.shell import Shell, asks_for_help, is_whole, leaves
from tocsin.errors import Unavailable
from tocsin.language.parser import _STATEMENTS
from tocsin.language.statements import Shown


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        pytest.param("SHOW CHANNELS;", True, id="a semicolon ends a statement"),
        pytest.param("SHOW CHANNELS;  -- all of them\n", True, id="a comment may follow"),
        pytest.param("SHOW CHANNELS", False, id="no semicolon yet"),
        pytest.param("SELECT ';", False, id="a semicolon in an open string"),
        pytest.param("SELECT ';'", False, id="a semicolon in a string"),
        pytest.param("SELECT 1 /* ;", False, id="an open comment"),
        pytest.param("exit", True, id="a word to the shell"),
        pytest.param("help", True, id="another word to the shell"),
        pytest.param("", True, id="an empty line"),
        pytest.param("help SUBSCRIBE", True, id="help with a topic"),
        pytest.param("SELECT 1\n\\q", True, id="leaving from the middle of a statement"),
        pytest.param("SELECT 'a\nexit", False, id="a word in an open string"),
        pytest.param("SELECT help", False, id="a word that is no first one"),
    ],
)
def test_is_whole(text, whole):
    assert is_whole(text) is whole


@pytest.mark.parametrize("text", ["exit", "QUIT;", "\\q", "SHOW TABLES\n quit "])
def test_words_that_leave(text):
    assert leaves(text)
    assert not leaves(f"{text} FROM d")


def test_help_is_one_line():
    assert asks_for_help("Help me;")
    assert not asks_for_help("help\nme")


@pytest.fixture
def answering(cluster):
    cluster.on("GET", "/version", {"name": "tocsin", "version": "9.9"})
    return cluster


def test_the_shell_does_not_open_where_nobody_answers():
    with create_pipe_input() as keys, pytest.raises(Unavailable):
        Shell(
            ClusterClient("http://127.0.0.1:1", None), history=InMemoryHistory(), terminal=(keys, DummyOutput())
        ).run()


def test_keys_typed_become_statements_until_the_end(answering, capsys):
    answering.on("POST", "/statements", {"detail": "line 1, column 1: no"}, status=400)
    answering.on("POST", "/statements", {"results": [{"kind": "done", "message": "made", "columns": [], "rows": []}]})
    with create_pipe_input() as keys:
        keys.send_text("WRONG;\rCREATE DATASET a\r(id INT);\rexit\r")
        Shell(ClusterClient(answering.url, None), history=InMemoryHistory(), terminal=(keys, DummyOutput())).run()
    sent = [json.loads(r.body)["text"] for r in answering.requests if r.method == "POST"]
    assert sent == ["WRONG;", "CREATE DATASET a\n(id INT);"]
    printed = capsys.readouterr()
    assert "made" in printed.out
    assert "line 1, column 1: no" in printed.err


def test_the_end_of_input_leaves_the_shell(answering, capsys):
    with create_pipe_input() as keys:
        keys.send_text("help\r\x04")
        Shell(ClusterClient(answering.url, None), history=InMemoryHistory(), terminal=(keys, DummyOutput())).run()
    assert "Statements end with ;" in capsys.readouterr().err


def completions(names, text):
    return [c.text for c in names.get_completions(Document(text), CompleteEvent())]


def test_names_of_the_cluster_are_completed(cluster):
    cluster.on("GET", "/datasets", {"datasets": [{"name": "Reports", "columns": [{"name": "reporter"}]}]})
    for kind in ("channels", "brokers", "feeds"):
        cluster.on("GET", f"/{kind}", {kind: []})
    names = Names(ClusterClient(cluster.url, None))
    assert completions(names, "SELECT * FROM rep") == ["REPLACE"]
    names.refresh()
    assert completions(names, "SELECT * FROM rep") == ["Reports", "REPLACE", "reporter"]
    assert completions(names, "SELECT rep") == ["REPLACE", "Reports", "reporter"]
    assert completions(names, "SELECT ") == []
    assert completions(names, "SELECT r.") == ["reporter"]
    assert completions(names, "SELECT r.re")[0] == "reporter"
    assert completions(names, "ALTER DATASET Reports DROP COLUMN ") == ["reporter"]


def test_every_word_that_statements_begin_with_is_offered(cluster):
    names = Names(ClusterClient(cluster.url, None))
    for word in _STATEMENTS:
        assert word in completions(names, word[:3].lower())


def test_the_word_before_decides_what_comes_first(cluster):
    for kind, name in {"datasets": "D", "channels": "C", "brokers": "B", "feeds": "F"}.items():
        cluster.on("GET", f"/{kind}", {kind: [{"name": name}]})
    names = Names(ClusterClient(cluster.url, None))
    names.refresh()
    assert completions(names, "SELECT *\nFROM ") == ["D", "CResults", "CSubscriptions"]
    assert completions(names, "explain channel ") == ["C"]
    assert completions(names, "SUBSCRIBE TO C('fire') ON ") == ["B"]


def test_after_show_only_what_it_lists_is_offered(cluster):
    names = Names(ClusterClient(cluster.url, None))
    assert completions(names, "show ") == [str(shown) for shown in Shown]
    assert completions(names, "SHOW d") == ["DATASETS", "DEAD LETTERS"]


def test_what_was_dropped_is_offered_no_more(answering, capsys):
    for kind in ("channels", "brokers", "feeds"):
        answering.on("GET", f"/{kind}", {kind: []})
    answering.on("GET", "/datasets", {"datasets": [{"name": "Reports", "columns": []}]})
    answering.on("GET", "/datasets", {"datasets": []})
    answering.on("POST", "/statements", {"results": []})
    with create_pipe_input() as keys:
        keys.send_text("SHOW FEEDS; drop dataset Reports;\rexit\r")
        shell = Shell(ClusterClient(answering.url, None), history=InMemoryHistory(), terminal=(keys, DummyOutput()))
        shell.run()
    assert completions(shell._names, "SELECT * FROM rep") == ["REPLACE"]


def test_a_cluster_that_does_not_answer_leaves_the_keywords(cluster):
    names = Names(ClusterClient(cluster.url, None))
    names.refresh()
    assert completions(names, "sel") == ["SELECT"]
