"""Caches that were cut, changed in a bit, deleted or swapped are noticed and made again; the long form takes more."""

from __future__ import annotations

from pathlib import Path

from tests.support.durable.spoiling import Spoiler

PLACES, BITS = 10, 50
"""Of each of the two caches."""


def test_whatever_was_done_to_the_caches_the_same_is_brought_back(tmp_path: Path) -> None:
    found = Spoiler(tmp_path / "ordeal").try_all(PLACES, BITS, seed=1)
    assert not found.unnoticed, "\n".join(found.unnoticed[:20])
    assert found.tried > 2 * (PLACES + BITS)
