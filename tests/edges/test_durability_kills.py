"""Processes that are killed at random moments and at counted writes: what was acknowledged is there, and nothing half.

The long form is ``make soak-store``. Each kill at a counted write can be done again: the folder that a broken story
leaves behind holds the orders.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.durable.hatchery import ROOT, Hatchery
from tests.support.durable.kills import BASES, Reaper
from tests.support.durable.story import Step
from tests.support.durable.worker import OPENED, acknowledged, write_order

KILLS = 60
AT = 260
"""A count of acts that some, but not all of the steps come to."""


def test_no_kill_loses_or_halves_anything(tmp_path: Path) -> None:
    with Hatchery() as hatchery:
        toll = Reaper(tmp_path / "ordeal", hatchery).reap(KILLS, seed=5)
    assert not toll.broken, "\n".join(toll.broken)
    assert toll.kills == KILLS
    assert toll.stories >= len(set(BASES))
    assert {"open", "add", "update", "delete", "repair"} <= set(toll.during)
    assert toll.slowest < 2.0


def test_a_kill_at_a_counted_write_is_the_same_again(tmp_path: Path) -> None:
    """Also in a process begun by hand, as the docstring of the worker says."""
    reached = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_order(folder / "order.json", [Step("add", at, {f"doc{at}": 1}) for at in range(9)], 0, AT)
        words = [sys.executable, "-m", "tests.support.durable.worker", str(folder / "order.json")]
        assert subprocess.run(words, cwd=ROOT, env={**os.environ}, check=False).returncode == -signal.SIGKILL
        reached.append(acknowledged(folder))
    assert reached[0] == reached[1]
    assert reached[0][0] == OPENED
    assert 1 < len(reached[0]) < 9
    assert json.loads((tmp_path / "0" / "order.json").read_text())["at"] == AT
