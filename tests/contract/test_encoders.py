"""What every encoder owes its callers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.registry import make_encoder
from ecphoryrag.ports import Encoder
from ecphoryrag.settings import Settings

MAKERS: dict[str, Callable[[], Encoder]] = {
    "static": lambda: make_encoder(Settings(encoder="static")),
    "minilm": lambda: make_encoder(Settings(encoder="minilm")),
    "none": lambda: make_encoder(Settings(encoder="none")),
    "hash": HashEncoder,
}
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


@pytest.fixture(scope="module", params=sorted(MAKERS))
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return MAKERS[request.param]()


def test_shape_and_type(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS, "passage")
    assert encoded.vectors.shape == (len(TEXTS), encoder.identity.dimension)
    assert encoded.vectors.dtype == np.float32
    assert np.isfinite(encoded.vectors).all()


def test_rows_have_unit_length_or_are_zero(encoder: Encoder) -> None:
    if encoder.identity.dimension:
        norms = np.linalg.norm(encoder.encode([*TEXTS, ""], "passage").vectors, axis=1)
        assert norms[:4] == pytest.approx(1, abs=1e-5)
        assert norms[-1] == 0
        assert all(norm == 0 or abs(norm - 1) < 1e-5 for norm in norms)


def test_nothing_in_nothing_out(encoder: Encoder) -> None:
    encoded = encoder.encode([], "query")
    assert encoded.vectors.shape == (0, encoder.identity.dimension)
    assert encoded.vectors.dtype == np.float32
    assert encoded.tokens == 0


def test_deterministic(encoder: Encoder) -> None:
    first, second = (encoder.encode(TEXTS, "passage") for _ in range(2))
    assert np.array_equal(first.vectors, second.vectors)
    assert first.tokens == second.tokens


def test_independent_of_the_batch(encoder: Encoder) -> None:
    together = encoder.encode(TEXTS, "passage")
    alone = [encoder.encode([text], "passage") for text in TEXTS]
    np.testing.assert_allclose(together.vectors, np.concatenate([one.vectors for one in alone]), atol=BATCH_TOLERANCE)
    assert together.tokens == sum(one.tokens for one in alone)


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


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_identity_is_stable(name: str) -> None:
    first, second = (MAKERS[name]().identity for _ in range(2))
    assert first == second
    assert first.name == name
    assert first.version
    assert first.fingerprint


def test_identities_differ() -> None:
    fingerprints = {MAKERS[name]().identity.fingerprint for name in MAKERS}
    assert len(fingerprints) == len(MAKERS)
