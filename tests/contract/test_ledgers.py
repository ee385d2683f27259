"""What every ledger keeps to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ecphoryrag.ports import Ledger
from ecphoryrag.store.ledger import open_ledger
from ecphoryrag.types import Generation, Spending, Usage
from tests.support.memory_ledger import MemoryLedger

USAGE = Usage(1, 100, 20, 0, 1.5)


@pytest.fixture(params=["sqlite", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """One that nothing was kept in."""
    made: Ledger = open_ledger(tmp_path / "test.ecphory") if request.param == "sqlite" else MemoryLedger()
    yield made
    made.close()
    made.close()


def reply(text: str = "yes", usage: Usage = USAGE) -> Generation:
    return Generation(text, "stop", usage)


def test_nothing_is_in_a_new_one(ledger: Ledger) -> None:
    assert ledger.find("k") is None
    assert ledger.find_vectors(["k", "l"]) == [None, None]
    assert ledger.spending() == ()
    assert ledger.history("index", "m") == ()
    ledger.forget(["a"])
    ledger.drop_vectors()


@pytest.mark.parametrize("text", ["yes", "", "東京 \0 end", "\ud800 alone", '{"a": "\\n"}', "x" * 100_000])
def test_a_reply_is_found_as_it_was_kept(ledger: Ledger, text: str) -> None:
    kept = Generation(text, "stop", Usage(1, 2, 3, 0, 0.25, estimated=True))
    ledger.keep("k", kept, "index", "m", ["a"])
    assert ledger.find("k") == kept
    assert ledger.find("K") is None
    assert ledger.find("") is None


def test_a_later_reply_takes_the_place_of_an_earlier(ledger: Ledger) -> None:
    ledger.keep("k", reply("one"), "index", "m")
    ledger.keep("k", reply("two"), "cue", "n")
    assert ledger.find("k") == reply("two")
    assert ledger.history("index", "m") == ()
    assert [key for key, _ in ledger.history("cue", "n")] == ["k"]
    assert [(one.purpose, one.model) for one in ledger.spending()] == [("index", "m"), ("cue", "n")]


def test_spending_is_summed_by_purpose_and_model(ledger: Ledger) -> None:
    ledger.spend("answer", "m", Usage(1, 10, 2, 0, 0.5, estimated=True))
    ledger.keep("k", reply(), "answer", "m")
    ledger.keep("l", reply(), "answer", "b")
    ledger.keep_vectors(["v"], np.ones((1, 2), np.float32), Spending("embed", "e", Usage(2, 0, 0, 7)), lasting=True)
    ledger.spend("index", "z", USAGE)
    assert ledger.spending() == (
        Spending("index", "z", USAGE),
        Spending("answer", "b", USAGE),
        Spending("answer", "m", Usage(2, 110, 22, 0, 2.0, estimated=True)),
        Spending("embed", "e", Usage(2, 0, 0, 7)),
    )


def test_history_is_newest_first(ledger: Ledger) -> None:
    for number in range(1010):
        ledger.keep(f"{number}", reply(usage=Usage(1, number)), "index", "m")
    ledger.keep("500", reply(usage=Usage(1, 5)), "index", "m")
    ledger.keep("x", reply(), "index", "other")
    found = ledger.history("index", "m")
    assert len(found) == 1000
    assert found[:3] == (("500", Usage(1, 5)), ("1009", Usage(1, 1009)), ("1008", Usage(1, 1008)))
    assert found[-1][0] == "10"


def test_what_is_forgotten_goes_and_the_rest_stays(ledger: Ledger) -> None:
    ledger.keep("a", reply(), "index", "m", ["A"])
    ledger.keep("ab", reply(), "answer", "m", ["A", "B"])
    ledger.keep("b", reply(), "index", "m", ["B", "B"])
    ledger.keep("none", reply(), "cue", "m")
    before = ledger.spending()
    ledger.forget(["A", "no such document"])
    assert [ledger.find(key) is not None for key in ("a", "ab", "b", "none")] == [False, False, True, True]
    assert ledger.spending() == before, "it was spent all the same"
    assert [key for key, _ in ledger.history("index", "m")] == ["b"]


def test_a_reply_kept_twice_is_forgotten_with_the_documents_of_both(ledger: Ledger) -> None:
    for forgotten in ("A", "B"):
        ledger.keep("k", reply(), "index", "m", ["A"])
        ledger.keep("k", reply(), "index", "m", ["B"])
        ledger.forget([forgotten])
        assert ledger.find("k") is None


def test_vectors_last_or_are_dropped(ledger: Ledger) -> None:
    rows = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    cost = Spending("embed", "e", Usage())
    ledger.keep_vectors(["a", "b"], rows[:2], cost, lasting=True)
    ledger.keep_vectors(["c", "a"], rows[2:], cost, lasting=False)
    for keys, expected in ((["c", "x", "a", "a"], [2, None, 3, 3]), ([], [])):
        for got, row in zip(ledger.find_vectors(keys), expected, strict=True):
            assert (got is None) == (row is None)
            assert got is None or row is None or (got.dtype == np.float32 and np.array_equal(got, rows[row]))
    ledger.drop_vectors()
    assert [vector is not None for vector in ledger.find_vectors(["a", "b", "c"])] == [True, True, False]


def test_found_vectors_are_the_finders_own(ledger: Ledger) -> None:
    ledger.keep_vectors(["a"], np.ones((1, 2), np.float32), Spending("embed", "e", Usage()), lasting=True)
    for _ in range(2):
        (vector,) = ledger.find_vectors(["a"])
        assert vector is not None
        assert vector.tolist() == [1, 1]
        vector[:] = 5


def test_keys_without_vectors_are_a_mistake(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="2 keys and 1 vectors"):
        ledger.keep_vectors(["a", "b"], np.ones((1, 2), np.float32), Spending("embed", "e", Usage()), lasting=True)
    assert ledger.find_vectors(["a"]) == [None]


def test_a_reply_whose_cost_was_told_before_is_no_history(ledger: Ledger) -> None:
    ledger.keep("doubted", reply(usage=Usage()), "index", "m")
    ledger.keep("paid", reply(), "index", "m")
    assert ledger.find("doubted") is not None
    assert [key for key, _ in ledger.history("index", "m")] == ["paid"]
