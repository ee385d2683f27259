"""The extractor ``llm``: the entities of a chunk by one call of a language model (the publication's equation 1).

The model names, types, weighs and describes. Where its names stand is looked up in the text, so that nothing enters
the memory that the text does not say; what the text is about is told from its form, as the extractor ``names`` does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ecphoryrag.calls.asking import Asked, Request, ask, request_key
from ecphoryrag.calls.budget import Budget
from ecphoryrag.calls.quoting import one_line, plain
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import JobStopped, ModelError, ModelNotAvailable, Rejected
from ecphoryrag.models.llm_prompts import IMPORTANCE, OTHER, extraction_prompt, extraction_schema
from ecphoryrag.models.outline import (
    DESCRIPTION_CHARACTERS,
    FIELDS,
    TEXT,
    Collected,
    Form,
    Forms,
    acronym_aliases,
    add_outline,
    add_subject,
    descriptions_of,
    inputs_of,
    title_aliases,
)
from ecphoryrag.ports import Generator, Inputs, JsonSchema, Ledger
from ecphoryrag.settings.indexing import ExtractionSettings
from ecphoryrag.text.acronyms import Acronym, find_acronyms
from ecphoryrag.text.keys import name_key
from ecphoryrag.text.locate import Located
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.text.tokens import count_tokens
from ecphoryrag.types import Chunk, Document, Extraction, JsonValue, Mention, Message, Sentence, Usage

VERSION = 2
ABOUT = 5
USUAL = 3
"""Importance where the reply gives none."""
MOST_SUBJECTS = 2
"""A reply that holds more names than these to be what the chunk is about has not told them apart."""
LEAST_HISTORY = 5
"""Earlier calls from which the length of replies is told; of fewer, the figure below is nearer."""
OUTPUT_POWER = 0.64
"""A reply grows with this power of its text's tokens: a long text repeats its names. Fitted, with the figures below, to
replies of the default local model to passages of HotpotQA of 12 to 150 words; errors are 3 % of prompt and reply."""
OUTPUT_FACTOR = 7.4
"""Tokens of a reply for a text of one token, where nothing is known of the model."""
UNDESCRIBED = 0.69
"""The same without descriptions, as a share."""
NOTHING = "the reply names nothing, and the text has names or terms"
NOT_THERE = "none of the reply's names stands in the text: copy them letter by letter"
_IDENTITY_BYTES = 8
_ARTICLES = ("the ", "a ", "an ")
_QUOTES = " \t\n\"'“”‘’«»`.,;:"


@dataclass(frozen=True, slots=True)
class Named:
    """An entity as a reply gives it."""

    name: str
    type: str
    importance: int
    description: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A reply's entities, each with its (start, end) places in the chunk's text, and how many stand nowhere."""

    entities: tuple[tuple[Named, tuple[tuple[int, int], ...]], ...]
    dropped: int
    named: int
    """Entities in the reply, those that stand nowhere included."""


class Halting(Protocol):
    """What calls wait in, and can be ended: the guard of a server's model."""

    def stop(self) -> None:
        """End all waiting, and let no call begin."""
        ...

    def resume(self) -> None:
        """Let calls begin again."""
        ...


