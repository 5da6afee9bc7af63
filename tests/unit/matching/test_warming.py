from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tocsin.matching.warming as warming

COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import tocsin.matching.siphash as siphash
print(siphash.__file__)
out = siphash.empty_lanes(1)
siphash.hash_strings(np.zeros(0, np.uint8), np.zeros(2, np.int64), np.uint64(1), np.uint64(2), *out)
assert out[0][0] != out[1][0]
"""


def _copied(folder: Path) -> Path:
    """The package in a place whose byte-code folder cannot be written, whoever runs this."""
    source = Path(warming.__file__).parents[1]
    target = folder / "copy" / "tocsin"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    (target / "matching" / "__pycache__").write_text("not a folder")
    return target.parent


def _run(package: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    run = [sys.executable, "-c", COMPILE, str(package)]
    return subprocess.run(run, env=kept | environment, check=True, capture_output=True, text=True).stdout


def test_kernels_of_a_read_only_package_are_cached_where_the_environment_says(tmp_path: Path) -> None:
    package = _copied(tmp_path)
    assert str(package) in _run(package, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_kernels_compile_where_no_cache_can_be_written(tmp_path: Path) -> None:
    package = _copied(tmp_path)
    (tmp_path / "home").write_text("not a folder")
    blocked = str(tmp_path / "home")
    assert str(package) in _run(package, HOME=blocked, XDG_CACHE_HOME=blocked, XDG_DATA_HOME=blocked)


def test_warming_up_leaves_no_module_with_kernels_out() -> None:
    folder = Path(warming.__file__).parent
    with_kernels = {path.stem for path in folder.glob("*.py") if "\n@kernel(" in path.read_text()}
    assert with_kernels == set(warming.KERNEL_MODULES)
    warming.warm_up()
    assert all(f"tocsin.matching.{name}" in sys.modules for name in warming.KERNEL_MODULES)
