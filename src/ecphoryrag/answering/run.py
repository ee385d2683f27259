"""The road from evidence to an answer: fit, ask, check, abstain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ecphoryrag.answering.budget import Fitted, fit_evidence
from ecphoryrag.answering.check import Problem, Reply, check_reply
from ecphoryrag.answering.prompt import build_prompt
from ecphoryrag.answering.schema import reply_schema
from ecphoryrag.errors import ModelError, PromptTooLong
from ecphoryrag.ports import Generator
from ecphoryrag.settings.answering import AnsweringSettings
from ecphoryrag.types import Answer, Evidence, Recall, Usage

ATTEMPTS = 2
CORRECTION_TOKENS = 96
"""Room kept for what was wrong with the first reply."""
NO_MODEL = (
    "no language model is configured, so here is the evidence only: set generator to local and run "
    "`ecphory model fetch`, or set models.local.path to a GGUF file"
)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The last reply that was checked or the model's failure, all that was spent, and what went wrong on the way."""

    result: Reply | Problem | ModelError
    usage: Usage
    notes: tuple[str, ...]


def answer(question: str, recall: Recall, generator: Generator | None, settings: AnsweringSettings) -> Answer:
    """Answer the question from the recalled evidence and nothing else.

    Without a generator, with nothing recalled, with evidence that does not say, and with a model that fails or cannot
    be made to reply as asked in two attempts, ``text`` is None and ``reason`` says why; the evidence is returned all
    the same. ``usage`` is that of recall and answering together. Raises PromptTooLong if not even a part of the best
    piece of evidence fits the budget or the model's context.
    """
    bare = Answer(question, None, "", recall.chunks, (), recall, recall.usage)
    if not recall.chunks:
        return replace(bare, reason=recall.reason or "nothing was recalled for this question: add documents about it")
    if generator is None:
        return replace(bare, reason=NO_MODEL)
    try:
        fitted = fit_evidence(
            replace(recall, question=question), generator, evidence_limit(question, generator, settings), settings.links
        )
        outcome = _ask(question, fitted, generator, settings)
    except PromptTooLong:
        raise
    except ModelError as error:
        return replace(bare, reason=_failed(error), model=generator.name)
    given = tuple(replace(piece.evidence, number=number) for number, piece in enumerate(fitted.pieces, 1))
    full = replace(
        bare,
        evidence=given,
        usage=recall.usage + outcome.usage,
        model=generator.name,
        notes=(*fitted.notes, *outcome.notes),
    )
    if not isinstance(outcome.result, Reply):
        return replace(full, reason=_failed(outcome.result))
    reply = outcome.result
    if reply.answer is None:
        return replace(full, reasoning=reply.reasoning, reason="the evidence does not say, according to the model")
    return replace(full, text=reply.answer, reasoning=reply.reasoning, cited=reply.cited)


def _failed(why: Problem | ModelError) -> str:
    if isinstance(why, ModelError):
        return f"the language model gave no answer: {why}"
    return f"the language model gave no usable answer: {why.what}"


def evidence_limit(question: str, generator: Generator, settings: AnsweringSettings) -> int:
    """Tokens that the evidence may take: the budget, or what the model's context leaves if that is less.

    Raises PromptTooLong if it leaves nothing.
    """
    fixed = generator.count_tokens(build_prompt(question, ())) + settings.answer_tokens + CORRECTION_TOKENS
    room = generator.context_size - fixed
    if room <= 0:
        raise PromptTooLong(
            f"instructions, question and reply take {fixed} tokens, and the model's context is "
            f"{generator.context_size}: raise models.local.context, or lower answering.answer_tokens"
        )
    return min(settings.evidence_tokens, room)


def _ask(question: str, fitted: Fitted, generator: Generator, settings: AnsweringSettings) -> _Outcome:
    """Ask, and ask once more if the reply cannot be used, saying why."""
    schema = reply_schema(len(fitted.pieces))
    usage = Usage()
    notes: list[str] = []
    result: Reply | Problem = Problem("it was not asked")
    for attempt in range(ATTEMPTS):
        correction = result.what if attempt and isinstance(result, Problem) else None
        messages = build_prompt(question, fitted.pieces, fitted.links, correction)
        try:
            generation = generator.generate(messages, schema, settings.answer_tokens)
        except PromptTooLong:
            raise
        except ModelError as error:
            return _Outcome(error, usage, tuple(notes))
        usage += generation.usage
        result = check_reply(generation, len(fitted.pieces))
        if isinstance(result, Reply):
            break
        if attempt + 1 < ATTEMPTS:
            notes.append(f"asked again, since {result.what}")
    return _Outcome(result, usage, tuple(notes))


def cited_evidence(given: Answer) -> Sequence[Evidence]:
    """The evidence that the answer says it used, in the order of its numbers."""
    return [evidence for evidence in given.evidence if evidence.number in given.cited]
