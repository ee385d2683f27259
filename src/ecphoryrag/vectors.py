"""Arithmetic on vectors that several packages share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 4096
"""Rows whose squares are held at once: those of all would be written to memory and read back."""


def unit_rows(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """(n, d) float32 of unit length, computed in float32 whatever is given; zero rows stay zero."""
    rows = vectors.astype(np.float32)
    for first in range(0, len(rows), _AT_ONCE):
        part = rows[first : first + _AT_ONCE]
        lengths = np.linalg.norm(part, axis=1, keepdims=True)
        np.divide(part, lengths, out=part, where=lengths > 0)
    return rows
