"""What every encoder owes its callers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import numpy as np
import pytest

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.local_encoder import LocalEncoder
from ecphoryrag.models.ollama_encoder import OllamaEncoder
from ecphoryrag.models.openai_encoder import OpenAIEncoder
from ecphoryrag.models.prefixes import Prefixes
from ecphoryrag.models.registry import make_encoder
from ecphoryrag.ports import Encoder
from ecphoryrag.settings import Settings
from ecphoryrag.settings.models import OllamaSettings, OpenAISettings
from tests.support.llama_server import KEY, MODEL, LlamaServer, llama_server, openai_server
from tests.support.local_model import local_model
from tests.support.ollama_server import OllamaServer

CONTEXT = 256
"""Tokens that the scripted servers take: less than the longest text has."""
WORDS = HashEncoder(16)


def word_vector(text: str) -> list[float]:
    """What the scripted servers' model makes of a text: like the hash encoder, but not of unit length."""
    return [3 * float(value) for value in WORDS.encode([text], "passage").vectors[0]]


def _openai(stack: ExitStack, server: LlamaServer) -> Encoder:
    stack.enter_context(server)
    return OpenAIEncoder(MODEL, OpenAISettings(base_url=server.url, api_key_env="TEST_KEY"), Prefixes())


def _ollama(stack: ExitStack) -> Encoder:
    server = stack.enter_context(OllamaServer(embed=word_vector, model_context=CONTEXT, model="bge-m3"))
    return OllamaEncoder("bge-m3", OllamaSettings(base_url=server.address), Prefixes())


MAKERS: dict[str, Callable[[ExitStack], Encoder]] = {
    "static": lambda _: make_encoder(Settings(encoder="static")),
    "minilm": lambda _: make_encoder(Settings(encoder="minilm")),
    "none": lambda _: make_encoder(Settings(encoder="none")),
    "hash": lambda _: HashEncoder(),
    "llama.cpp": lambda stack: _openai(stack, llama_server(embed=word_vector, context=CONTEXT)),
    "openai": lambda stack: _openai(stack, openai_server(embed=word_vector, context=CONTEXT)),
    "ollama": _ollama,
}
NAMES = {"llama.cpp": f"openai/{MODEL}", "openai": f"openai/{MODEL}", "ollama": "ollama/bge-m3"}
BATCH_TOLERANCE = 1e-5
"""How far a vector may move with what else is in the batch: the rounding of float32. Measured: 0 for all,
on 60 texts for minilm, whose quantisation is by batch."""
TEXTS = [
    "The lighthouse was built in 1871.",
    "Lighthouses warn ships.",
    "a",
    "Der Leuchtturm steht auf einer Klippe.",
    "灯台は崖の上に立っている。",
    "word " * 300,
    "tail\x00with a null, a lone \ud800 surrogate and an emoji 🙂",
    "  \n\t ",
    "The lighthouse was built in 1871.",
]


FEW = TEXTS[:5]


@pytest.fixture(scope="module", autouse=True)
def _key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_KEY", KEY)
        yield


@pytest.fixture(scope="module", params=sorted(MAKERS))
def encoder(request: pytest.FixtureRequest) -> Iterator[Encoder]:
    with ExitStack() as stack:
        made = MAKERS[request.param](stack)
        yield made
        made.close()


def test_shape_and_type(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS, "passage")
    assert encoded.vectors.shape == (len(TEXTS), encoder.identity.dimension)
    assert encoded.vectors.dtype == np.float32
    assert np.isfinite(encoded.vectors).all()


def test_rows_have_unit_length_or_are_zero(encoder: Encoder) -> None:
    if encoder.identity.dimension:
        norms = np.linalg.norm(encoder.encode([*TEXTS, ""], "passage").vectors, axis=1)
        assert norms[:7] == pytest.approx(1, abs=1e-5)
        assert norms[-1] == 0
        assert all(norm == 0 or abs(norm - 1) < 1e-5 for norm in norms)


def test_nothing_in_nothing_out(encoder: Encoder) -> None:
    encoded = encoder.encode([], "query")
    assert encoded.vectors.shape == (0, encoder.identity.dimension)
    assert encoded.vectors.dtype == np.float32
    assert encoded.tokens == encoded.calls == 0


def test_blank_texts_cost_nothing(encoder: Encoder) -> None:
    encoded = encoder.encode(["", " ", "\n"], "query")
    assert not encoded.vectors[0].any()
    assert encoded.calls == 0


def test_deterministic(encoder: Encoder) -> None:
    first, second = (encoder.encode(TEXTS, "passage") for _ in range(2))
    assert np.array_equal(first.vectors, second.vectors)
    assert first.tokens == second.tokens


