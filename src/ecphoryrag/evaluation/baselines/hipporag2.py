"""The method ``hipporag2``: Gutiérrez, Shu, Qi, Zhou and Su (2025), "From RAG to Memory", called HippoRAG 2.

- Offline indexing (section 3.1): :mod:`openie` for the triples, :mod:`hipporag2_graph` for the graph.
- Query to triple (section 3.3): the question's vector against the vector of each fact; the best 5 go on.
- Recognition memory (section 3.4): a language model says which of these facts help; see :mod:`hipporag2_filter`.
- Online retrieval (section 3.5, appendix on implementation): a phrase of a kept fact gets the mean score of its kept
  facts, divided by the number of passages that hold it; the 5 highest phrases are kept; every passage gets its dense
  score times 0.05; personalised PageRank with damping 0.5 ranks the passages. No fact left: the dense ranking.
- A fact is embedded in the notation of a Python tuple, and both scores are scaled to [0, 1] over all facts, or all
  passages, of a question, as in the public code.

Departures: names keep the letters of all scripts (see ``normal_phrase``); the encoder is the run's, without the
publication's instructions to NV-Embed-v2; equal scores are ordered by number, not at random; where all
scores of a question are equal they count 1 (the public code divides by zero). A passage is the whole document, its
title above its text, as in the publication's corpora.

Parameters: ``openie`` (a file of triples; without it the language model reads them out), ``filter`` (``model``, or
``none`` to keep all facts), ``facts`` 5, ``phrases`` 5, ``passage_weight`` 0.05, ``damping`` 0.5, ``synonymy`` 0.8,
``neighbours`` 100, ``parallel`` true.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.baselines.hipporag2_filter import recognised
from ecphoryrag.evaluation.baselines.hipporag2_graph import FactGraph, Ints, edge_weights, read_facts, synonymy
from ecphoryrag.evaluation.baselines.kept import Arrays, digest, load_index, save_index
from ecphoryrag.evaluation.baselines.openie import read_triples, triples_made_of
from ecphoryrag.evaluation.baselines.options import Options
from ecphoryrag.evaluation.baselines.pagerank import Weights, personalised_pagerank, walk_matrix
from ecphoryrag.evaluation.baselines.port import Indexed, Kit, Retrieved, evidence_of
from ecphoryrag.evaluation.baselines.triples import Triple
from ecphoryrag.indexing import passage_vectors
from ecphoryrag.ports import Vectors
from ecphoryrag.types import Answer, Document, JsonValue, Recall, Usage

NAME = "hipporag2"
VERSION = 1
"""Changes whenever the same documents would give another index."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters, with the publication's values as defaults."""

    openie: str | None
    filtered: bool
    facts: int
    phrases: int
    passage_weight: float
    damping: float
    synonymy: float
    neighbours: int
    parallel: bool


@dataclass(frozen=True, slots=True)
class _Index:
    documents: tuple[Document, ...]
    graph: FactGraph
    walk: Weights
    passage_vectors: Vectors
    fact_vectors: Vectors


def make(kit: Kit) -> HippoRAG2:
    """The method with the kit's parameters. Raises SettingsError for one that is unknown or out of range."""
    options = Options(NAME, kit.parameters)
    setting = Setting(
        openie=options.text("openie"),
        filtered=options.choice("filter", ("model", "none")) == "model",
        facts=options.count("facts", 5),
        phrases=options.count("phrases", 5),
        passage_weight=options.real("passage_weight", 0.05, 0, 1),
        damping=options.real("damping", 0.5, 0, 0.99),
        synonymy=options.real("synonymy", 0.8, 0, 1),
        neighbours=options.count("neighbours", 100),
        parallel=options.switch("parallel", default=True),
    )
    options.finish()
    return HippoRAG2(kit, setting)


