import json
import logging
import sys

import pytest

from tocsin.cli.logs import JsonFormatter, configure_logging
from tocsin.config import Log


@pytest.fixture
def root(monkeypatch):
    """The root logger, put back as it was."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield root
    root.handlers[:], _ = before
    root.setLevel(before[1])


def test_messages_go_to_standard_error_from_the_level_on(root, capsys):
    configure_logging(Log(level="warning"))
    logging.getLogger("tocsin.x").info("quiet")
    logging.getLogger("tocsin.x").warning("loud %d", 7)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "WARNING tocsin.x: loud 7" in printed.err
    assert "quiet" not in printed.err


def test_configuring_twice_writes_each_message_once(root, capsys):
    configure_logging(Log())
    configure_logging(Log())
    logging.getLogger("tocsin").info("once")
    assert capsys.readouterr().err.count("once") == 1


@pytest.mark.parametrize(("level", "heard"), [("info", ["loud"]), ("error", [])])
def test_servers_and_clients_inside_are_quiet_and_never_louder_than_the_rest(root, capsys, level, heard):
    configure_logging(Log(level=level))
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("loud")
    assert [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()] == heard


def test_what_py4j_tells_as_the_root_logger_is_left_out_since_it_is_raised_as_well(root, capsys):
    configure_logging(Log())
    for place in ("site-packages/py4j/java_gateway.py", "src/tocsin/py4j_notes.py"):
        root.handle(logging.LogRecord("root", logging.ERROR, place, 1, f"from {place}", (), None))
    assert [line.split("from ")[1] for line in capsys.readouterr().err.splitlines()] == ["src/tocsin/py4j_notes.py"]


def test_json_is_one_object_a_line_even_for_a_traceback():
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        record = logging.LogRecord("tocsin", logging.ERROR, "", 0, "it\nfailed", (), sys.exc_info())
    line = JsonFormatter().format(record)
    entry = json.loads(line)
    assert "\n" not in line
    assert (entry["level"], entry["message"], "ValueError: first" in entry["exception"]) == (
        "error",
        "it\nfailed",
        True,
    )
    assert entry["time"].endswith("Z")
