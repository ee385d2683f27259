"""The road of a question on documents small enough to know the answer."""

from __future__ import annotations

import threading
import time
from typing import cast, get_args

import numpy as np
import pytest

from ecphoryrag.errors import InputError
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.ports import Encoder, IndexedDocument
from ecphoryrag.recall import PreparedCache, RecallRequest, prepare, recall
from ecphoryrag.recall.graph import facts
from ecphoryrag.settings import EcphorySettings, MethodName, PaperSettings, RecallSettings
from ecphoryrag.settings.recall import AboutSettings
from ecphoryrag.types import Recall
from tests.support.reference_view import ReferenceView, told

METHODS: tuple[MethodName, ...] = get_args(MethodName)
ENCODER = HashEncoder(256)
"""Of so many dimensions that texts without a common word are at right angles, nearly."""
QUESTION = "Where was the builder of the Grey Pellin born?"
NAMES = ("Grey Pellin", "Ilka Varnholt", "Dunlisk", "Ottmar Reeve", "Copper Gull", "Sallow Bay")
DISTRACTORS = (
    ("copper", "The Copper Gull is a tavern of the harbour where sailors were born.", "Copper Gull"),
    ("reeve", "Ottmar Reeve was a builder of chapels.", "Ottmar Reeve"),
    ("sallow", "Sallow Bay is a town of fishers who were born to the sea.", "Sallow Bay"),
    *(
        (f"note{at}", f"Page {at} tells of wheat, of rain and of the mill where flour is ground.", "")
        for at in range(9)
    ),
)


def chained(encoder: Encoder | None = None, *, titles: bool = True) -> list[IndexedDocument]:
    """A question's two hops among others; the second shares no telling word with the question."""
    facts = [
        ("pellin", "The Grey Pellin is a ship that was built by Ilka Varnholt in 1871.", "Grey Pellin"),
        ("varnholt", "Ilka Varnholt came into the world at Dunlisk.", "Ilka Varnholt"),
        *DISTRACTORS,
    ]
    return [
        told(name, text, NAMES, title=title if titles else "", encoder=encoder, metadata={"topic": name[0]})
        for name, text, title in facts
    ]


def ask(
    documents: list[IndexedDocument],
    question: str = QUESTION,
    *,
    method: MethodName = "ecphory",
    k: int = 2,
    encoder: Encoder | None = None,
    settings: RecallSettings | None = None,
    where: dict[str, str] | None = None,
) -> Recall:
    request = RecallRequest.of(settings or RecallSettings(), k=k, method=method, where=where)
    return recall(question, ReferenceView(documents), encoder or ENCODER, request, PreparedCache())


def ids(recalled: Recall) -> list[str]:
    return [one.chunk.document_id for one in recalled.chunks]


@pytest.mark.parametrize("titles", [True, False])
def test_the_second_hop_is_found_over_a_name(titles: bool) -> None:
    found = ask(chained(titles=titles), k=3)
    assert {"pellin", "varnholt"} <= set(ids(found))
    assert found.reason is None
    assert "varnholt" not in ids(ask(chained(titles=titles), method="hybrid", k=5))


def test_the_path_tells_the_two_hops_with_their_spans() -> None:
    documents = chained()
    second = next(one for one in ask(documents).chunks if one.chunk.document_id == "varnholt")
    assert second.path.kind in {"spread", "chain"}
    told_steps = [(step.kind, step.text, step.document_id, step.field) for step in second.path.steps]
    assert told_steps == [
        ("cue", "Grey Pellin", None, "text"),
        ("sentence", documents[0].document.text, "pellin", "text"),
        ("entity", "Ilka Varnholt", "varnholt", "text"),
        ("sentence", documents[1].document.text, "varnholt", "text"),
    ]
    cue = second.path.steps[0]
    assert QUESTION[cue.start : cue.end] == cue.text


def test_cues_keep_the_words_and_places_of_the_question() -> None:
    question = "was the GREY PELLIN's builder, Ilka Varnholt, rich?"
    cues = ask(chained(), question).cues
    assert [(cue.text, cue.entity_key) for cue in cues] == [
        ("GREY PELLIN", "grey pellin"),
        ("Ilka Varnholt", "ilka varnholt"),
    ]
    assert [question[cue.start : cue.end] for cue in cues] == [cue.text for cue in cues]
    assert sum(cue.weight for cue in cues) == pytest.approx(1)


