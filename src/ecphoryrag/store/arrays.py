"""Rows of SQLite as arrays, and vectors as the store keeps them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.errors import StoreDamaged

HALF = np.dtype("<f2")
"""Vectors are kept as float16: half the bytes, and what is lost is far below what any ranking sees."""


def integers(rows: Iterable[Sequence[int]], width: int) -> NDArray[np.int64]:
    """(rows, width) from rows of integers, without holding the rows themselves."""
    return np.fromiter(itertools.chain.from_iterable(rows), np.int64).reshape(-1, width)


def positions_of(rows: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of ``rows`` its position in ``ordered``. Raises StoreDamaged if one is not there."""
    ranks = np.argsort(ordered, kind="stable")
    at = np.searchsorted(ordered, rows, sorter=ranks)
    if len(rows) and (not len(ordered) or int(at.max()) == len(ordered) or (ordered[ranks[at]] != rows).any()):
        raise StoreDamaged(
            "The store is damaged: rows that its tables refer to are missing; restore a copy, or index the documents "
            "into a new store."
        )
    return np.asarray(ranks[at], np.int64)


def csr(
    cells: NDArray[np.int64], values: NDArray[np.generic], shape: tuple[int, int], kind: type[np.generic]
) -> sp.csr_array:
    """A matrix from (cells, 2) row and column, each at most once and ascending, and their values."""
    starts = np.searchsorted(cells[:, 0], np.arange(shape[0] + 1))
    matrix = sp.csr_array((values.astype(kind), cells[:, 1].astype(np.int32), starts.astype(np.int32)), shape=shape)
    matrix.has_canonical_format = True
    return matrix


def held_in(codes: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each of ``codes`` whether it is one of ``ordered``, which ascend."""
    if not len(ordered):
        return np.zeros(len(codes), np.bool_)
    at = np.minimum(np.searchsorted(ordered, codes), len(ordered) - 1)
    return np.asarray(ordered[at] == codes, np.bool_)
