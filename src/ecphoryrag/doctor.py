"""Every configured part tried for real: what works, what is missing, and how to mend it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from ecphoryrag.calls.reading import Unusable, read_json
from ecphoryrag.errors import EcphoryError, EncoderMismatch, StoreNotFound
from ecphoryrag.memory import Memory
from ecphoryrag.models.registry import make_encoder, make_extractor, make_generator
from ecphoryrag.ports import Generator, JsonSchema
from ecphoryrag.settings import Settings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import Document, Message

State: TypeAlias = Literal["ok", "warning", "failed", "off"]

SAMPLE = Document(
    "doctor", "The Larkmoor Viaduct was designed by Ottilie Brandreth and opened in Carrowdale.", "Larkmoor Viaduct"
)
"""What the encoder and the extractor are tried on."""
QUESTION = (Message("user", 'Which city is the capital of France? Reply with one JSON object: {"answer": "..."}'),)
ANSWER: JsonSchema = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 60}},
    "required": ["answer"],
    "additionalProperties": False,
}
REPLY_TOKENS = 64
ENOUGH_CONTEXT = 2048
"""Tokens below which instructions, evidence and reply crowd one another out."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one part."""

    part: str
    name: str
    state: State
    detail: str
    seconds: float = 0.0


def examine(settings: Settings) -> Iterator[Finding]:
    """Try the store, encoder, extractor and generator, one after the other; a finding as soon as it is there.

    Costs one short call of each model that is configured, which is not kept in the ledger. Raises nothing of ours:
    what is wrong is the finding.
    """
    yield _tried("store", str(settings.store), lambda: _store(settings))
    yield _tried("encoder", settings.encoder, lambda: _encoder(settings))
    yield _tried("extractor", settings.extractor, lambda: _extractor(settings))
    yield _tried("generator", settings.generator, lambda: _generator(settings))


def _tried(part: str, name: str, attempt: Callable[[], Finding]) -> Finding:
    started = time.perf_counter()
    try:
        found = attempt()
    except EcphoryError as error:
        found = Finding(part, name, "failed", "; ".join([str(error), *getattr(error, "__notes__", [])]))
    return replace(found, part=part, name=name, seconds=time.perf_counter() - started)


def _store(settings: Settings) -> Finding:
    path = settings.store
    try:
        with Memory.open(path, settings=settings, create=False, read_only=True) as memory:
            status = memory.status()
    except StoreNotFound:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if not os.access(folder, os.W_OK):
            return _found("failed", f"it is not there, and the folder {folder} cannot be written: set store to another")
        return _found("off", "it is not there yet; `ecphory add PATH...` makes it")
    except EncoderMismatch as error:
        return _found("failed", str(error))
    said = f"{status.documents} documents, {status.chunks} chunks, vectors of {status.encoder.name}"
    if status.incomplete:
        return _found("warning", f"{said}; {len(status.incomplete)} incomplete: run `ecphory add --retry`")
    return _found("ok", said) if _writable(path) else _found("warning", f"{said}; it can be read and not written")


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def _encoder(settings: Settings) -> Finding:
    if settings.encoder == "none":
        return _found("off", "no vectors: recall goes by words and names")
    with closing(make_encoder(settings)) as encoder:
        encoded = encoder.encode([SAMPLE.text], "passage")
        identity = encoder.identity
    return _found("ok", f"{identity.dimension} dimensions, version {identity.version}; {encoded.tokens} tokens encoded")


def _extractor(settings: Settings) -> Finding:
    chunks = chunk_document(SAMPLE, settings.indexing.chunks)
    generator = None if settings.extractor == "names" else make_generator(settings, _extracting(settings))
    try:
        extraction = make_extractor(settings, generator).extract(SAMPLE, chunks)[0]
    finally:
        if generator is not None:
            generator.close()
    if extraction.failure:
        return _found("failed", f"{extraction.failure}: set extractor to `names`, or generator to a larger model")
    names = ", ".join(dict.fromkeys(mention.name for mention in extraction.mentions))
    if not names:
        return _found("warning", "it found no name in a sentence that has three: the model may be too small")
    return _found("ok", f"found {names}")


def _extracting(settings: Settings) -> str | None:
    return settings.extractor.partition("/")[2] or None


def _generator(settings: Settings) -> Finding:
    generator = make_generator(settings)
    if generator is None:
        return _found("off", "none: `ask` gives the evidence without an answer")
    with closing(generator):
        return _asked(generator)


def _asked(generator: Generator) -> Finding:
    context = generator.context_size
    reply = generator.generate(QUESTION, ANSWER, REPLY_TOKENS)
    counting = "exact token counts" if generator.counts_exactly else "estimated token counts"
    inner = getattr(generator, "inner", generator)
    modes = [str(value) for value in (getattr(inner, name, None) for name in ("structured", "notice")) if value]
    said = "; ".join([f"it answers ({reply.usage.output_tokens} tokens)", f"context {context}", counting, *modes])
    if context < ENOUGH_CONTEXT:
        return _found("warning", f"{said}; a context below {ENOUGH_CONTEXT} holds little evidence")
    try:
        read_json(reply.text, ANSWER)
    except Unusable as error:
        return _found("warning", f"{said}; it does not keep to a form that is asked for: {error.reason}")
    if "paris" not in reply.text.casefold():
        return _found("warning", f"{said}; it does not know the capital of France: {reply.text[:80]!r}")
    return _found("ok", said)


def _found(state: State, detail: str) -> Finding:
    return Finding("", "", state, detail)
