"""Result files that nothing will ever name: of dropped channels, and of attempts that failed.

A file is named after the execution that its channel would commit next, and the attempt (``executor``). It
is left over if the ledger does not name it and

* its channel is gone, or
* its channel has committed that far since, or
* a later attempt at the same has begun.

What is in the directory is listed first and the ledger is asked afterwards, so a file that was being
written is either still ahead of what is committed, or named.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tocsin.datacluster.storage.transaction import Transactions, Tx

_NAME = re.compile(r"([0-9a-f]{12})-(\d+)-")


@dataclass(frozen=True, slots=True)
class _Channel:
    committed: int
    attempt: int  # at the execution that is started, 0 if there is none


def sweep(root: Path, ledger: Transactions) -> int:
    """Delete what is left over below ``root``; how many files and directories."""
    directories = [path for path in root.iterdir() if path.is_dir()]
    files = [path for directory in directories for path in directory.iterdir()]
    named, channels = ledger.read(lambda tx: (_named(tx), _channels(tx)))
    gone = [path for path in directories if path.name not in channels]
    for directory in gone:
        shutil.rmtree(directory, ignore_errors=True)
    left = [path for path in files if path.parent not in gone and _is_left(path, named, channels)]
    for path in left:
        path.unlink(missing_ok=True)
    return len(gone) + len(left)


def _is_left(path: Path, named: set[str], channels: dict[str, _Channel]) -> bool:
    found = _NAME.match(path.name)
    if found is None or f"{path.parent.name}/{path.name}" in named:
        return False
    channel, no, attempt = channels[path.parent.name], int(found[1], 16), int(found[2])
    return no <= channel.committed or (no == channel.committed + 1 and attempt < channel.attempt)


def _named(tx: Tx) -> set[str]:
    return {path for (path,) in tx.rows("SELECT path FROM result_file")}


def _channels(tx: Tx) -> dict[str, _Channel]:
    sql = """SELECT p.channel_id, p.committed, coalesce(e.attempt, 0) FROM channel_progress p
             LEFT JOIN execution e ON e.channel_id = p.channel_id AND e.no = p.started AND e.state = 'started'"""
    return {str(id): _Channel(committed, attempt) for id, committed, attempt in tx.rows(sql)}