class LLMExtractor:
    """Entities by a language model (port ``Extractor``); each reply is kept in the ledger, and never paid for twice."""

    def __init__(
        self,
        generator: Generator,
        settings: ExtractionSettings,
        ledger: Ledger | None = None,
        budget: Budget | None = None,
        parallel: int = 1,
        guard: Halting | None = None,
    ) -> None:
        self._generator = generator
        self._settings = settings
        self._ledger = ledger
        self._budget = budget
        self._parallel = parallel
        self._guard = guard
        self._unasked: str | None = None
        """Why the model is not asked for sizes any more, in words."""
        self._forms = Forms()
        self._known: list[Usage] | None = None
        """Earlier calls, as they were read since the last call."""

    @property
    def identity(self) -> str:
        """Version, model, and a hash of the settings that the output depends on."""
        settings = self._settings
        told = f"{settings.types} {settings.entities} {settings.description_words} {settings.max_tokens}"
        digest = hashlib.blake2b(told.encode("utf-8"), digest_size=_IDENTITY_BYTES).hexdigest()
        return f"llm/{VERSION} {self._generator.identity} {digest}"

    @property
    def model(self) -> str:
        """The generator's name."""
        return self._generator.name

    @property
    def parallel(self) -> int:
        """As many calls as the server works on at once."""
        return self._parallel

    @property
    def basis(self) -> str:
        """What the output of :meth:`estimate` rests on, in words."""
        known = len(self._history())
        found = f"{known} earlier calls of {self.model}"
        if known < LEAST_HISTORY:
            found = f"replies of another model, since there are no {LEAST_HISTORY} earlier calls of {self.model}"
        return f"{found}; {self._unasked}" if self._unasked else found

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, in order, its mentions by field and offset.

        A chunk whose reply cannot be used, or whose call fails, has a ``failure``. Raises ModelNotAvailable and
        JobStopped.
        """
        form = self._forms.of(document)
        return [self._extract(chunk, form) for chunk in chunks]

    def inputs(self, document: Document, chunks: Sequence[Chunk]) -> list[Inputs]:
        """The chunk, which its prompt is made of, and the outline over it. See :class:`ecphoryrag.ports.Comparable`."""
        form = self._forms.of(document)
        return [inputs_of(form, chunk) for chunk in chunks]

    def halt(self) -> None:
        """Stop the guard of the generator, if it has one; a model in this process waits for nothing."""
        if self._guard is not None:
            self._guard.stop()

    def resume(self) -> None:
        """Let the guard's calls begin again."""
        if self._guard is not None:
            self._guard.resume()

    def estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        """What extracting these chunks would cost; ``estimated`` unless the generator counts prompts exactly.

        A reply is taken to be as long, for the length of its text, as those in the ledger were. Chunks that will be
        asked for a second time are not foreseen. Where the model cannot be asked for sizes they are estimated without
        it, none is taken to be in the ledger, and :attr:`basis` says so.
        """
        if self._unasked is None:
            try:
                return self._estimate(document, chunks)
            except ModelError as error:
                self._unasked = f"sizes and what the ledger holds are told without the model, since {error}"
        return self._estimate(document, chunks)

    def _estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        cached, prompts = 0, list[int]()
        for chunk in chunks:
            if not _has_words(chunk):
                continue
            request = self._request(document, chunk)
            if self._is_kept(request):
                cached += 1
                continue
            prompts.append(self._size(request.messages, request.schema))
        if not prompts:
            return Usage(cached=cached)
        output = round(sum(self._lengths(prompts)))
        inexact = self._unasked is not None or not self._generator.counts_exactly
        return Usage(len(prompts), sum(prompts), output, estimated=inexact, cached=cached)

    def _is_kept(self, request: Request[Placed]) -> bool:
        if self._ledger is None or self._unasked is not None:
            return False
        return self._ledger.find(request_key(request, self._generator)) is not None

    def _size(self, messages: Sequence[Message], schema: JsonSchema) -> int:
        if self._unasked is not None:
            return sum(count_tokens(message.content) for message in messages)
        return self._generator.count_tokens(messages, schema)

    def _history(self) -> list[Usage]:
        """Earlier calls of this model whose replies were accepted, read again once there may be more."""
        if self._ledger is None:
            return []
        known = self._known
        if known is None:
            history = self._ledger.history("index", self.model)
            self._known = known = [usage for _, usage in history if usage.calls]
        return known

    def _lengths(self, prompts: Sequence[int]) -> list[float]:
        """Tokens that the reply to a prompt of so many tokens probably has, for each prompt."""
        constant = self._size(
            extraction_prompt("", Chunk("", 0, "", 0, 0), self._settings), extraction_schema(self._settings)
        )

        def grown(prompt: int) -> float:
            return float(max(prompt - constant, 1) ** OUTPUT_POWER)

        known = self._history()
        if len(known) >= LEAST_HISTORY:
            replies = sum(usage.output_tokens for usage in known)
            factor = replies / sum(grown(usage.input_tokens) for usage in known)
        else:
            factor = OUTPUT_FACTOR if self._settings.description_words else OUTPUT_FACTOR * UNDESCRIBED
        return [min(factor * grown(prompt), self._settings.max_tokens) for prompt in prompts]

    def _request(self, document: Document, chunk: Chunk) -> Request[Placed]:
        text = Located(chunk.text)
        elsewhere = {name_key(head) for head in (document.title, *chunk.headings)}
        return Request(
            purpose="index",
            messages=extraction_prompt(document.title, chunk, self._settings),
            schema=extraction_schema(self._settings),
            max_tokens=self._settings.max_tokens,
            read=lambda said: placed(read_named(said, self._settings.types), text, elsewhere),
            documents=(document.id,),
            attempts=self._settings.attempts,
            doubt=_doubt,
        )

    def _extract(self, chunk: Chunk, form: Form) -> Extraction:
        if not _has_words(chunk):
            return _joined(Asked(Placed((), 0, 0), Usage()), chunk, form)
        request = self._request(form.document, chunk)
        self._known = None
        try:
            asked = ask(request, self._generator, ledger=self._ledger, budget=self._budget)
        except (JobStopped, ModelNotAvailable):
            raise
        except Rejected as error:
            return Extraction(usage=error.usage, failure=f"no usable reply in {request.attempts} attempts: {error}")
        except ModelError as error:
            return Extraction(usage=error.usage, failure=str(error))
        self._unasked = None  # it can be asked
        return _joined(asked, chunk, form)