def test_the_longest_name_is_the_cue() -> None:
    documents = [
        told("a", "Old Town is here.", ["Old Town"], title="Old Town"),
        told("b", "Old Town Hall stands.", ["Old Town Hall"], title="Old Town Hall"),
    ]
    assert [cue.entity_key for cue in ask(documents, "who built Old Town Hall?").cues] == ["old town hall"]


def test_a_word_of_many_texts_tells_little_even_if_it_names_few_things() -> None:
    """ "Built" is a film of one document, and a word of many."""
    documents = [
        told("built", "Built is a film about a bridge.", ["Built"]),
        told("pellin", "Grey Pellin is a ship.", ["Grey Pellin"]),
        *(told(f"d{number}", f"Mole {number} was built of stone.", [f"Mole {number}"]) for number in range(20)),
    ]
    assert [cue.text for cue in ask(documents, "Who built the Grey Pellin?").cues] == ["Grey Pellin"]
    named = {cue.text: cue.weight for cue in ask(documents, "Who made Built and the Grey Pellin?").cues}
    assert named["Built"] < named["Grey Pellin"] / 2


def test_a_common_word_is_a_cue_only_if_written_as_a_name() -> None:
    documents = [told(f"d{at}", f"Harvest number {at}.", ["Harvest"]) for at in range(9)]
    assert ask(documents, "Which harvest came first?").cues == ()
    assert [cue.text for cue in ask(documents, "When was Harvest shown?").cues] == ["Harvest"]
    assert ask([*documents[:2], *chained()], "Which harvest came first?").cues != ()


def test_short_forms_lead_to_the_chunk_about_the_full_name() -> None:
    names = ["Sir Ilka Maria Varnholt", "Ilka Varnholt", "Maria Varnholt"]
    documents = [
        told("full", "Sir Ilka Maria Varnholt came from Dunlisk.", names, title="Sir Ilka Maria Varnholt"),
        told("short", "Ilka Varnholt built ships.", names),
        told("other", "Maria Varnholt sang.", names, title="Maria Varnholt"),
    ]
    snapshot = ReferenceView(documents).snapshot
    about = facts(snapshot, AboutSettings()).about.toarray()
    full, at = snapshot.document_ids.index("full"), snapshot.entity_positions
    assert about[full, at["ilka varnholt"]] == AboutSettings().short_form
    assert about[full, at["maria varnholt"]] == 0, "a title has a document of its own"
    assert about[full, at["sir ilka maria varnholt"]] == AboutSettings().title


def test_an_alias_activates_what_it_is_an_alias_of() -> None:
    pair = [("RSG", "Royal Survey Guild")]
    documents = [
        told("a", "The Royal Survey Guild (RSG) measured land.", ["Royal Survey Guild", "RSG"], aliases=pair),
        told("b", "The Royal Survey Guild was led by Orla Finch.", ["Royal Survey Guild", "Orla Finch"]),
        told("c", "Wheat and barley were sown.", []),
        told("d", "Boats were mended in the yard.", []),
    ]
    found = ask(documents, "Who led RSG?", k=4)
    assert set(ids(found)[:2]) == {"a", "b"}
    assert {one.entity.key for one in found.entities} >= {"rsg", "royal survey guild"}
    plain = [told(one.document.id, one.document.text, ["Royal Survey Guild", "RSG"]) for one in documents]
    without = ask(plain, "Who led RSG?", k=4)
    active = {one.entity.key: one.score for one in found.entities}
    before = {one.entity.key: one.score for one in without.entities}
    assert active["royal survey guild"] == pytest.approx(active["rsg"])
    assert before["royal survey guild"] < 0.9 * before["rsg"]


def test_a_linked_name_is_a_mention_and_its_span_is_found() -> None:
    documents = [
        told("song", "the ballad of silver creek was sung there by many.", [], title="Evenings"),
        told("ballad", "Written by Hanne Dahl.", ["Hanne Dahl"], title="Ballad of Silver Creek"),
        told("other", "A mill and a road.", [], title="Mill"),
    ]
    snapshot = ReferenceView(documents).snapshot
    known = facts(snapshot, AboutSettings())
    ballad = snapshot.entity_positions["ballad of silver creek"]
    assert known.mentioned.toarray()[:, ballad].tolist() == [1, 0, 1]
    assert known.frequency[ballad] == 2
    found = ask(documents, "Who wrote Ballad of Silver Creek?", k=3)
    path = next(one.path for one in found.chunks if one.chunk.document_id == "song")
    places = [step for step in path.steps if step.document_id == "song"]
    assert places
    for step in places:
        assert documents[0].document.text[step.start : step.end] == step.text


def test_implicit_relations_join_two_active_entities_once() -> None:
    relations = ask(chained()).relations
    assert ("Grey Pellin", "Ilka Varnholt") in {(one.subject, one.object) for one in relations}
    assert len({(one.document_id, one.start) for one in relations}) == len(relations)
    assert [one.score for one in relations] == sorted((one.score for one in relations), reverse=True)
    texts = {one.document.id: one.document.text for one in chained()}
    assert all(texts[one.document_id][one.start : one.end] == one.sentence for one in relations)


def test_a_sentence_that_repeats_its_names_costs_no_more_for_it() -> None:
    document = told("d", "Ann met Bob, " * 3000 + "and so on.", ["Ann", "Bob"])
    started = time.process_time()
    (relation,) = ask([document], "When did Ann meet Bob?").relations
    assert {relation.subject, relation.object} == {"Ann", "Bob"}
    assert time.process_time() - started < 3, "all pairs of 6,000 mentions take a minute"


def test_a_pair_is_told_once_by_its_best_sentence() -> None:
    again = told("again", "The Grey Pellin, said Ilka Varnholt, leaks.", NAMES)
    relations = ask([*chained(), again], k=5).relations
    pairs = [frozenset((one.subject, one.object)) for one in relations]
    assert len(set(pairs)) == len(pairs)
    assert frozenset(("Grey Pellin", "Ilka Varnholt")) in pairs


def test_a_name_in_the_title_alone_is_shown_there() -> None:
    documents = [one for one in chained() if one.document.id != "varnholt"]
    documents.append(told("varnholt", "She was tall. Born she was at Dunlisk.", NAMES, title="Ilka Varnholt"))
    steps = next(one.path.steps for one in ask(documents, k=3).chunks if one.chunk.document_id == "varnholt")
    assert [(step.kind, step.text, step.field) for step in steps[-2:]] == [
        ("entity", "Ilka Varnholt", "title"),
        ("sentence", "Born she was at Dunlisk.", "text"),
    ]


def test_a_long_document_does_not_fill_the_ranking() -> None:
    siblings = "\n".join(f"The Grey Pellin had sail number {at}." for at in range(30))
    documents = [
        told("log", f"{siblings}\nIlka Varnholt built the Grey Pellin.", NAMES, title="Grey Pellin"),
        *chained()[1:],
    ]
    found = ask(documents, "Where was the builder of the Grey Pellin born?", k=5)
    assert "varnholt" in ids(found)


@pytest.mark.parametrize("method", METHODS)
def test_a_filter_is_as_if_only_those_documents_existed(method: MethodName) -> None:
    found = ask(chained(), method=method, k=9, where={"topic": "v"})
    assert ids(found) == ["varnholt"]
    assert all(step.document_id in {None, "varnholt"} for step in found.chunks[0].path.steps)
    assert {cue.entity_key for cue in found.cues} <= {"ilka varnholt"}
    assert ask(chained(), method=method, where={"topic": "?"}).reason == "no document passes the filter"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("question", "documents", "reason"),
    [
        (QUESTION, [], "the store is empty"),
        ("?! ...", chained(), "no word"),
        ("", chained(), "no word"),
    ],
)
def test_nothing_to_recall_is_said(
    method: MethodName, question: str, documents: list[IndexedDocument], reason: str
) -> None:
    found = ask(documents, question, method=method)
    assert found.chunks == ()
    assert reason in (found.reason or "")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("question", ["the of and", "zzgr qwrx?", "which one, and why?", "Grey", "a" * 5000])
