"""Recall on the development sets against the floors that this project promises to keep.

    python benchmarks/recall_floors.py --data ../shared/data

Runs every configuration on every set, each in a process of its own (peak memory is a process's), prints the figures
beside their floors, and writes ``benchmarks/results/recall-<configuration>.json`` where all sets were run. Exits with
1 if a floor of recall is missed, a run fails, or `ecphory` does not beat the best flat method of its run with an
interval above zero (default configuration). Time and size are always shown; they decide only with
``--strict-time``, see ``docs/decisions/060-timing-floors-are-shown.md``. Without the data it says so and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from rich.console import Console

from ecphoryrag.evaluation.command import run
from ecphoryrag.evaluation.methods import METHODS
from ecphoryrag.evaluation.metrics import FIGURES
from ecphoryrag.evaluation.provenance import source_commit
from ecphoryrag.evaluation.render import render
from ecphoryrag.settings import Settings
from ecphoryrag.types import JsonValue

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SETS = ("musique", "2wikimultihopqa", "hotpotqa")
TIMED = "hotpotqa"
"""The set that the floors of time and size are for: 4,925 passages."""
DEFAULT = "ecphory"
MEAN = "mean"
IMPORTS = 5
"""Fresh processes that `import ecphoryrag` is timed in; the fastest counts, for the rest is the machine's noise."""

SLOW_WITH_MINILM = "paper"
"""It needs a vector of each entity, ten times as many as passages: half an hour more with a transformer on two cores.
`ecphory eval --methods paper --encoder minilm` measures it."""

Report: TypeAlias = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Configuration:
    """How the sets are indexed, and the least that `ecphory` must then reach, by set and over their mean."""

    name: str
    encoder: str
    titles: bool
    floors: Mapping[str, Mapping[str, float]]
    must_beat_flat: bool = False
    methods: tuple[str, ...] = METHODS


@dataclass(frozen=True, slots=True)
class Check:
    """A figure against its floor, or, for time and size, its ceiling."""

    what: str
    value: float | None
    sign: Literal[">=", ">", "<="]
    bound: float
    decides: bool = True

    @property
    def holds(self) -> bool:
        """False also if there is no figure."""
        if self.value is None:
            return False
        if self.sign == "<=":
            return self.value <= self.bound
        return self.value > self.bound or (self.sign == ">=" and self.value == self.bound)

    def line(self) -> str:
        """As printed."""
        value = "none" if self.value is None else f"{self.value:.3f}"
        verdict = "ok" if self.holds else ("MISSED" if self.decides else "missed (shown only)")
        return f"  {self.what:58} {value:>9}  {self.sign:2} {self.bound:<7g} {verdict}"


def by_set(*values: float) -> dict[str, float]:
    """Floors for the three sets and the mean over them."""
    return dict(zip((*SETS, MEAN), values, strict=True))


CONFIGURATIONS = (
    Configuration(
        "static",
        "static",
        titles=True,
        floors={"recall@5": by_set(0.69, 0.895, 0.885, 0.835), "all@5": by_set(0.40, 0.71, 0.80, 0.65)},
        must_beat_flat=True,
    ),
    Configuration("no-titles", "static", titles=False, floors={"recall@5": by_set(0.65, 0.83, 0.82, 0.78)}),
    Configuration(
        "minilm",
        "minilm",
        titles=True,
        floors={"recall@5": by_set(0.75, 0.91, 0.91, 0.865)},
        methods=tuple(method for method in METHODS if method != SLOW_WITH_MINILM),
    ),
    Configuration("none", "none", titles=True, floors={"recall@5": by_set(0.63, 0.87, 0.87, 0.80)}),
)


def main() -> int:
    """Exit code: 0 if all that decides holds, or the data is not there; else 1."""
    options = parser().parse_args()
    if options.one is not None:
        return one(options.data, options.one, options.config[0], options.out)
    if not options.data.is_dir():
        print(f"bench-recall: {options.data} is not there; skipped. Name the folder of the sets with --data.")
        return 0
    checks: list[Check] = []
    for configuration in CONFIGURATIONS:
        if configuration.name in options.config:
            reports = {name: measure(options.data, name, configuration) for name in options.sets}
            checks += floors(configuration, reports)
            checks += times(configuration, reports, strict=options.strict_time)
            if len(reports) == len(SETS) and all(
                reports.values()
            ):  # a part of the sets must not replace the record of all
                write(configuration, reports)
    checks.append(Check("import ecphoryrag, s", import_seconds(), "<=", 0.3, decides=options.strict_time))
    print("\nFloors:")
    for check in checks:
        print(check.line())
    missed = [check for check in checks if check.decides and not check.holds]
    print(f"\n{len(missed)} missed." if missed else "\nAll that decides holds.")
    return 1 if missed else 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    names = [configuration.name for configuration in CONFIGURATIONS]
    options = argparse.ArgumentParser(description="Recall on the development sets against the floors.")
    options.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the sets")
    options.add_argument("--config", nargs="+", choices=names, default=names)
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--strict-time", action="store_true", help="floors of time and size decide too")
    options.add_argument("--one", choices=SETS, help=argparse.SUPPRESS)
    options.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    return options


