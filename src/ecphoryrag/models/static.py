"""The default encoder: the mean of token vectors that the package ``wordllama`` ships."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from ecphoryrag.models.packaged import encodable, packaged_file
from ecphoryrag.ports import Encoded, Vectors
from ecphoryrag.types import EncoderIdentity
from ecphoryrag.vectors import unit_rows

PACKAGE = "wordllama"
REMEDY = "pip install 'wordllama==0.4.0.post1'"
WEIGHTS = "weights/l2_supercat_256.safetensors"
WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"

WEIGHTING = "uniform"
"""How token vectors are weighed before they are averaged: all alike. Weights by rarity were measured and gain nothing
(docs/decisions/040). Part of the identity's version."""
TITLE_SHARE = 0.4
"""Share of a passage's vector that is its title's own. In a mean over the tokens of title and text a title of three
words drowns; given .4 of the vector, dense recall@5 rises from .536 to .599 (docs/decisions/046). Part of the
identity's version."""
BATCH = 512
"""Texts tokenized together: enough to keep all cores busy, few enough that token ids take a few megabytes."""


class StaticEncoder:
    """A text's vector is the mean of its tokens' vectors, scaled to unit length. 256 dimensions.

    Reads the weights and tokenizer of ``wordllama`` 0.4.0.post1 without importing it, since its own loader wants a
    download. Word order plays no part; the same text always gets the same vector, whatever else is in the batch.
    """

    def __init__(self) -> None:
        weights = packaged_file(PACKAGE, WEIGHTS, WEIGHTS_SHA256, REMEDY)
        tokenizer = packaged_file(PACKAGE, TOKENIZER, TOKENIZER_SHA256, REMEDY)
        (self._table,) = load_file(weights).values()
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        fingerprint = f"{WEIGHTS_SHA256[:16]}-{TOKENIZER_SHA256[:16]}"
        self._identity = EncoderIdentity(
            "static", f"wordllama-0.4.0.post1/{WEIGHTING}/title-{TITLE_SHARE}", self._table.shape[1], fingerprint
        )

    @property
    def identity(self) -> EncoderIdentity:
        """Name, version, dimension, and a fingerprint of weights and tokenizer."""
        return self._identity

    @property
    def title_share(self) -> float:
        """See :data:`TITLE_SHARE`."""
        return TITLE_SHARE

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """(len(texts), 256) float32, rows of unit length; a text without tokens is a zero row. Any length is read."""
        del kind  # the vectors are symmetric
        vectors = np.zeros((len(texts), self._table.shape[1]), np.float32)
        tokens = 0
        for start in range(0, len(texts), BATCH):
            batch = [encodable(text) for text in texts[start : start + BATCH]]
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            ids = [np.asarray(encoding.ids, np.int64) for encoding in encodings]
            vectors[start : start + len(batch)] = self._pool(ids)
            tokens += sum(map(len, ids))
        return Encoded(vectors, tokens)

    def close(self) -> None:
        """Nothing to release."""

    def _pool(self, ids: list[NDArray[np.int64]]) -> Vectors:
        """(len(ids), 256) unit rows from the token ids of each text."""
        offsets = np.cumsum([0, *map(len, ids)])
        # Only the rows in use become float32, so that loading need not convert the whole table.
        used, columns = np.unique(np.concatenate(ids), return_inverse=True)
        ones = np.ones(len(columns), np.float32)
        counts = sp.csr_array((ones, columns, offsets), shape=(len(ids), len(used)))
        # Scaling to unit length makes the sum do for the mean.
        return unit_rows(np.asarray(counts @ self._table[used].astype(np.float32)))
