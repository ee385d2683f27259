"""What an update of a document extracts, encodes and writes: only what changed, by each extractor."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import apsw
import pytest

from ecphoryrag.errors import DocumentNotFound
from ecphoryrag.indexing import History, estimate, index
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.models.llm_extractor import LLMExtractor
from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.ports import Encoded, Extractor, Revision, Store
from ecphoryrag.settings import ChunkSettings, ExtractionSettings, IndexingSettings
from ecphoryrag.store import export_store, open_store, verify_store
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import AddReport, Chunk, Document, Extraction, Heading, Message
from tests.support.paid_extractor import PaidExtractor

SETTINGS = IndexingSettings(chunks=ChunkSettings(budget=128, overlap=24))
PLACES = ("Corrabel", "Dunlisk", "Tarsholm", "Ostrava", "Pellin", "Quorn", "Varn", "Hale")


def sentence(number: int) -> str:
    """The last of each five ends its paragraph."""
    names = f"{PLACES[number % 8]} {PLACES[number // 8 % 8]}"
    end = "\n\n" if number % 5 == 4 else " "
    return f"{names} number {number} was seen from the {number}th tower by the sea.{end}"


PART = 50
"""Sentences under a heading in the long document."""
LONG = [
    line
    for at in range(800)
    for line in (*([f"# Part {at // PART}\n\n"] if at % PART == 0 and at else []), sentence(at))
]


def written(sentences: Sequence[str], title: str = "The Log") -> Document:
    """The text of these, each with the white space that follows it; what begins with ``#`` is a heading."""
    text, headings = "", []
    for one in sentences:
        if one.startswith("# "):
            name = one[2:].strip()
            headings.append(Heading(1, name, len(text) + 2, len(text) + 2 + len(name)))
        text += one
    return Document("log", text, title, headings=tuple(headings))


class Counting(HashEncoder):
    """Counts the texts that it encodes."""

    def __init__(self) -> None:
        super().__init__(8)
        self.texts = 0

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        self.texts += len(texts)
        return super().encode(texts, kind)


class Names(NamesExtractor):
    """Counts the chunks that it extracts."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        self.asked += len(chunks)
        return super().extract(document, chunks)


def said(messages: Sequence[Message]) -> str:
    names = dict.fromkeys(re.findall(r"[A-Z]\w+", messages[-1].content.split("Text", 1)[1]))
    return json.dumps({"entities": [[name, "place", 2, "seen by the sea"] for name in names]})


class Bench:
    """A store, an extractor that counts, and what the last addition cost."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self.encoder = Counting()
        self.generator = ScriptedGenerator(said)
        self.names = Names()
        llm = LLMExtractor(self.generator, ExtractionSettings(), parallel=2)
        self.extractor: Extractor = self.names if kind == "names" else llm
        self.store: Store = opened(path, self.extractor)

    def add(self, document: Document) -> AddReport:
        self.encoder.texts = self.names.asked = 0
        self.generator.asked.clear()
        return index([document], self.store, self.encoder, self.extractor, SETTINGS)

    @property
    def calls(self) -> int:
        return self.names.asked + len(self.generator.asked)


def opened(path: Path, extractor: Extractor) -> Store:
    return open_store(path, HashEncoder(8).identity, extractor.identity, create=True, read_only=False)


