"""The methods over :class:`ecphoryrag.Memory`: ``bm25``, ``dense``, ``hybrid``, ``paper``, ``ecphory``.

``dense`` is the Vanilla RAG of the publication: title and text embedded, cosine, top k. All five use one kind of store;
those that differ in nothing but how a question is asked (``dense``, ``hybrid``, ``ecphory``) share one, and what it
took is told for each of them. ``bm25`` is given no encoder, so that it pays for none. The parameters of a method are
the fields of its group in the settings (``recall.paper``, ``recall.ecphory``, ``recall.flat``), dotted for groups in
groups (``chain.weight``), and:

- ``extractor`` (``paper``, ``ecphory``): ``names`` or ``llm``; the settings' if not given.
- ``context`` (``paper``): what the reader is shown, as in the publication's ablation: ``both`` the entities E_final and
  the chunks C_final (Algorithm 1), ``chunks``, or ``entities``. An entity is shown by name and description. The chunks
  stand first, so that a tight budget of tokens leaves out the least associated entities and no passage.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ValidationError

from ecphoryrag.errors import InputError, JobStopped, SettingsError
from ecphoryrag.evaluation.baselines.port import Indexed, Kit, Retrieved
from ecphoryrag.evaluation.metrics import distinct
from ecphoryrag.memory import Memory
from ecphoryrag.models.delegating import EncoderAround
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.models.registry import extracting_generator, make_extractor
from ecphoryrag.ports import Encoded, Encoder
from ecphoryrag.settings import MethodName, Settings
from ecphoryrag.types import Answer, Chunk, Document, Evidence, JsonValue, RankedEntity, Recall, Usage
from ecphoryrag.types import Path as Road

GROUPS: Mapping[str, str] = {"paper": "paper", "ecphory": "ecphory"}
"""Group of settings by method; of all others it is ``flat``."""
CONTEXTS = ("both", "chunks", "entities")
WHOLE = "whole.json"
"""Says that a store holds the corpus, and what that took; written last."""
ENTITY = "entity:"
"""Begins the document id of a piece of evidence that is an entity's description and no passage."""


def make_named(name: str, kit: Kit) -> MemoryMethod:
    """Raises SettingsError for a parameter that the method does not have, or a value that it cannot take."""
    parameters = dict(kit.parameters)
    context = parameters.pop("context", CONTEXTS[0]) if name == "paper" else "chunks"
    if context not in CONTEXTS:
        raise SettingsError(f"the parameter 'context' of paper must be one of {', '.join(CONTEXTS)}; it is {context!r}")
    settings = kit.settings
    if name in GROUPS and "extractor" in parameters:
        settings = _changed(settings, {"extractor": parameters.pop("extractor")}, name)
    if settings.extractor != "names" and extracting_generator(settings) != settings.generator:
        raise SettingsError(
            f"the extractor {settings.extractor} of {name} asks another language model than the run's, "
            f"{settings.generator}: all methods of a run share one, so let the extractor be `llm`"
        )
    group = GROUPS.get(name, "flat")
    settings = _changed(settings, {f"recall.{group}.{key}": value for key, value in parameters.items()}, name)
    settings = _changed(settings, {"models.ledger": False}, name)  # the run itself keeps what was paid
    return MemoryMethod(name, kit, settings, str(context))


