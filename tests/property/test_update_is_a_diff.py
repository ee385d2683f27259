"""Whatever is changed of a document, the store is then the one that never held anything else."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.indexing import index
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.models.llm_extractor import LLMExtractor
from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.ports import Extractor
from ecphoryrag.settings import ChunkSettings, ExtractionSettings, IndexingSettings
from ecphoryrag.store import export_store, open_store, verify_store
from ecphoryrag.types import Document, Message
from tests.support.compare_stores import differences
from tests.support.edits import Draft, drafts, edited
from tests.support.store_tables import tables

SETTINGS = IndexingSettings(chunks=ChunkSettings(budget=48, overlap=16))


def said(messages: Sequence[Message]) -> str:
    """A model that names every capitalised word of the text it is shown, and describes it by how long that text is."""
    asked = messages[-1].content
    lines = [line[2:] for line in asked.split("\n") if line.startswith("> ")]
    names = dict.fromkeys(re.findall(r"[A-Z]\w+", "\n".join(lines)))
    rows = [[name, "person", 1 + len(name) % 5, f"told in {len(asked)} signs"] for name in names]
    return json.dumps({"entities": rows})


def scripted() -> Extractor:
    return LLMExtractor(ScriptedGenerator(said), ExtractionSettings(), parallel=2)


def stored(path: Path, extractor: Extractor, states: Sequence[Document]) -> None:
    """Add these states of documents one after the other."""
    store = open_store(path, HashEncoder(8).identity, extractor.identity, create=True, read_only=False)
    try:
        for state in states:
            report = index([state], store, HashEncoder(8), extractor, SETTINGS)
            assert not report.failed
    finally:
        store.close()


def exported(path: Path) -> str:
    output = io.StringIO()
    export_store(path, output, vectors=True)
    return output.getvalue()


@st.composite
def histories(draw: st.DrawFn) -> list[Draft]:
    states = [draw(drafts)]
    for _ in range(draw(st.integers(1, 4))):
        states.append(draw(edited(states[-1])))
    return states


@pytest.mark.parametrize("make", [NamesExtractor, scripted], ids=["names", "llm"])
def test_a_document_that_was_changed_is_as_one_that_was_added(
    make: Callable[[], Extractor], tmp_path_factory: pytest.TempPathFactory
) -> None:
    @settings(deadline=None, max_examples=60)
    @given(histories())
    def holds(states: list[Draft]) -> None:
        folder = tmp_path_factory.mktemp("stores")
        other = Document("other", "Ada Lovelace wrote of Corrabel.")
        changed, fresh = folder / "changed", folder / "fresh"
        stored(changed, make(), [other, *(state.document("d") for state in states)])
        stored(fresh, make(), [states[-1].document("d"), other])
        assert exported(changed) == exported(fresh)
        assert differences(changed, fresh) == []
        assert tables(changed) == tables(fresh)
        report = verify_store(changed, deep=True)
        assert report.sound, report.flaws

    holds()
