"""Figures of a ranking of documents.

Recall, reciprocal rank and nDCG come from `ir-measures` (trec_eval underneath), so that they are comparable with
other people's; ``all@k`` is not among its measures and is our own. Every figure looks at the first 10 documents only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.errors import EcphoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

RANKED = 10
"""Documents of a ranking that are looked at: the deepest cut of the figures."""
RECALL_CUTS = (2, 5, 10)
ALL_CUTS = (5, 10)
FIGURES = (
    *(f"recall@{cut}" for cut in RECALL_CUTS),
    *(f"all@{cut}" for cut in ALL_CUTS),
    "mrr",
    f"ndcg@{RANKED}",
)
"""Names of all figures, in the order of the table."""

PerQuestion: TypeAlias = NDArray[np.float64]
"""(q,) one value a question, each from 0 to 1."""


def require_ir_measures() -> None:
    """Raises EcphoryError, before any work is done, if the extra `eval` is not installed."""
    if find_spec("ir_measures") is None:
        raise EcphoryError("evaluation needs the package ir-measures, which is missing: pip install 'ecphoryrag[eval]'")


def distinct(documents: Iterable[str]) -> tuple[str, ...]:
    """Each document once, at the place of its best chunk: ``documents`` are those of the ranked chunks."""
    return tuple(dict.fromkeys(documents))


def all_at(ranking: Sequence[str], gold: Sequence[str], cut: int) -> bool:
    """Whether every gold document is among the first ``cut``."""
    return set(gold) <= set(ranking[:cut])


def score(rankings: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> Mapping[str, PerQuestion]:
    """All of FIGURES, each (q,) float64, for q rankings of distinct documents (best first) and their gold documents.

    A question without a ranking, the empty one, scores 0. Raises ValueError if a ranking holds a document twice, a
    question has no gold document, or the two sequences differ in length.
    """
    if len(rankings) != len(gold):
        raise ValueError(f"{len(rankings)} rankings for {len(gold)} questions")
    for ranking, needed in zip(rankings, gold, strict=True):
        if not needed:
            raise ValueError("a question without a gold document has no recall")
        if len(set(ranking)) < len(ranking):
            raise ValueError("a ranking holds a document twice; rank documents, not chunks")
    figures = _standard(rankings, gold)
    for cut in ALL_CUTS:
        found = [all_at(ranking, needed, cut) for ranking, needed in zip(rankings, gold, strict=True)]
        figures[f"all@{cut}"] = np.array(found, dtype=np.float64)
    return {name: figures[name] for name in FIGURES}


def _standard(rankings: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> dict[str, PerQuestion]:
    """The figures that ir-measures knows.

    It orders a ranking by score and breaks ties by id, so the rank itself is handed over as the score. Ids are
    replaced by numbers: whatever characters a document's id has, the C code underneath sees digits.
    """
    import ir_measures  # noqa: PLC0415 - of the extra `eval`; `import ecphoryrag` must do without
    from ir_measures import RR, R, nDCG  # noqa: PLC0415

    measures = {R @ cut: f"recall@{cut}" for cut in RECALL_CUTS}
    measures |= {RR @ RANKED: "mrr", nDCG @ RANKED: f"ndcg@{RANKED}"}
    numbers: dict[str, str] = {}

    def numbered(document: str) -> str:
        return numbers.setdefault(document, str(len(numbers)))

    def needed() -> Iterator[ir_measures.Qrel]:
        for question, documents in enumerate(gold):
            for document in set(documents):
                yield ir_measures.Qrel(str(question), numbered(document), 1)

    def ranked() -> Iterator[ir_measures.ScoredDoc]:
        for question, documents in enumerate(rankings):
            for rank, document in enumerate(documents, 1):
                yield ir_measures.ScoredDoc(str(question), numbered(document), -float(rank))

    figures = {name: np.zeros(len(rankings)) for name in measures.values()}
    if any(rankings):
        for value in ir_measures.iter_calc(list(measures), list(needed()), list(ranked())):
            figures[measures[value.measure]][int(value.query_id)] = value.value
    return figures
