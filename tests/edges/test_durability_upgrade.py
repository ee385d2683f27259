"""A store that is being brought up to date survives kills and failing disks, and a copy is whole or has no name.

The long form is ``make soak-store``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.durable.hatchery import Hatchery
from tests.support.durable.upgrading import OLDER, Upgrading


@pytest.mark.parametrize("golden", OLDER, ids=lambda file: file.stem)
def test_killed_at_any_act_it_is_as_it_was_or_up_to_date(golden: Path, tmp_path: Path) -> None:
    ordeal = Upgrading(tmp_path / "ordeal", seed=3)
    with Hatchery() as hatchery:
        ordeal.kill(hatchery, golden, ("before", "half"), every=11)
    assert not ordeal.found.broken, "\n".join(ordeal.found.broken)
    assert ordeal.found.acts[golden.stem] > 50
    assert min(ordeal.found.old, ordeal.found.new) > 2


@pytest.mark.parametrize("golden", OLDER[-1:], ids=lambda file: file.stem)
def test_a_disk_that_fails_at_any_act_is_told_and_leaves_it_whole(golden: Path, tmp_path: Path) -> None:
    ordeal = Upgrading(tmp_path / "ordeal", seed=3)
    ordeal.fail(golden, every=20)
    assert not ordeal.found.broken, "\n".join(ordeal.found.broken)
    assert ordeal.found.refused > 10
    assert min(ordeal.found.old, ordeal.found.new) > 2
