"""Small runs written by hand, for the report: figures that can be checked by eye, and texts that mean harm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ecphoryrag.evaluation.bench.rows import ROWS, CellRow, QuestionRow, RowFile
from ecphoryrag.evaluation.bench.texts import TEXTS
from ecphoryrag.types import JsonValue, Usage

HOSTILE = "</script><script>alert('title')</script><img src=x onerror=alert(1)> & \"quoted\" {{ 7 * 7 }}"
HOSTILE_LABEL = 'dense" onload="alert(1)<b>|`x`</b>$'


def cell(
    label: str,
    dataset: str = "tiny",
    *,
    method: str | None = None,
    seed: int = 0,
    generator: str | None = "local",
    parameters: Mapping[str, JsonValue] | None = None,
    varied: Mapping[str, JsonValue] | None = None,
    k: int = 5,
    encoder: str = "static",
    index: int = 0,
    unavailable: str | None = None,
) -> CellRow:
    """A cell whose key is its names."""
    return CellRow(
        *(f"{label} {dataset} {encoder} {seed}", method or label, label, dataset, encoder, seed, "development"),
        generator,
        parameters or {},
        varied or {},
        k,
        passages=6,
        index=Usage(embedding_tokens=100 + index),
        unavailable=unavailable,
    )


def question(of: CellRow, name: str, em: float | None, recall: float, **more: float) -> QuestionRow:
    """A row with an answer, or, where ``em`` is None, of retrieval alone; two passages are gold."""
    figures = {"recall@5": recall, "all@5": float(recall == 1), **more}
    if em is not None:
        figures = {"em": em, "f1": max(em, 0.5), **figures}
    return QuestionRow(
        of.key,
        name,
        ("g1", "g2"),
        ("g1", "evil") if recall < 1 else ("g1", "g2"),
        figures,
        Usage(1, 400, 20, 12) if em is not None else Usage(embedding_tokens=12),
        seconds=2.0,
        retrieval_seconds=0.01,
        answered=em is not None,
        answer="<b>Brida</b> Sollas" if em else None,
        shown=("g1", "evil", "entity:orla"),
        cited=(1,) if em else (),
        code="c0de",
    )


def write_run(
    folder: Path, cells: Sequence[CellRow], rows: Sequence[QuestionRow], *, texts: bool = True, manifest: bool = True
) -> Path:
    """A run's folder."""
    with RowFile(folder / ROWS) as file:
        for each in cells:
            file.append(each)
        for row in rows:
            file.append(row)
    records: list[dict[str, object]] = [{"kind": "texts", "of": []}]
    for dataset in dict.fromkeys(one.dataset for one in cells):
        for name in dict.fromkeys(row.id for row in rows):
            asked = {"text": f"Question {name}? {HOSTILE}", "answers": ["Brida Sollas", HOSTILE], "gold": ["g1", "g2"]}
            records.append({"kind": "question", "dataset": dataset, "id": name, "type": "bridge", **asked})
        for name, title in {"g1": "Gold One", "g2": "Gold Two", "evil": HOSTILE}.items():
            text = f"Text of {name}. {HOSTILE}"
            records.append({"kind": "document", "dataset": dataset, "id": name, "title": title, "text": text})
    if texts:
        (folder / TEXTS).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    if manifest:
        sitting = {
            "began": "2026-01-02T03:04:05+00:00",
            "commit": "abc123",
            "versions": {"numpy": "2.0"},
            "machine": {"cores": 2},
            "stopped": None,
        }
        (folder / "manifest.json").write_text(json.dumps({"sittings": [sitting]}), encoding="utf-8")
    return folder


def answered_run(folder: Path) -> Path:
    """Three methods on four questions: EM 75, 50, 50; recall@5 75, 87.5, 87.5; a fourth method cannot run."""
    one, two, three = cell("ecphory"), cell("dense"), cell(HOSTILE_LABEL, method="bm25", index=900)
    rows = [question(one, f"q{n}", em, recall) for n, (em, recall) in enumerate([(1, 1), (1, 0.5), (1, 1), (0, 0.5)])]
    rows += [question(two, f"q{n}", em, recall) for n, (em, recall) in enumerate([(1, 1), (0, 0.5), (1, 1), (0, 1)])]
    rows += [question(three, f"q{n}", em, recall) for n, (em, recall) in enumerate([(0, 1), (1, 0.5), (1, 1), (0, 1)])]
    return write_run(folder, [one, two, three, cell("lightrag", unavailable=f"no model {HOSTILE}")], rows)


def ablation_run(folder: Path) -> Path:
    """Depth, context and k varied on two data sets, with answers."""
    cells, rows = [], []
    for dataset in ("tiny", "other"):
        for depth in (0, 1):
            for seeds in ("all", "frontier"):
                varied: dict[str, JsonValue] = {"retrieval_depth": depth, "select_seeds": seeds}
                label = f"paper[retrieval_depth={depth},select_seeds={seeds}]"
                cells.append(cell(label, dataset, method="paper", parameters=varied, varied=varied))
        for context in ("both", "chunks"):
            for k in (2, 5):
                label = f"shown[context={context},k={k}]"
                given: dict[str, JsonValue] = {"context": context, "k_final": 20}
                varied = {"context": context, "k": k}
                cells.append(cell(label, dataset, method="paper", parameters=given, varied=varied, k=k))
        for entities in (2, 5):
            given = {"context": "entities", "k_final": entities}
            label = f"entities[k_final={entities}]"
            cells.append(cell(label, dataset, method="paper", parameters=given, varied={"k_final": entities}))
    for place, each in enumerate(cells):
        sizes = {"entities": 20.0 + place, "passages": 5.0, "context_tokens": 900.0 + 10 * place}
        rows += [question(each, f"q{n}", float((place + n) % 3 == 0), 0.5, **sizes) for n in range(4)]
    return write_run(folder, cells, rows)