def test_independent_of_the_batch(encoder: Encoder) -> None:
    texts = list(dict.fromkeys(TEXTS))  # equal ones may be sent once
    together = encoder.encode(texts, "passage")
    alone = [encoder.encode([text], "passage") for text in texts]
    np.testing.assert_allclose(together.vectors, np.concatenate([one.vectors for one in alone]), atol=BATCH_TOLERANCE)
    assert together.tokens == sum(one.tokens for one in alone)


def test_vectors_come_in_the_order_of_the_texts(encoder: Encoder) -> None:
    forth = encoder.encode(FEW, "query").vectors
    back = encoder.encode(FEW[::-1], "query").vectors
    np.testing.assert_allclose(forth, back[::-1], atol=BATCH_TOLERANCE)


def test_equal_texts_meet_and_similar_ones_are_nearer(encoder: Encoder) -> None:
    if encoder.identity.dimension:
        vectors = encoder.encode(
            [TEXTS[0], TEXTS[0], "The lighthouse was rebuilt in 1871.", "Eel pie."], "passage"
        ).vectors
        assert vectors[0] @ vectors[1] == pytest.approx(1, abs=1e-5)
        assert vectors[0] @ vectors[2] > vectors[0] @ vectors[3]


def test_the_end_of_a_long_text_counts(encoder: Encoder) -> None:
    if encoder.identity.dimension:
        long = "word " * 300
        vectors = encoder.encode([long, long + "lighthouse keeper " * 20], "passage").vectors
        assert not np.allclose(vectors[0], vectors[1], atol=1e-3)


def test_tokens_are_counted(encoder: Encoder) -> None:
    if encoder.identity.dimension:
        few, many = (encoder.encode([text], "passage").tokens for text in ("two words", "two words and then some more"))
        assert 0 < few < many


def test_several_threads_may_encode_at_once(encoder: Encoder) -> None:
    expected = encoder.encode(FEW, "passage").vectors
    found: list[bool] = []

    def encode() -> None:
        found.append(np.allclose(encoder.encode(FEW, "passage").vectors, expected, atol=BATCH_TOLERANCE))

    threads = [threading.Thread(target=encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_identity_is_stable(name: str) -> None:
    with ExitStack() as stack:
        encoders = [stack.enter_context(closing(MAKERS[name](stack))) for _ in range(2)]
        first, second = (one.identity for one in encoders)
    assert first == second
    assert first.name == NAMES.get(name, name)
    assert first.version
    assert first.fingerprint


def test_identities_differ() -> None:
    with ExitStack() as stack:
        encoders = [stack.enter_context(closing(make(stack))) for make in MAKERS.values()]
        fingerprints = {one.identity.fingerprint for one in encoders}
    assert len(fingerprints) == len(MAKERS)


@pytest.mark.parametrize("name", ["llama.cpp", "openai", "ollama"])
def test_closing_twice_is_harmless_and_it_may_be_used_again(name: str) -> None:
    with ExitStack() as stack:
        encoder = MAKERS[name](stack)
        before = encoder.encode(TEXTS, "query").vectors
        encoder.close()
        encoder.close()
        assert np.array_equal(encoder.encode(TEXTS, "query").vectors, before)
        encoder.close()


@pytest.mark.model
def test_the_local_encoder_keeps_the_contract() -> None:
    """On few and short texts, for the only model at hand is a language model of a billion weights."""
    settings = local_model().model_copy(update={"pooling": "mean", "context": 64})
    encoder = LocalEncoder(None, settings, Prefixes("Q: ", ""))
    assert encoder.identity.dimension == 1536
    assert encoder.identity == LocalEncoder(None, settings, Prefixes("Q: ", ""), encoder.identity).identity
    texts = ["The lighthouse was built in 1871.", " ", "Eel pie\x00\ud800.", "The lighthouse is of 1871."]
    together = encoder.encode(texts, "passage")
    lengths = np.linalg.norm(together.vectors, axis=1)
    np.testing.assert_allclose(lengths, [1, 0, 1, 1], atol=1e-5)
    assert together.vectors[0] @ together.vectors[3] > together.vectors[0] @ together.vectors[2]
    alone = encoder.encode([texts[0]], "passage")
    np.testing.assert_allclose(alone.vectors[0], together.vectors[0], atol=BATCH_TOLERANCE)
    assert 0 < alone.tokens < together.tokens
    assert not np.allclose(encoder.encode([texts[0]], "query").vectors, alone.vectors, atol=1e-3)
    long = encoder.encode(["word " * 70 + "lighthouse", "word " * 70], "passage")
    np.testing.assert_allclose(np.linalg.norm(long.vectors, axis=1), 1, atol=1e-5)
    assert not np.allclose(long.vectors[0], long.vectors[1], atol=1e-4)
    encoder.close()
    encoder.close()
    unpooled = LocalEncoder(None, settings.model_copy(update={"pooling": "model"}), Prefixes())
    with pytest.raises(ModelNotAvailable, match=r"set models\.local\.pooling"):
        _ = unpooled.identity
    unpooled.close()
