"""What an adding would cost: told beforehand, as it then is, and without doing anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from ecphoryrag.errors import BudgetSpent
from ecphoryrag.indexing import LeftOut, Loaded, index
from ecphoryrag.indexing.estimate import History, estimate
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.models.static import StaticEncoder
from ecphoryrag.ports import Encoder, Store
from ecphoryrag.settings import ChunkSettings, IndexingSettings
from ecphoryrag.store import open_store
from ecphoryrag.types import Chunk, Document, Failure, Usage
from tests.support.paid_extractor import PaidExtractor
from tests.support.store_tables import tables

SETTINGS = IndexingSettings(batch=3, chunks=ChunkSettings(budget=32, overlap=0))
TEXT = (
    "The lighthouse on Grey Point was lit in 1861, and Ida Moen kept it for thirty years; her brother, who sailed from "
    "Tromsø with the herring fleet, never came back. In the parish register her name is written without the last "
    "letter, which is why the historian Peder Lund, writing in 1934, took her for a man."
)
ITEMS: list[Loaded] = [
    Document("a", " ".join([TEXT] * 3), "Grey Point Light"),
    Failure("x.pdf", "PDF"),
    Document("b", TEXT, "Ida Moen"),
    LeftOut(".h", "hidden"),
    Document("c", TEXT.replace("Ida", "Eva")),
    Document("b", TEXT, "Ida Moen"),
    Document("b", "Another text."),
]


def opened(path: Path, encoder: Encoder) -> Store:
    return open_store(path / "s.ecphory", encoder.identity, "paid 1")


def test_of_a_store_that_is_not_there_everything_is_to_be_done(tmp_path: Path) -> None:
    encoder = StaticEncoder()
    extractor = PaidExtractor(parallel=4)
    told = estimate(ITEMS, None, encoder, extractor, SETTINGS, History(0.5, "replies of about 20 tokens"))
    assert extractor.calls == []
    assert list(tmp_path.iterdir()) == []
    store = opened(tmp_path, encoder)
    report = index(ITEMS, store, encoder, extractor, SETTINGS)
    store.close()
    assert (told.documents, told.chunks, told.calls) == (3, report.chunks, report.usage.calls)
    assert (told.input_tokens, told.output_tokens) == (report.usage.input_tokens, report.usage.output_tokens)
    assert told.embedding_tokens == pytest.approx(report.usage.embedding_tokens, rel=0.15)
    assert told.seconds == pytest.approx(told.calls * 0.5 / 4)
    assert (told.exact_input, told.cached, told.basis) == (True, 0, "replies of about 20 tokens")
    assert told.failed == report.failed
    assert told.left_out == report.left_out


def test_nothing_is_called_or_stored_and_what_is_there_costs_nothing(tmp_path: Path) -> None:
    encoder = HashEncoder()
    extractor = PaidExtractor(failing=lambda chunk: "no" if chunk.ordinal == 1 else None)
    store = opened(tmp_path, encoder)
    index(ITEMS, store, encoder, extractor, SETTINGS)
    failed = store.status().failed_chunks
    before = (tables(tmp_path / "s.ecphory"), store.status().generation, len(extractor.calls))
    changed = Document("c", "Eva Moen is forgotten.")
    new = Document("d", "Ida Moen is not.")
    told = estimate([*ITEMS[:3], changed, new], store, encoder, extractor, SETTINGS, History())
    assert (told.documents, told.chunks, told.calls) == (4, failed - 1 + 2, failed - 1 + 2)
    assert told.input_tokens == 100 * told.calls
    assert told.embedding_tokens == pytest.approx(sum(len(one.text.split()) for one in (changed, new)), rel=0.7)
    assert told.seconds is None
    assert (tables(tmp_path / "s.ecphory"), store.status().generation, len(extractor.calls)) == before
    extractor.failing = lambda _: None
    index([*ITEMS[:3], changed, new], store, encoder, extractor, SETTINGS)
    again = estimate([*ITEMS[:3], changed, new], store, encoder, extractor, SETTINGS, History(2.0))
    assert (again.documents, again.calls, again.embedding_tokens, again.seconds) == (0, 0, 0, 0.0)
    store.close()


def test_what_the_ledger_holds_is_told_apart(tmp_path: Path) -> None:
    def stop(chunk: Chunk) -> None:
        if chunk.document_id == "b":
            raise BudgetSpent("spent")

    store = opened(tmp_path, HashEncoder())
    extractor = PaidExtractor(failing=stop)
    report = index([ITEMS[2], ITEMS[0]], store, HashEncoder(), extractor, SETTINGS)
    assert report.stopped
    extractor.failing = lambda chunk: "no" if chunk.ordinal == 2 else None
    index([ITEMS[0]], store, HashEncoder(), extractor, SETTINGS)
    store.delete(["a"])
    told = estimate([ITEMS[0]], store, HashEncoder(), extractor, SETTINGS, History())
    assert (told.calls, told.cached) == (1, told.chunks - 1)
    store.close()


def test_rules_and_no_encoder_cost_nothing() -> None:
    told = estimate(ITEMS, None, HashEncoder(0), NamesExtractor(), SETTINGS, History())
    assert (told.documents, told.calls, told.embedding_tokens, told.seconds) == (3, 0, 0, None)
    assert told.basis == "no language model is called"


def test_an_estimated_prompt_is_said_to_be_one() -> None:
    class Estimating(PaidExtractor):
        def estimate(self, document: Document, chunks: object) -> Usage:
            del document, chunks
            return Usage(1, 90, 20, estimated=True)

    assert not estimate(ITEMS, None, HashEncoder(), Estimating(), SETTINGS, History()).exact_input
