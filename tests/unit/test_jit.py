"""Kernels come from numba's cache only while nothing has changed that is compiled into them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numba
import pytest

from tocsin import jit

HELPER = "from tocsin.jit import helper\n\n\n@helper\ndef raised(x):\n    return x + {}\n"
KERNEL = """
from helpers_of_a_kernel import raised

from tocsin.jit import i64, kernel


@kernel(i64)
def twice(x):
    return 2 * raised(x)
"""
MODULES = ("helpers_of_a_kernel", "a_kernel")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_kernel.py").write_text(KERNEL)
    (tmp_path / "beside.py").write_text("nothing = 1\n")
    return tmp_path


def loaded(package: Path, added: int) -> jit.Callable:
    """The kernel as a new process would have it."""
    (package / "helpers_of_a_kernel.py").write_text(HELPER.format(added))
    for name in MODULES:
        sys.modules.pop(name, None)
    jit.digest.cache_clear()
    importlib.invalidate_caches()
    return importlib.import_module("a_kernel").twice


def test_a_kernel_is_compiled_anew_when_a_helper_in_another_file_changes(package: Path):
    assert loaded(package, 1)(20) == 42
    assert loaded(package, 100)(20) == 240


def test_a_kernel_is_compiled_once_while_nothing_of_it_changes(package: Path):
    assert loaded(package, 1).stats.cache_misses
    (package / "beside.py").write_text("nothing = 2\n")
    again = loaded(package, 1)
    assert again(20) == 42
    assert again.stats.cache_hits
    assert not again.stats.cache_misses


def test_other_types_than_declared_are_refused(package: Path):
    with pytest.raises(TypeError):
        loaded(package, 1)("20")
