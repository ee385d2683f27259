"""Reading sparse matrices without the cost of scipy's general indexing, which outweighs the work on a few rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Entries(NamedTuple):
    """Entries of some lines (rows or columns) of a matrix, line by line in the order asked for."""

    line: NDArray[np.int64]
    """Which of the lines asked for, counted from 0."""
    place: NDArray[np.int64]
    """Where in the line."""
    value: NDArray[np.float64]


def entries(matrix: sp.csr_array | sp.csc_array, lines: NDArray[np.int64]) -> Entries:
    """The entries of these rows of a CSR matrix, or columns of a CSC matrix."""
    starts = matrix.indptr[lines].astype(np.int64)
    counts = matrix.indptr[lines + 1].astype(np.int64) - starts
    line = np.repeat(np.arange(len(lines), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    at = np.arange(len(line), dtype=np.int64) + np.repeat(starts - before, counts)
    return Entries(line, matrix.indices[at].astype(np.int64), matrix.data[at].astype(np.float64))
