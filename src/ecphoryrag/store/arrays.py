"""Rows of SQLite as arrays, and vectors as the store keeps them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

HALF = np.dtype("<f2")
"""Vectors are kept as float16: half the bytes, and what is lost is far below what any ranking sees."""


def integers(rows: Iterable[Sequence[int]], width: int) -> NDArray[np.int64]:
    """(rows, width) from rows of integers, without holding the rows themselves."""
    return np.fromiter(itertools.chain.from_iterable(rows), np.int64).reshape(-1, width)


def positions_of(rows: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of ``rows`` its position in ``ordered``, which holds them all."""
    ranks = np.argsort(ordered, kind="stable")
    return np.asarray(ranks[np.searchsorted(ordered, rows, sorter=ranks)], np.int64)


def unit_rows(half: NDArray[np.float16]) -> NDArray[np.float32]:
    """(n, d) float32 of unit length from (n, d) float16; zero rows stay zero."""
    rows = half.astype(np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, norms, out=rows, where=norms > 0)
    return rows


def csr(
    cells: NDArray[np.int64], values: NDArray[np.generic], shape: tuple[int, int], kind: type[np.generic]
) -> sp.csr_array:
    """A matrix from (cells, 2) row and column, each at most once and ascending, and their values."""
    starts = np.searchsorted(cells[:, 0], np.arange(shape[0] + 1))
    matrix = sp.csr_array((values.astype(kind), cells[:, 1].astype(np.int32), starts.astype(np.int32)), shape=shape)
    matrix.has_canonical_format = True
    return matrix
