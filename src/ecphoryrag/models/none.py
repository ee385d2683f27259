"""The encoder that makes no vectors: recall then rests on words and names alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ecphoryrag.ports import Encoded
from ecphoryrag.types import EncoderIdentity


class NoEncoder:
    """Vectors of dimension 0."""

    identity = EncoderIdentity("none", "1", 0, "none")

    @property
    def title_share(self) -> float:
        """0: title and text are read together."""
        return 0.0

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """(len(texts), 0) float32, no token spent."""
        del kind
        return Encoded(np.zeros((len(texts), 0), np.float32), 0)

    def close(self) -> None:
        """Nothing to release."""
