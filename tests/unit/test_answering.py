"""The road from evidence to an answer, with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ecphoryrag.answering import answer
from ecphoryrag.answering.check import Reply, read_reply
from ecphoryrag.answering.run import CORRECTION_TOKENS
from ecphoryrag.calls.reading import Unusable, read_json
from ecphoryrag.errors import GenerationError, ModelNotAvailable, PromptTooLong
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings import AnsweringSettings
from ecphoryrag.types import Generation, JsonValue, Message, Recall, Spending, Usage
from tests.support.memory_ledger import MemoryLedger
from tests.support.recalls import make_recall

QUESTION = "Where was the builder of the Grey Pellin born?"
SETTINGS = AnsweringSettings()


def reply(text: str | None, *cited: int, reasoning: str = "It follows.") -> str:
    return json.dumps({"reasoning": reasoning, "answer": text, "evidence": list(cited)})


def check_reply(text: str, evidence: int) -> Reply:
    return read_reply(read_json(text), evidence)


def test_an_answer_with_its_evidence() -> None:
    generator = ScriptedGenerator([reply("Dunlisk", 1, 2)])
    recall = make_recall(QUESTION)
    given = answer(QUESTION, recall, generator, SETTINGS)
    assert given.text == "Dunlisk"
    assert given.reasoning == "It follows."
    assert given.cited == (1, 2)
    assert given.evidence == recall.chunks
    assert given.reason is None
    assert given.notes == ()
    assert given.model == "scripted"
    assert given.usage.calls == 1
    assert given.usage.input_tokens == generator.count_tokens(generator.asked[0])


def test_usage_holds_that_of_the_recall_too() -> None:
    recall = replace(make_recall(QUESTION), usage=Usage(embedding_tokens=9, seconds=1.0))
    assert answer(QUESTION, recall, ScriptedGenerator([reply("x", 1)]), SETTINGS).usage.embedding_tokens == 9


def test_the_prompt_holds_question_and_numbered_evidence_in_order() -> None:
    generator = ScriptedGenerator([reply("Dunlisk", 1)])
    answer(QUESTION, make_recall(QUESTION), generator, SETTINGS)
    prompt = generator.asked[0][-1].content
    assert prompt.index("\n[1] Grey Pellin: The Grey") < prompt.index("\n[2] Ilka Varnholt: Ilka") < prompt.index("[3]")
    assert prompt.rstrip().endswith(f"Question: {QUESTION}")


def test_the_schema_allows_the_given_numbers_only() -> None:
    generator = ScriptedGenerator([reply("Dunlisk", 1)])
    answer(QUESTION, make_recall(QUESTION), generator, SETTINGS)
    schema = json.loads(json.dumps(generator.schemas[0]))
    assert schema["properties"]["evidence"]["items"]["enum"] == [1, 2, 3]
    assert list(schema["properties"]) == ["reasoning", "answer", "evidence"]


def test_evidence_that_does_not_say_is_no_answer() -> None:
    given = answer(QUESTION, make_recall(QUESTION), ScriptedGenerator([reply(None, 1)]), SETTINGS)
    assert given.text is None
    assert given.reason is not None
    assert "does not say" in given.reason
    assert len(given.evidence) == 3
    assert given.cited == ()


def test_nothing_recalled_calls_no_model() -> None:
    empty = Recall(QUESTION, "ecphory", (), reason="the store is empty: add documents")
    given = answer(QUESTION, empty, ScriptedGenerator([]), SETTINGS)
    assert (given.text, given.reason, given.model) == (None, "the store is empty: add documents", None)


def test_nothing_recalled_without_a_reason_still_has_one() -> None:
    given = answer(QUESTION, Recall(QUESTION, "ecphory", ()), ScriptedGenerator([]), SETTINGS)
    assert given.reason
    assert given.text is None


def test_without_a_model_the_evidence_is_returned_and_the_reason_says_how_to_get_one() -> None:
    recall = make_recall(QUESTION)
    given = answer(QUESTION, recall, None, SETTINGS)
    assert given.text is None
    assert given.evidence == recall.chunks
    assert given.reason is not None
    assert "no language model is configured" in given.reason
    assert "ecphory model fetch" in given.reason


BAD = {
    "not JSON": "Dunlisk, of course.",
    "not an object": "[1]",
    "reasoning is no text": '{"reasoning": 3, "answer": "x", "evidence": [1]}',
    "answer is no text": '{"reasoning": "", "answer": 3, "evidence": [1]}',
    "evidence is no list": '{"reasoning": "", "answer": "x", "evidence": 1}',
    "evidence is no integer": '{"reasoning": "", "answer": "x", "evidence": [1.0]}',
    "evidence is a truth value": '{"reasoning": "", "answer": "x", "evidence": [true]}',
    "no citation": reply("Dunlisk"),
    "evidence 99": reply("Dunlisk", 1, 99),
    "evidence 0": reply("Dunlisk", 0),
    "evidence -1": reply("Dunlisk", -1),
    "nested beyond reason": "[" * 100_000,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_an_unusable_reply_is_asked_for_once_more_with_the_error(bad: str) -> None:
    generator = ScriptedGenerator([bad, reply("Dunlisk", 2)])
    given = answer(QUESTION, make_recall(QUESTION), generator, SETTINGS.model_copy(update={"answer_tokens": 1000}))
    assert given.text == "Dunlisk"
    assert given.usage.calls == 2
    assert len(given.notes) == 1
    assert given.notes[0].startswith("asked again")
    assert "Your last reply was refused" in generator.asked[1][-1].content
    assert "Your last reply was refused" not in generator.asked[0][-1].content


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_twice_unusable_is_no_answer_with_the_reason(bad: str) -> None:
    generator = ScriptedGenerator([bad, bad, reply("never asked for", 1)])
    given = answer(QUESTION, make_recall(QUESTION), generator, SETTINGS)
    assert given.text is None
    assert given.reason is not None
    assert given.reason.startswith("the language model gave no usable answer: the reply")
    assert given.usage.calls == 2
    assert len(given.evidence) == 3


def test_the_unknown_citation_is_named() -> None:
    given = answer(QUESTION, make_recall(QUESTION), ScriptedGenerator([reply("x", 7)] * 2), SETTINGS)
    assert given.reason is not None
    assert "evidence that was not given (7); there is 1 to 3" in given.reason


def test_a_reply_cut_off_is_not_taken_for_an_answer() -> None:
    generator = ScriptedGenerator([reply("Dunlisk", 1)] * 2, finish_reason="length")
    given = answer(QUESTION, make_recall(QUESTION), generator, SETTINGS)
    assert given.text is None
    assert given.reason is not None
    assert "cut off" in given.reason


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("Dunlisk", "Dunlisk"),
        ("  Dunlisk \n harbour ", "Dunlisk harbour"),
        ("In the town.", "In the town"),
        ("J. R. Hask.", "J. R. Hask."),
        ("Inc.", "Inc."),
        ("no", "no"),
        ("Unknown", None),
        ("null.", None),
        ("", None),
        (".", "."),
    ],
)
def test_answers_are_tidied_and_empty_ones_are_none(said: str, taken: str | None) -> None:
    assert check_reply(reply(said, 1), 3).answer == taken


def test_repeated_citations_count_once() -> None:
    assert check_reply(reply("x", 2, 1, 2), 3) == Reply("It follows.", "x", (2, 1))


def test_unknown_fields_do_not_matter_and_missing_ones_do() -> None:
    extra: dict[str, JsonValue] = {"reasoning": "r", "answer": "x", "evidence": [1], "settings": {"generator": "none"}}
    assert check_reply(json.dumps(extra), 1) == Reply("r", "x", (1,))
    with pytest.raises(Unusable):
        check_reply('{"answer": "x"}', 1)


class Broken(ScriptedGenerator):
    """Fails as a model may: its file is missing, or it breaks while generating."""

    def __init__(self, error: Exception, *, counts: bool) -> None:
        super().__init__([])
        self._error, self._counts = error, counts

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        if not self._counts:
            raise self._error
        return super().count_tokens(messages, schema)

    def generate(self, messages: Sequence[Message], schema: object, max_tokens: int) -> Generation:
        raise self._error


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("error", [ModelNotAvailable("no file: run it"), GenerationError("it broke")])
def test_a_failing_model_leaves_the_evidence_and_its_error_as_the_reason(error: Exception, counts: bool) -> None:
    recall = make_recall(QUESTION)
    given = answer(QUESTION, recall, Broken(error, counts=counts), SETTINGS)
    assert given.text is None
    assert given.evidence == recall.chunks
    assert given.reason == f"the language model gave no answer: {error}"


def test_a_fault_that_is_not_the_models_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        answer(QUESTION, make_recall(QUESTION), Broken(ZeroDivisionError(), counts=True), SETTINGS)


def test_a_context_too_small_for_anything_is_an_error() -> None:
    with pytest.raises(PromptTooLong, match=r"models\.local\.context"):
        answer(QUESTION, make_recall(QUESTION), ScriptedGenerator([], context_size=300), SETTINGS)


class BreaksLater(ScriptedGenerator):
    """Gives its replies, then raises."""

    def __init__(self, replies: Sequence[str], error: Exception) -> None:
        super().__init__(replies)
        self._left, self._error = len(replies), error

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        if not self._left:
            raise self._error
        self._left -= 1
        return super().generate(messages, schema, max_tokens)


def test_a_model_that_fails_at_the_second_attempt_has_still_cost_the_first() -> None:
    recall = make_recall(QUESTION)
    given = answer(QUESTION, recall, BreaksLater(["{"], GenerationError("it broke")), SETTINGS)
    assert given.text is None
    assert given.reason == "the language model gave no answer: it broke"
    assert (given.usage.calls, given.usage.output_tokens) == (1, 1)
    assert given.usage.input_tokens > 0
    assert given.notes == ("asked again, since the reply breaks off before its JSON ends",)


@pytest.mark.parametrize("cited", [list(range(100, 500)), [10**4000]])
def test_a_wild_citation_leaves_room_for_the_second_attempt(cited: list[int]) -> None:
    """What the model said is repeated to it in bounded words, whatever it said."""
    bad = json.dumps({"reasoning": "", "answer": "x", "evidence": cited})
    with pytest.raises(Unusable) as problem:
        check_reply(bad, 2)
    assert len(problem.value.reason.split()) < CORRECTION_TOKENS / 3
    assert len(problem.value.reason) < 200


def test_replies_hold_only_what_can_be_shown_and_stored() -> None:
    bad = r'{"reasoning": "a\ud800b\u001b[31m", "answer": "\ud83d\u001b[2JPorto\u0000", "evidence": [1]}'
    taken = check_reply(bad, 2)
    assert (taken.reasoning, taken.answer) == ("a b [31m", "[2JPorto")


def test_an_answer_is_kept_in_the_ledger_and_its_cost_is_said_by_purpose() -> None:
    ledger = MemoryLedger()
    before = Spending("embed", "static", Usage(embedding_tokens=9))
    recall = replace(make_recall(QUESTION), usage=before.usage, spending=(before,))
    first = answer(QUESTION, recall, ScriptedGenerator(["no", reply("Dunlisk", 1)]), SETTINGS, ledger)
    paid = Spending("answer", "scripted", replace(first.usage, embedding_tokens=0))
    assert first.spending == (before, paid)
    assert paid.usage.calls == 2
    assert ledger.spending() == (paid,)
    again = answer(QUESTION, recall, ScriptedGenerator([]), SETTINGS, ledger)
    assert (again.text, again.notes) == ("Dunlisk", ())
    assert again.spending == (before, Spending("answer", "scripted", Usage(cached=1)))
    ledger.forget(["d3"])
    assert not ledger.history("answer", "scripted")


def test_a_refused_answer_is_paid_for_and_not_kept() -> None:
    ledger = MemoryLedger()
    given = answer(QUESTION, make_recall(QUESTION), ScriptedGenerator(["no", "no"]), SETTINGS, ledger)
    assert given.text is None
    assert not ledger.history("answer", "scripted")
    assert given.spending == ledger.spending()
    assert given.spending[0].usage.calls == 2
