"""The error tree. Every error says what happened, to what, and what to do now.

EcphoryError
├── SettingsError            a setting is unknown, malformed or contradicts another
├── InputError               a document, file, question or filter that cannot be taken
│   └── UnsupportedFormat    a known format that is not read yet (PDF, DOCX, HTML)
├── StoreError               the store file cannot be used as asked
│   ├── StoreNotFound        nothing is there, and creating was not asked for
│   ├── NotAStore            something else is there
│   ├── StoreTooNew          written by a later version
│   ├── StoreBusy            another process is writing
│   ├── StoreReadOnly        a write to a store opened read-only
│   ├── StoreDamaged         the file fails its own checks
│   ├── EncoderMismatch      its vectors come from another encoder
│   ├── DocumentNotFound     no document has this id
│   └── EntityNotFound       no entity has this name, or no decision this number
└── ModelError               an encoder, extractor or generator cannot do its work
    ├── ModelNotAvailable    its package, file or server is missing
    ├── ModelFetchError      a model's files could not be fetched or failed their check
    ├── GenerationError      the model failed, or what it returned cannot be used
    │   ├── Transient        it may succeed if tried again
    │   └── Rejected         no reply could be used, in all attempts
    ├── PromptTooLong        does not fit, even with the least evidence
    ├── PromptCut            the server read less than it was sent
    ├── BadVectors           what an encoder returned are no vectors to keep
    └── JobStopped           no more calls are made; what was done is kept
        ├── BudgetSpent      the tokens allowed are spent
        └── CircuitOpen      the model failed too often in a row
"""

from __future__ import annotations

import reprlib

from ecphoryrag.types import Usage


class EcphoryError(Exception):
    """Base of all errors that this package raises on purpose."""


class SettingsError(EcphoryError):
    """A setting is unknown, malformed or contradicts another."""


class InputError(EcphoryError):
    """A document, file, question or filter that cannot be taken."""


class UnsupportedFormat(InputError):
    """A known format that is not read yet."""


class StoreError(EcphoryError):
    """The store file cannot be used as asked."""


class StoreNotFound(StoreError):
    """There is no store at this path, and creating one was not asked for."""


class NotAStore(StoreError):
    """The file at this path is something else."""


class StoreTooNew(StoreError):
    """The store was written by a later version of this package."""


class StoreBusy(StoreError):
    """Another process holds the write lock."""


class StoreReadOnly(StoreError):
    """A write to a store that was opened read-only."""


class StoreDamaged(StoreError):
    """The file fails its own checks."""


class EncoderMismatch(StoreError):
    """The store's vectors come from another encoder than the one configured."""


class DocumentNotFound(StoreError):
    """No document has this id."""


class EntityNotFound(StoreError):
    """No entity has this name, it has no such mention, or no decision has this number."""


class ModelError(EcphoryError):
    """An encoder, extractor or generator cannot do its work."""

    usage: Usage = Usage()
    """What was spent on calls before the one that failed, where several were made for one thing."""
    notes: tuple[str, ...] = ()
    """Why there were several."""


class ModelNotAvailable(ModelError):
    """A package, file or server that the model needs is missing."""


class ModelFetchError(ModelError):
    """A model's files could not be fetched, or failed their size or checksum."""


class GenerationError(ModelError):
    """The model failed, or what it returned cannot be used."""


class Transient(GenerationError):
    """The call failed in a way that may pass: a busy server, a time-out, a broken connection."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the server asks to wait, if it does."""


class Rejected(GenerationError):
    """No reply to a request could be used, in all attempts."""

    def __init__(self, message: str, usage: Usage, notes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.usage = usage
        """What the attempts cost."""
        self.notes = notes
        """What was wrong with each reply but the last."""


class PromptTooLong(ModelError):
    """The prompt does not fit the model's context, even with the least evidence."""


class PromptCut(ModelError):
    """The server read fewer tokens than it was sent: it cut the prompt without saying so."""


class BadVectors(ModelError):
    """An encoder returned vectors that are not finite, of another dimension, too few, or zero."""


class JobStopped(ModelError):
    """No more calls are made; what was done is kept."""


class BudgetSpent(JobStopped):
    """The tokens that were allowed are spent."""


class CircuitOpen(JobStopped):
    """The model failed too often in a row."""


def quoted(value: object) -> str:
    """The value as messages quote it: no more of it than is good to read, however long or deep it is."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = 200
    short.maxlevel = 4
    try:
        return short.repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; an object that shows its own depth
        return f"a {type(value).__name__}"
