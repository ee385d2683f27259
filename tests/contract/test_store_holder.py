"""Who holds the store is named: by the system's table of locks, and where that says nothing by the last writer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from ecphoryrag.errors import StoreBusy
from ecphoryrag.store import connections, holder, open_store, sqlite
from ecphoryrag.store.upgrade import open_writer
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, sample

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
import apsw
from pathlib import Path
from ecphoryrag.store import open_store
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document
path, commits = Path(sys.argv[1]), sys.argv[2] == "commits"
store = open_store(path, ENCODER.identity, EXTRACTOR)
if commits:
    store.commit(indexed_document("theirs", "Theirs"))
connection = apsw.Connection(str(path))
connection.execute("BEGIN " + sys.argv[3])
connection.execute("SELECT count(*) FROM documents").fetchall()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store, and little patience."""
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    made = tmp_path / "test.ecphory"
    store = open_store(made, ENCODER.identity, EXTRACTOR)
    store.commit(sample()[0])
    store.close()
    return made


@contextmanager
def held(path: Path, *, commits: bool, kind: str = "IMMEDIATE") -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the store."""
    script = path.parent / "keeper.py"
    script.write_text(HOLD, encoding="utf-8")
    words = [sys.executable, str(script), str(path), "commits" if commits else "", kind]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def refusal(path: Path) -> str:
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    try:
        began = time.monotonic()
        with pytest.raises(StoreBusy) as raised:
            store.commit(indexed_document("ours", "Ours"))
        assert time.monotonic() - began < 5
    finally:
        store.close()
    return str(raised.value)


needs_locks = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system has no table of locks")


@needs_locks
def test_a_process_that_has_written_is_named_with_its_program_and_since_when(path: Path) -> None:
    with held(path, commits=True) as process:
        said = refusal(path)
        found = re.search(
            r"is being written by process (\d+) \(keeper\.py\), which has had it open for writing since "
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; waited 0\.05 s",
            said,
        )
        assert found, said
        assert int(found[1]) == process.pid


@needs_locks
def test_a_process_that_has_not_written_yet_is_named_all_the_same(path: Path) -> None:
    with held(path, commits=False) as process:
        assert re.search(rf"being written by process {process.pid} \(keeper\.py, running since \d", refusal(path))


@needs_locks
def test_one_who_keeps_others_from_opening_is_named(path: Path) -> None:
    script = (
        "import apsw, sys, time; held = apsw.Connection(sys.argv[1]); held.execute('BEGIN EXCLUSIVE'); "
        "print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            with pytest.raises(StoreBusy, match=rf"being written by process {process.pid} \(python"):
                open_writer(path, create=False, busy_seconds=0.05)
        finally:
            process.kill()


def test_a_killed_holder_holds_nothing(path: Path) -> None:
    with held(path, commits=True) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        store = open_store(path, ENCODER.identity, EXTRACTOR)
        assert store.commit(indexed_document("ours", "Ours")) == "added"
        store.close()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, r"another process; the last to write was process \d+ \(keeper\.py\), which had opened it at \d"),
        ({"started": 1}, r"cannot be seen from here; the last to write was process \d+ .*, and has ended"),
        ({"place": "elsewhere"}, r"on another machine or in another container, process \d+ \(keeper\.py\)"),
    ],
)
def test_without_a_table_of_locks_the_last_writer_is_named_for_what_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, object], said: str
) -> None:
    monkeypatch.setattr(holder, "_LOCKS", path.parent / "none")
    with held(path, commits=True, kind="DEFERRED"):
        connection = apsw.Connection(str(path))
        noted = json.loads(connection.execute("SELECT value FROM properties WHERE name = 'writer'").get)
        assert set(noted) == {"pid", "program", "place", "started", "since"}
        assert re.search(said, holder.holder(path, json.dumps({**noted, **changed})))
        connection.close()


@pytest.mark.parametrize("noted", [None, "", "{", "[]", '{"pid": 1}', b"x", 1.5])
def test_whatever_is_noted_makes_no_error(path: Path, monkeypatch: pytest.MonkeyPatch, noted: object) -> None:
    monkeypatch.setattr(holder, "_LOCKS", path.parent / "none")
    assert "cannot be seen from here" in holder.holder(path, noted)
    assert "process 1 (an earlier version)" in holder.holder(path, 1)
