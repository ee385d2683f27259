"""How much came back, counted beside the figures; and a k of a method's own."""

from __future__ import annotations

from pathlib import Path

from ecphoryrag.evaluation.bench.rows import read_rows
from ecphoryrag.evaluation.bench.table import table
from ecphoryrag.evaluation.bench.watch import SIZES
from ecphoryrag.text.tokens import count_tokens
from tests.support.bench import CORPUS, HEAD, run_faked, write_config, write_data

METHODS = """
[[methods]]
name = "paper"
k = [1, 2]
[methods.parameters]
k_final = 2
context = ["both", "chunks", "entities"]
[[methods]]
name = "bm25"
[[methods]]
name = "closed-book"
"""


def test_sizes_of_what_came_back(tmp_path: Path) -> None:
    write_data(tmp_path)
    run_faked(write_config(tmp_path, HEAD, METHODS), tmp_path / "out", limit=2)
    found = {row.label: row.figures for row in table(tmp_path / "out")}
    assert [len(found), next(iter(found)), "bm25" in found] == [8, "paper[context=both,k=1]", True]

    def sizes(label: str) -> list[float]:
        return [found[label][name].mean for name in SIZES]

    for k in (1, 2):
        both, chunks, entities = (
            sizes(f"paper[context={context},k={k}]") for context in ("both", "chunks", "entities")
        )
        assert (both[:2], chunks[:2], entities[:2]) == ([2, k], [2, k], [2, 0])
        assert both[2] == chunks[2] + entities[2]
        assert entities[2] > 0
    assert sizes("bm25")[:2] == [0, 3]
    assert "entities" not in found["closed-book"]
    texts = {name: f"{title}\n{text}" for name, title, text in CORPUS}
    rows = read_rows(tmp_path / "out")
    bm25 = next(cell for cell in rows.cells if cell.label == "bm25")
    for row in rows.of(bm25):
        assert row.figures["context_tokens"] == sum(count_tokens(texts[name]) for name in row.retrieved[:3])
