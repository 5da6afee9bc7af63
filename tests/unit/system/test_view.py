"""What people and programs see of a system's log."""

import io
import json

from rich.console import Console

from tocsin.system.view import JsonView, TextView


def test_lines_carry_their_part_and_no_control_characters():
    out = io.StringIO()
    view = TextView(Console(file=out, width=200), ["cluster", "broker_1"])
    view.line("cluster", "ready [bold]\x1b[2J")
    view.event("broker_1", "ended", is_bad=True)
    assert out.getvalue().splitlines() == ["cluster  | ready [bold]\\x1b[2J", "broker_1 | ended"]


def test_json_keeps_what_a_part_said_as_an_object():
    out = io.StringIO()
    view = JsonView(out)
    view.line("cluster", '{"level": "info", "message": "hello"}')
    view.line("cluster", "plain [1]")
    view.event("broker_1", "ended", is_bad=True)
    first, second, third = map(json.loads, out.getvalue().splitlines())
    assert first == {"process": "cluster", "level": "info", "message": "hello"}
    assert second == {"process": "cluster", "message": "plain [1]"}
    assert (third["process"], third["level"], third["message"]) == ("broker_1", "error", "ended")
