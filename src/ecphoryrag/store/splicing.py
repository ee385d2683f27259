"""Matrices and sorted names of one state made into those of the next, where little has changed.

A cell is one number, ``major * minors + minor``: of a CSR matrix the row is the major, of a CSC matrix the column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

GONE = -1
Matrix = TypeVar("Matrix", sp.csr_array, sp.csc_array)


@dataclass(frozen=True, slots=True)
class Names:
    """Sorted names, and where the former ones stand among them."""

    names: Sequence[str]
    places: NDArray[np.int64]
    """(former,) the position now, or ``GONE``."""


def renamed(former: Sequence[str], stay: NDArray[np.bool_], added: Iterable[str]) -> Names:
    """``former`` without those that do not ``stay``, and with those ``added``, which are none of them; sorted."""
    new = sorted(added)
    kept = list(former) if stay.all() else list(compress(former, stay.tolist()))
    before = np.array([bisect_left(kept, name) for name in new], np.int64)
    at = np.arange(len(kept), dtype=np.int64)
    places = np.full(len(former), GONE, np.int64)
    places[stay] = at + np.searchsorted(before, at, side="right")
    return Names(sorted([*kept, *new]) if new else kept, places)


def moved_cells(
    matrix: sp.csr_array | sp.csc_array, majors: NDArray[np.int64], minors: NDArray[np.int64], minor_count: int
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The cells that stay, ascending, and their values; both arrays give the position now of each line, or ``GONE``."""
    lengths = np.diff(matrix.indptr)
    major = np.repeat(majors, lengths)
    minor = minors[matrix.indices]
    stay = (major != GONE) & (minor != GONE)
    if stay.all():
        return major * minor_count + minor, matrix.data
    return major[stay] * minor_count + minor[stay], matrix.data[stay]


def spliced(
    kept: tuple[NDArray[np.int64], NDArray[Any]], fresh: tuple[NDArray[np.int64], NDArray[Any]]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Cells and values of both, ascending; no cell is in both, and both ascend."""
    at = np.searchsorted(kept[0], fresh[0])
    return np.insert(kept[0], at, fresh[0]), np.insert(kept[1], at, fresh[1].astype(kept[1].dtype))


def matrix_of(
    kind: type[Matrix], cells: tuple[NDArray[np.int64], NDArray[Any]], shape: tuple[int, int], value: type[np.generic]
) -> Matrix:
    """The matrix of these cells, which ascend, and their values."""
    majors, minors = shape if kind is sp.csr_array else (shape[1], shape[0])
    codes, values = cells
    starts = np.searchsorted(codes, np.arange(majors + 1, dtype=np.int64) * minors)
    indices = (codes % max(minors, 1)).astype(np.int32)
    made = kind((values.astype(value, copy=False), indices, starts.astype(np.int32)), shape=shape)
    made.has_canonical_format = True
    return made


def counted_cells(codes: Iterable[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each cell once, ascending, and how often it was given."""
    ordered = np.sort(np.fromiter(codes, np.int64))
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else ordered
    return ordered[first], np.diff(np.append(first, len(ordered)))
