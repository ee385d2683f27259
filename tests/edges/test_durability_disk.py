"""A disk of 2 MB that fills up while documents are added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.durable.small_disk import DOCUMENTS, Filled, fill_limited, fill_mounted


def assert_told_and_completed(filled: Filled) -> None:
    assert 20 < filled.kept < DOCUMENTS
    assert "the disk is full" in filled.error
    assert "free space and try again" in filled.error
    assert f"{filled.kept} documents were committed" in filled.note
    assert filled.asked
    assert filled.left == []
    assert filled.done == DOCUMENTS
    assert filled.sound


def test_on_a_real_file_system(tmp_path: Path) -> None:
    filled = fill_mounted(tmp_path / "disk")
    if filled is None:
        pytest.skip("this machine does not let us mount a file system")
    assert_told_and_completed(filled)
    assert "copy" in filled.backup_error


def test_on_a_disk_that_counts(tmp_path: Path) -> None:
    filled = fill_limited(tmp_path / "disk")
    assert_told_and_completed(filled)
    assert "the disk is full" in filled.backup_error
