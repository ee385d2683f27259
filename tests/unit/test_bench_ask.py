"""What one question is said to have cost, and the models that count it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ecphoryrag.calls.budget import Budget
from ecphoryrag.errors import BudgetSpent, InputError, JobStopped, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.baselines.port import Indexed, Retrieved, evidence_of
from ecphoryrag.evaluation.bench.ask import Asking, ask, words_hash
from ecphoryrag.evaluation.bench.models import Meter, MeteredEncoder, PaidGenerator, Replies
from ecphoryrag.evaluation.dataset import Question
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.settings import Settings
from ecphoryrag.types import Answer, Document, Generation, Message, Recall, Usage

DOCUMENTS = [Document("vale", "A film by Orla.", "Vale"), Document("orla", "A director.", "Orla")]
QUESTION = Question("q", "Who directed Vale?", ("vale", "orla"), ("Vale", "Orla"))
READS = '{"reasoning": "r", "answer": "Vale", "evidence": [1]}'


class Slow(ScriptedGenerator):
    """Says that each reply took 100 seconds."""

    def generate(self, messages: Sequence[Message], schema: object, max_tokens: int) -> Generation:
        reply = super().generate(messages, None, max_tokens)
        return replace(reply, usage=replace(reply.usage, seconds=100.0))


class Walker:
    """A method that asks the model to retrieve, and may have its own way to an answer."""

    name = "walker"

    def __init__(
        self, generator: PaidGenerator, encoder: MeteredEncoder, *, own: bool, fails: Exception | None
    ) -> None:
        self._generator = generator
        self._encoder = encoder
        self._own = own
        self._fails = fails

    def index(self, documents: Sequence[Document]) -> Indexed:
        raise NotImplementedError

    def retrieve(self, question: str, k: int) -> Retrieved:
        if self._fails is not None:
            raise self._fails
        self._encoder.encode([question], "query")
        self._generator.generate([Message("user", "one two three")], None, 10)
        pieces = evidence_of(DOCUMENTS, [1.0, 0.5])
        recall = Recall(question, self.name, pieces, usage=Usage(9, 9, 9, 9))
        return Retrieved(("vale", "vale", "orla")[:k], recall, Usage(7, 7, 7, 7), 0.5, ("a note",))

    def answer(self, question: str) -> Answer | None:
        if not self._own:
            return None
        self._generator.generate([Message("user", "one two three")], None, 10)
        self._generator.generate([Message("user", "four five")], None, 10)
        return Answer(question, "Orla", "", (), (), Recall(question, self.name, ()), Usage(5, 5, 5))

    def close(self) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Bench:
    """Makes what a question is asked with."""

    folder: Path
    open_: ExitStack

    def asking(
        self,
        *,
        own: bool = False,
        fails: Exception | None = None,
        script: Sequence[str] = (),
        limit: int | None = None,
        context: int = 4096,
    ) -> Asking:
        meter = Meter()
        replies = script or (lambda messages: "x" if "one" in messages[-1].content[:4] else READS)
        inner = Slow(replies, context_size=context)
        generator = self.paid(inner, meter, limit)
        method = Walker(generator, MeteredEncoder(HashEncoder(), meter), own=own, fails=fails)
        return Asking("c", method, True, generator, meter, Settings().answering, 1, "squad", "code")

    def paid(self, inner: ScriptedGenerator, meter: Meter, limit: int | None = None) -> PaidGenerator:
        budget = Budget()
        self.open_.enter_context(budget.limited_to(limit))
        replies = Replies(self.folder / "replies.jsonl")
        self.open_.callback(replies.close)
        return PaidGenerator(inner, meter, replies, budget, limited=limit is not None)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as open_:
        yield Bench(tmp_path, open_)


def test_the_cost_is_what_the_models_took_whatever_the_method_says(bench: Bench) -> None:
    row = ask(bench.asking(), QUESTION)
    assert (row.usage.calls, row.usage.embedding_tokens) == (2, 3)
    assert row.usage.output_tokens == 1 + len(READS.split())
    assert row.seconds == pytest.approx(0, abs=60)  # the clock, not what the fake says it took
    assert (row.answer, row.figures["em"], row.cited, row.notes) == ("Vale", 1.0, (1,), ("a note",))
    assert (row.shown, row.figures["gold_shown"]) == (("vale",), 0.5)  # one piece is shown, two are ranked
    assert (row.retrieved, row.figures["recall@2"]) == (("vale", "orla"), 1.0)


def test_what_was_kept_counts_with_what_it_took_when_it_was_paid(bench: Bench) -> None:
    first = ask(bench.asking(), QUESTION)
    again = bench.asking(script=["never asked"])
    row = ask(again, QUESTION)
    assert again.generator is not None
    assert again.generator.paid == 0
    assert row.usage == first.usage
    assert 200 <= row.seconds < 260
    assert 100 <= row.retrieval_seconds < 160


def test_an_own_way_is_not_charged_for_the_ranking_asked_for_apart(bench: Bench) -> None:
    row = ask(bench.asking(own=True), QUESTION)
    assert (row.usage.calls, row.usage.embedding_tokens) == (2, 0)  # both of the answer; the retrieval's is its first
    assert (row.answer, row.figures["em"], row.figures["recall@5"]) == ("Orla", 1.0, 1.0)
    assert row.seconds < 60
    assert row.retrieval_seconds >= 100  # kept by then, and counted


@pytest.mark.parametrize("error", [InputError("no"), ValueError("no"), KeyError("no")])
def test_an_error_of_the_question_is_a_row(bench: Bench, error: Exception) -> None:
    row = ask(bench.asking(fails=error), QUESTION)
    assert row.error is not None
    assert row.error.startswith(type(error).__name__)
    assert set(row.figures.values()) == {0.0}


def test_an_own_answer_counts_nothing_if_its_ranking_fails(bench: Bench) -> None:
    row = ask(bench.asking(own=True, fails=ValueError("no")), QUESTION)
    assert (row.answer, row.error) == ("Orla", "ValueError: no")
    assert set(row.figures.values()) == {0.0}


def test_a_reader_that_fails_answers_wrongly_and_the_ranking_counts(bench: Bench) -> None:
    row = ask(bench.asking(context=120), QUESTION)  # enough to retrieve, too little for the reader's examples
    assert row.error is not None
    assert row.error.startswith("PromptTooLong")
    assert (row.figures["em"], row.figures["f1"], row.figures["gold_shown"], row.figures["recall@2"]) == (0, 0, 0, 1)
    assert row.usage.calls == 1


@pytest.mark.parametrize("error", [JobStopped("x"), ModelNotAvailable("x"), SettingsError("x"), TypeError("x")])
def test_what_is_no_property_of_the_question_is_raised(bench: Bench, error: Exception) -> None:
    with pytest.raises(type(error)):
        ask(bench.asking(fails=error), QUESTION)


def test_a_budget_that_is_spent_is_seen_even_if_the_reader_takes_it_for_a_failure(bench: Bench) -> None:
    limited = bench.asking(limit=20)  # enough to retrieve, not to read
    assert limited.generator is not None
    row = ask(limited, QUESTION)
    assert row.answer is None
    assert isinstance(limited.generator.stopped, BudgetSpent)
    with pytest.raises(BudgetSpent):
        limited.generator.generate([Message("user", "x")], None, 1)


def test_replies_survive_a_torn_line_and_refuse_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    replies = Replies(path)
    replies.keep("k", Generation("é", "stop", Usage(1, 2, 3, seconds=4.0)))
    replies.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key": "j", "te')
    again = Replies(path)
    assert again.find("k") == Generation("é", "stop", Usage(1, 2, 3, seconds=4.0))
    assert again.find("j") is None
    again.keep("j", Generation("x", "stop", Usage()))
    again.close()
    assert len(path.read_bytes().splitlines()) == 2
    path.write_bytes(b"{}\n" + whole)
    with pytest.raises(InputError, match="line 1: not a kept reply"):
        Replies(path)


def test_other_prompts_models_and_lengths_are_other_replies(bench: Bench) -> None:
    said = iter("abcdef")
    inner = ScriptedGenerator(lambda messages: next(said))
    paid = bench.paid(inner, Meter())
    one = [Message("user", "x")]

    def reply(messages: list[Message] = one, schema: dict[str, str] | None = None, most: int = 5) -> str:
        return paid.generate(messages, schema, most).text

    assert [
        reply(),
        reply(),
        reply(most=6),
        reply(schema={"type": "object"}),
        reply([Message("system", "x")]),
        reply(),
    ] == [*("a", "a", "b", "c", "d", "a")]
    inner.identity = "another"
    assert reply() == "e"


def test_a_question_is_known_by_its_words() -> None:
    assert words_hash("Who  is IT? ") == words_hash("who is it?")
    assert words_hash("Who is it?") != words_hash("Who was it?")
