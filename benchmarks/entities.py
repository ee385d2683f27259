"""Pairs of mentions to be labelled, and what resolution and proposed duplicates are worth against the labels.

    python -m benchmarks.entities sample --data ../shared/data --show     # candidate pairs, with their contexts
    python -m benchmarks.entities measure --data ../shared/data          # writes results/entities.json and .md

``sample`` draws, by a fixed seed, from the development passages of the three sets: pairs of each reason that the finder
knows, good or bad, whatever their score; mentions of one key in different documents; and, without the finder, pairs of
names of one document that share a word. ``measure`` indexes the passages into a store of its own in ``--work``, unless
it is there. Exit code 0 also if the data is not there.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ecphoryrag.evaluation.entities import EntityReport, evaluate_entities, read_labels
from ecphoryrag.evaluation.provenance import machine, source_commit, versions
from ecphoryrag.memory import Memory
from ecphoryrag.types import Mention

ROOT = Path(__file__).resolve().parent.parent
LABELS = ROOT / "benchmarks" / "labels" / "entities.jsonl"
RESULTS = ROOT / "benchmarks" / "results"
SETS = ("hotpotqa", "2wikimultihopqa", "musique")
EACH, HOMONYMS, SHARED = 11, 66, 44
"""Pairs of each reason, of one key, and of one document that share a word."""
SEED = 5
CONTEXT = 70

Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    made = argparse.ArgumentParser(prog="entities", description=(__doc__ or "").splitlines()[0])
    made.add_argument("what", choices=("sample", "measure"))
    made.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the evaluation sets")
    made.add_argument("--work", type=Path, default=ROOT / ".entities", help="folder of the store")
    made.add_argument("--labels", type=Path, default=LABELS)
    made.add_argument("--show", action="store_true", help="sample: with contexts, for whoever labels")
    options = made.parse_args(arguments)
    if not all((options.data / name / "corpus.jsonl").is_file() for name in SETS):
        print(f"entities: the sets are not in {options.data}; skipped. Name their folder with --data.")
        return 0
    options.work.mkdir(parents=True, exist_ok=True)
    with Memory.open(options.work / "dev.ecphory") as memory:
        memory.add(_documents(options.data))
        if options.what == "sample":
            for number, pair in enumerate(sample(memory)):
                print(_shown(memory, number, pair) if options.show else json.dumps(pair, ensure_ascii=False))
        else:
            write(evaluate_entities(memory, read_labels(options.labels)))
    return 0


def _documents(data: Path) -> Iterator[Record]:
    for name in SETS:
        with (data / name / "corpus.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                yield {"id": f"{name}/{record['id']}", "title": record["title"], "text": record["text"], "set": name}


def sample(memory: Memory) -> list[Record]:
    """The pairs, each with its kind and no label."""
    draw = random.Random(SEED)
    places: dict[str, list[Record]] = defaultdict(list)
    types: dict[str, str] = {}
    shared: list[tuple[Mention, Mention, str]] = []
    for summary in memory.documents():
        mentions: dict[str, Mention] = {}
        for extraction in memory.inspect(summary.id).extractions:
            for mention in extraction.mentions:
                mentions.setdefault(mention.key, mention)
                types[mention.key] = mention.type
        for key, mention in mentions.items():
            places[key].append(_place(summary.id, mention))
        shared += [(*pair, summary.id) for pair in _sharing(list(mentions.values()))]
    pairs: list[Record] = []
    by_reason: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for proposed in memory.duplicates(least=0.0):
        by_reason[proposed.reasons[0]].append((proposed.one_key, proposed.other_key))
    for reason in sorted(by_reason):
        found = sorted(by_reason[reason])
        for key, other in draw.sample(found, min(EACH, len(found))):
            pairs.append({"kind": reason, "one": draw.choice(places[key]), "other": draw.choice(places[other])})
    several = sorted(key for key, found in places.items() if len(found) > 1 and types[key] in ("name", "title"))
    for key in draw.sample(several, HOMONYMS):
        two = draw.sample(places[key], 2)
        pairs.append({"kind": "one key", "one": two[0], "other": two[1]})
    for first, second, id_ in draw.sample(shared, SHARED):
        pairs.append({"kind": "a word in common", "one": _place(id_, first), "other": _place(id_, second)})
    return pairs


def _place(id_: str, mention: Mention) -> Record:
    return {"document": id_, "name": mention.name, "field": mention.field, "start": mention.start}


def _sharing(mentions: Sequence[Mention]) -> Iterator[tuple[Mention, Mention]]:
    by_word: dict[str, list[Mention]] = defaultdict(list)
    for mention in mentions:
        if mention.type in ("name", "title"):
            for word in set(mention.key.split()):
                if len(word) > 3:
                    by_word[word].append(mention)
    for _, found in sorted(by_word.items()):
        if len(found) == 2:
            yield found[0], found[1]


def _shown(memory: Memory, number: int, pair: Record) -> str:
    lines = [f"{number} [{pair['kind']}]"]
    for part in ("one", "other"):
        place = pair[part]
        document = memory.get(place["document"])
        text = document.title if place["field"] == "title" else document.text
        start, stop = place["start"], place["start"] + len(place["name"])
        before, after = text[max(start - CONTEXT, 0) : start], text[stop : stop + CONTEXT]
        lines.append(f"   {document.title} :: {before}<<{place['name']}>>{after}".replace("\n", " "))
    return "\n".join(lines)


def write(report: EntityReport) -> None:
    """The results, as JSON and as a table."""
    record = {"commit": source_commit(ROOT), "machine": machine(), "versions": versions(), **report.to_json()}
    (RESULTS / "entities.json").write_text(
        json.dumps(record, ensure_ascii=False, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    lines = [
        "# Which names are one: measured",
        "",
        "By `python -m benchmarks.entities measure`, against `benchmarks/labels/entities.jsonl`; see docs/entities.md.",
        "",
        *report.table(),
    ]
    (RESULTS / "entities.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
