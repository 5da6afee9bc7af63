from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tocsin.dashboard.pages import STATIC

sys.path.insert(0, str(Path(__file__).parent))

Script = Callable[[str], Any]


@pytest.fixture
def script() -> Script:
    """Run a script that imports modules of the pages ("./past.js"), without a browser; its ``found``."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not here")

    def run(text: str) -> Any:
        named = re.sub(r'"\./([\w.]+)"', rf'"{STATIC.as_uri()}/\1"', text)
        whole = f"{named}\nconsole.log(JSON.stringify(found));"
        done = subprocess.run([node, "--input-type=module", "-e", whole], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
