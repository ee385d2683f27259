"""A disk that fails, at one act of each kind on each kind of file; the long form, ``make soak-store``, takes all."""

from __future__ import annotations

from pathlib import Path

from tests.support.durable.faulty import Faulty, every, sampled

KINDS = {
    *(f"{act} {file}" for act in ("open", "write", "sync", "delete") for file in ("journal", "ledger-journal")),
    *(f"{act} {file}" for act in ("open", "write", "sync", "truncate") for file in ("main", "wal", "ledger")),
    *("write copy", "sync copy", "open copy", "delete wal"),
}
"""What must have failed at least once."""


def test_whatever_fails_is_told_clearly_and_costs_nothing_acknowledged(tmp_path: Path) -> None:
    faulty = Faulty(tmp_path / "ordeal")
    found = faulty.try_all(sampled(faulty.acts, seed=3))
    assert not found.broken, "\n".join(found.broken)
    assert set(found.hit) >= KINDS
    assert found.errors["StoreError"] > found.cases // 3


def test_the_long_form_takes_every_act(tmp_path: Path) -> None:
    faulty = Faulty(tmp_path / "ordeal")
    cases = list(every(faulty.acts, seed=1))
    for part, acts in enumerate(faulty.acts):
        assert {case.at for case in cases if case.part == part} == {event.number for event in acts}
