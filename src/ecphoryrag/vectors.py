"""Arithmetic on vectors that several packages share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit_rows(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """(n, d) float32 of unit length, computed in float32 whatever is given; zero rows stay zero."""
    rows = vectors.astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows
