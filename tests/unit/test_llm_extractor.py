"""The extractor ``llm`` with a scripted model: what of its replies enters the memory, and what happens to the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pytest

from ecphoryrag.calls.budget import Budget
from ecphoryrag.calls.reading import read_json
from ecphoryrag.errors import BudgetSpent, CircuitOpen, GenerationError, ModelNotAvailable, PromptCut, Transient
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.models.llm_extractor import NOT_THERE, NOTHING, LLMExtractor, read_named
from ecphoryrag.models.llm_prompts import extraction_prompt
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings.indexing import ExtractionSettings
from ecphoryrag.types import Chunk, Document, Extraction, Generation, Mention, Message, Spending, Usage
from tests.support.injections import INJECTIONS, Injection
from tests.support.memory_ledger import MemoryLedger

TEXT = "The Grey Pellin is a ship that was built by Ilka Varnholt in 1871. Varnholt lived in Dunlisk."
SETTINGS = ExtractionSettings()


Row: TypeAlias = Sequence[object] | Mapping[str, object] | int | None


def reply(*rows: Row) -> str:
    return json.dumps({"entities": list(rows)})


def extract(text: str, *replies: str, title: str = "", settings: ExtractionSettings = SETTINGS) -> Extraction:
    document = Document("d", text, title)
    extractor = LLMExtractor(ScriptedGenerator(replies), settings)
    return extractor.extract(document, [Chunk("d", 0, text, 0, len(text))])[0]


def named(extraction: Extraction) -> dict[str, Mention]:
    return {mention.name: mention for mention in reversed(extraction.mentions)}


def test_names_are_placed_typed_weighed_and_described() -> None:
    found = extract(
        TEXT,
        reply(
            ["Grey Pellin", "work", 5, "ship of 1871"],
            ["Ilka Varnholt", "person", 4, "its builder"],
            ["dunlisk", "place", 2, "a town"],
            ["Varnholt Yard", "organization", 3, "not in the text"],
        ),
    )
    assert found.dropped == 1
    assert found.failure is None
    assert found.usage.calls == 1
    ship, builder, town = named(found)["Grey Pellin"], named(found)["Ilka Varnholt"], named(found)["Dunlisk"]
    assert (ship.type, ship.importance, ship.about, ship.description) == ("work", 5, "subject", "ship of 1871")
    assert (builder.type, builder.importance, builder.about) == ("person", 4, None)
    assert (town.key, town.type, town.importance, town.description) == ("dunlisk", "place", 2, "a town")
    assert "Varnholt Yard" not in named(found)


def test_all_places_of_a_name_are_mentions_but_those_inside_a_longer_one() -> None:
    text = "New York is in New York State. York, England, is older; Yorkers know."
    found = extract(
        text, reply(["York", "place", 2, "a city"], ["New York", "place", 5, ""], ["New York State", "place", 3, ""])
    )
    places = [(mention.name, mention.start) for mention in found.mentions]
    assert places == [("New York", 0), ("New York State", 15), ("York", 31)]
    only = extract("New York State is large.", reply(["York", "place", 2, ""], ["New York State", "place", 3, ""]))
    assert {"York", "New York State"} == set(named(only))


def test_one_entity_given_twice_is_one() -> None:
    found = extract(
        TEXT, reply(["Dunlisk", "other", 2, ""], ["Dunlisk", "place", 4, "a town"], ["DUNLISK", "event", 3, "no"])
    )
    town = [mention for mention in found.mentions if mention.key == "dunlisk"]
    assert [(one.type, one.importance, one.description) for one in town] == [("place", 4, "a town")]


def test_quotation_marks_and_articles_do_not_hide_a_name() -> None:
    found = extract(TEXT, reply(['"Ilka Varnholt"', "person", 4, ""], ["the Dunlisk", "place", 4, ""]))
    assert {"Ilka Varnholt", "Dunlisk"} <= set(named(found))
    assert found.dropped == 0


def test_what_the_form_says_needs_no_model_and_takes_its_words() -> None:
    found = extract(TEXT, reply(["Grey Pellin (ship)", "work", 4, "a ship"]), title="Grey Pellin (ship)")
    title = found.mentions[0]
    assert (title.field, title.about, title.type, title.importance) == ("title", "title", "work", 5)
    assert title.description == "a ship"
    assert found.dropped == 0
    assert named(found)["Grey Pellin"].about == "title"


def test_a_name_without_a_description_has_the_sentence_that_defines_it() -> None:
    settings = SETTINGS.model_copy(update={"description_words": 0})
    found = extract(TEXT, reply(["Dunlisk", "place", 2]), settings=settings)
    assert named(found)["Dunlisk"].description == "Varnholt lived in Dunlisk."


def test_the_subject_is_what_few_names_are_or_else_the_first_name() -> None:
    text = "In 1983 they met Bela Kun near Arvo Lake and the Old Mill."
    heavy = extract(text, reply(["Arvo Lake", "place", 5, ""], ["Bela Kun", "person", 2, ""]))
    assert {one.name for one in heavy.mentions if one.about} == {"Arvo Lake"}
    every = reply(*([name, "place", 5, ""] for name in ("Arvo Lake", "Bela Kun", "Old Mill")))
    assert {one.name for one in extract(text, every).mentions if one.about} == {"Bela Kun"}


@pytest.mark.parametrize(
    ("row", "kind", "worth", "description"),
    [
        ({"name": "Dunlisk", "type": "Place", "importance": 4, "description": "x\u0007\ny"}, "place", 4, "x y"),
        ({"name": "Dunlisk"}, "other", 3, ""),
        (["Dunlisk", "harbour", "2", None], "other", 2, ""),
        (["Dunlisk", None, 99, 5], "other", 5, ""),
        (["Dunlisk", "place", -3.7, "\ud800"], "place", 1, ""),
        (["Dunlisk", "place", True, "x", "more"], "place", 1, "x"),
        ("Dunlisk", "other", 3, ""),
    ],
)
def test_rows_of_other_forms_are_taken(row: Row, kind: str, worth: int, description: str) -> None:
    town = named(extract(TEXT, reply(row, 7, [], [None], ["", "place", 1, ""])))["Dunlisk"]
    assert (town.type, town.importance) == (kind, worth)
    assert town.description == (description or "Varnholt lived in Dunlisk.")


@pytest.mark.parametrize(
    "bad", ["{", "", "[]", '{"names": []}', '{"entities": 3}', reply(7, None), '{"entities": [["Ada"']
)
def test_a_reply_that_cannot_be_used_is_asked_for_again_and_then_is_a_failure(bad: str) -> None:
    good = reply(["Dunlisk", "place", 2, "a town"])
    assert extract(TEXT, bad, good).failure is None
    failed = extract(TEXT, bad, bad, good)
    assert failed.failure is not None
    assert failed.failure.startswith("no usable reply in 2 attempts: the ")
    assert failed.usage.calls == 2
    assert failed.mentions == ()


def test_an_empty_reply_is_asked_for_once_more_and_then_is_an_empty_extraction() -> None:
    generator = ScriptedGenerator([reply(), reply()])
    extractor = LLMExtractor(generator, SETTINGS, MemoryLedger())
    text = "it rains and rains"
    document, chunk = Document("d", text), Chunk("d", 0, text, 0, len(text))
    (found,) = extractor.extract(document, [chunk])
    assert (found.mentions, found.failure, found.usage.calls) == ((), None, 2)
    assert NOTHING in generator.asked[1][-1].content
    (again,) = extractor.extract(document, [chunk])
    assert (again.mentions, again.usage) == ((), Usage(cached=1))


def test_names_none_of_which_stands_there_are_asked_for_once_more() -> None:
    generator = ScriptedGenerator([reply(["Nowhere", "place", 5, ""]), reply(["Dunlisk", "place", 2, ""])])
    document = Document("d", TEXT)
    (found,) = LLMExtractor(generator, SETTINGS).extract(document, [Chunk("d", 0, TEXT, 0, len(TEXT))])
    assert NOT_THERE in generator.asked[1][-1].content
    assert found.dropped == 0
    assert "Dunlisk" in named(found)


def test_a_chunk_without_a_word_calls_nothing() -> None:
    found = extract("?! ...", title="Marks")
    assert [mention.about for mention in found.mentions] == ["title"]
    assert found.usage == Usage()


class Failing(ScriptedGenerator):
    def __init__(self, error: Exception) -> None:
        super().__init__([])
        self._error = error

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        raise self._error


@pytest.mark.parametrize("error", [Transient("busy: wait"), GenerationError("broke"), PromptCut("cut")])
def test_a_call_that_fails_is_the_chunks_failure(error: Exception) -> None:
    chunks = [Chunk("d", 0, TEXT, 0, len(TEXT))] * 2
    found = LLMExtractor(Failing(error), SETTINGS).extract(Document("d", TEXT), chunks)
    assert [one.failure for one in found] == [str(error)] * 2


@pytest.mark.parametrize("error", [ModelNotAvailable("gone"), CircuitOpen("five in a row")])
def test_what_ends_the_job_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        LLMExtractor(Failing(error), SETTINGS).extract(Document("d", TEXT), [Chunk("d", 0, TEXT, 0, len(TEXT))])


def test_the_budget_ends_the_job_and_what_was_done_is_kept() -> None:
    ledger, budget = MemoryLedger(), Budget()
    generator = ScriptedGenerator(lambda _: reply(["Dunlisk", "place", 2, "a town"]))
    extractor = LLMExtractor(generator, SETTINGS, ledger, budget, parallel=3)
    document = Document("d", TEXT * 2)
    chunks = [Chunk("d", at, TEXT * (at + 1), 0, len(TEXT) * (at + 1)) for at in range(2)]
    with budget.limited_to(generator.count_tokens(extraction_prompt("", chunks[0], SETTINGS)) + 800):
        with pytest.raises(BudgetSpent):
            extractor.extract(document, chunks)
        assert len(ledger.history("index", "scripted")) == 1
    assert [one.usage.cached for one in extractor.extract(document, chunks)] == [1, 0]
    assert ledger.spending() == (Spending("index", "scripted", ledger.spending()[0].usage),)
    assert ledger.spending()[0].usage.calls == 2
    ledger.forget(["d"])
    assert not ledger.history("index", "scripted")


def test_the_identity_changes_with_model_and_settings() -> None:
    other = ScriptedGenerator([])
    other.identity = "another"
    identities = [
        LLMExtractor(ScriptedGenerator([]), SETTINGS).identity,
        LLMExtractor(other, SETTINGS).identity,
        *(
            LLMExtractor(ScriptedGenerator([]), SETTINGS.model_copy(update=changed)).identity
            for changed in ({"types": ("gene",)}, {"entities": 3}, {"description_words": 0}, {"max_tokens": 99})
        ),
    ]
    assert len(set(identities)) == len(identities)
    assert LLMExtractor(ScriptedGenerator([]), SETTINGS, parallel=7).identity == identities[0]


def test_the_vocabulary_is_that_of_the_settings() -> None:
    settings = ExtractionSettings(types=("gene", "disease"), description_words=0, entities=3)
    generator = ScriptedGenerator([reply(["Dunlisk", "gene", 2])])
    document = Document("d", TEXT)
    LLMExtractor(generator, settings).extract(document, [Chunk("d", 0, TEXT, 0, len(TEXT))])
    schema = json.loads(json.dumps(generator.schemas[0]))
    entities = schema["properties"]["entities"]
    assert entities["maxItems"] == 3
    assert entities["items"]["prefixItems"][1]["enum"] == ["gene", "disease", "other"]
    assert len(entities["items"]["prefixItems"]) == entities["items"]["maxItems"] == 3
    assert "items" not in entities["items"]
    rules, _, example, *_ = (message.content for message in generator.asked[0])
    assert "gene, disease, other" in rules
    assert "description" not in rules
    assert {row[1] for row in json.loads(example)["entities"]} == {"other"}


def estimated(texts: Sequence[str], ledger: MemoryLedger, generator: ScriptedGenerator) -> Usage:
    extractor = LLMExtractor(generator, SETTINGS, ledger)
    return sum(
        (extractor.estimate(Document("d", text), [Chunk("d", 0, text, 0, len(text))]) for text in texts), Usage()
    )


def test_an_estimate_counts_prompts_exactly_and_learns_the_length_of_replies() -> None:
    ledger = MemoryLedger()
    generator = ScriptedGenerator(
        lambda messages: reply(
            *(["Dunlisk", "place", 2, "a town"] for _ in range(messages[-1].content.count("Dunlisk")))
        )
    )
    extractor = LLMExtractor(generator, SETTINGS, ledger)
    assert "another model" in extractor.basis
    texts = [f"{TEXT} " * (1 + at % 4) + str(at) for at in range(20)]
    for text in texts[:10]:
        extractor.extract(Document("d", text), [Chunk("d", 0, text, 0, len(text))])
    assert estimated(texts[:10], ledger, generator) == Usage(cached=10)
    told = estimated(texts, ledger, generator)
    assert "10 earlier calls of scripted" in extractor.basis
    before = ledger.spending()[0].usage
    for text in texts[10:]:
        extractor.extract(Document("d", text), [Chunk("d", 0, text, 0, len(text))])
    used = ledger.spending()[0].usage
    assert (told.calls, told.cached, told.estimated) == (10, 10, False)
    assert told.input_tokens == used.input_tokens - before.input_tokens
    assert told.output_tokens == pytest.approx(used.output_tokens - before.output_tokens, rel=0.15)


def test_without_earlier_calls_the_estimate_is_that_of_the_measured_model() -> None:
    generator = ScriptedGenerator([])
    few, many = (estimated([" ".join(["word"] * words)], MemoryLedger(), generator) for words in (32, 216))
    assert few.output_tokens == pytest.approx(68, abs=3)
    assert many.output_tokens == pytest.approx(231, abs=5)
    bare = LLMExtractor(generator, SETTINGS.model_copy(update={"description_words": 0}))
    assert bare.estimate(Document("d", TEXT), [Chunk("d", 0, TEXT, 0, len(TEXT))]).output_tokens < few.output_tokens


def test_an_acronym_brings_its_long_form() -> None:
    text = "It was published by Her Majesty's Stationery Office (HMSO) in London."
    found = extract(text, reply(["HMSO", "organization", 4, "publisher"]))
    (office,) = [one for one in found.mentions if one.name == "Her Majesty's Stationery Office"]
    assert (office.type, office.importance, office.description) == ("organization", 4, "publisher")
    assert (office.key, "hmso") in found.aliases
    assert not extract(text, reply(["London", "place", 2, ""])).mentions[0].name.startswith("Her")


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: str(injection.name))
def test_a_documents_orders_change_nothing_of_the_prompts_form(injection: Injection) -> None:
    shape = []
    for text in ("The eel market opens.", f"The eel market opens. {injection.planted}"):
        messages = extraction_prompt(text, Chunk("d", 0, text, 0, len(text)), SETTINGS)
        head, opened, *lines, closed = messages[-1].content.split("\n")
        assert head.startswith("Title: ")
        assert all(line.startswith("> ") for line in lines)
        assert closed == "End of t" + opened.rstrip(":")[1:] + "."
        shape.append(messages[:-1])
    assert shape[0] == shape[1]


@pytest.mark.parametrize(
    ("worth", "taken"),
    [("1e999", 5), ("-1e999", 1), ("NaN", 3), ("4.7", 4), ("99", 5), ('"4"', 4), ('"high"', 3), ("9" * 4000, 5)],
)
def test_an_importance_that_is_no_number_of_ours_is_taken_as_the_nearest(worth: str, taken: int) -> None:
    (one,) = read_named(read_json(f'{{"entities": [["Ada", "person", {worth}, "x"]]}}'), ["person"])
    assert one.importance == taken