def _has_words(chunk: Chunk) -> bool:
    return any(sign.isalnum() for sign in chunk.text)


def _doubt(found: Placed) -> str | None:
    if found.entities:
        return None
    return NOT_THERE if found.named else NOTHING


def read_named(said: JsonValue, types: Sequence[str]) -> tuple[Named, ...]:
    """The entities of a reply, rows or records; each name once, with the highest importance it was given.

    A type that is not among ``types`` is ``other``. Raises Unusable if there is no list of entities, or no entry in it
    is one.
    """
    entries = said.get("entities") if isinstance(said, dict) else None
    if not isinstance(entries, list):
        raise Unusable('the reply has no list "entities"')
    known = {kind.casefold(): kind for kind in types}
    named: dict[str, Named] = {}
    for entry in entries:
        one = _named(entry, known)
        if one is None:
            continue
        named[one.name] = _merged(named.get(one.name), one)
    if entries and not named:
        raise Unusable("the entries of the reply are not as asked for")
    return tuple(named.values())


def _named(entry: JsonValue, known: dict[str, str]) -> Named | None:
    if isinstance(entry, dict):
        entry = [entry.get(part) for part in ("name", "type", "importance", "description")]
    if isinstance(entry, str):
        entry = [entry]
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
        return None
    kind, worth, description = [*entry[1:4], None, None, None][:3]
    name = plain(entry[0]).strip()
    if not name:
        return None
    return Named(
        name,
        known.get(kind.strip().casefold(), OTHER) if isinstance(kind, str) else OTHER,
        _importance(worth),
        one_line(plain(description))[:DESCRIPTION_CHARACTERS] if isinstance(description, str) else "",
    )


def _importance(worth: JsonValue) -> int:
    """Within the range that was asked for, whatever number it is (JSON knows 1e999); ``USUAL`` for what is none."""
    if isinstance(worth, str) and worth.strip() in {str(one) for one in IMPORTANCE}:
        return int(worth)
    if not isinstance(worth, int | float):
        return USUAL
    nearest = min(max(worth, IMPORTANCE[0]), IMPORTANCE[-1])
    return USUAL if math.isnan(nearest) else int(nearest)


def placed(named: Iterable[Named], text: Located, elsewhere: set[str]) -> Placed:
    """The entities with their places. One that stands nowhere is dropped, unless a title or heading bears its key.

    A place inside the place of a longer name (``York`` in ``New York``) is none of its own, if there are others.
    """
    given = list(named)
    found = [(one, _places(one.name, text)) for one in given]
    taken = sorted({place for _, places in found for place in places})
    entities = []
    for one, places in found:
        own = tuple(place for place in places if not _inside(place, taken)) or tuple(places)
        if own or name_key(one.name) in elsewhere:
            entities.append((one, own))
    return Placed(tuple(entities), len(given) - len(entities), len(given))


