"""Makes the golden store of the present format: ``python -m tests.golden.make_store``.

Run once when a format is new, and commit both files; those of earlier formats are never made again, since they show
that stores of those days still open.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ecphoryrag.decisions import Selection
from ecphoryrag.ports import Store
from ecphoryrag.store import open_store
from ecphoryrag.store.schema import FORMAT
from ecphoryrag.types import Heading
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, with_failures

FOLDER = Path(__file__).parent


def described(store: Store) -> dict[str, Any]:
    """What must come out of the store in any later version, in JSON's own types."""
    documents: list[dict[str, Any]] = []
    for summary in store.documents():
        indexed = store.indexed(summary.id)
        documents.append(
            {
                "id": indexed.document.id,
                "title": indexed.document.title,
                "text": indexed.document.text,
                "metadata": indexed.document.metadata,
                "headings": [[one.level, one.text, one.start, one.end] for one in indexed.document.headings],
                "source": indexed.document.source,
                "hash": summary.content_hash,
                "chunks": [[one.start, one.end, list(one.headings)] for one in indexed.chunks],
                "mentions": [
                    [[one.key, one.field, one.start, one.end, one.type, one.description, one.importance, one.about]]
                    for found in indexed.extractions
                    for one in found.mentions
                ],
                "aliases": [list(map(list, found.aliases)) for found in indexed.extractions],
                "vectors": [[round(float(value), 3) for value in row] for row in indexed.vectors],
            }
        )
        failures = [[at, found.failure] for at, found in enumerate(indexed.extractions) if found.failure is not None]
        if failures:
            documents[-1]["failures"] = failures
    with store.reading() as view:
        shot = view.snapshot
        terms = {term: int(shot.term_counts[:, [column]].sum()) for term, column in shot.terms.items()}
        linked = [[row, shot.entity_keys[column]] for row, column in np.argwhere(shot.linked.toarray()).tolist()]
        entities = (
            [] if not shot.names else [[one.key, one.name] for one in view.entities(range(len(shot.entity_keys)))]
        )
    status = store.status()
    counts = [status.documents, status.chunks, status.entities, status.mentions, status.generation]
    found = {"documents": documents, "terms": terms, "linked": linked, "counts": counts}
    decisions = [[one.decision.record(), one.mentions, list(one.idle)] for one in store.decisions().all()]
    return found | ({"decisions": decisions, "entities": entities} if decisions else {})


def make(path: Path) -> dict[str, Any]:
    """A store with all kinds of rows, some of them replaced and forgotten."""
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    for indexed in (
        indexed_document(
            "lighthouse", "Ida Moen kept Grey Point Light.\nIn 1921 she left for Tromsø.", "Grey Point Light"
        ),
        indexed_document("ida", "The first draft of Ida Moen"),
        indexed_document("gone", "Nobody Remembers this", "Gone"),
        indexed_document(
            "notes/東京.md",
            "東京 and Tromsø\nthey spoke of grey point light, running and running. भाषा",
            metadata={"year": 1931, "tags": ["a", "b"], "by": {"name": "M."}},
            headings=(Heading(1, "東京 and", 0, 6),),
            source="notes/東京.md",
        ),
        indexed_document("ida", "Ida Moen was a keeper. Ida Moen and IM are one.", "Ida Moen"),
        with_failures(indexed_document("log", "Storm in Tromsø.\nGrey Point Light went out.\nIda Moen lit it."), 0, 2),
    ):
        store.commit(indexed)
    store.delete(["gone"])
    names = store.decisions()
    names.merge(["Ida Moen", "IM"], reason="her initials")
    names.undo(names.merge(["東京", "Tromsø"]).decision.number)
    names.split("Tromsø", "the ship", Selection(documents=("notes/東京.md",), chunks=(("lighthouse", 1),)))
    names.split("Grey Point Light", "the ship", Selection(documents=("log",)))
    names.split("Ida Moen", "the younger", Selection(where={"year": 1931}))
    found = described(store)
    store.close()
    return found


if __name__ == "__main__":
    target = FOLDER / f"store-format-{FORMAT}.sqlite"
    expected = json.dumps(make(target), ensure_ascii=False, indent=1, sort_keys=True)
    target.with_suffix(".json").write_text(expected + "\n", encoding="utf-8")
    target.with_name(target.name + "-cache").unlink()