def test_any_question_has_a_ranking_or_a_reason(method: MethodName, question: str) -> None:
    for encoder in (ENCODER, NoEncoder()):
        found = ask(chained(encoder), question, method=method, k=50, encoder=encoder)
        assert bool(found.chunks) != bool(found.reason)
        assert len(found.chunks) <= len(chained())
        assert all(np.isfinite([one.score, *one.signals.values()]).all() for one in found.chunks)


@pytest.mark.parametrize("method", ["dense", "paper"])
def test_without_vectors_a_method_that_needs_them_says_so(method: MethodName) -> None:
    found = ask(chained(NoEncoder()), method=method, encoder=NoEncoder())
    assert found.chunks == ()
    assert "vectors" in (found.reason or "")


def test_without_vectors_names_still_lead_on() -> None:
    assert set(ids(ask(chained(NoEncoder()), encoder=NoEncoder()))) == {"pellin", "varnholt"}


def test_of_a_pasted_page_the_rarest_terms_are_asked_for() -> None:
    crowd = [told(f"crowd{at}", " ".join(f"word{n}" for n in range(300)), []) for at in range(3)]
    page = " ".join(f"word{n}" for n in range(300)) + " Dunlisk"
    assert ids(ask([*crowd, *chained()], page, method="bm25", k=4))[-1] == "varnholt"


def test_paper_returns_its_entities_and_as_many_chunks_as_asked() -> None:
    settings = RecallSettings(paper=PaperSettings(k_initial=2, k_final=3, context_chunks=4))
    assert RecallRequest.of(settings, method="paper").k == 4
    found = ask(chained(), method="paper", k=3, settings=settings)
    assert len(found.entities) == 3
    assert len(found.chunks) == 3
    assert [one.score for one in found.entities] == sorted((one.score for one in found.entities), reverse=True)


def test_signals_are_named() -> None:
    assert set(ask(chained()).chunks[0].signals) == {"dense", "bm25", "hybrid", "activation", "chain"}
    assert set(ask(chained(), method="hybrid").chunks[0].signals) == {"dense", "bm25", "hybrid"}


def test_usage_counts_what_was_encoded() -> None:
    found = ask(chained(), method="dense")
    assert found.usage.embedding_tokens == len(QUESTION.split())
    assert found.usage.seconds > 0


@pytest.mark.parametrize(("k", "method"), [(0, "ecphory"), (-1, "dense"), (True, "bm25"), (5, "graph")])
def test_a_request_that_cannot_be_met_is_refused(k: int, method: str) -> None:
    with pytest.raises(InputError):
        RecallRequest.of(RecallSettings(), k=k, method=method)


def test_a_question_must_be_text() -> None:
    with pytest.raises(InputError, match="give it as text"):
        ask(chained(), cast("str", 7))


def test_what_was_prepared_is_kept_a_snapshot_and_a_setting() -> None:
    cache, view = PreparedCache(), ReferenceView(chained())
    kept = cache.graph(view.snapshot, AboutSettings())
    assert cache.graph(view.snapshot, AboutSettings()) is kept
    assert cache.graph(view.snapshot, AboutSettings(title=1)) is not kept
    again = cache.graph(ReferenceView(chained()).snapshot, AboutSettings())
    assert again is not kept
    np.testing.assert_array_equal(again.to_chunk.toarray(), prepare(view.snapshot, AboutSettings()).to_chunk.toarray())


def test_one_cache_serves_many_threads() -> None:
    cache, view, request = PreparedCache(), ReferenceView(chained()), RecallRequest.of(RecallSettings(), k=2)
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(ids(recall(QUESTION, view, ENCODER, request, cache))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ids(ask(chained()))] * 8


def test_without_steps_the_ranking_is_the_seeds() -> None:
    settings = RecallSettings(ecphory=EcphorySettings(steps=0))
    still = ask(chained(), settings=settings, k=5)
    flat = ask(chained(), method="hybrid", k=5)
    chunk_seeds = {one.chunk.document_id: one.signals["activation"] for one in still.chunks}
    assert sum(chunk_seeds.values()) == pytest.approx(settings.ecphory.chunk_share)
    order = sorted(chunk_seeds, key=lambda one: -chunk_seeds[one])
    assert order[0] == ids(flat)[0]
