"""What a memory makes for itself beside the store, and what it checks before it makes an encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ecphoryrag.errors import EcphoryError, EncoderMismatch
from ecphoryrag.models.registry import Models
from ecphoryrag.ports import Encoder, Ledger, Store
from ecphoryrag.settings import is_served
from ecphoryrag.store.ledger import SqliteLedger
from ecphoryrag.types import EncoderIdentity


class Parts:
    """What a memory has made for itself, and lets go when it is closed."""

    def __init__(self, models: Models, ledger: Ledger | None = None, replies: SqliteLedger | None = None) -> None:
        self.models = models
        self.ledger = ledger
        """None if the settings want none."""
        self.replies = replies
        """The ledger's file all the same: what is forgotten is forgotten there too."""
        self.retired: list[Store | Encoder] = []
        """Stores and encoders that a move to another encoder has replaced."""

    def forget(self, documents: Sequence[str]) -> None:
        """Remove the replies that were made of these documents."""
        if self.replies is not None:
            self.replies.forget(documents)

    def rename(self, id: str, new: str) -> None:
        """Let the replies that were made of a document be forgotten with it under its new id too."""
        if self.replies is not None:
            self.replies.rename(id, new)

    def notices(self) -> tuple[str, ...]:
        """What the user should know of the ledger."""
        return self.replies.notices if self.replies is not None else ()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """An error that ends the work bears it too."""
        try:
            yield
        except EcphoryError as error:
            for notice in self.notices():
                error.add_note(notice)
            raise

    def close(self) -> None:
        """Close all of it; calling it twice is harmless."""
        with ExitStack() as closing:
            if self.replies is not None:
                closing.callback(self.replies.close)
            closing.callback(self.models.close)
            for one in self.retired:
                closing.callback(one.close)


def check_served(path: Path, kept: EncoderIdentity, configured: str) -> None:
    """Raise EncoderMismatch for a served encoder by another name than the store's, without asking its server."""
    if is_served(configured) and kept.name != configured:
        raise EncoderMismatch(
            f"The store {path} holds vectors of the encoder {kept.name!r}, but {configured!r} is configured. Set "
            f'`encoder = "{kept.name}"` (or `--encoder {kept.name}`) to use this store, move it with '
            f"`ecphory reembed --encoder {configured}`, or index the documents into a new store."
        )
