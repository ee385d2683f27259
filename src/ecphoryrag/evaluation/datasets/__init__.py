"""Readers of the published multi-hop sets: official files, pooled corpora, seeded samples. Nothing is downloaded.

``read(source, selection)`` gives a :class:`ecphoryrag.evaluation.dataset.Dataset`: a corpus in which the passages of
all questions of the file are pooled, equal ones merged, and questions whose gold passages are ids of that corpus.
"""

from __future__ import annotations

from ecphoryrag.evaluation.datasets.read import FORMATS, Format, Selection, Source, read

__all__ = ["FORMATS", "Format", "Selection", "Source", "read"]