class HippoRAG2:
    """Passages ranked by a walk over a graph of facts, which starts at the facts that fit the question."""

    name = NAME

    def __init__(self, kit: Kit, setting: Setting) -> None:
        self._kit = kit
        self._setting = setting
        self._index: _Index | None = None

    def index(self, documents: Sequence[Document]) -> Indexed:
        """Triples, vectors and graph; read from the folder if it holds them for these documents.

        Raises InputError for a file of triples that cannot be read, and ModelError as encoder and language model do.
        """
        started = self._kit.clock.now()
        setting, encoder = self._setting, self._kit.encoder
        openie = Path(setting.openie) if setting.openie else None
        opened = read_triples(documents, openie, self._kit)
        facts = read_facts(opened.triples)
        made_of = digest(
            [
                *(NAME, VERSION, encoder.identity.fingerprint, triples_made_of(openie, self._kit)),
                *(setting.synonymy, setting.neighbours, setting.parallel),
                *(part for document in documents for part in (document.id, document.content_hash)),
                *_written(opened.triples),
            ]
        )
        kept = load_index(self._kit.folder, made_of)
        if kept is None:
            arrays, spent = self._build(documents, facts)
            figures = _figures(facts, arrays)
            report = Indexed(opened.usage + spent, self._kit.clock.now() - started, figures, opened.notes)
            save_index(self._kit.folder, made_of, report, arrays)
        else:
            report, arrays = kept
        shape = (len(facts.phrases) + len(documents),) * 2
        self._index = _Index(
            tuple(documents),
            facts,
            walk_matrix(_weights(arrays, shape)),
            np.asarray(arrays["passages"], np.float32),
            np.asarray(arrays["facts"], np.float32),
        )
        return report

    def _build(self, documents: Sequence[Document], facts: FactGraph) -> tuple[Arrays, Usage]:
        encoder, setting, tell = self._kit.encoder, self._setting, self._kit.tell
        tell("embedding passages", 0, len(documents))
        passages = passage_vectors([one.title for one in documents], [one.text for one in documents], encoder)
        tell("embedding facts", 0, len(facts.facts))
        of_facts = encoder.encode([fact.notation for fact in facts.facts], "passage")
        tell("embedding phrases", 0, len(facts.phrases))
        of_phrases = encoder.encode(facts.phrases, "passage")
        tell("joining synonyms", 0, len(facts.phrases))
        synonyms = synonymy(facts.phrases, of_phrases.vectors, setting.synonymy, setting.neighbours)
        weights = edge_weights(facts, synonyms, parallel=setting.parallel)
        arrays: Arrays = {
            "passages": passages.vectors,
            "facts": of_facts.vectors,
            "weights": weights.data,
            "columns": weights.indices,
            "rows": weights.indptr,
            "synonyms": np.array(synonyms.nnz // 2),
        }
        return arrays, passages.usage + of_facts.usage + of_phrases.usage

    def retrieve(self, question: str, k: int) -> Retrieved:
        """The passages where the walk is most often, or the nearest ones if no fact was left. Raises ModelError."""
        started = time.perf_counter()
        index = self._index
        if index is None:
            raise InputError(f"{NAME} has no index yet: index the documents first")
        asked = self._kit.encoder.encode([question], "query")
        usage, notes = asked.usage, tuple[str, ...]()
        vector = asked.vectors[0]
        dense = spread_out(index.passage_vectors @ vector)
        scores = dense
        if index.graph.facts:
            likeness = spread_out(index.fact_vectors @ vector)
            facts = best(likeness, self._setting.facts)
            if self._setting.filtered:
                chosen = recognised(question, [index.graph.facts[at] for at in facts], self._kit)
                facts, notes = facts[list(chosen.kept)], chosen.notes
                usage += chosen.usage
            if len(facts):
                restart = restarts(index.graph, likeness, facts, self._setting.phrases)
                restart = np.concatenate([restart, dense * self._setting.passage_weight])
                if restart.any():
                    walked = personalised_pagerank(index.walk, restart, self._setting.damping)
                    scores = walked[len(index.graph.phrases) :]
        order = best(scores, k)
        found = [index.documents[at] for at in order]
        recall = Recall(question, NAME, evidence_of(found, [float(scores[at]) for at in order]), usage=usage)
        return Retrieved(tuple(one.id for one in found), recall, usage, time.perf_counter() - started, notes)

    def answer(self, question: str) -> Answer | None:
        """None: the shared reader answers."""
        del question
        return None

    def close(self) -> None:
        """Let the index go."""
        self._index = None


def spread_out(scores: NDArray[np.float32]) -> Scores:
    """(n,) float64 scaled so that the least is 0 and the greatest 1; all 1 if they are equal."""
    wide = scores.astype(np.float64)
    if not len(wide):
        return wide
    low, high = float(wide.min()), float(wide.max())
    return (wide - low) / (high - low) if high > low else np.ones_like(wide)


def best(scores: Scores, count: int) -> Ints:
    """The positions of the highest scores, highest first, the lower position first of equal ones."""
    return np.argsort(-scores, kind="stable")[:count].astype(np.int64)


def restarts(graph: FactGraph, likeness: Scores, facts: Ints, phrases: int) -> Scores:
    """(p,) what the kept facts give the phrases: mean score over the passages that hold it, the best ones only.

    ``likeness`` (f,) is the score of each fact, ``facts`` the positions of those kept.
    """
    total, times = np.zeros(len(graph.phrases)), np.zeros(len(graph.phrases))
    for fact in facts:
        for phrase in graph.ends[fact]:
            total[phrase] += likeness[fact]
            times[phrase] += 1
    mean = np.divide(total, times, out=np.zeros_like(total), where=times > 0)
    share = np.divide(mean, graph.passages_of, out=np.zeros_like(mean), where=times > 0)
    kept = best(share, phrases)
    weights = np.zeros_like(share)
    weights[kept] = share[kept]
    return weights


def _written(triples: Sequence[Sequence[Triple]]) -> list[JsonValue]:
    return [[" | ".join(triple) for triple in some] for some in triples]


def _figures(facts: FactGraph, arrays: Arrays) -> Mapping[str, float]:
    return {
        "phrases": len(facts.phrases),
        "facts": len(facts.facts),
        "synonyms": int(arrays["synonyms"]),
        "edges": len(arrays["weights"]) // 2,
    }


def _weights(arrays: Arrays, shape: tuple[int, int]) -> Weights:
    return sparse.csr_array((arrays["weights"], arrays["columns"], arrays["rows"]), shape=shape)
