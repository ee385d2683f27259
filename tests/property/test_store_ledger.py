"""Any sequence of what can be done with a ledger, against one in dictionaries; closed and opened again between."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.ports import Ledger
from ecphoryrag.store.ledger import open_ledger
from ecphoryrag.types import Generation, Purpose, Spending, Usage
from tests.support.memory_ledger import MemoryLedger

KEYS = ["k", "", "k\0", "K", "ключ"]
MODELS = ["ollama/phi4", "m'; --", ""]
DOCUMENTS = ["a", "b", "", "\ud800", "東"]
PURPOSES = get_args(Purpose)

usages = st.builds(
    Usage,
    *[st.integers(0, 10**9)] * 4,
    seconds=st.integers(0, 4000).map(lambda quarters: quarters / 4),  # so that sums are exact in any order
    estimated=st.booleans(),
    cached=st.integers(0, 9),
)
purposes, models, keys = st.sampled_from(PURPOSES), st.sampled_from(MODELS), st.sampled_from(KEYS)
documents = st.lists(st.sampled_from(DOCUMENTS), max_size=3)
replies = st.builds(Generation, st.text(max_size=20), st.sampled_from(["stop", "length"]), usages)
spendings = st.builds(Spending, purposes, models, usages)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), keys, replies, purposes, models, documents),
        st.tuples(st.just("vectors"), st.lists(keys, max_size=3), spendings, st.booleans(), st.integers(0, 99)),
        st.tuples(st.just("drop")),
        st.tuples(st.just("spend"), purposes, models, usages),
        st.tuples(st.just("forget"), documents),
        st.tuples(st.just("reopen")),
    ),
    max_size=15,
)


def contents(ledger: Ledger) -> list[object]:
    vectors = [None if vector is None else vector.tolist() for vector in ledger.find_vectors(KEYS)]
    histories = [ledger.history(purpose, model) for purpose in PURPOSES for model in MODELS]
    return [[ledger.find(key) for key in KEYS], vectors, ledger.spending(), histories]


def apply(ledger: Ledger, name: str, *given: Any) -> None:
    def keep_vectors(keys: list[str], cost: Spending, lasting: bool, seed: int) -> None:
        rows = np.random.default_rng(seed).standard_normal((len(keys), 3)).astype(np.float32)
        ledger.keep_vectors(keys, rows, cost, lasting=lasting)

    doing: dict[str, Callable[..., None]] = {
        "keep": ledger.keep,
        "vectors": keep_vectors,
        "drop": ledger.drop_vectors,
        "spend": ledger.spend,
        "forget": ledger.forget,
    }
    doing[name](*given)


@settings(deadline=None, max_examples=60)
@given(steps)
def test_it_holds_what_the_dictionaries_hold(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.ecphory"
        ledger, oracle = open_ledger(path), MemoryLedger()
        for step in steps:
            if step == ("reopen",):
                ledger.close()
                ledger = open_ledger(path)
            else:
                apply(ledger, *step)
                apply(oracle, *step)
            assert contents(ledger) == contents(oracle)
        assert (ledger.notices, ledger.dropped) == ((), 0)
        ledger.close()
        wrote = any(name in {"keep", "vectors", "spend"} for name, *_ in steps)
        assert [file.name for file in Path(folder).iterdir()] == ["test.ecphory-ledger"] * wrote
