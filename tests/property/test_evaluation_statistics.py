"""The bootstrap against a slow one that draws and averages question by question."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.evaluation import statistics as evaluated
from ecphoryrag.evaluation.statistics import paired_bootstrap, standard_error

SHARES = st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0])
PAIRS = st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=12)


def quantile(values: list[float], share: float) -> float:
    """Linear between the two nearest of the sorted values."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.integers(1, 60), st.integers(0, 2**32))
def test_interval_equals_the_slow_bootstrap(pairs: list[tuple[float, float]], resamples: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    means = []
    for row in generator.integers(0, len(pairs), size=(resamples, len(pairs))):
        drawn = [pairs[int(position)] for position in row]
        means.append(sum(first - second for first, second in drawn) / len(drawn))
    interval = paired_bootstrap([a for a, _ in pairs], [b for _, b in pairs], resamples=resamples, seed=seed)
    assert interval.difference == pytest.approx(statistics.fmean(a - b for a, b in pairs), abs=1e-12)
    assert interval.low == pytest.approx(quantile(means, 0.025), abs=1e-9)
    assert interval.high == pytest.approx(quantile(means, 0.975), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_swapping_the_methods_turns_the_interval_round(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    forth = paired_bootstrap(first, second, resamples=200)
    back = paired_bootstrap(second, first, resamples=200)
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low), abs=1e-9)


def test_drawing_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random(37)
    whole = paired_bootstrap(values, np.zeros(37), resamples=500)
    monkeypatch.setattr(evaluated, "_BLOCK", 37 * 7)
    assert paired_bootstrap(values, np.zeros(37), resamples=500) == whole


def test_interval_has_the_width_that_normal_theory_gives_many_questions() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.4, 400)
    interval = paired_bootstrap(values, np.zeros(400))
    error = standard_error(values)
    assert error is not None
    assert interval.low == pytest.approx(values.mean() - 1.96 * error, abs=0.003)
    assert interval.high == pytest.approx(values.mean() + 1.96 * error, abs=0.003)


@pytest.mark.parametrize(("first", "second"), [([], []), ([1.0], [1.0, 0.0])])
def test_unpaired_values_are_refused(first: list[float], second: list[float]) -> None:
    with pytest.raises(ValueError, match="paired comparison"):
        paired_bootstrap(first, second)


@given(st.lists(SHARES, min_size=2, max_size=20))
def test_standard_error_by_the_textbook(values: list[float]) -> None:
    assert standard_error(values) == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-12)


def test_one_value_has_no_standard_error() -> None:
    assert standard_error([0.5]) is None
