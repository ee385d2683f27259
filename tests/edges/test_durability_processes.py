"""One writer and several readers, and several writers, each a process; the long form takes more of them for longer."""

from __future__ import annotations

from pathlib import Path

from tests.support.durable.crowd import many_writers, one_writer
from tests.support.durable.hatchery import Hatchery


def test_readers_see_whole_documents_in_the_order_of_commits_while_another_writes(tmp_path: Path) -> None:
    with Hatchery() as hatchery:
        written, read = one_writer(hatchery, tmp_path / "crowd", readers=3, seconds=4.0)
    assert written > 1
    assert min(read) > 1


def test_what_several_processes_add_at_once_is_all_there(tmp_path: Path) -> None:
    with Hatchery() as hatchery:
        assert many_writers(hatchery, tmp_path / "crowd", writers=3, documents=30) == 90