class MemoryMethod:
    """A recall method of this package."""

    def __init__(self, name: str, kit: Kit, settings: Settings, context: str) -> None:
        if name not in get_args(MethodName):
            raise SettingsError(f"no recall method is called {name!r}")
        self._name = name
        self._kit = kit
        self._settings = settings
        self._context = context
        self._encoder = _Counted(NoEncoder() if name == "bm25" else kit.encoder)
        self._memory: Memory | None = None

    @property
    def name(self) -> str:
        """The recall method's."""
        return self._name

    def index(self, documents: Sequence[Document]) -> Indexed:
        """Into the store that this method shares with those that need the same; a store left half-way is made anew.

        Making it anew pays no language model twice, since the run keeps the replies. For ``paper`` the vectors of the
        entities are part of the index; the other methods need none, so that it has a store of its own.
        """
        folder = self._folder(documents)
        whole = folder / WHOLE
        if whole.is_file():
            record = json.loads(whole.read_text("utf-8"))
            self._memory = self._open(folder)
            return Indexed(Usage(**record["usage"]), record["seconds"], record["figures"], tuple(record["notes"]))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        indexed = self._build(folder, documents)
        draft = folder / f"{WHOLE}.new"
        draft.write_text(json.dumps(asdict(indexed), ensure_ascii=True, indent=1), "utf-8")
        draft.replace(whole)
        return indexed

    def _build(self, folder: Path, documents: Sequence[Document]) -> Indexed:
        start = self._kit.clock.now()
        memory = self._memory = self._open(folder)
        report = memory.add(documents, progress=lambda progress: self._kit.tell("index", progress.done, len(documents)))
        if report.interrupted:
            raise KeyboardInterrupt
        if report.stopped:
            raise JobStopped(f"indexing ended before its end: {report.stopped}")
        if self._name == "paper":
            question = memory.recall(documents[0].text, k=1, method=self._name).usage.embedding_tokens
        else:
            question = 0
        usage = replace(report.usage, embedding_tokens=self._encoder.tokens - question)
        status = memory.status()
        figures = {"chunks": status.chunks, "entities": status.entities, "mentions": status.mentions}
        notes = [f"{failure.source} was not indexed: {failure.reason}" for failure in report.failed[:5]]
        if len(report.failed) > 5:
            notes.append(f"{len(report.failed) - 5} more documents were not indexed")
        if report.incomplete:
            notes.append(f"{len(report.incomplete)} documents have chunks that could not be extracted")
        return Indexed(usage, self._kit.clock.now() - start, figures, tuple(notes))

    def retrieve(self, question: str, k: int) -> Retrieved:
        """The first ``k`` distinct documents, each at the place of its best chunk, as ``ecphory eval`` ranks them.

        The time is that of the first request, for ``k`` chunks; more are asked for only where several chunks of one
        document stand among them.
        """
        memory = self._memory
        if memory is None:
            raise InputError(f"{self._name} has no index yet: index the documents first")
        start = time.perf_counter()
        recall = memory.recall(question, k=k, method=self._name)
        seconds = time.perf_counter() - start
        documents, asked, more = _documents(recall), k, recall
        while len(documents) < k and len(more.chunks) >= asked:
            asked *= 2
            more = memory.recall(question, k=asked, method=self._name)
            documents = _documents(more)
        shown = replace(recall, chunks=self._shown(recall))
        return Retrieved(documents[:k], shown, recall.usage, seconds, recall.notes)

    def answer(self, question: str) -> Answer | None:
        """None: the shared reader answers."""
        del question
        return None

    def close(self) -> None:
        """Close the store."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def _shown(self, recall: Recall) -> tuple[Evidence, ...]:
        if self._context == "chunks":
            return recall.chunks
        chunks = recall.chunks if self._context == "both" else ()
        described = [_described(entity) for entity in recall.entities if entity.entity.description.strip()]
        return tuple(replace(piece, number=number) for number, piece in enumerate([*chunks, *described], 1))

    def _open(self, folder: Path) -> Memory:
        return Memory.open(
            folder / "store.ecphory",
            settings=self._settings,
            encoder=self._encoder,
            extractor=make_extractor(self._settings, self._kit.generator),
            generator=self._kit.generator,
        )

    def _folder(self, documents: Sequence[Document]) -> Path:
        state = hashlib.blake2b(digest_size=10)
        made_of: list[JsonValue] = [
            self._encoder.identity.fingerprint,
            self._settings.extractor,
            self._settings.indexing.model_dump(mode="json"),
            self._name == "paper",
            self._kit.generator.identity if self._kit.generator and self._settings.extractor != "names" else None,
        ]
        state.update(json.dumps(made_of, sort_keys=True).encode("ascii"))
        for document in documents:
            state.update(f"{document.id}\0{document.content_hash}\n".encode("utf-8", "surrogatepass"))
        return self._kit.folder.parent / f"memory-{state.hexdigest()}"


class _Counted(EncoderAround):
    """The run's encoder, whose tokens are added up: the store embeds entities without a word about the cost."""

    def __init__(self, inner: Encoder) -> None:
        super().__init__(inner)
        self.tokens = 0

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """(len(texts), dimension) float32, as the encoder."""
        encoded = self._inner.encode(texts, kind)
        self.tokens += encoded.tokens
        return encoded


def _documents(recall: Recall) -> tuple[str, ...]:
    return distinct(evidence.chunk.document_id for evidence in recall.chunks)


def _described(ranked: RankedEntity) -> Evidence:
    """An entity as a piece of evidence."""
    text = ranked.entity.description
    chunk = Chunk(f"{ENTITY}{ranked.entity.key}", 0, text, 0, len(text))
    return Evidence(ranked.rank, chunk, ranked.entity.name, ranked.score, {}, Road("direct"))


def _changed(settings: Settings, values: Mapping[str, JsonValue], method: str) -> Settings:
    """The settings with these, by dotted name. Raises SettingsError for a name or value that cannot be."""
    tree: dict[str, Any] = settings.model_dump()
    for name, value in values.items():
        *groups, last = name.split(".")
        at = tree
        for group in groups:
            inner = at.get(group)
            if not isinstance(inner, dict):
                raise SettingsError(f"{method} has no parameter {name.split('.', 2)[-1]!r}")
            at = inner
        at[last] = value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"a parameter of {method}: {where}: {first['msg']}") from error
