"""The words that some encoders were trained to find before a question or a passage.

Without them nothing fails: the vectors are only worse. They are taken from the usage sections that the models'
authors publish. A family is named here only if those say it plainly; all others, such as bge-m3, gte, all-minilm and
OpenAI's own models, are given the bare text. The settings' ``models.prefixes`` come before what is known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ecphoryrag.settings.models import PrefixSettings


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What is put before a text, to the letter: a space at the end is part of it."""

    query: str = ""
    passage: str = ""

    def before(self, kind: Literal["passage", "query"]) -> str:
        """The prefix of a text of this kind."""
        return self.query if kind == "query" else self.passage


_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
_BGE = "Represent this sentence for searching relevant passages: "

_FAMILIES: tuple[tuple[re.Pattern[str], Prefixes], ...] = tuple(
    (re.compile(rf"(?:^|[-.])(?:{pattern})(?![a-z])"), prefixes)
    for pattern, prefixes in (
        ("qwen3-embedding", Prefixes(_TASK)),
        (r"e5-mistral|e5-large-instruct|sfr-embedding-(?:mistral|2)|gte-qwen\d", Prefixes(f"{_TASK} ")),
        (r"e5-(?:small|base|large)", Prefixes("query: ", "passage: ")),
        (r"bge-(?:small|base|large)-zh", Prefixes("为这个句子生成表示以用于检索相关文章：")),
        (r"bge-(?:small|base|large)", Prefixes(_BGE)),
        (r"nomic-embed-text|modernbert-embed", Prefixes("search_query: ", "search_document: ")),
        (r"mxbai-embed-de-large", Prefixes("query: ", "passage: ")),
        (r"mxbai-embed-(?:2d-)?large|uae-large", Prefixes(_BGE)),
        (r"arctic-embed2|arctic-embed-[ml]-v2", Prefixes("query: ")),
        (r"arctic-embed", Prefixes(_BGE)),
        (r"embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    )
)
"""Patterns in a model's plain name and the prefixes of the family; the first that is found counts."""


def known_prefixes(model: str) -> Prefixes:
    """Those of the model's family; none if it is not known.

    The name may be one of any server or of a file: owners before it, a tag behind it, and capitals do not matter, as in
    ``BAAI/bge-large-en-v1.5``, ``hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0``, or a path to ``e5-small-v2.Q8_0.gguf``.
    """
    plain = re.split(r"[/\\]", model.strip().casefold())[-1].partition(":")[0].replace("_", "-")
    return next((prefixes for pattern, prefixes in _FAMILIES if pattern.search(plain)), Prefixes())


def prefixes_of(model: str, settings: PrefixSettings) -> Prefixes:
    """What the settings say, and where they say nothing what is known for the model."""
    known = known_prefixes(model)
    return Prefixes(
        known.query if settings.query is None else settings.query,
        known.passage if settings.passage is None else settings.passage,
    )
