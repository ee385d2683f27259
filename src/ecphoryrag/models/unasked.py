"""An encoder that is not asked: to tell a cost before, and to move a store away from it, no request is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.ports import Encoded, Encoder
from ecphoryrag.settings import Settings, is_served
from ecphoryrag.types import EncoderIdentity


class UnaskedEncoder:
    """Stands for an encoder that encodes nothing here. See :class:`ecphoryrag.ports.Encoder`."""

    def __init__(self, identity: EncoderIdentity) -> None:
        self.identity = identity

    @property
    def title_share(self) -> float:
        """0: title and text are read together, as by all served encoders."""
        return 0.0

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """Raises ModelNotAvailable."""
        del texts, kind
        raise ModelNotAvailable(f"{self.identity.name} is not asked here: open the store with it to encode")

    def close(self) -> None:
        """Nothing is open."""


def unasked_encoder(settings: Settings) -> Encoder | None:
    """For the configured encoder if it is on a server; None for those in this process, which cost nothing to ask."""
    if not is_served(settings.encoder):
        return None
    return UnaskedEncoder(EncoderIdentity(settings.encoder, "not asked", 1, ""))
