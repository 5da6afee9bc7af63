"""The JavaScript client asks for nothing that a browser does not have."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tocsin.client import JAVASCRIPT

STORY = Path(__file__).with_name("browser.mjs")
_ONLY_IN_NODE = re.compile(r"\b(process|Buffer|require|module|exports|global|__dirname|__filename|setImmediate)\b(?!:)")
_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)


def test_it_imports_nothing_and_names_nothing_of_node():
    code = _TEXT.sub("", JAVASCRIPT.read_text())
    assert not re.search(r"\bimport\b", code)
    assert not _ONLY_IN_NODE.findall(code)


def test_it_runs_with_what_a_browser_has(node: str):
    command = [node, "--no-warnings", "--experimental-vm-modules", str(STORY), str(JAVASCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["payload"] == {"n": 1}
    assert told["reported"] == ["the application's own"] * 2, (
        "connected and ended, whatever the application does with it"
    )
    assert told["said"] == [
        ["fetch", "https://c.example/users/ann/placement"],
        ["open", "wss://a.example/connect", ["tocsin.v1"]],
        ["send", "login"],
        ["send", "confirm"],
        ["send", "subscribe"],
        ["send", "ack"],
        ["send", "logout"],
        ["close", 1000],
    ]
