"""The examples of docs/reference/broker.md run at a broker, and print what it says."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from test_documents import agrees, blocks, script

from broker_world import SECRET, run, world

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "broker.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples need curl")
def test_the_documents_examples_run(tmp_path: Path) -> None:
    found = list(blocks(DOCUMENT.read_text()))

    async def scenario() -> None:
        async with world() as w:
            printed = await _output(script(found).replace(":8430", f":{w.server.port}"), tmp_path)
        outputs = dict(zip([block for block in found if block.language == "sh"], printed, strict=True))
        shown = [(outputs[block], said) for block, said in pairwise(found) if said.language == "json"]
        assert len(shown) == 3
        for got, said in shown:
            assert agrees(json.loads(said.body), json.loads(got)), f"line {said.line}: it gave {got}"

    run(scenario)


async def _output(commands: str, directory: Path) -> list[str]:
    """What each block prints."""
    secret = directory / ".tocsin" / "secret"
    secret.parent.mkdir()
    secret.touch(0o600)
    secret.write_bytes(SECRET)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "sh", "-euc", commands, cwd=directory, env=environ, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode().split("@@\n")[:-1]
