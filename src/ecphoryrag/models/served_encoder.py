"""What all encoders have in common that ask a model for vectors by requests: a server, or llama.cpp in this process.

Vectors are either right or an error: each reply is checked for their number, dimension, finiteness and length, and
nothing is ever put in the place of one that failed. What was paid for is kept in the ledger, request by request.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.calls.budget import Spent
from ecphoryrag.errors import (
    BadVectors,
    EncoderMismatch,
    GenerationError,
    ModelNotAvailable,
    PromptCut,
    PromptTooLong,
    Transient,
)
from ecphoryrag.models.embedder import SMALLEST, Described, Embedded, Embedder, Means, check_read
from ecphoryrag.models.packaged import encodable
from ecphoryrag.models.prefixes import Prefixes
from ecphoryrag.models.served import ASSUMED_CONTEXT
from ecphoryrag.models.windows import joined, windows
from ecphoryrag.ports import Encoded
from ecphoryrag.text.tokens import count_tokens
from ecphoryrag.types import EncoderIdentity, Spending, Usage
from ecphoryrag.vectors import unit_rows

Kind: TypeAlias = Literal["passage", "query"]
METHOD = 1
"""Part of the fingerprint: raise it when the same replies would become other vectors."""
UNVERSIONED = "as served"
"""The version where the server does not say which file stands behind a name."""
FILL = 0.9
"""Share of the context that a text is estimated to fill before it is read in windows: estimates err, and a text that
is refused costs a request."""
PROBE = "What dimension has a vector?"


@dataclass(slots=True)
class _Done:
    """Vectors by body, and what they cost."""

    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    def take(self, other: _Done) -> None:
        self.vectors |= other.vectors
        self.usage += other.usage


class ServedEncoder:
    """See :class:`ecphoryrag.ports.Encoder`. Blank texts are zero rows; no request is made for them.

    ``known`` is the identity that an existing store keeps. If its name and prefixes are these, it is taken at its word
    until something is encoded: a store can be listed while the server is off. The first request then looks whether the
    model is still the same. Without it, asking for the identity makes a request.

    A text that is too long for the model is read in windows of equal length and its vector is their mean, so that none
    of it is lost: the servers' own way is to cut it off, or to refuse the document for a passage that lexical search
    takes without trouble. How a text is read depends on it and on the model alone, never on what else is encoded.
    """

    def __init__(
        self,
        embedder: Embedder,
        prefixes: Prefixes,
        known: EncoderIdentity | None = None,
        means: Means | None = None,
    ) -> None:
        self._embedder = embedder
        self._prefixes = prefixes
        self._means = means or Means()
        self._own = _hash(METHOD, embedder.name, embedder.manner, prefixes.query, prefixes.passage)[:16]
        agrees = known is not None and known.name == embedder.name and known.fingerprint.startswith(f"{self._own}-")
        self._identity = known if agrees else None
        self._checking = threading.Lock()
        self._context: int | None = None
        """Set once the model was found to be the identity's."""
        self._seen = False
        """Whether a vector of the identity's dimension was seen."""

    @property
    def identity(self) -> EncoderIdentity:
        """Whose vectors these are. May make requests: see the class. Raises ModelError."""
        if self._identity is None:
            self._meet()
        if self._identity is None:
            raise AssertionError("an encoder that has met its model knows its identity")
        return self._identity

    @property
    def title_share(self) -> float:
        """0: title and text are read together."""
        return 0.0

    def encode(self, texts: Sequence[str], kind: Kind) -> Encoded:
        """(len(texts), dimension) float32, rows of unit length; a blank text is a zero row.

        Equal texts are sent once. Raises ModelError, BudgetSpent for passages beyond the budget, and EncoderMismatch
        if the model is no longer the one that the store's vectors come from.
        """
        dimension = self.identity.dimension
        bodies = [_sendable(text) for text in texts]
        wanted = [body for body in dict.fromkeys(bodies) if body]
        done = self._kept(wanted, kind)
        missing = [body for body in wanted if body not in done.vectors]
        if missing:
            self._meet()
            for part in self._made(missing, kind):
                done.take(part)
        vectors = np.zeros((len(texts), dimension), np.float32)
        for row, body in enumerate(bodies):
            if body:
                vectors[row] = done.vectors[body]
        usage = done.usage
        return Encoded(vectors, usage.embedding_tokens, usage.calls, usage.estimated, usage.cached)

    def close(self) -> None:
        """Release the connection or the model."""
        self._embedder.close()

    def _meet(self) -> None:
        """Look at the model, once: find out the identity, or hold it against the one that is known."""
        with self._checking:
            if self._context is not None:
                return
            described = self._embedder.describe()
            version = _version(described)
            if self._identity is None:
                dimension = self._probe()
                fingerprint = f"{self._own}-{_hash(described.digest, dimension)[:16]}"
                self._identity = EncoderIdentity(self._embedder.name, version, dimension, fingerprint)
            elif self._identity.version != version and UNVERSIONED not in (self._identity.version, version):
                # A server that does not say its version just now, or only began to, is given the benefit of the doubt.
                raise self._changed(f"its version was {self._identity.version} and is now {version}")
            self._context = described.context or ASSUMED_CONTEXT

    def _probe(self) -> int:
        """The dimension of the model's vectors."""
        reply = self._sent([PROBE], count_tokens(PROBE))
        if reply.vectors.ndim != 2 or len(reply.vectors) != 1 or not reply.vectors.shape[1]:
            raise BadVectors(f"{self._embedder.name} gives no vector for a text: is it an embedding model?")
        self._seen = True
        if self._means.ledger is not None:
            self._means.ledger.spend("embed", self._embedder.name, _usage(reply, [PROBE]))
        return int(reply.vectors.shape[1])

    def _changed(self, how: str) -> EncoderMismatch:
        return EncoderMismatch(
            f"The model behind {self._embedder.name} has changed since the store was made: {how}. Vectors of both "
            "cannot be compared. Give the server the former model, or move the store with "
            f"`ecphory reembed --encoder {self._embedder.name}`."
        )

    def _key(self, body: str, kind: Kind) -> str:
        return _hash("vector", self.identity.fingerprint, self._prefixes.before(kind) + body)

    def _kept(self, bodies: Sequence[str], kind: Kind) -> _Done:
        """What the ledger has of these."""
        done = _Done()
        if self._means.ledger is not None and bodies:
            found = self._means.ledger.find_vectors([self._key(body, kind) for body in bodies])
            for body, vector in zip(bodies, found, strict=True):
                if vector is not None and vector.shape == (self.identity.dimension,):
                    done.vectors[body] = vector
            done.usage = Usage(cached=len(done.vectors))
        return done

    def _made(self, bodies: Sequence[str], kind: Kind) -> Iterator[_Done]:
        """Vectors of all, in requests of ``batch`` texts, ``concurrency`` at once.

        If one fails, those under way are waited for (and kept by the ledger), and then the first failure is raised.
        """
        room = FILL * (self._context or ASSUMED_CONTEXT)
        sizes = {body: count_tokens(self._prefixes.before(kind) + body) for body in bodies}
        short = [body for body in bodies if sizes[body] <= room]
        batch = self._means.batch
        jobs = [short[start : start + batch] for start in range(0, len(short), batch)]
        long = [(body, -int(-sizes[body] // room)) for body in bodies if sizes[body] > room]
        with ThreadPoolExecutor(max(1, min(self._means.concurrency, len(jobs) + len(long)))) as pool:
            futures = [pool.submit(self._embed, job, kind) for job in jobs]
            futures += [pool.submit(self._embed_windows, body, parts, kind) for body, parts in long]
            try:
                for future in futures:
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()

    def _embed(self, bodies: Sequence[str], kind: Kind) -> _Done:
        """Vectors of these by one request; if it is refused, by two of half the size, down to the text that is."""
        wasted = Usage()
        try:
            return self._request(bodies, kind)
        except (PromptTooLong, PromptCut) as error:
            wasted = error.usage
            if len(bodies) == 1:
                if len(bodies[0]) < SMALLEST:
                    raise
                done = self._embed_windows(bodies[0], 2, kind)
                done.usage += wasted
                return done
        except GenerationError as error:
            unreachable = isinstance(error, Transient) or isinstance(error.__cause__, Transient | ModelNotAvailable)
            if unreachable or len(bodies) == 1:
                raise
        done = self._embed(bodies[: len(bodies) // 2], kind)
        done.take(self._embed(bodies[len(bodies) // 2 :], kind))
        done.usage += wasted
        return done

    def _embed_windows(self, body: str, count: int, kind: Kind) -> _Done:
        """The vector of a long text: the mean of those of its windows, each with the prefix before it."""
        parts = [part for part in windows(body, count) if part.strip()]
        inner = self._kept(parts, kind)
        missing = [part for part in dict.fromkeys(parts) if part not in inner.vectors]
        for start in range(0, len(missing), self._means.batch):
            inner.take(self._embed(missing[start : start + self._means.batch], kind))
        mean = joined(np.stack([inner.vectors[part] for part in parts]), parts)
        done = self._checked([body], mean, kind, Usage())
        done.usage = replace(inner.usage, cached=0)  # windows that the ledger held are not texts that it held
        return done

    def _request(self, bodies: Sequence[str], kind: Kind) -> _Done:
        texts = [self._prefixes.before(kind) + body for body in bodies]
        estimate = sum(map(count_tokens, texts))
        with self._reserved(estimate, kind) as spent:
            reply = self._sent(texts, estimate)
            usage = _usage(reply, texts)
            spent.tokens = usage.embedding_tokens
        try:
            check_read(texts, reply.tokens, self._embedder.name)
        except PromptCut as error:
            error.usage = usage
            if self._means.ledger is not None:
                self._means.ledger.spend("embed", self._embedder.name, usage)
            raise
        return self._checked(bodies, reply.vectors, kind, usage)

    def _sent(self, texts: Sequence[str], estimate: int) -> Embedded:
        return self._means.guard.call(
            estimate, lambda: self._embedder.embed(texts), lambda reply: _usage(reply, texts).embedding_tokens
        )

    def _reserved(self, tokens: int, kind: Kind) -> AbstractContextManager[Spent]:
        if self._means.budget is None or kind == "query":
            return nullcontext(Spent())
        return self._means.budget.reserved(tokens)

    def _checked(self, bodies: Sequence[str], vectors: NDArray[np.floating[Any]], kind: Kind, usage: Usage) -> _Done:
        """Unit rows of what is right, kept in the ledger. Raises BadVectors if anything is not."""
        name, dimension = self._embedder.name, self.identity.dimension
        if vectors.ndim != 2 or len(vectors) != len(bodies):
            raise BadVectors(f"{name} was given {len(bodies)} texts and returned an array of {vectors.shape}")
        if vectors.shape[1] != dimension:
            how = f"its vectors had {dimension} dimensions and now have {vectors.shape[1]}"
            raise BadVectors(f"{name} is not one model: {how}") if self._seen else self._changed(how)
        self._seen = True
        sizes = np.abs(vectors.astype(np.float64)).max(axis=1, initial=0.0)
        right = np.isfinite(sizes) & (sizes > 0)
        # Scaled first, since the square of a number may be too large for float32 where the number is not.
        rows = unit_rows(vectors[right] / sizes[right, None])
        good = [body for body, passed in zip(bodies, right, strict=True) if passed]
        if self._means.ledger is not None:
            cost = Spending("embed", name, usage)
            keys = [self._key(body, kind) for body in good]
            self._means.ledger.keep_vectors(keys, rows, cost, lasting=kind == "query")
        if len(good) < len(bodies):
            raise BadVectors(
                f"{name} returned for {len(bodies) - len(good)} of {len(bodies)} texts a vector that is zero or not "
                "finite: try again, or set another encoder"
            )
        return _Done(dict(zip(good, rows, strict=True)), usage)


def _usage(reply: Embedded, texts: Sequence[str]) -> Usage:
    """What the request cost, by the server's figure; estimated where it gives none."""
    if reply.tokens:
        return Usage(1, embedding_tokens=reply.tokens)
    return Usage(1, embedding_tokens=sum(map(count_tokens, texts)), estimated=True)


def _sendable(text: str) -> str:
    """The text as it is sent: without NUL and lone surrogates, which no server takes; empty if it is blank."""
    return encodable(text).replace("\0", "\N{REPLACEMENT CHARACTER}") if text.strip() else ""


def _version(described: Described) -> str:
    return described.digest.removeprefix("sha256:")[:16] or UNVERSIONED


def _hash(*parts: object) -> str:
    return hashlib.blake2b(json.dumps(parts).encode("ascii"), digest_size=16).hexdigest()