def _places(name: str, text: Located) -> list[tuple[int, int]]:
    """As it is written, else without quotation marks around it, else without its article."""
    bare = name.strip(_QUOTES)
    tries = [name, bare, *(bare[len(one) :] for one in _ARTICLES if bare.casefold().startswith(one))]
    return next((places for one in dict.fromkeys(tries) if (places := text.find(one))), [])


def _inside(place: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(start <= place[0] and place[1] <= end and (start, end) != place for start, end in others)


def _joined(asked: Asked[Placed], chunk: Chunk, form: Form) -> Extraction:
    """What the model named, together with what the form of the text says it is about."""
    document, outline, manner = form.document, form.outline, form.manner
    first = outline.opening(chunk, split_sentences(chunk.text))
    names = Collected()
    add_outline(names, document, chunk, outline)
    aliases = [] if first is None else add_subject(names, chunk, first, manner)
    told: dict[str, Named] = {}
    for one, places in asked.value.entities:
        keys = [name_key(chunk.text[start:end]) for start, end in places]
        for key, (start, end) in zip(keys, places, strict=True):
            names.add((TEXT, chunk.start + start, chunk.start + end), key, one.type)
        for key in {name_key(one.name), *keys}:
            told[key] = _merged(told.get(key), one)
    _add_told_subject(names, told, chunk, first)
    acronyms = find_acronyms(chunk.text)
    for acronym in acronyms:
        _add_other_form(names, told, chunk, acronym)
    aliases += acronym_aliases(chunk.text, acronyms)
    aliases += title_aliases(names, document)
    mentions = _mentions(names, told, document, chunk, first)
    return Extraction(mentions, tuple(dict.fromkeys(aliases)), asked.usage, asked.value.dropped)


def _merged(before: Named | None, one: Named) -> Named:
    """One entity of two entries: the first name, the first that is told of it, the highest importance."""
    if before is None:
        return one
    kind = one.type if before.type == OTHER else before.type
    worth = max(before.importance, one.importance)
    return Named(before.name, kind, worth, before.description or one.description)


def _add_told_subject(names: Collected, told: dict[str, Named], chunk: Chunk, first: Sentence | None) -> None:
    """What the model holds the chunk to be about, if it does not say so of many; else the first name in it."""
    standing = {key: place for place, (key, _) in sorted(names.spans.items(), reverse=True) if place[0] == TEXT}
    heavy = [key for key, one in told.items() if one.importance == ABOUT and key in standing]
    if len(heavy) <= MOST_SUBJECTS:
        for key in heavy:
            names.about.setdefault(key, "subject")
    if names.about or first is None:
        return
    end = chunk.start + first.end
    opening = [(place, key) for key, place in standing.items() if key in told and place[1] < end]
    if opening:
        names.about[min(opening)[1]] = "subject"


def _add_other_form(names: Collected, told: dict[str, Named], chunk: Chunk, acronym: Acronym) -> None:
    """Both forms of a name that the text itself shortens, if the model named one of them."""
    keys = [name_key(chunk.text[form.start : form.end]) for form in acronym]
    one = next((told[key] for key in keys if key in told), None)
    if one is None:
        return
    for key, form in zip(keys, acronym, strict=True):
        if key:
            told.setdefault(key, one)
            names.add((TEXT, chunk.start + form.start, chunk.start + form.end), key, one.type)


def _mentions(
    names: Collected, told: dict[str, Named], document: Document, chunk: Chunk, opening: Sentence | None
) -> tuple[Mention, ...]:
    """The places in order; the first of each key has the model's description, else the sentence that defines it."""
    found = sorted(names.spans.items())
    sentences = descriptions_of(found, document, chunk, split_sentences(chunk.text), opening)
    mentions = []
    for (place, start, end), (key, _) in found:
        name = (document.title, document.text)[place][start:end]
        one, about = told.get(key), names.about.get(key)
        sentence = sentences.pop(key, "")
        description = one.description or sentence if one is not None and sentence else sentence
        worth = ABOUT if about is not None or one is None else one.importance
        kind = OTHER if one is None else one.type
        mentions.append(Mention(name, key, start, end, FIELDS[place], kind, description, worth, about))
    return tuple(mentions)
