"""A run killed at random questions and resumed gives the same table."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ecphoryrag.evaluation.bench.rows import ROWS, read_rows
from ecphoryrag.evaluation.bench.table import TableRow, table
from tests.support.bench import METHODS, QUESTIONS, run_faked, write_config, write_data

ROOT = Path(__file__).resolve().parents[2]
KILLS = 5
SLOW = "0.04"
"""Seconds of a reply, so that there is time to be killed in."""


def timeless(rows: tuple[TableRow, ...]) -> list[TableRow]:
    """The table without what a clock says, which differs between any two runs."""
    return [
        replace(
            row,
            index=replace(row.index, seconds=0.0),
            query=replace(row.query, seconds=0.0) if row.query else None,
            retrieval_seconds=0.0,
        )
        for row in rows
    ]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_five_times_and_resumed_gives_the_same_table(tmp_path: Path) -> None:
    write_data(tmp_path)
    config = write_config(tmp_path)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_faked(config, whole)
    chance = random.Random(20)
    for kill in range(KILLS):
        before = lines(killed / ROWS)
        more = chance.randint(1, 4)
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.bench", str(config), str(killed), SLOW], cwd=ROOT
        )
        try:
            deadline = time.monotonic() + 60
            while lines(killed / ROWS) < before + more and child.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.05)
        finally:
            child.send_signal(signal.SIGKILL)
            assert child.wait(30) == -signal.SIGKILL, "it was killed, and had not ended by itself"
        if kill % 2:  # as if the machine had stopped in the middle of a write
            with (killed / ROWS).open("ab") as file:
                file.write(b'{"kind": "question", "cell": "abc", "id": "q')
    asked = len(read_rows(killed).questions)
    report = run_faked(config, killed)
    assert 0 < asked < report.asked + report.already == 5 * len(QUESTIONS)
    assert report.left == 0
    assert timeless(table(killed)) == timeless(table(whole))
    rows = read_rows(killed).questions
    assert lines(killed / ROWS) == len(rows) + 5, "no question was asked twice"


def test_the_table_differs_if_a_row_does(tmp_path: Path) -> None:
    """The comparison above can fail."""
    write_data(tmp_path)
    config = write_config(tmp_path, methods=METHODS.split('[[methods]]\nname = "ecphory"')[0])
    run_faked(config, tmp_path / "run")
    rows = read_rows(tmp_path / "run")
    changed = replace(rows.questions[0], figures={**rows.questions[0].figures, "em": 0.5})
    other = replace(rows, questions=(changed, *rows.questions[1:]))
    assert timeless(table(other)) != timeless(table(rows))
