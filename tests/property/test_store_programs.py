"""Programs of a memory's operations in any order, against a plain model; the long form is ``make soak-store``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from ecphoryrag.memory import Memory
from ecphoryrag.types import Document
from tests.support.durable.programs import Programs
from tests.support.durable.story import DIMENSIONS, document, opened, whole

PROGRAMS = int(os.environ.get("STORE_PROGRAMS", "60"))


def test_whatever_the_program_the_store_holds_what_the_model_does() -> None:
    run_state_machine_as_test(
        Programs,
        settings=settings(
            max_examples=PROGRAMS,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )


@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_added_and_deleted_is_never_added_byte_for_byte(tmp_path: Path, order: str) -> None:
    """Also after updates, and whatever stood between."""
    kept = [document(f"doc{at}", 1) for at in range(4)]
    if order == "backwards":
        kept.reverse()
    with opened(tmp_path / "never") as memory:
        for one in kept:
            memory.add(one)
        expected = whole(memory)
    with opened(tmp_path / "added", DIMENSIONS[0]) as memory:
        deleted(memory, kept)
        assert whole(memory) == expected
        assert memory.verify(deep=True).flaws == ()


def deleted(memory: Memory, kept: list[Document]) -> None:
    """Add these, and others between them that are changed and then forgotten."""
    for at, one in enumerate(kept):
        memory.add(document(f"gone{at}", 1))
        memory.add(one)
    memory.add([document(f"gone{at}", 2) for at in range(2)])
    memory.forget(*(f"gone{at}" for at in range(len(kept))))
