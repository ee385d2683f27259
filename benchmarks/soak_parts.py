"""The parts of the soak: each works in a folder, goes on where it was stopped, and gives figures and verdicts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tests.support.chaos_proxy import ChaosProxy
from tests.support.compare_stores import differences
from tests.support.llama_server import CHAT
from tests.support.loopback import Asked
from tests.support.ordeals import Adding, Held, Job, Place, Texts, adding, held, kills
from tests.support.paid import paid_places

from ecphoryrag.errors import EcphoryError
from ecphoryrag.evaluation.dataset import Dataset, Question
from ecphoryrag.evaluation.metrics import score
from ecphoryrag.evaluation.ranking import rank_documents
from ecphoryrag.indexing.extracting import threads_for
from ecphoryrag.memory import Memory
from ecphoryrag.settings import ChunkSettings, IndexingSettings, ModelsSettings, OpenAISettings, Settings
from ecphoryrag.text.tokens import count_tokens
from ecphoryrag.types import AddReport, Document, JsonValue, StoreStatus, Usage

Figures: TypeAlias = dict[str, JsonValue]
Verdicts: TypeAlias = dict[str, bool]

QUESTIONS = 16
"""Whose passages are indexed: 32 of the 40; the rest are passages of the corpus's beginning."""
FIRST = 10
"""Passages indexed before the second estimate, which then knows how long this model's replies are; of few, half."""
SMALL_CHUNK = 96
"""Tokens of a chunk in the ordeals: two or three to a passage, so that a document can be half done."""
LEAST_VALID, MOST_WRITTEN, MOST_OFF = 0.95, 1.0, 0.15
"""Floors of issue 3: chunks with valid output, output tokens for each input token, error of an estimate."""


@dataclass(frozen=True, slots=True)
class Soak:
    """What a part works with."""

    address: str
    """Of the model's server."""
    model: str
    data: Dataset
    work: Path
    passages: int
    chunks: int
    kills: int
    timeout: float
    """Seconds that the client waits for a reply in the chaos."""
    seed: int

    def settings(self, url: str, *, ordeal: bool, timeout: float | None = None) -> Settings:
        """Of an indexing by the model behind this URL."""
        server = OpenAISettings(
            base_url=url,
            api_key_env="SOAK_NO_KEY",
            timeout=timeout or 900.0,
            concurrency=2 if ordeal else 1,
            tries=3,
            longest_wait=2.0,
            failures=1000,
        )
        cut = ChunkSettings(budget=SMALL_CHUNK, overlap=0) if ordeal else ChunkSettings()
        return Settings(
            generator=f"openai/{self.model}",
            extractor="llm",
            models=ModelsSettings(openai=server),
            indexing=IndexingSettings(chunks=cut),
        )


class State:
    """What a part must know when it goes on: a JSON file, whole at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def keep(self, **values: Any) -> None:
        """Set these and write all."""
        self.values |= values
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(self.values), encoding="utf-8")
        fresh.replace(self._path)


def chosen(data: Dataset, passages: int) -> tuple[list[Document], list[Question]]:
    """The gold passages of the first questions, filled up with the corpus's first others; and every question of the
    set whose gold is among them. The passages stand in the corpus's order, which says nothing."""
    wanted: set[str] = set()
    for question in data.questions[:QUESTIONS]:
        if len(wanted | set(question.gold)) <= passages:
            wanted |= set(question.gold)
    for document in data.documents:
        if len(wanted) >= passages:
            break
        wanted.add(document.id)
    questions = [question for question in data.questions if set(question.gold) <= wanted]
    return [document for document in data.documents if document.id in wanted], questions


def ordeal_documents(data: Dataset, cut: ChunkSettings, chunks: int) -> list[Document]:
    """The corpus's last passages that have exactly so many chunks together."""
    taken: list[Document] = []
    left = chunks
    for document in reversed(data.documents):
        size = len(Texts([document], cut).chunks)
        if size <= left:
            taken.append(document)
            left -= size
        if not left:
            break
    return taken