@pytest.fixture(params=["names", "llm"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "s", request.param)
    yield made
    made.store.close()


def exported(path: Path) -> str:
    output = io.StringIO()
    export_store(path, output, vectors=True)
    return output.getvalue()


EDITS = {
    "sentence": lambda at: [*LONG[:at], LONG[at].replace("by the sea", "from afar"), *LONG[at + 1 :]],
    "sentence inserted": lambda at: [*LONG[:at], "Odda Brennvik was there too. ", *LONG[at:]],
    "sentence deleted": lambda at: [*LONG[:at], *LONG[at + 1 :]],
    "heading inserted": lambda at: [*LONG[:at], "# Night\n\n", *LONG[at:]],
    "paragraph inserted": lambda at: [*LONG[:at], *(f"Odda {n} Brennvik went to Ulm. " for n in range(5)), *LONG[at:]],
    "paragraph deleted": lambda at: [*LONG[:at], *LONG[at + 5 :]],
}
BOUNDS = {"sentence": 2, "sentence inserted": 3, "sentence deleted": 3, "paragraph inserted": 4, "paragraph deleted": 3}
UNDER = 16
"""Chunks of a part: a new heading changes those under it, in whose vectors and prompts it stands."""


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_a_document_of_200_chunks_costs_what_it_changes(bench: Bench, edit: str) -> None:
    whole = bench.add(written(LONG))
    assert whole.chunks == bench.calls == bench.encoder.texts >= 200
    assert whole.reused == 0
    for at in (261, 420):
        bench.add(written(LONG))
        report = bench.add(written(EDITS[edit](at)))
        assert report.updated == ("log",)
        assert 1 <= report.chunks <= BOUNDS.get(edit, UNDER)
        assert bench.calls == report.chunks
        assert bench.encoder.texts == report.chunks
        assert report.reused + report.chunks == len(bench.store.indexed("log").chunks)


def test_hardly_any_change_of_words_in_a_sentence_changes_more_than_two_chunks() -> None:
    known = {one.text for one in chunk_document(written(LONG), SETTINGS.chunks)}
    counts = []
    for at in range(3, len(LONG), 13):
        chunks = chunk_document(written(EDITS["sentence"](at)), SETTINGS.chunks)
        counts.append(sum(one.text not in known for one in chunks))
    assert max(counts) <= 3
    assert sum(count > 2 for count in counts) <= len(counts) * 0.05


def fresh(path: Path, document: Document, extractor: Extractor) -> str:
    """The export of a store that holds this document alone."""
    with closing(opened(path, extractor)) as store:
        index([document], store, HashEncoder(8), extractor, SETTINGS)
    return exported(path)


def test_a_word_that_is_written_small_elsewhere_now_is_no_name_at_the_beginning_of_other_chunks(tmp_path: Path) -> None:
    body = [sentence(number) for number in range(40)]
    body[2], body[30] = (
        "Apple stalls lined the road to the sea in that year. ",
        "It rained on the 30th day by the sea. ",
    )
    bench = Bench(tmp_path / "s", "names")
    bench.add(written(body))
    changed = written([*body[:30], "An apple fell on the 30th day by the sea. ", *body[31:]])
    report = bench.add(changed)
    assert report.chunks >= 2, "the first chunk is extracted anew, though its text is the same"
    assert bench.encoder.texts < report.chunks, "its vector is kept"
    bench.store.close()
    assert exported(bench.path) == fresh(tmp_path / "f", changed, NamesExtractor())


def test_mentions_of_a_heading_before_the_chunk_move_with_the_heading(tmp_path: Path) -> None:
    body = [*LONG[:5], "# Harbour of Corrabel\n\n", *LONG[5:60]]
    bench = Bench(tmp_path / "s", "names")
    bench.add(written(body))
    between = written([*body[:20], "Odda Brennvik was there too. ", *body[20:]])
    before = written(["Odda Brennvik began it. ", *body])
    for at, changed in enumerate((between, before)):
        report = bench.add(changed)
        assert report.reused > report.chunks
        assert exported(bench.path) == fresh(tmp_path / f"f{at}", changed, NamesExtractor())
    assert verify_store(bench.path, deep=True).sound


def test_metadata_and_source_alone_cost_nothing_and_are_put_down(bench: Bench) -> None:
    document = written(LONG[:40])
    bench.add(document)
    dated = replace(document, metadata={"year": 1871})
    report = bench.add(dated)
    assert (report.updated, report.chunks, bench.calls, bench.encoder.texts) == (("log",), 0, 0, 0)
    assert bench.store.get("log").metadata == {"year": 1871}
    moved = bench.add(replace(dated, source="elsewhere.md"))
    assert (moved.unchanged, bench.calls) == (("log",), 0)
    assert bench.store.get("log").source == "elsewhere.md"


def test_another_title_changes_every_chunk(bench: Bench) -> None:
    count = bench.add(written(LONG[:40])).chunks
    report = bench.add(written(LONG[:40], "Another Log"))
    assert (report.chunks, report.reused, bench.encoder.texts) == (count, 0, count)


def test_chunks_of_another_extractor_are_extracted_again_and_keep_their_vectors(bench: Bench) -> None:
    document = written(LONG[:40])
    index([document], bench.store, HashEncoder(8), PaidExtractor(), SETTINGS)
    with closing(apsw.Connection(str(bench.path))) as connection:
        connection.execute("UPDATE extractors SET identity = 'paid 1'")
    report = bench.add(written(["Odda Brennvik began it. ", *LONG[:40]]))
    assert report.reused == 0
    assert bench.encoder.texts < report.chunks


def test_an_extractor_that_cannot_tell_extracts_all_again(tmp_path: Path) -> None:
    paid = PaidExtractor()
    with closing(opened(tmp_path / "s", paid)) as store:
        first = index([written(LONG[:40])], store, HashEncoder(8), paid, SETTINGS)
        encoder = Counting()
        second = index([written(LONG[:41])], store, encoder, paid, SETTINGS)
    assert second.reused == 0
    assert second.chunks >= first.chunks
    assert encoder.texts <= 2


def test_failed_chunks_of_a_changed_document_are_tried_again(tmp_path: Path) -> None:
    failing = ["it fails"]

    def reply(messages: Sequence[Message]) -> str:
        return "no" if failing and "number 3 was" in messages[-1].content else said(messages)

    generator = ScriptedGenerator(reply)
    extractor = LLMExtractor(generator, ExtractionSettings(attempts=1))
    with closing(opened(tmp_path / "s", extractor)) as store:
        first = index([written(LONG[:40])], store, HashEncoder(8), extractor, SETTINGS)
        assert len(first.incomplete) == 1
        failing.clear()
        encoder = Counting()
        changed = written([*LONG[:35], "Odda Brennvik was there too. ", *LONG[35:40]])
        report = index([changed], store, encoder, extractor, SETTINGS)
        assert not report.incomplete
        assert report.chunks > encoder.texts, "the failed chunk has its vector"
        assert not store.incomplete()
    assert exported(tmp_path / "s") == fresh(tmp_path / "f", changed, extractor)


def test_an_estimate_counts_the_changed_chunks_alone(bench: Bench) -> None:
    bench.add(written(LONG[:200]))
    changed = written(["Odda Brennvik began it. ", *LONG[:200]])
    told = estimate([changed], bench.store, bench.encoder, bench.extractor, SETTINGS, History())
    report = bench.add(changed)
    assert (told.documents, told.chunks) == (1, report.chunks)
    assert 0 < told.embedding_tokens < 128 * 4


def rows_of(path: Path, id: str) -> dict[str, dict[object, int]]:
    """For each table the rows that belong to other documents than this, each hashed, by row number or key."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        chunk = "chunk IN (SELECT c.row FROM chunks c JOIN documents d ON d.row = document WHERE d.id <> ?)"
        queries = {
            "documents": "SELECT row, * FROM documents WHERE id <> ?",
            "chunks": "SELECT c.row, c.* FROM chunks c JOIN documents d ON d.row = document WHERE d.id <> ?",
            "mentions": f"SELECT chunk || ' ' || number, * FROM mentions WHERE {chunk}",
            "aliases": f"SELECT chunk || ' ' || number, * FROM aliases WHERE {chunk}",
            "entities": f"SELECT row, * FROM entities WHERE row IN (SELECT entity FROM mentions WHERE {chunk})",
        }
        return {
            table: {key: hash(tuple(row)) for key, *row in connection.execute(query, (id,))}
            for table, query in queries.items()
        }


def test_an_update_and_a_deletion_touch_no_other_documents_rows(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s", "names")
    for number in range(6):
        bench.add(replace(written(LONG[number * 5 : number * 5 + 40]), id=f"other-{number}"))
    bench.add(written(LONG[:60]))
    before = rows_of(bench.path, "log")
    bench.add(written([*LONG[:20], "Odda Brennvik was there too. ", *LONG[20:60]]))
    assert rows_of(bench.path, "log") == before
    bench.store.delete(["log"])
    assert rows_of(bench.path, "log") == before
    bench.store.close()
    assert verify_store(bench.path, deep=True).sound


def test_an_update_keeps_the_rows_of_chunks_that_did_not_change(tmp_path: Path) -> None:
    def rows() -> set[tuple[object, ...]]:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return set(connection.execute("SELECT row, words, vector FROM chunks"))

    path = tmp_path / "s"
    bench = Bench(path, "names")
    count = bench.add(written(LONG[:200])).chunks
    before = rows()
    report = bench.add(written(["Odda Brennvik began it. ", *LONG[:200]]))
    assert len(before & rows()) == report.reused >= count - 3


def test_a_revision_of_what_has_changed_meanwhile_is_refused(bench: Bench) -> None:
    bench.add(written(LONG[:40]))
    earlier = bench.store.earlier("log")
    assert earlier is not None
    revision = Revision("0" * 32, earlier.document, (), {}, {}, HashEncoder(8).encode([], "passage").vectors)
    before = exported(bench.path)
    with pytest.raises(DocumentNotFound, match="add it again"):
        bench.store.revise(revision)
    assert exported(bench.path) == before
    assert bench.store.earlier("nobody") is None
