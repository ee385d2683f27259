"""The extractor ``names``: deterministic, without a model, from the form of the text alone."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoryrag.text.keys import name_key
from ecphoryrag.text.names import find_runs
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.types import AboutKind, Chunk, Document, Extraction, Mention, Sentence

VERSION = 1
_DESCRIPTION_CHARACTERS = 300


class NamesExtractor:
    """Names, and what each chunk is about, by rules (port ``Extractor``)."""

    @property
    def identity(self) -> str:
        """Name and version; the version grows whenever the output for some text changes."""
        return f"names/{VERSION}"

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, in order. Pure; raises nothing."""
        return [self._chunk(document, chunk) for chunk in chunks]

    def _chunk(self, document: Document, chunk: Chunk) -> Extraction:
        mentions: list[Mention] = []
        seen: set[str] = set()
        sentences = split_sentences(chunk.text)
        title_key = name_key(document.title)
        if title_key:
            start = len(document.title) - len(document.title.lstrip())
            name = document.title.strip()
            description = sentences[0].text[:_DESCRIPTION_CHARACTERS] if sentences else ""
            mentions.append(
                Mention(name, title_key, start, start + len(name), "title", "title", description, 5, "title")
            )
            seen.add(title_key)
        for sentence in sentences:
            mentions += self._sentence(sentence, chunk.start, seen, title_key)
        return Extraction(tuple(mentions))

    def _sentence(self, sentence: Sentence, offset: int, seen: set[str], title_key: str) -> list[Mention]:
        found: list[Mention] = []
        for span in find_runs(sentence.text):
            name = sentence.text[span.start : span.end]
            key = name_key(name)
            if len(key) < 2:
                continue
            about: AboutKind | None = None
            if key not in seen and sentence.start == 0 and not any(mention.about for mention in found):
                about = "subject" if not (seen - {title_key}) and key != title_key else None
            start = offset + sentence.start + span.start
            end = start + len(name)
            description = "" if key in seen else sentence.text[:_DESCRIPTION_CHARACTERS]
            importance = 5 if about else 3
            found.append(Mention(name, key, start, end, "text", span.kind, description, importance, about))
            seen.add(key)
        return found
