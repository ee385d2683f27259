"""How far a difference between two methods can be trusted.

The paired bootstrap (Efron 1979; for retrieval, Sakai 2006) draws questions with replacement and looks at the mean
difference of each draw; the middle 95 % of those means is the interval. Pairing by question takes out how hard the
questions are, which is most of the spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
"""The interval's ends then move by about .001 between seeds on 300 questions."""
SEED = 20_240_229
"""Any fixed number: the interval printed twice is the same."""
LEVEL = 0.95
_BLOCK = 2**21
"""Drawn positions held at a time: 16 MiB, however many questions there are."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference with its bootstrap interval."""

    difference: float
    low: float
    high: float

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval lies above zero."""
        return self.low > 0


def paired_bootstrap(
    first: Sequence[float] | NDArray[np.float64],
    second: Sequence[float] | NDArray[np.float64],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """Percentile interval of the mean of ``first - second``, both (q,) and of the same questions in the same order.

    Raises ValueError if they differ in length or are empty.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 1 or not one.size:
        raise ValueError(f"a paired comparison needs equally many questions, at least one: {one.shape}, {other.shape}")
    differences = one - other
    rows = max(1, _BLOCK // differences.size)
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    for start in range(0, resamples, rows):
        stop = min(start + rows, resamples)
        positions = generator.integers(0, differences.size, size=(stop - start, differences.size))
        means[start:stop] = differences[positions].mean(axis=1)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.mean()), float(low), float(high))


def standard_error(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Standard error of the mean; None for fewer than two values, which have none."""
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return None
    return float(array.std(ddof=1)) / math.sqrt(array.size)
