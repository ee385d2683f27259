"""Adapters by the names that the settings use. Each is imported only when it is asked for."""
# ruff: noqa: PLC0415 - for this reason

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ecphoryrag.calls.budget import Budget
from ecphoryrag.errors import ModelNotAvailable, SettingsError
from ecphoryrag.ports import CueFinder, Encoder, Extractor, Generator, Ledger, RelationLabeller
from ecphoryrag.settings import ServerSettings, Settings, split_name
from ecphoryrag.types import EncoderIdentity

if TYPE_CHECKING:
    from ecphoryrag.models.guard import Guard


def make_encoder(
    settings: Settings,
    known: EncoderIdentity | None = None,
    *,
    ledger: Ledger | None = None,
    budget: Budget | None = None,
) -> Encoder:
    """The configured encoder. ``known`` is the identity that an existing store keeps.

    A served one asks its server nothing before it encodes, if ``known`` is its own. Raises ModelNotAvailable if its
    package is missing.
    """
    backend, _ = split_name(settings.encoder)
    if backend == "static":
        from ecphoryrag.models.static import StaticEncoder

        return StaticEncoder()
    if backend == "minilm":
        from ecphoryrag.models.minilm import MiniLMEncoder

        return MiniLMEncoder()
    if backend == "none":
        from ecphoryrag.models.none import NoEncoder

        return NoEncoder()
    return _served_encoder(settings, known, ledger, budget)


def _served_encoder(
    settings: Settings, known: EncoderIdentity | None, ledger: Ledger | None, budget: Budget | None
) -> Encoder:
    from ecphoryrag.models.prefixes import prefixes_of

    backend, model = split_name(settings.encoder)
    models = settings.models
    prefixes = prefixes_of(model, models.prefixes)
    if backend == "local":
        from ecphoryrag.models.local_encoder import LocalEncoder

        return LocalEncoder(Path(model) if model else None, models.local, prefixes, known)
    from ecphoryrag.models.embedder import Means

    if backend == "ollama":
        from ecphoryrag.models.ollama_encoder import OllamaEncoder

        means = Means.of(models.ollama, ledger, budget, _guard(settings, backend))
        return OllamaEncoder(model, models.ollama, prefixes, known, means)
    from ecphoryrag.models.openai_encoder import OpenAIEncoder

    there = models.openai.embedding_base_url
    openai = models.openai.model_copy(update={"base_url": there}) if there else models.openai
    return OpenAIEncoder(model, openai, prefixes, known, Means.of(openai, ledger, budget, _guard(settings, backend)))


def make_generator(settings: Settings, name: str | None = None) -> Generator | None:
    """The generator of this name, or the configured one; None if that is ``none``. A served one is guarded.

    Raises ModelNotAvailable if its package is missing; a model that is missing is found when it is first used.
    """
    backend, model = split_name(name or settings.generator)
    if backend == "none":
        return None
    if backend == "local":
        from ecphoryrag.models.local import LocalGenerator

        local = settings.models.local
        return LocalGenerator(local.model_copy(update={"path": Path(model)}) if model else local)
    guard = _guard(settings, backend)
    from ecphoryrag.models.guard import GuardedGenerator

    inner: Generator
    if backend == "ollama":
        from ecphoryrag.models.ollama import OllamaGenerator

        inner = OllamaGenerator(model, settings.models.ollama)
    else:
        from ecphoryrag.models.openai import OpenAIGenerator

        inner = OpenAIGenerator(model, settings.models.openai)
    return GuardedGenerator(inner, guard)


def _guard(settings: Settings, backend: str) -> Guard:
    """What stands between a job and this server. Raises ModelNotAvailable if the backend's packages are missing."""
    try:
        from ecphoryrag.models.guard import Guard
    except ImportError as error:
        raise ModelNotAvailable(
            f"models on servers need the package {error.name}: run `pip install 'ecphoryrag[{backend}]'`"
        ) from error
    return Guard(_server(settings, backend))


def make_extractor(
    settings: Settings,
    generator: Generator | None = None,
    *,
    ledger: Ledger | None = None,
    budget: Budget | None = None,
) -> Extractor:
    """The configured extractor; ``generator`` is that of :func:`extracting_generator`, for the extractor ``llm``.

    Raises SettingsError if it needs a generator and there is none.
    """
    kind, _ = split_name(settings.extractor)
    if kind == "names":
        from ecphoryrag.models.names import NamesExtractor

        return NamesExtractor()
    if generator is None:
        raise SettingsError(
            "the extractor `llm` needs a language model, and generator is `none`: set generator, or extractor to "
            "`llm/` and a generator, or to `names`"
        )
    from ecphoryrag.models.llm_extractor import LLMExtractor

    backend, _ = split_name(extracting_generator(settings))
    if backend in {"local", "none"}:
        return LLMExtractor(generator, settings.indexing.llm, ledger, budget)
    from ecphoryrag.models.guard import GuardedGenerator

    guard = generator.guard if isinstance(generator, GuardedGenerator) else None
    parallel = _server(settings, backend).concurrency
    return LLMExtractor(generator, settings.indexing.llm, ledger, budget, parallel, guard)


def extracting_generator(settings: Settings) -> str:
    """The name of the generator that the extractor ``llm`` asks: its own, or the one that answers."""
    return split_name(settings.extractor)[1] or settings.generator


def _server(settings: Settings, backend: str) -> ServerSettings:
    return settings.models.ollama if backend == "ollama" else settings.models.openai


class Models:
    """The models of one memory: each is made when it is first asked for, once, and all are closed together."""

    def __init__(self, settings: Settings, ledger: Ledger | None) -> None:
        self._settings = settings
        self._ledger = ledger
        self._lock = threading.Lock()
        self._generators: dict[str, Generator | None] = {}
        self.budget = Budget()
        """What a job may spend on calls of the extractor and of a served encoder."""

    def encoder(self, known: EncoderIdentity | None) -> Encoder:
        """See :func:`make_encoder`."""
        return make_encoder(self._settings, known, ledger=self._ledger, budget=self.budget)

    def generator(self, name: str | None = None) -> Generator | None:
        """See :func:`make_generator`; of one name there is one."""
        name = name or self._settings.generator
        with self._lock:
            if name not in self._generators:
                self._generators[name] = make_generator(self._settings, name)
            return self._generators[name]

    def extractor(self, given: Generator | None = None) -> Extractor:
        """See :func:`make_extractor`; ``given`` answers in place of the configured generator, and so extracts too."""
        kind, own = split_name(self._settings.extractor)
        generator = None
        if kind != "names":
            generator = given if given is not None and not own else self.generator(extracting_generator(self._settings))
        return make_extractor(self._settings, generator, ledger=self._ledger, budget=self.budget)

    def cue_finder(self, generator: Generator) -> CueFinder:
        """Reads entities out of questions by this generator."""
        from ecphoryrag.models.llm_questions import ModelCueFinder

        return ModelCueFinder(generator, self._ledger)

    def labeller(self, generator: Generator) -> RelationLabeller:
        """Labels relations by this generator."""
        from ecphoryrag.models.llm_questions import ModelRelationLabeller

        return ModelRelationLabeller(generator, self._ledger)

    def close(self) -> None:
        """Close every generator that was made; calling it twice is harmless."""
        with self._lock, ExitStack() as closing:
            for generator in self._generators.values():
                if generator is not None:
                    closing.callback(generator.close)
            self._generators.clear()
