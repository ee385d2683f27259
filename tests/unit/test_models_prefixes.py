"""Prefixes by the name of a model, however it is written."""

from __future__ import annotations

import pytest

from ecphoryrag.models.prefixes import Prefixes, known_prefixes, prefixes_of
from ecphoryrag.settings.models import PrefixSettings

TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
REPRESENT = "Represent this sentence for searching relevant passages: "
E5 = Prefixes("query: ", "passage: ")
NOMIC = Prefixes("search_query: ", "search_document: ")
BGE = Prefixes(REPRESENT)
NONE = Prefixes()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("ollama/bge-m3", NONE),
        ("bge-m3:latest", NONE),
        ("BAAI/bge-large-en-v1.5", BGE),
        ("openai/BAAI/bge-small-en", BGE),
        ("bge-large:335m-en-v1.5-fp16", BGE),
        ("models/bge-base-en-v1.5-q4_k_m.gguf", BGE),
        ("quentinz/bge-large-zh-v1.5:f16", Prefixes("为这个句子生成表示以用于检索相关文章：")),
        ("BAAI/bge-reranker-large", NONE),
        ("intfloat/e5-small-v2", E5),
        ("intfloat/multilingual-e5-large", E5),
        ("jeffh/intfloat-multilingual-e5-large:q8_0", E5),
        ("C:\\models\\multilingual_e5_base.Q8_0.gguf", E5),
        ("intfloat/multilingual-e5-large-instruct", Prefixes(f"{TASK} ")),
        ("intfloat/e5-mistral-7b-instruct", Prefixes(f"{TASK} ")),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", Prefixes(f"{TASK} ")),
        ("Qwen/Qwen3-Embedding-0.6B", Prefixes(TASK)),
        ("hf.co/Qwen/Qwen3-Embedding-8B-GGUF:Q8_0", Prefixes(TASK)),
        ("qwen3-embedding:4b", Prefixes(TASK)),
        ("nomic-embed-text", NOMIC),
        ("nomic-ai/nomic-embed-text-v1.5", NOMIC),
        ("nomic-embed-text-v2-moe:latest", NOMIC),
        ("text-embedding-nomic-embed-text-v1.5", NOMIC),
        ("mxbai-embed-large:335m", BGE),
        ("mixedbread-ai/deepset-mxbai-embed-de-large-v1", E5),
        ("WhereIsAI/UAE-Large-V1", BGE),
        ("snowflake-arctic-embed:22m", BGE),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", BGE),
        ("snowflake-arctic-embed2", Prefixes("query: ")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", Prefixes("query: ")),
        ("embeddinggemma:300m", Prefixes("task: search result | query: ", "title: none | text: ")),
        ("thenlper/gte-large", NONE),
        ("all-minilm", NONE),
        ("text-embedding-3-small", NONE),
        ("jinaai/jina-embeddings-v2-base-en", NONE),
        ("phi4", NONE),
        ("made5-large-thing", NONE),
    ],
)
def test_families_are_known_by_name(model: str, expected: Prefixes) -> None:
    assert known_prefixes(model) == expected


def test_settings_come_first_each_by_itself() -> None:
    assert prefixes_of("e5-base", PrefixSettings()) == E5
    assert prefixes_of("e5-base", PrefixSettings(query="Q: ")) == Prefixes("Q: ", "passage: ")
    assert prefixes_of("e5-base", PrefixSettings(query="", passage="")) == NONE
    assert prefixes_of("phi4", PrefixSettings(passage="P: ")) == Prefixes("", "P: ")


def test_each_kind_has_its_own() -> None:
    assert (E5.before("query"), E5.before("passage")) == ("query: ", "passage: ")
