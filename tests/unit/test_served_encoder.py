"""Encoders of servers: nothing is paid twice, and nothing wrong becomes a vector."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecphoryrag.calls.budget import Budget
from ecphoryrag.errors import (
    BadVectors,
    BudgetSpent,
    EncoderMismatch,
    GenerationError,
    ModelError,
    ModelNotAvailable,
    PromptTooLong,
    Transient,
)
from ecphoryrag.models.embedder import Described, Embedded, Means
from ecphoryrag.models.guard import Guard
from ecphoryrag.models.ollama_encoder import OllamaEncoder
from ecphoryrag.models.openai_encoder import OpenAIEncoder
from ecphoryrag.models.prefixes import Prefixes
from ecphoryrag.models.served_encoder import ServedEncoder
from ecphoryrag.settings.models import OllamaSettings, OpenAISettings
from ecphoryrag.store.ledger import SqliteLedger, open_ledger
from tests.support.llama_server import EMBEDDINGS, MODEL, LlamaServer, llama_server, openai_server
from tests.support.loopback import Asked, Fault
from tests.support.ollama_server import EMBED, OllamaServer

WORDS = ["north", "east", "south", "west"]


def compass(text: str) -> list[float]:
    """(5,) how often each of the words stands in the text, and a little of anything."""
    return [*(float(text.count(word)) for word in WORDS), 0.01]


class Scripted:
    """An embedder that does as it is told."""

    manner = ""

    def __init__(self, fails: Callable[[Sequence[str]], Exception | None] | None = None, **described: Any) -> None:
        self.name = "test/compass"
        self.fails = fails
        self.described = Described(**described)
        self.spoil: Callable[[list[list[float]]], Any] = lambda rows: rows
        self.tokens: Callable[[Sequence[str]], int | None] = lambda texts: sum(len(text.split()) for text in texts)
        self.asked: list[list[str]] = []
        self.under_way = self.peak = 0
        self.seconds = 0.0
        self.lock = threading.Lock()

    def describe(self) -> Described:
        return self.described

    def embed(self, texts: Sequence[str]) -> Embedded:
        with self.lock:
            self.asked.append(list(texts))
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
        time.sleep(self.seconds)
        with self.lock:
            self.under_way -= 1
        if self.fails and (error := self.fails(texts)):
            raise error
        return Embedded(np.array(self.spoil([compass(text) for text in texts])), self.tokens(texts))

    def close(self) -> None:
        pass


def too_long(words: int) -> Callable[[Sequence[str]], Exception | None]:
    return lambda texts: PromptTooLong("too long") if any(len(one.split()) > words for one in texts) else None


def many(word: str, times: int) -> str:
    """So many words with this one in them, all different, so that no two parts of the text are the same."""
    return " ".join(f"{word}{number}" for number in range(times)) + " "


def unit(text: str) -> np.ndarray:
    vector = np.array(compass(text), np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with closing(open_ledger(tmp_path / "store")) as made:
        yield made


def encoder_of(embedder: Scripted, ledger: SqliteLedger | None = None, **means: Any) -> ServedEncoder:
    """Already met, so that what was asked is what the test asks."""
    made = ServedEncoder(embedder, Prefixes(), None, Means(ledger, **means))
    assert made.identity.dimension == 5
    embedder.asked.clear()
    return made


def test_what_a_text_is_sent_with() -> None:
    embedder = Scripted()
    encoder = ServedEncoder(embedder, Prefixes("Q: ", "P: "))
    encoder.encode(["north", "", "a\0b\ud800"], "query")
    encoder.encode(["north"], "passage")
    assert embedder.asked[1:] == [["Q: north", "Q: a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"], ["P: north"]]


def test_equal_texts_are_sent_once_in_batches_at_once() -> None:
    embedder = Scripted()
    encoder = encoder_of(embedder, batch=2, concurrency=3)
    embedder.seconds = 0.05
    texts = ["north", "east", "north", "south", "west", "north east", "south west"]
    encoded = encoder.encode(texts, "passage")
    np.testing.assert_allclose(encoded.vectors, [unit(text) for text in texts], atol=1e-6)
    assert sorted(map(len, embedder.asked)) == [2, 2, 2]
    assert embedder.peak == 3
    assert (encoded.calls, encoded.tokens, encoded.estimated) == (3, 8, False)


def test_tokens_are_estimated_where_the_server_gives_none() -> None:
    embedder = Scripted()
    encoder = encoder_of(embedder)
    for none in (None, 0):
        embedder.tokens = lambda _, none=none: none  # type: ignore[misc]  # a default is how a lambda keeps a value
        encoded = encoder.encode(["north and south"], "query")
        assert encoded.estimated
        assert encoded.tokens >= 3


def test_a_known_identity_needs_no_request_until_something_is_encoded() -> None:
    known = encoder_of(Scripted(digest="sha256:aaaabbbbccccdddd0000")).identity
    assert known.version == "aaaabbbbccccdddd"
    same = Scripted(digest="aaaabbbbccccdddd0000")
    encoder = ServedEncoder(same, Prefixes(), known)
    assert encoder.identity == known
    assert not same.asked
    encoder.encode(["north"], "query")
    assert same.asked == [["north"]]
    unsaid = ServedEncoder(Scripted(), Prefixes(), known)
    assert unsaid.encode(["north"], "query").vectors.any()
    assert unsaid.identity == known


def test_a_model_that_has_changed_is_found_out_at_the_first_request() -> None:
    known = encoder_of(Scripted(digest="aaaa")).identity
    changed = Scripted(digest="bbbb")
    with pytest.raises(EncoderMismatch, match=r"version was aaaa and is now bbbb.*ecphory reembed --encoder"):
        ServedEncoder(changed, Prefixes(), known).encode(["north"], "query")
    assert not changed.asked
    wider = Scripted(digest="aaaa")
    wider.spoil = lambda rows: [[*row, 1.0] for row in rows]
    with pytest.raises(EncoderMismatch, match="had 5 dimensions and now have 6"):
        ServedEncoder(wider, Prefixes(), known).encode(["north"], "query")


@pytest.mark.parametrize("other", ["name", "prefixes", "manner"])
def test_another_identity_is_not_taken_for_known(other: str) -> None:
    known = encoder_of(Scripted()).identity
    embedder, prefixes = Scripted(), Prefixes("Q: " if other == "prefixes" else "")
    if other == "name":
        known = replace(known, name="test/other")
    if other == "manner":
        embedder.manner = "last"
    found = ServedEncoder(embedder, prefixes, known).identity
    assert found != known
    assert len(embedder.asked) == 1


NOT_VECTORS: dict[str, Callable[[list[list[float]]], Any]] = {
    "too few": lambda rows: rows[1:],
    "too many": lambda rows: [*rows, rows[0]],
    "nan": lambda rows: [[float("nan"), *row[1:]] for row in rows],
    "infinite": lambda rows: [[float("inf"), *row[1:]] for row in rows],
    "zero": lambda rows: [[0.0] * len(row) for row in rows],
    "narrow": lambda rows: [row[1:] for row in rows],
    "flat": lambda rows: [1.0, 2.0],
}


@pytest.mark.parametrize("kind", sorted(NOT_VECTORS))
def test_what_is_no_vector_is_an_error(kind: str, ledger: SqliteLedger) -> None:
    embedder = Scripted()
    encoder = encoder_of(embedder, ledger)
    embedder.spoil = NOT_VECTORS[kind]
    with pytest.raises(BadVectors):
        encoder.encode(["north", "east"], "passage")
    embedder.spoil = lambda rows: rows
    np.testing.assert_allclose(encoder.encode(["north"], "passage").vectors, [unit("north")], atol=1e-6)


def test_one_vector_that_is_wrong_spoils_no_other(ledger: SqliteLedger) -> None:
    embedder = Scripted()
    encoder = encoder_of(embedder, ledger)
    embedder.spoil = lambda rows: [row if row[0] == 0 else [0.0] * 5 for row in rows]
    with pytest.raises(BadVectors, match="1 of 3"):
        encoder.encode(["east", "north", "south"], "passage")
    again = encoder.encode(["east", "south"], "passage")
    assert (again.calls, again.cached) == (0, 2)
    np.testing.assert_allclose(again.vectors, [unit("east"), unit("south")], atol=1e-6)


def test_lengths_beyond_float32_are_no_matter() -> None:
    embedder = Scripted()
    encoder = encoder_of(embedder)
    for factor in (1e30, 1e-30, 1e200):
        embedder.spoil = lambda rows, factor=factor: [  # type: ignore[misc]  # as above
            [factor * value for value in row] for row in rows
        ]
        np.testing.assert_allclose(encoder.encode(["north"], "query").vectors, [unit("north")], atol=1e-6)


def test_the_ledger_pays_once(ledger: SqliteLedger) -> None:
    embedder = Scripted()
    encoder = encoder_of(embedder, ledger, batch=2)
    first = encoder.encode(["north", "east", "south"], "passage")
    second = encoder.encode(["south", "west", "north"], "passage")
    assert embedder.asked == [["north", "east"], ["south"], ["west"]]
    assert (first.calls, first.cached, second.calls, second.cached) == (2, 0, 1, 2)
    assert np.array_equal(second.vectors[2], first.vectors[0])
    anew = ServedEncoder(Scripted(), Prefixes(), encoder.identity, Means(ledger))
    assert np.array_equal(anew.encode(["north"], "passage").vectors[0], first.vectors[0])
    other = ServedEncoder(embedder, Prefixes("", "P: "), None, Means(ledger))
    assert other.encode(["north"], "passage").cached == 0
    (spent,) = ledger.spending()
    assert (spent.purpose, spent.model) == ("embed", "test/compass")
    assert spent.usage.calls == 6  # three, one, and each identity's own


def test_questions_last_and_passages_go_when_they_are_in_the_store(ledger: SqliteLedger) -> None:
    embedder = Scripted()
    encoder = encoder_of(embedder, ledger)
    encoder.encode(["north"], "passage")
    encoder.encode(["south"], "query")
    ledger.drop_vectors()
    assert encoder.encode(["south"], "query").cached == 1
    assert encoder.encode(["north"], "passage").cached == 0


def test_a_refused_text_is_found_and_the_others_are_kept(ledger: SqliteLedger) -> None:
    embedder = Scripted(lambda texts: GenerationError("not this one") if "north 5" in texts else None)
    encoder = encoder_of(embedder, ledger, batch=8)
    texts = [f"north {number}" for number in range(8)]
    with pytest.raises(GenerationError, match="not this one"):
        encoder.encode(texts, "passage")
    assert ["north 5"] in embedder.asked
    for text in texts[:5]:
        assert encoder.encode([text], "passage").cached == 1


def test_a_server_that_fails_is_not_asked_in_halves() -> None:
    embedder = Scripted(lambda _: Transient("busy"))
    settings = OpenAISettings(tries=3, longest_wait=0.01)
    known = encoder_of(Scripted()).identity
    for means, calls, error in (
        (Means(), 1, Transient),
        (Means.of(settings, guard=Guard(settings)), 3, GenerationError),
    ):
        embedder.asked.clear()
        with pytest.raises(error, match="busy"):
            ServedEncoder(embedder, Prefixes(), known, means).encode(["north", "south", "east"], "passage")
        assert len(embedder.asked) == calls


def test_a_failure_of_one_request_keeps_what_others_brought(ledger: SqliteLedger) -> None:
    embedder = Scripted(lambda texts: Transient("gone") if "south" in texts else None)
    encoder = encoder_of(embedder, ledger, batch=1, concurrency=2)
    with pytest.raises(Transient):
        encoder.encode(["north", "south", "east", "west"], "passage")
    assert encoder.encode(["north"], "passage").cached == 1


def test_a_text_beyond_the_context_is_read_in_windows(ledger: SqliteLedger) -> None:
    text = many("north", 30) + many("south", 30)
    embedder = Scripted(too_long(40), context=40)
    encoder = encoder_of(embedder, ledger)
    encoded = encoder.encode([text, "east"], "passage")
    assert all(len(one.split()) <= 40 for texts in embedder.asked for one in texts)
    assert encoded.calls == 2
    assert encoded.tokens == 61
    expected = (unit("north") + unit("south")) / np.linalg.norm(unit("north") + unit("south"))
    np.testing.assert_allclose(encoded.vectors[0], expected, atol=0.02)
    assert encoder.encode([text], "passage").cached == 1
    alone = encoder_of(Scripted(too_long(40), context=40)).encode([text], "passage")
    np.testing.assert_allclose(alone.vectors[0], encoded.vectors[0], atol=1e-6)


def test_a_context_that_nobody_names_is_found_by_being_refused(ledger: SqliteLedger) -> None:
    text = many("north", 90) + many("south", 90)
    embedder = Scripted(too_long(40))
    encoded = encoder_of(embedder, ledger, batch=4).encode(["east", text, "west"], "passage")
    assert encoded.vectors[0] @ unit("east") == pytest.approx(1)
    assert abs(encoded.vectors[1] @ unit("north") - encoded.vectors[1] @ unit("south")) < 0.05
    assert np.linalg.norm(encoded.vectors[1]) == pytest.approx(1)
    assert encoded.tokens == 182


def test_each_window_has_the_prefix() -> None:
    embedder = Scripted(too_long(41), context=40)
    encoder = ServedEncoder(embedder, Prefixes("", "passage: "))
    encoder.encode([many("north", 100)], "passage")
    assert all(text.startswith("passage: ") for texts in embedder.asked[1:] for text in texts)


def test_a_short_text_that_is_too_long_is_an_error() -> None:
    embedder = Scripted(lambda texts: PromptTooLong("never") if "north" in texts[0] else None)
    with pytest.raises(PromptTooLong, match="never"):
        encoder_of(embedder).encode(["north"], "passage")


def test_a_text_that_the_server_cuts_is_found_out_and_read_in_windows(ledger: SqliteLedger) -> None:
    text = many("north", 300) + many("south", 300)
    embedder = Scripted()
    cut = 200
    embedder.tokens = lambda texts: sum(min(cut, len(one.split())) for one in texts)
    encoder = encoder_of(embedder, ledger)
    encoded = encoder.encode([text, "east"], "passage")
    whole = [texts for texts in embedder.asked if all(len(one.split()) <= cut for one in texts)]
    assert sum(len(one.split()) for texts in whole for one in texts) >= 601
    expected = (unit("north") + unit("south")) / np.linalg.norm(unit("north") + unit("south"))
    np.testing.assert_allclose(encoded.vectors[0], expected, atol=0.02)
    # What the cut requests cost is counted too, here and in the ledger.
    spent = {one.purpose: one.usage for one in ledger.spending()}["embed"]
    assert spent.embedding_tokens == encoded.tokens + encoder_probe_tokens(embedder)
    assert encoded.tokens > 601


def encoder_probe_tokens(embedder: Scripted) -> int:
    return embedder.tokens(["What dimension has a vector?"]) or 0


def test_a_budget_bounds_passages_and_not_questions(ledger: SqliteLedger) -> None:
    embedder, budget = Scripted(), Budget()
    encoder = encoder_of(embedder, ledger, budget=budget, batch=1)
    with budget.limited_to(20):
        with pytest.raises(BudgetSpent):
            encoder.encode(
                [f"{word} and more of it" for word in WORDS * 2] + [f"{n} or less" for n in range(9)], "passage"
            )
        assert encoder.encode(["which way is north, or south, or east, or west?"] * 2, "query").calls == 1
    assert 0 < sum(len(one.split()) for texts in embedder.asked[:-1] for one in texts) <= 20
    assert encoder.encode(["north and more of it"], "passage").cached == 1


def openai_encoder(server: LlamaServer, **settings: Any) -> OpenAIEncoder:
    return OpenAIEncoder(MODEL, OpenAISettings(base_url=server.url, api_key_env="TEST_KEY", **settings), Prefixes())


def test_openai_vectors_are_put_in_order_by_their_numbers() -> None:
    class Shuffling(LlamaServer):
        def _embeddings(self, asked: Asked) -> dict[str, Any]:
            answer = super()._embeddings(asked)
            answer["data"].reverse()
            if self.model == "unnumbered":
                answer["data"].reverse()
                for one in answer["data"]:
                    one["index"] = 0
            if self.model == "misnumbered":
                answer["data"][0]["index"] = 7
            return answer

    with Shuffling(embed=compass) as server, closing(openai_encoder(server)) as encoder:
        for model in (MODEL, "unnumbered"):
            server.model = model
            vectors = encoder.encode(["north", "east", "south"], "passage").vectors
            np.testing.assert_allclose(vectors, [unit("north"), unit("east"), unit("south")], atol=1e-6)
        server.model = "misnumbered"
        with pytest.raises(BadVectors, match="cannot be told apart"):
            encoder.encode(["north", "east", "west"], "passage")


@pytest.mark.parametrize("odd", [None, "text", [[1.0]], {}, [{"embedding": None}], [{"embedding": ["a", "b"]}]])
def test_replies_that_are_not_the_apis_are_errors(odd: Any) -> None:
    class Odd(LlamaServer):
        odd: Any = ...

        def _embeddings(self, asked: Asked) -> dict[str, Any]:
            answer = super()._embeddings(asked)
            return answer if self.odd is ... else {**answer, "data": self.odd}

    with Odd(embed=compass) as server, closing(openai_encoder(server)) as encoder:
        assert encoder.identity.dimension == 5
        server.odd = odd
        with pytest.raises((BadVectors, Transient)):
            encoder.encode(["north"], "passage")


def test_llama_cpp_refuses_a_batch_too_large_with_500_which_is_no_failure_that_may_pass() -> None:
    def fault(asked: Asked) -> Fault | None:
        if asked.path == EMBEDDINGS and any(len(text.split()) > 50 for text in asked.body["input"]):
            message = "input (601 tokens) is too large to process. increase the physical batch size"
            return Fault("status", 500, message)
        return None

    with llama_server(embed=compass, fault=fault) as server, closing(openai_encoder(server)) as encoder:
        encoded = encoder.encode([many("north", 120)], "passage")
        assert encoded.calls == 2
        np.testing.assert_allclose(encoded.vectors, [unit("north")], atol=0.02)


def test_keys_are_not_shown_and_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "sk-canary-of-an-encoder"
    monkeypatch.setenv("TEST_KEY", canary)
    with openai_server(embed=compass) as server, closing(openai_encoder(server)) as encoder:
        with pytest.raises(ModelNotAvailable, match="TEST_KEY") as raised:
            _ = encoder.identity
        server.key = canary
        server.fault = lambda asked: Fault("status", 400, f"what is {canary}?") if asked.path == EMBEDDINGS else None
        with pytest.raises(GenerationError) as refused:
            encoder.encode(["north"], "query")
        server.fault, server.model = None, "another"
        with pytest.raises(ModelNotAvailable, match="one of the server's"):
            encoder.encode(["north"], "query")
        for told in (raised.value, refused.value):
            assert canary not in str(told) + repr(told)
        address = server.url
    gone = OpenAIEncoder(MODEL, OpenAISettings(base_url=address), Prefixes())
    with pytest.raises(ModelNotAvailable, match="nothing listens"):
        gone.encode(["north"], "query")
    gone.close()


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("openai", lambda: OpenAIEncoder("m", OpenAISettings(), Prefixes())),
        ("ollama", lambda: OllamaEncoder("m", OllamaSettings(), Prefixes())),
    ],
)
def test_a_missing_package_is_named(
    package: str, make: Callable[[], ServedEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelNotAvailable, match=rf"ecphoryrag\[{package}\]"):
        _ = make().identity


def test_ollama_is_asked_for_the_models_context_and_for_no_cutting() -> None:
    with OllamaServer(embed=compass, model="bge-m3", model_context=4000) as server:
        encoder = OllamaEncoder("bge-m3", OllamaSettings(base_url=server.address, keep_alive="-1"), Prefixes())
        encoder.encode([many("north", 3000)], "passage")
        sent = [one.body for one in server.asked if one.path == EMBED]
        assert {(one["truncate"], one["options"]["num_ctx"], one["keep_alive"]) for one in sent} == {(False, 4000, -1)}
        assert server.loads == [4000]
        assert encoder.identity.name == "ollama/bge-m3"
        assert encoder.identity.version == server.digest[:16]
        encoder.close()


def test_ollama_with_a_newer_model_under_the_name_is_another_encoder() -> None:
    with OllamaServer(embed=compass, model="bge-m3") as server:
        settings = OllamaSettings(base_url=server.address)
        first = OllamaEncoder("bge-m3", settings, Prefixes())
        known = first.identity
        first.close()
        server.digest = "0" * 64
        second = OllamaEncoder("bge-m3", settings, Prefixes(), known)
        before = len(server.asked)
        assert second.identity == known
        assert len(server.asked) == before
        with pytest.raises(EncoderMismatch, match="ollama/bge-m3 has changed"):
            second.encode(["north"], "query")
        second.close()
        third = OllamaEncoder("bge-m3", settings, Prefixes())
        assert third.identity.fingerprint != known.fingerprint
        third.close()


def test_ollama_without_the_model_says_what_to_pull() -> None:
    with OllamaServer(model="bge-m3") as server:
        encoder = OllamaEncoder("e5", OllamaSettings(base_url=server.address), Prefixes())
        with pytest.raises(ModelNotAvailable, match="ollama pull e5"):
            _ = encoder.identity
        encoder.close()


@pytest.mark.parametrize("kind", ["status", "cut", "broken", "drop", "page"])
def test_no_failure_becomes_a_vector_and_the_next_request_works(kind: Any) -> None:
    with OllamaServer(embed=compass, model="bge-m3") as server:
        encoder = OllamaEncoder("bge-m3", OllamaSettings(base_url=server.address), Prefixes())
        assert encoder.identity.dimension == 5
        server.fault = lambda _: Fault(kind)
        with pytest.raises(ModelError):
            encoder.encode(["north"], "passage")
        server.fault = None
        np.testing.assert_allclose(encoder.encode(["north"], "passage").vectors, [unit("north")], atol=1e-6)
        encoder.close()
