from __future__ import annotations

from pathlib import Path

from tocsin.datacluster.feeds.checkpoint import open_checkpoint


def test_the_id_outlives_a_restart(tmp_path: Path) -> None:
    assert open_checkpoint(tmp_path).key(7) == open_checkpoint(tmp_path).key(7)


def test_a_feed_created_anew_shares_no_key_with_its_former_self(tmp_path: Path) -> None:
    assert open_checkpoint(tmp_path / "a").key(0) != open_checkpoint(tmp_path / "b").key(0)


def test_batches_of_a_feed_have_different_keys(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(tmp_path)
    assert len({checkpoint.key(n) for n in range(12)}) == 12


def test_a_plan_is_synced_with_the_directories_above_it(tmp_path: Path, monkeypatch: object) -> None:
    checkpoint = open_checkpoint(tmp_path)
    for name in ("metadata", "offsets/3", "offsets/2", "sources/0/2", "sources/0/3", "sources/0/1.compact"):
        file = checkpoint.query / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("v1")
    assert synced_by(lambda: checkpoint.secure(3), monkeypatch) == [
        str(checkpoint.query / name)
        for name in ("metadata", "offsets/3", "sources/0/3", "sources/0", "sources", "offsets", ".")
    ]


def synced_by(act, monkeypatch) -> list[str]:
    """The paths synced while ``act`` runs, as the operating system was asked."""
    import os

    opened, synced, real_open, real_sync = {}, [], os.open, os.fsync

    def recording_open(path, *rest):
        descriptor = real_open(path, *rest)
        opened[descriptor] = str(path)
        return descriptor

    def recording_sync(descriptor):
        synced.append(opened[descriptor])
        real_sync(descriptor)

    monkeypatch.setattr(os, "open", recording_open)
    monkeypatch.setattr(os, "fsync", recording_sync)
    act()
    monkeypatch.undo()
    return synced
