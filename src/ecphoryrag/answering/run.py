"""The road from evidence to an answer: fit, ask, check, abstain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ecphoryrag.answering.budget import Fitted, fit_evidence
from ecphoryrag.answering.check import Reply, read_reply
from ecphoryrag.answering.prompt import build_prompt
from ecphoryrag.answering.schema import reply_schema
from ecphoryrag.calls.asking import Request, ask
from ecphoryrag.errors import ModelError, PromptTooLong, Rejected
from ecphoryrag.ports import Generator, Ledger
from ecphoryrag.settings.answering import AnsweringSettings
from ecphoryrag.types import Answer, Evidence, Recall, Spending, Usage

ATTEMPTS = 2
CORRECTION_TOKENS = 96
"""Room kept for what was wrong with the first reply."""
FAILED = "the language model gave no answer"
UNUSABLE = "the language model gave no usable answer"
NO_MODEL = (
    "no language model is configured, so here is the evidence only: set generator to `local` and run "
    "`ecphory model fetch`, or to a model of a server, such as `ollama/phi4`"
)


def answer(
    question: str,
    recall: Recall,
    generator: Generator | None,
    settings: AnsweringSettings,
    ledger: Ledger | None = None,
) -> Answer:
    """Answer the question from the recalled evidence and nothing else.

    Without a generator, with nothing recalled, with evidence that does not say, and with a model that fails or cannot
    be made to reply as asked in two attempts, ``text`` is None and ``reason`` says why; the evidence is returned all
    the same. A reply that the ledger holds is not paid for again. ``usage`` and ``spending`` are those of recall and
    answering together. Raises PromptTooLong if not even a part of the best piece of evidence fits the budget or the
    model's context.
    """
    bare = Answer(question, None, "", recall.chunks, (), recall, recall.usage, spending=recall.spending)
    if not recall.chunks:
        return replace(bare, reason=recall.reason or "nothing was recalled for this question: add documents about it")
    if generator is None:
        return replace(bare, reason=NO_MODEL)
    bare, recall = replace(bare, model=generator.name), replace(recall, question=question)
    try:
        fitted = fit_evidence(recall, generator, evidence_limit(question, generator, settings), settings.links)
    except PromptTooLong:
        raise
    except ModelError as error:
        return replace(bare, reason=f"{FAILED}: {error}")
    given = tuple(replace(piece.evidence, number=number) for number, piece in enumerate(fitted.pieces, 1))
    full = replace(bare, evidence=given, notes=fitted.notes)
    try:
        asked = ask(_request(recall, fitted, settings), generator, ledger=ledger)
    except PromptTooLong:
        raise
    except ModelError as error:
        failed = UNUSABLE if isinstance(error, Rejected) else FAILED
        return replace(_with_cost(full, error.usage, error.notes), reason=f"{failed}: {error}")
    full, reply = _with_cost(full, asked.usage, asked.notes), asked.value
    if reply.answer is None:
        return replace(full, reasoning=reply.reasoning, reason="the evidence does not say, according to the model")
    return replace(full, text=reply.answer, reasoning=reply.reasoning, cited=reply.cited)


def _with_cost(answer: Answer, usage: Usage, notes: tuple[str, ...]) -> Answer:
    """The answer with what the model's calls for it took."""
    spent = () if usage == Usage() else (Spending("answer", answer.model or "", usage),)
    return replace(
        answer, usage=answer.usage + usage, spending=(*answer.spending, *spent), notes=(*answer.notes, *notes)
    )


def evidence_limit(question: str, generator: Generator, settings: AnsweringSettings) -> int:
    """Tokens that the evidence may take: the budget, or what the model's context leaves if that is less.

    Raises PromptTooLong if it leaves nothing.
    """
    fixed = generator.count_tokens(build_prompt(question, ())) + settings.answer_tokens + CORRECTION_TOKENS
    room = generator.context_size - fixed
    if room <= 0:
        raise PromptTooLong(
            f"instructions, question and reply take {fixed} tokens, and the model's context is "
            f"{generator.context_size}: raise it (models.local.context, or that of its server), or lower "
            "answering.answer_tokens"
        )
    return min(settings.evidence_tokens, room)


def _request(recall: Recall, fitted: Fitted, settings: AnsweringSettings) -> Request[Reply]:
    """One question to the model, asked once more with the reason if the reply cannot be used."""
    question, pieces = recall.question, fitted.pieces
    # A link may quote a sentence of a document that is not among the pieces.
    sources = [
        *(piece.evidence.chunk.document_id for piece in pieces),
        *(relation.document_id for relation in recall.relations if fitted.links),
    ]
    return Request(
        purpose="answer",
        messages=build_prompt(question, pieces, fitted.links),
        schema=reply_schema(len(pieces)),
        max_tokens=settings.answer_tokens,
        read=lambda said: read_reply(said, len(pieces)),
        documents=tuple(dict.fromkeys(sources)),
        attempts=ATTEMPTS,
        corrected=lambda reason: build_prompt(question, pieces, fitted.links, reason),
    )


def cited_evidence(given: Answer) -> Sequence[Evidence]:
    """The evidence that the answer says it used, in the order of its numbers."""
    return [evidence for evidence in given.evidence if evidence.number in given.cited]
