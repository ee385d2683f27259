"""Recalls made by hand, for tests of answering."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoryrag.types import Chunk, Evidence, Path, Recall, Relation

FACTS = (
    ("Grey Pellin", "The Grey Pellin is a ship that was built by Ilka Varnholt in 1871."),
    ("Ilka Varnholt", "Ilka Varnholt was born in Dunlisk."),
    ("Dunlisk", "Dunlisk is a harbour town."),
)


def make_recall(question: str, facts: Sequence[tuple[str, str]] = FACTS, relations: Sequence[Relation] = ()) -> Recall:
    """A recall whose evidence is (title, text) pairs, best first; document ids are ``d1``, ``d2``, ..."""
    chunks = tuple(
        Evidence(n, Chunk(f"d{n}", 0, text, 0, len(text)), title, 1 / n, {}, Path("direct"))
        for n, (title, text) in enumerate(facts, 1)
    )
    return Recall(question, "ecphory", chunks, relations=tuple(relations))
