"""What takes the local model hours: spoiled replies, kills, and real extraction with its cost, worth and estimate.

    python -m benchmarks.soak --data ../shared/data

The local model is served over HTTP by llama.cpp in a process of its own and used as any server is. Parts may be run
one by one (``--only chaos``) and made smaller (``--chunks 6``). What is done is kept in ``--work``; a run that was
stopped goes on from there, and ``--fresh`` begins anew. Each part that ends is appended to ``soak.json``, from which
``soak.md`` is written. ``--server scripted`` tries the soak itself in a minute, and writes its results to ``--work``.
Exit code: 0 if all that was run held, or the data is not there; 1 if not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.soak_parts import PARTS, Soak
from benchmarks.soak_server import local_model_server, script_server

from ecphoryrag.errors import EcphoryError
from ecphoryrag.evaluation.dataset import load_dataset
from ecphoryrag.evaluation.provenance import machine, source_commit, versions
from ecphoryrag.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
WORK = ROOT / ".soak"
SET = "hotpotqa"

Record: TypeAlias = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    options = parser().parse_args(arguments)
    folder = options.data / SET
    if not folder.is_dir():
        print(f"soak: {folder} is not there; skipped. Name the folder of the sets with --data.")
        return 0
    work = options.work / options.server
    results = options.results or (work if options.server == "scripted" else RESULTS)
    if options.fresh:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    try:
        return run(options, work, results)
    except EcphoryError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").splitlines()[0])
    made.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the evaluation sets")
    made.add_argument("--server", choices=("model", "scripted"), default="model", help="who answers")
    made.add_argument("--only", choices=tuple(PARTS), action="append", help="this part (may be repeated)")
    made.add_argument("--passages", type=int, default=40, help="of the extraction")
    made.add_argument("--chunks", type=int, default=60, help="of the chaos and of the kills")
    made.add_argument("--kills", type=int, default=20)
    made.add_argument("--timeout", type=float, help="seconds a client waits in the chaos (default 120, scripted 0.5)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--work", type=Path, default=WORK, help="folder of what is done so far")
    made.add_argument("--results", type=Path, help="folder of soak.json and soak.md")
    made.add_argument("--fresh", action="store_true", help="begin anew")
    return made


def run(options: argparse.Namespace, work: Path, results: Path) -> int:
    """Run the parts, and write what came of each as soon as it is there."""
    data = load_dataset(options.data / SET / "corpus.jsonl", options.data / SET / "questions.jsonl")
    scripted = options.server == "scripted"
    timeout = options.timeout or (0.5 if scripted else 120.0)
    serving = script_server() if scripted else local_model_server(Settings().models.local)
    held = True
    with serving as (address, model):
        soak = Soak(address, model, data, work, options.passages, options.chunks, options.kills, timeout, options.seed)
        for name in options.only or PARTS:
            print(f"{name} ...", flush=True)
            figures, verdicts = PARTS[name](soak)
            asked = {key: getattr(options, key) for key in ("passages", "chunks", "kills", "seed")} | {
                "timeout": timeout
            }
            record: Record = {
                "part": name,
                "model": model,
                "figures": figures,
                "verdicts": verdicts,
                "options": asked,
                "data": data.digests,
                "commit": source_commit(ROOT),
                "versions": versions(),
                "machine": machine(),
            }
            append(results, record)
            held = held and all(verdicts.values())
            for line in told(record):
                print(line, flush=True)
    return 0 if held else 1


def append(results: Path, record: Record) -> None:
    """Add to ``soak.json``, and write ``soak.md`` from all of it."""
    results.mkdir(parents=True, exist_ok=True)
    path = results / "soak.json"
    records: list[Record] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    records.append(record)
    text = json.dumps(records, ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    (results / "soak.md").write_text(report(records), encoding="utf-8")


def report(records: Sequence[Record]) -> str:
    """The newest record of each part in Markdown."""
    newest = {record["part"]: record for record in records}
    lines = [
        "# Soak: the local model behind an HTTP server",
        "",
        "Made by `make soak`; all runs are in `soak.json`. Chunks of the chaos and of the kills are small (96 tokens),",
        "those of the extraction as by default. The passages of the extraction are the gold passages of the first 16",
        "questions, filled up with the first others of the corpus; the questions asked are all of the set whose gold",
        "passages are among them. So small a corpus makes recall easy: the two figures say how the extractors compare,",
        "and nothing of larger corpora.",
    ]
    for name in (part for part in PARTS if part in newest):
        record = newest[name]
        lines += ["", f"## {name}", "", f"Model {record['model']}, commit {record['commit']}.", "", *told(record)]
    return "\n".join(lines) + "\n"


def told(record: Record) -> list[str]:
    """A record as a list and a table."""
    lines = [f"- {'holds' if held else 'MISSED'}: {what}" for what, held in record["verdicts"].items()]
    lines += ["", "| figure | value |", "| --- | ---: |"]
    return lines + [f"| {name} | {shown(value)} |" for name, value in record["figures"].items()]


def shown(value: Any) -> str:
    """A figure in a cell."""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
