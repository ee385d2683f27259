"""Order and last scores."""

from __future__ import annotations

import numpy as np
import pytest

from ecphoryrag.recall.rank import anchored, apart, best, log_activation


def test_ties_go_by_position_however_many_are_wanted() -> None:
    scores = np.array([0.5] * 40 + [0.7, 0.5, 0.7])
    for count in range(1, 44):
        assert best(scores, count).tolist() == ([40, 42, *range(40), 41])[:count]


def test_more_wanted_than_there_are() -> None:
    assert best(np.array([1.0, 2.0]), 9).tolist() == [1, 0]
    assert best(np.zeros(0), 3).tolist() == []


def test_siblings_are_set_apart() -> None:
    documents = np.array([0, 1, 1, 1, 2], np.int32)
    scores = np.array([0.5, 0.7, 0.9, 0.7, 0.6])
    assert apart(scores, documents, 0.1).tolist() == pytest.approx([0.5, 0.6, 0.9, 0.5, 0.6])
    assert apart(scores, np.arange(5, dtype=np.int32), 0.1) is scores


def test_log_activation_runs_from_nothing_to_the_highest() -> None:
    values = log_activation(np.array([0.0, 0.25, 0.5]), 1e-4)
    assert values[0] == pytest.approx(0)
    assert values[2] == pytest.approx(1, abs=1e-4)
    assert values[1] == pytest.approx(1 - np.log(0.5) / np.log(1e-4), abs=1e-4)


def test_without_activation_there_is_none() -> None:
    assert log_activation(np.zeros(3), 1e-4).tolist() == [0, 0, 0]


def test_the_anchor_is_a_share() -> None:
    assert anchored(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.25).tolist() == [0.75, 0.25]
