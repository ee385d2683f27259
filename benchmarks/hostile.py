"""Ten thousand hostile inputs at every door, and forty of ten megabytes, of which nothing may do harm.

Only refusals, nothing written elsewhere, no raw control character in the output, memory and time bounded.

    python -m benchmarks.hostile                 # all, about half an hour on two cores
    python -m benchmarks.hostile --door import --seed 7 --count 200
    python -m benchmarks.hostile --door import --case 123456      # one again, with its traceback

The cases are drawn from the seed (see tests/support/hostile_doors.py). Writes ``hostile.json`` and ``hostile.md`` to
``--results`` if all doors were knocked at. Exit code 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.hostile_doors import DOORS, Arena, Outcome, cases, knock

from ecphoryrag.evaluation.provenance import machine, source_commit, versions

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LARGE = 40
"""Cases of ten megabytes each, beside the others."""
MEMORY = 4 * 2**30
"""Bytes of address space that all cases in one process may take."""
STUCK = 900
"""Seconds after which one case is held to be stuck, and the process ends with where it was."""


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    options = parser().parse_args(arguments)
    started = time.perf_counter()
    if options.part is not None:
        return part(options)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        parts = [run_part(options, number, Path(folder)) for number in range(options.processes)]
        ended = [process.wait() for process, _ in parts]
        if any(ended):
            print(f"hostile: a process ended with {ended}", file=sys.stderr)
            return 1
        return told_of(options, [file for _, file in parts], time.perf_counter() - started)


def told_of(options: argparse.Namespace, files: Sequence[Path], seconds: float, notes: Sequence[str] = ()) -> int:
    """Put together what the parts wrote, tell of it, and keep it if it is all."""
    lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    peaks = {name: max(line.pop(name) for line in lines) for name in ("peak", "before", "commands")}
    record = summary([Outcome(**line) for line in lines], options, peaks, seconds) | {"notes": list(notes)}
    print(told(record))
    if not options.door:
        options.results.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, ensure_ascii=True, indent=1)
        (options.results / "hostile.json").write_text(text + "\n", encoding="utf-8")
        (options.results / "hostile.md").write_text(told(record), encoding="utf-8")
    return 1 if record["wrong"] else 0


def run_part(options: argparse.Namespace, number: int, folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A process for one part of the cases, and where it will write what came of them."""
    file = folder / f"{number}.json"
    command = [sys.executable, "-m", "benchmarks.hostile", "--part", str(number), "--outcomes", str(file)]
    for name in ("count", "seed", "processes", "door", "case"):
        value = getattr(options, name)
        command += [] if value is None else [f"--{name}", str(value)]
    return subprocess.Popen(command), file


def part(options: argparse.Namespace) -> int:
    """Knock at the doors of every so-manieth case."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        arena = Arena(Path(folder))
        before = peak()
        with options.outcomes.open("w", encoding="utf-8") as file:
            for outcome in all_of(arena, list(chosen(options))[options.part :: options.processes]):
                children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
                peaks = {"peak": peak(), "before": before, "commands": children}
                file.write(json.dumps(asdict(outcome) | peaks) + "\n")
                file.flush()
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="hostile", description=(__doc__ or "").splitlines()[0])
    made.add_argument("--count", type=int, default=10_000)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--door", choices=tuple(DOORS), help="this door alone")
    made.add_argument("--case", type=int, help="this case of the door alone")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--processes", type=int, default=2)
    made.add_argument("--part", type=int, help=argparse.SUPPRESS)
    made.add_argument("--outcomes", type=Path, help=argparse.SUPPRESS)
    return made


def chosen(options: argparse.Namespace) -> Iterable[tuple[str, int]]:
    """The cases asked for."""
    if options.case is not None:
        return [(options.door, options.case)]
    if options.door:
        rng = random.Random(options.seed)
        return [(options.door, rng.randrange(2**32)) for _ in range(options.count)]
    return [*cases(options.count, options.seed), *(("large", options.seed * LARGE + at) for at in range(LARGE))]


def all_of(arena: Arena, asked: Iterable[tuple[str, int]]) -> Iterable[Outcome]:
    """Knock, and tell at once what went wrong."""
    for number, (door, seed) in enumerate(asked, start=1):
        faulthandler.dump_traceback_later(STUCK, exit=True)
        outcome = knock(arena, door, seed)
        faulthandler.cancel_dump_traceback_later()
        if outcome.wrong:
            print(f"WRONG {door} {seed}\n{outcome.wrong}", flush=True)
        if number % 250 == 0:
            print(f"{number} cases, {peak() >> 20} MiB", flush=True)
        yield outcome


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def summary(
    outcomes: Sequence[Outcome], options: argparse.Namespace, peaks: dict[str, int], seconds: float
) -> dict[str, Any]:
    """The run as a record."""
    slowest = sorted(outcomes, key=lambda one: -one.seconds)[:5]
    return {
        "cases": len(outcomes),
        "seed": options.seed,
        "processes": options.processes,
        "wrong": [{"door": one.door, "seed": one.seed, "what": one.wrong} for one in outcomes if one.wrong],
        "ended": {
            door: dict(sorted(Counter(one.ended for one in outcomes if one.door == door).items())) for door in DOORS
        },
        "seconds": round(seconds, 1),
        "slowest": [{"door": one.door, "seed": one.seed, "cpu_seconds": round(one.seconds, 2)} for one in slowest],
        "peak_bytes": peaks["peak"],
        "peak_bytes_before": peaks["before"],
        "peak_bytes_commands": peaks["commands"],
        "commit": source_commit(ROOT),
        "versions": versions(),
        "machine": machine(),
    }


def told(record: dict[str, Any]) -> str:
    """The record in Markdown."""
    cases, wrong, slowest = f"{record['cases']:,}", len(record["wrong"]), record["slowest"]
    peaks = [f"{record[name] >> 20} MiB" for name in ("peak_bytes", "peak_bytes_before", "peak_bytes_commands")]
    lines = [
        "# Hostile input",
        "",
        f"Made by `python -m benchmarks.hostile`: {cases} cases of seed {record['seed']}, commit {record['commit']}. A",
        "case is one hostile input at one door; `taken` and `refused` are ends in Python, `code N` those of commands.",
        "",
        f"- gone wrong (another exception, a write elsewhere, a raw control character, an unsound store): {wrong}",
        f"- peak memory: {peaks[0]} ({peaks[1]} before the first case); of commands in their own processes {peaks[2]}",
        f"- processor time of the slowest case: {slowest[0]['cpu_seconds'] if slowest else 0} s; "
        f"all of them took {record['seconds']} s",
        *(f"- {note}" for note in record["notes"]),
        "",
        "| door | cases | ends |",
        "| --- | ---: | --- |",
    ]
    for door, ended in record["ended"].items():
        ends = ", ".join(f"{name}: {count}" for name, count in ended.items())
        lines.append(f"| {door} | {sum(ended.values())} | {ends} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
