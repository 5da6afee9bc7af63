"""The programs of docs/howto/client.md run as they stand, and print what it says."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from broker_world import token_of, world
from support.scripted import coordinator
from tocsin.client import JAVASCRIPT

HOWTO = Path(__file__).parents[3] / "docs" / "howto" / "client.md"
ADDRESS = "http://127.0.0.1:8440"
_OUTPUT = r"(?:[^`\n][^\n]*:\n\n)?```text\n(.*?)^```\n"  # after a sentence that introduces it, or at once
_PROGRAM = re.compile(r"^```(python|js)\n(.*?)^```\n\n" + _OUTPUT, re.MULTILINE | re.DOTALL)
PROGRAMS = _PROGRAM.findall(HOWTO.read_text())


def test_every_program_of_the_document_is_run() -> None:
    assert len(PROGRAMS) == len(re.findall(r"^```(?:python|js)\n", HOWTO.read_text(), re.MULTILINE)) == 4


@pytest.mark.parametrize(("language", "program", "expected"), PROGRAMS)
def test_a_program_prints_what_the_document_says(language: str, program: str, expected: str, tmp_path: Path) -> None:
    if language == "js" and shutil.which("node") is None:
        pytest.skip("Node is not here")
    assert asyncio.run(_output(language, program, tmp_path)) == expected


async def _output(language: str, program: str, directory: Path) -> str:
    async with world() as broker, coordinator() as placing:
        placing.place = broker.server.url
        file = directory / {"python": "program.py", "js": "program.mjs"}[language]
        file.write_text(program.replace(ADDRESS, placing.url))
        shutil.copy(JAVASCRIPT, directory)
        (directory / "package.json").write_text('{"type": "module"}')
        command = [sys.executable] if language == "python" else ["node", "--no-warnings", "--experimental-websocket"]
        environment = {**os.environ, "TOCSIN_TOKEN": token_of("ann", ("topic:*", "publish:*"))}
        process = await asyncio.create_subprocess_exec(
            *command, file.name, cwd=directory, env=environment, stdout=asyncio.subprocess.PIPE
        )
        told, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0
        return told.decode()