def extraction(soak: Soak) -> tuple[Figures, Verdicts]:
    """Real extraction, its cost against its estimate, and what it is worth beside ``names``."""
    documents, questions = chosen(soak.data, soak.passages)
    first = min(FIRST, len(documents) // 2)
    state = State(soak.work / "extraction.json")
    with ChaosProxy(soak.address, share=0.0) as proxy:
        settings = soak.settings(proxy.url, ordeal=False)
        with Memory.open(soak.work / "extraction.ecphory", settings=settings) as memory:
            for name, batch, ahead in (
                ("cold", documents[:first], documents),
                ("warm", documents[first:], documents[first:]),
            ):
                if name not in state.values:
                    state.keep(**{name: [asdict(memory.estimate(ahead)), asdict(spent(memory.status()))]})
                report = memory.add(batch)
                state.keep(dropped=state.values.get("dropped", 0) + report.dropped)
                _ended(report)
            found = held(memory)
            usage = spent(memory.status())
            figures = _output(memory, found, usage, documents, state.values["dropped"])
            state.keep(form=held_by(proxy.asked) or state.values.get("form"))
            figures |= {"replies held to the schema by": state.values["form"]}
            figures |= {"questions": len(questions), "recall@5, llm": recall_at_5(memory, questions)}
    with Memory.open(soak.work / "names.ecphory", settings=Settings(generator="none")) as memory:
        memory.add(documents)
        figures["recall@5, names"] = recall_at_5(memory, questions)
    errors = {name: _off(state.values[name], usage) for name in ("cold", "warm")}
    figures |= {f"estimate, {name}": dict(errors[name]) for name in errors}
    return figures, {
        "at least 95 % of chunks have valid output": _number(figures, "valid") >= LEAST_VALID,
        "at most 1.0 output tokens for each input token": _number(figures, "output/input") <= MOST_WRITTEN,
        "replies are held to the schema": figures["replies held to the schema by"] in {"grammar", "json_schema"},
        "every name stands in the text": _number(figures, "names in the text") == 1.0,
        "the estimates of all tokens, and of those read, are within 15 %": max(
            abs(one[kind]) for one in errors.values() for kind in ("calls", "input", "tokens")
        )
        <= MOST_OFF,
        f"after {first} passages that of the tokens written is, too": abs(errors["warm"]["output"]) <= MOST_OFF,
    }


def _number(figures: Figures, name: str) -> float:
    value = figures[name]
    assert isinstance(value, int | float)
    return float(value)


def spent(status: StoreStatus) -> Usage:
    """All that this store's extraction cost so far."""
    return sum((one.usage for one in status.spending if one.purpose == "index"), Usage())


def _output(memory: Memory, found: Held, usage: Usage, documents: Sequence[Document], dropped: int) -> Figures:
    mentions = [
        (document, mention)
        for document in documents
        for extraction in memory.inspect(document.id).extractions
        for mention in extraction.mentions
    ]
    standing = [
        (document.title if mention.field == "title" else document.text)[mention.start : mention.end] == mention.name
        for document, mention in mentions
    ]
    entities = len({mention.key for _, mention in mentions})
    return {
        "passages": len(documents),
        "chunks": len(found.there),
        "valid": 1 - len(found.failed) / len(found.there),
        "empty chunks": len(found.empty),
        "calls": usage.calls,
        "input tokens": usage.input_tokens,
        "output tokens": usage.output_tokens,
        "output/input": usage.output_tokens / usage.input_tokens,
        "output for each token of text (estimated)": usage.output_tokens / sum(count_tokens(d.text) for d in documents),
        "seconds a call": usage.seconds / usage.calls,
        "entities": entities,
        "mentions": len(mentions),
        "names in the text": sum(standing) / len(standing),
        "names dropped, since they do not stand in it": dropped,
    }


def held_by(asked: Sequence[Asked]) -> str | None:
    """How the last chat held its reply to the schema: by a grammar, the schema, JSON of any kind, or words alone."""
    bodies = [one.body for one in asked if one.path == CHAT]
    if not bodies:
        return None
    form = (bodies[-1].get("response_format") or {}).get("type", "text")
    return "grammar" if "grammar" in bodies[-1] else str(form)


def recall_at_5(memory: Memory, questions: Sequence[Question]) -> float:
    """Mean recall of the gold documents among the first 5, by `ecphory`."""
    rankings = [rank_documents(memory, question.text, "ecphory").documents for question in questions]
    return float(score(rankings, [question.gold for question in questions])["recall@5"].mean())


def _off(kept: Sequence[Mapping[str, Any]], after: Usage) -> dict[str, float]:
    """Relative errors of an estimate: of the calls, the tokens read and written, and all tokens together."""
    estimate, before = kept
    used = {
        "calls": after.calls - before["calls"],
        "input": after.input_tokens - before["input_tokens"],
        "output": after.output_tokens - before["output_tokens"],
    }
    told = {"calls": estimate["calls"], "input": estimate["input_tokens"], "output": estimate["output_tokens"]}
    used["tokens"], told["tokens"] = used["input"] + used["output"], told["input"] + told["output"]
    return {name: told[name] / used[name] - 1 for name in used}


def chaos(soak: Soak) -> tuple[Figures, Verdicts]:
    """60 chunks through a proxy that spoils 30 % of the replies, then a calm run."""
    cut = soak.settings("http://127.0.0.1:1", ordeal=True).indexing.chunks
    documents = ordeal_documents(soak.data, cut, soak.chunks)
    state, store = State(soak.work / "chaos.json"), soak.work / "chaos.ecphory"
    with ChaosProxy(soak.address, seed=soak.seed, hang=1.05 * soak.timeout, retry_after="1") as proxy:
        if "wild" not in state.values:
            wild = adding(store, soak.settings(proxy.url, ordeal=True, timeout=soak.timeout), documents, proxy)
            state.keep(wild=_told(wild), spoiled=dict(proxy.spoiled), chats=proxy.chats)
        proxy.calm()
        settings = soak.settings(proxy.url, ordeal=True)
        missing = {(id_, ordinal) for id_, ordinal in state.values["wild"]["failed"]}
        calm = adding(store, settings, documents, proxy)
        state.keep(calm=state.values.get("calm", []) + [[*place, count] for place, count in calm.calls.items()])
        _ended(calm.report)
        replayed = replay(soak, store, proxy, documents)
    calls = {(id_, ordinal): count for id_, ordinal, count in state.values["calm"]}
    figures: Figures = {
        "documents": len(documents),
        "chunks": len(calm.held.there),
        "chats in the chaos": state.values["chats"],
        "spoiled": state.values["spoiled"],
        "chunks failed in the chaos": len(missing),
        "documents incomplete after it": len(state.values["wild"]["incomplete"]),
        "calls of the calm run": sum(calls.values()),
        "chunks failed after it": len(calm.held.failed),
        **replayed,
    }
    return figures, {
        "no document is done while incomplete": not state.values["wild"]["hidden"],
        "after the calm run all are done": not (calm.held.failed or calm.held.incomplete or calm.report.stopped),
        "the calm run's calls are the missing ones": set(calls) == missing,
        "the store equals that of an undisturbed run on the same replies": replayed["differences"] == [],
    }


def _ended(report: AddReport) -> None:
    """Raises EcphoryError if the adding did not come to its end."""
    if report.stopped or report.interrupted or report.failed:
        why = report.stopped or (report.failed[0].reason if report.failed else "it was interrupted")
        raise EcphoryError(f"the indexing ended before its end ({why}); run the soak again to go on from here")


def _told(done: Adding) -> dict[str, Any]:
    _ended(done.report)
    return {
        "failed": sorted(done.held.failed),
        "incomplete": sorted(done.held.incomplete),
        "hidden": sorted(done.held.hidden),
    }


def replay(soak: Soak, store: Path, proxy: ChaosProxy, documents: Sequence[Document]) -> Figures:
    """Index the same documents anew from a copy of the ledger: no call is to be made, and the stores are to be equal.

    A second run of the model itself would not do: llama.cpp's arithmetic depends a little on what its cache holds.
    """
    folder = soak.work / f"{store.stem}-replayed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for ending in ("-ledger", "-ledger-wal"):
        kept = store.with_name(store.name + ending)
        if kept.exists():
            shutil.copyfile(kept, folder / kept.name)
    proxy.calm()
    done = adding(folder / store.name, soak.settings(proxy.url, ordeal=True), documents, proxy)
    found: list[JsonValue] = list(differences(store, folder / store.name))
    return {"calls of the replay": done.calls.total(), "differences": found}


def killing(soak: Soak) -> tuple[Figures, Verdicts]:
    """An indexing that is killed at random moments."""
    cut = soak.settings("http://127.0.0.1:1", ordeal=True).indexing.chunks
    documents = ordeal_documents(soak.data, cut, soak.chunks)
    folder = soak.work / "kills"
    shutil.rmtree(folder, ignore_errors=True)  # a run of kills that was itself stopped says nothing: from the start
    folder.mkdir()
    store = folder / "kills.ecphory"
    with ChaosProxy(soak.address, share=0.0) as proxy:
        settings = soak.settings(proxy.url, ordeal=True)

        def paid() -> set[Place]:
            return paid_places(store, settings, documents)

        job = Job(store, settings, documents, proxy, paid, soak.seed, jitter=5.0 if soak.model != "script" else 0.04)
        done = kills(job, soak.kills, lambda line: print(f"  {line}", flush=True))
        with Memory.open(store, settings=settings) as memory:
            whole = held(memory)
        replayed = replay(soak, store, proxy, documents)
    figures: Figures = {
        "documents": len(documents),
        "chunks": len(whole.there),
        "kills": len(done.runs),
        "calls": done.calls.total(),
        "in flight at the kills": list(done.in_flight()),
        "chunks paid for twice though the ledger had them": sum(map(len, done.paid_again().values())),
        "chunks failed in the end": len(whole.failed),
        **replayed,
    }
    return figures, {
        f"{soak.kills} kills, and an end": len(done.runs) == soak.kills and not whole.failed,
        "no call was paid for twice except those in flight": not done.paid_again(),
        "no more were in flight than threads": max(done.in_flight(), default=0)
        <= threads_for(settings.models.openai.concurrency),
        "the store equals that of an undisturbed run on the same replies": replayed["differences"] == [],
    }


PARTS = {"extraction": extraction, "chaos": chaos, "kills": killing}
