"""Short forms in a whole store: where a chunk is about an entity also by the short form of a name it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.snapshot import ABOUT_KINDS
from ecphoryrag.store.arrays import held_in
from ecphoryrag.text.short_forms import short_forms

TITLE_CODE = 1 + ABOUT_KINDS.index("title")
FREQUENT_CODE = 1 + ABOUT_KINDS.index("frequent")


def titles_of(about: sp.csr_array) -> NDArray[np.int64]:
    """Positions of the entities that are a title of some chunk, ascending."""
    flags = np.zeros(about.shape[1], np.bool_)
    flags[about.indices[about.data == TITLE_CODE]] = True
    return np.flatnonzero(flags)


def find_short_forms(
    about: sp.csr_array,
    names_of: Callable[[int], Iterable[str]],
    positions: Mapping[str, int],
    titles: NDArray[np.int64],
) -> NDArray[np.int64]:
    """(cells, 2) chunk and entity, ascending, for the chunks of ``about`` (n, m).

    Counted are the forms that are entities themselves (some text uses them), that are no title (``titles``; they then
    have a document of their own), and that the chunk is not about already.
    """
    n, m = about.shape
    chunks = np.repeat(np.arange(n, dtype=np.int64), np.diff(about.indptr))
    held = chunks * m + about.indices
    named = np.flatnonzero(about.data != FREQUENT_CODE)
    entities = np.flatnonzero(np.bincount(about.indices[named], minlength=m))
    forms = _forms(entities.tolist(), names_of, positions, set(titles.tolist()))
    counts = np.array([len(found) for found in forms], np.int64)
    flat = np.array([form for found in forms for form in found], np.int64)
    at = np.searchsorted(entities, about.indices[named])
    lengths = counts[at] if len(at) else np.zeros(0, np.int64)
    starts = np.repeat((np.cumsum(counts) - counts)[at], lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    codes = np.repeat(chunks[named], lengths) * m + flat[starts + within]
    codes.sort()
    once = np.ones(len(codes), np.bool_)
    once[1:] = codes[1:] != codes[:-1]
    codes = codes[once]
    codes = codes[~held_in(codes, held)]
    return np.column_stack(np.divmod(codes, max(m, 1))).astype(np.int64).reshape(-1, 2)


def _forms(
    entities: Sequence[int], names_of: Callable[[int], Iterable[str]], positions: Mapping[str, int], titles: set[int]
) -> list[list[int]]:
    """Of each entity the positions of the short forms of its names."""
    found: list[list[int]] = []
    for entity in entities:
        known = (positions.get(form) for name in names_of(entity) for form in short_forms(name))
        found.append([form for form in known if form is not None and form not in titles])
    return found
