"""The long ordeals of the store: kills, failing disks, spoiled caches, programs, processes, a full disk, a large store.

    python -m benchmarks.durability

No model and no data set is needed. Parts may be run one by one (``--only kills``), made smaller (``--kills 200``) and
divided: another ``--seed`` kills elsewhere, and ``--slice 2/4`` tries the second quarter of the faults. Each part that
ends is appended to ``durability.json``, from which ``durability.md`` is written. What breaks leaves its folder in
``--work``. Exit code: 0 if all that was run held, 1 if not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.durability_parts import PARTS, Long

from ecphoryrag.evaluation.provenance import machine, source_commit, versions

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
WORK = ROOT / ".soak" / "store"

Record: TypeAlias = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    options = parser().parse_args(arguments)
    asked = vars(options).copy()
    work, results, only = asked.pop("work"), asked.pop("results"), asked.pop("only")
    held = True
    for name in only or PARTS:
        print(f"{name} ...", flush=True)
        folder = work / f"{name} {options.seed} {options.slice.replace('/', ' of ')}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        started = time.perf_counter()
        figures, broken = PARTS[name](Long(folder, **asked))
        record: Record = {
            "part": name,
            "figures": figures,
            "broken": broken,
            "options": asked,
            "seconds": round(time.perf_counter() - started, 1),
            "commit": source_commit(ROOT),
            "versions": versions(),
            "machine": machine(),
        }
        append(results, record)
        held = held and not broken
        print("\n".join(told(record)), flush=True)
        if not broken:
            shutil.rmtree(folder)
    return 0 if held else 1


def parser() -> argparse.ArgumentParser:
    """The options; the defaults are the long form."""
    made = argparse.ArgumentParser(prog="durability", description=(__doc__ or "").splitlines()[0])
    made.add_argument("--only", choices=tuple(PARTS), action="append", help="this part (may be repeated)")
    made.add_argument("--kills", type=int, default=1000)
    made.add_argument("--slice", default="1/1", help="of the faults, as 2/4")
    made.add_argument("--places", type=int, default=100, help="at which each cache is cut")
    made.add_argument("--bits", type=int, default=500, help="that are flipped of each of the two caches")
    made.add_argument("--programs", type=int, default=1000)
    made.add_argument("--seconds", type=float, default=60.0, help="of reading while another writes")
    made.add_argument("--readers", type=int, default=8)
    made.add_argument("--documents", type=int, default=500, help="that each of four writers adds")
    made.add_argument("--chunks", type=int, default=100_000, help="of the large store")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--work", type=Path, default=WORK, help="folder to work in")
    made.add_argument("--results", type=Path, default=RESULTS, help="folder of durability.json and durability.md")
    return made


def append(results: Path, record: Record) -> None:
    """Add to ``durability.json``, and write ``durability.md`` from all of it."""
    results.mkdir(parents=True, exist_ok=True)
    path = results / "durability.json"
    records: list[Record] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    records.append(record)
    text = json.dumps(records, ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    (results / "durability.md").write_text(report(records), encoding="utf-8")


def report(records: Sequence[Record]) -> str:
    """All runs of each part in Markdown."""
    lines = [
        "# Durability: the long ordeals",
        "",
        "Made by `make soak-store`; what each part is, and what it promises, is in `docs/durability.md`. Every run",
        "that was recorded is listed, also one that broke something; `durability.json` holds all figures.",
    ]
    for name in PARTS:
        runs = [record for record in records if record["part"] == name]
        lines += ["", f"## {name}", ""]
        for record in runs:
            lines += told(record)
        if not runs:
            lines.append("Not run yet.")
    return "\n".join(lines) + "\n"


def told(record: Record) -> list[str]:
    """A record as items of a list."""
    figures = "; ".join(f"{name} {shown(value)}" for name, value in record["figures"].items())
    outcome = "all held" if not record["broken"] else f"{len(record['broken'])} BROKEN"
    where = f"seed {record['options']['seed']}, {record['seconds']:.0f} s, commit {record['commit']}"
    return [f"- {outcome} ({where}): {figures}", *(f"  - {shown(what)[:300]}" for what in record["broken"][:10])]


def shown(value: Any) -> str:
    """A figure in a line."""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    return " ".join(str(value).split())


if __name__ == "__main__":
    sys.exit(main())
