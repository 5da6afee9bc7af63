"""Directories of arrays that are whole or do not count.

A directory is written under another name, its ``meta.json`` last, and renamed. ``meta.json`` holds the
size of each file and a checksum of itself; a directory whose files disagree with it is ``Corrupt``.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import Corrupt

META = "meta.json"
FORMAT = 1

Arrays = Mapping[str, NDArray[Any]]


def write_directory(
    directory: Path,
    arrays: Arrays,
    meta: Mapping[str, Any],
    extra: Mapping[str, Callable[[Path], None]] | None = None,
    *,
    is_durable: bool = False,
) -> None:
    """Write arrays, and the ``extra`` files by their writers; on disk before it returns where ``is_durable``."""
    draft = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}.draft")
    draft.mkdir(parents=True)
    try:
        for name, values in arrays.items():
            np.save(draft / f"{name}.npy", values, allow_pickle=False)
        for name, write in (extra or {}).items():
            write(draft / name)
        _write_meta(draft, meta)
        if is_durable:
            sync_tree(draft)
        draft.rename(directory)
        if is_durable:
            sync(directory.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _write_meta(draft: Path, meta: Mapping[str, Any]) -> None:
    sizes = {path.name: path.stat().st_size for path in sorted(draft.iterdir())}
    body = json.dumps({"format": FORMAT, "files": sizes, **meta}, sort_keys=True)
    (draft / META).write_text(json.dumps({"checksum": zlib.crc32(body.encode()), "body": body}))


def read_meta(directory: Path) -> dict[str, Any]:
    """The directory's meta data, after the checks; Corrupt where they fail."""
    try:
        stored = json.loads((directory / META).read_text())
        body: dict[str, Any] = json.loads(stored["body"])
        is_sound = zlib.crc32(stored["body"].encode()) == stored["checksum"] and body["format"] == FORMAT
        sizes = {name: (directory / name).stat().st_size for name in body["files"]}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise Corrupt(f"index {directory}: {problem}; it will be built anew") from None
    if not is_sound or sizes != body["files"]:
        raise Corrupt(f"index {directory}: files and {META} disagree; it will be built anew")
    return body


def map_arrays(directory: Path, meta: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of a directory, mapped read-only."""
    names = [name for name in meta["files"] if name.endswith(".npy")]
    return {name.removesuffix(".npy"): map_array(directory / name) for name in names}


def map_array(path: Path) -> NDArray[Any]:
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file) if version == (1, 0) else ((0,), False, None)
        if dtype is None:
            raise Corrupt(f"index array {path}: unknown version {version}")
        if shape == (0,):
            return np.empty(0, dtype)
        return np.asarray(np.memmap(file, dtype, "r", file.tell(), shape))


def sync_tree(directory: Path) -> None:
    for path in directory.iterdir():
        sync(path)
    sync(directory)


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
