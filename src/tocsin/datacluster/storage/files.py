"""Making files durable: sync, atomic replacement, and what a full disk looks like."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tocsin.datacluster.storage import faults
from tocsin.errors import StorageFull

TEMPORARY = ".tmp"  # how the name of an unfinished file ends; the sweep deletes such files
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def is_full(error: OSError) -> bool:
    """Whether the system refused to store more."""
    return error.errno in _FULL


def storage_full(path: Path) -> StorageFull:
    return StorageFull(f"the disk is full: {path} cannot grow; nothing was acknowledged")


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directory(directory: Path, mode: int = 0o777) -> None:
    """Make a directory and its missing parents, durably; ``mode`` is for the directory itself, if it is made."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(mode, exist_ok=True)
    sync_directory(directory.parent)


def write_atomically(path: Path, write: Callable[[BinaryIO], object], before: str, after: str | None = None) -> int:
    """Write and sync a temporary file, then give it its name; its size. ``before`` and ``after`` are faults."""
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        faults.point(before)
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise (storage_full(path) if is_full(error) else error) from error
    if after is not None:
        faults.point(after)
    return size
