"""Every example of the documents runs, in order, against a cluster without anything in it.

Of a document, blocks marked ``sh`` and ``sql`` are run in one shell, and a ``json`` block right after a
``sh`` block must be what that printed; ``"..."`` in it stands for anything, and for any further members.
Blocks of another language are shown only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.clusters import until
from tocsin.cli.http import ClusterClient, connect
from tocsin.config import load
from tocsin.demo.process import ClusterProcess

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the examples need curl"),
]

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "docs/topics/channels.md", "docs/reference/language.md", "docs/reference/http.md")
PORT = ":8420"  # where the documents have their cluster
ANY = "..."
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    body: str
    follows: bool  # right after the block before it
    line: int


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    process = ClusterProcess(tmp_path_factory.mktemp("documents") / "cluster")
    try:
        process.wait_ready(lambda waited: None)
        with connect(load(process.config_path), None, None) as client:
            warm_up(client)
        yield process
    finally:
        process.stop()


def warm_up(client: ClusterClient) -> None:
    """Wait for a first result; Spark's first job takes longer than the examples are ready to wait for."""
    client.run(
        "CREATE ACTIVE DATASET d (x INT); CREATE CONTINUOUS CHANNEL c(x INT) AS SELECT d.x FROM d WHERE d.x = :x;"
        "CREATE BROKER b AT 'http://127.0.0.1:9/'; SUBSCRIBE TO c(1) ON b; INSERT INTO d VALUES (1)"
    )
    pull = {"cursors": {"c": None}, "wait_s": 30}
    until(lambda: client.post("/brokers/b/pull", pull)["pages"][0]["results"], "a first result")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_documents_examples_run(cluster: ClusterProcess, tmp_path: Path, name: str) -> None:
    with connect(load(cluster.config_path), None, None) as client:
        clear(client)
    check(ROOT / name, cluster.config_path, cluster.url, tmp_path)


def check(document: Path, config: Path, url: str, directory: Path) -> None:
    """Run the document's blocks in ``directory`` and compare what it says they print."""
    found = list(blocks(document.read_text()))
    done = subprocess.run(
        ["sh", "-eu", "-c", script(found).replace(PORT, ":" + url.rpartition(":")[2])],
        cwd=directory,
        env=_environment(config),
        capture_output=True,
        text=True,
        timeout=240,
    )
    *printed, rest = re.split(r"^@@\n", done.stdout, flags=re.MULTILINE)
    ran = [block for block in found if block.language in ("sh", "sql")]
    assert done.returncode == 0, f"{document.name}, line {ran[len(printed)].line}: {rest}{done.stderr}"
    outputs = dict(zip(ran, printed, strict=True))
    for block, said in pairwise(found):
        if block.language == "sh" and said.language == "json" and said.follows:
            got = outputs[block].strip().splitlines()[-1]
            assert agrees(json.loads(said.body), json.loads(got)), f"{document.name}, line {said.line}: it gave {got}"


def blocks(text: str) -> Iterator[Block]:
    end = 0
    for found in _BLOCK.finditer(text):
        follows = not text[end : found.start()].strip()
        yield Block(found[1], found[2], follows, text.count("\n", 0, found.start()) + 1)
        end = found.end()


def script(found: list[Block]) -> str:
    """One shell script, with a line ``@@`` after the output of each block."""
    as_shell = {"sh": "{}", "sql": "tocsin sql - <<'END-OF-BLOCK'\n{}END-OF-BLOCK\n"}
    return "".join(as_shell[b.language].format(b.body) + "echo; echo @@\n" for b in found if b.language in as_shell)


def agrees(said: Any, got: Any) -> bool:
    """Whether an answer is what the document says."""
    if said == ANY:
        return True
    if isinstance(said, dict) and isinstance(got, dict):
        named = {key: value for key, value in said.items() if key != ANY}
        is_whole = ANY in said or named.keys() == got.keys()
        return is_whole and all(key in got and agrees(value, got[key]) for key, value in named.items())
    if isinstance(said, list) and isinstance(got, list):
        return len(said) == len(got) and all(map(agrees, said, got))
    return bool(said == got)


def clear(client: ClusterClient) -> None:
    """Drop everything that the document before made."""
    while held := client.get("/subscriptions?limit=1000")["subscriptions"]:
        client.post("/subscriptions/remove", {"ids": [one["id"] for one in held]})
    for kind in ("channel", "feed", "dataset", "broker"):
        names = [one["name"] for one in client.get(f"/{kind}s")[f"{kind}s"]]
        for name in names:
            if name != "DeadLetters":
                client.run(f"DROP {kind} `{name}`")


def _environment(config: Path) -> dict[str, str]:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    return {**outer, "PATH": f"{Path(sys.executable).parent}:{outer['PATH']}", "TOCSIN_CONFIG": str(config)}