def measure(data: Path, name: str, configuration: Configuration) -> Report:
    """The report of one set under one configuration, from a process of its own; empty, so that every floor of it is
    missed, if that process fails: the others should still be measured."""
    print(f"\n{configuration.name}, {name}", flush=True)
    with tempfile.TemporaryDirectory(prefix="recall-floors-") as folder:
        out = Path(folder) / "report.json"
        arguments = ["--data", str(data), "--one", name, "--config", configuration.name, "--out", str(out)]
        done = subprocess.run([sys.executable, __file__, *arguments], check=False)
        if done.returncode != 0:
            print(f"this run failed with exit code {done.returncode}", file=sys.stderr)
            return {}
        report: Report = json.loads(out.read_text(encoding="utf-8"))
    return report


def one(data: Path, name: str, config: str, out: Path) -> int:
    """The child's part: evaluate one set with the default settings, show the table, write the report."""
    configuration = next(each for each in CONFIGURATIONS if each.name == config)
    report = run(
        data / name / "corpus.jsonl",
        data / name / "questions.jsonl",
        configuration.methods,
        encoder=configuration.encoder,
        titles=configuration.titles,
        limit=None,
        output=out,
        settings=Settings(),
    )
    render(report, Console(width=140))
    return 0


def number(report: Report, *names: str) -> float | None:
    """The number at this place of the report; None if there is none."""
    at: JsonValue = report
    for name in names:
        if not isinstance(at, dict):
            return None
        at = at.get(name)
    return float(at) if isinstance(at, int | float) else None


def floors(configuration: Configuration, reports: Mapping[str, Report]) -> list[Check]:
    """Recall against its floors; the mean only if every set was measured."""
    checks = []
    for figure, bounds in configuration.floors.items():
        values = {name: number(report, "methods", DEFAULT, figure) for name, report in reports.items()}
        checks += [
            Check(f"{configuration.name}: {figure}, {name}", values[name], ">=", bounds[name]) for name in reports
        ]
        known = [value for value in values.values() if value is not None]
        if set(reports) == set(SETS):
            mean = sum(known) / len(SETS) if len(known) == len(SETS) else None
            checks.append(Check(f"{configuration.name}: {figure}, mean of the sets", mean, ">=", bounds[MEAN]))
    for name, report in reports.items():
        low = number(report, "comparison", "low")
        comparison = report.get("comparison")
        baseline = comparison["baseline"] if isinstance(comparison, dict) else "no flat method"
        what = f"{configuration.name}: low end of {DEFAULT} - {baseline}, {name}"
        checks.append(Check(what, low, ">", 0, decides=configuration.must_beat_flat))
    return checks


def times(configuration: Configuration, reports: Mapping[str, Report], *, strict: bool) -> list[Check]:
    """Time and size on the set they are promised for, with the default configuration."""
    if configuration.name != "static" or TIMED not in reports:
        return []
    report = reports[TIMED]
    store, text = number(report, "index", "store_bytes"), number(report, "index", "text_bytes")
    first = number(report, "index", "open_and_first_recall_ms")
    again = number(report, "index", "reopen_and_first_recall_ms")
    bounds: Sequence[tuple[str, float | None, float]] = [
        ("indexing, s", number(report, "index", "seconds"), 30),
        ("recall p50, ms", number(report, "methods", DEFAULT, "p50_ms"), 25),
        ("recall p95, ms", number(report, "methods", DEFAULT, "p95_ms"), 60),
        ("peak memory, MB", number(report, "index", "rss_mb"), 700),
        ("store, times the text", store / text if store and text else None, 25),
        ("opening and first recall after indexing, s", first / 1000 if first is not None else None, 1),
        ("opening and first recall after that, s", again / 1000 if again is not None else None, 1),
    ]
    return [Check(f"{TIMED}: {what}", value, "<=", bound, decides=strict) for what, value, bound in bounds]


def import_seconds() -> float:
    """Of `import ecphoryrag` in a fresh process, the interpreter's own start not counted."""
    code = "import time; a = time.perf_counter(); import ecphoryrag; print(time.perf_counter() - a)"
    runs = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        for _ in range(IMPORTS)
    ]
    return min(float(seconds) for seconds in runs)


def write(configuration: Configuration, reports: Mapping[str, Report]) -> None:
    """The summary, without the rows of questions: one file a configuration."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    sets: dict[str, JsonValue] = {}
    for name, report in reports.items():
        sets[name] = {key: value for key, value in report.items() if key not in ("questions", "versions", "machine")}
    means: dict[str, JsonValue] = {}
    for figure in FIGURES:
        values = [number(report, "methods", DEFAULT, figure) for report in reports.values()]
        known = [value for value in values if value is not None]
        means[figure] = sum(known) / len(known) if known and len(known) == len(values) else None
    first = next(iter(reports.values()))
    summary: Report = {
        "configuration": configuration.name,
        "commit": source_commit(ROOT),
        "versions": first["versions"],
        "machine": first["machine"],
        f"{MEAN} of {DEFAULT}": means,
        "sets": sets,
    }
    text = json.dumps(summary, ensure_ascii=False, indent=1, allow_nan=False)
    (RESULTS / f"recall-{configuration.name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
