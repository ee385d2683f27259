"""What a run was made with: ``manifest.json``, written when a sitting begins and ends. No host, user or path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import ecphoryrag
from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.bench.plan import Identities, Planned
from ecphoryrag.evaluation.provenance import machine, source_commit, versions
from ecphoryrag.types import JsonValue

MANIFEST = "manifest.json"
"""Name of the file in a run's folder."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """From the start of a process to its end; the last values of a killed one are those of its start."""

    began: str
    """ISO 8601, UTC."""
    commit: str | None
    """Of the working copy, with ``+changes`` if files differ from it; None for an installed package."""
    versions: Mapping[str, str]
    machine: Mapping[str, str | int]
    limit: int | None
    max_tokens: int | None
    rows: int = 0
    """Questions asked."""
    tokens: int = 0
    """Of the language model, paid in this sitting."""
    seconds: float = 0.0
    stopped: str | None = "killed"
    """Why it ended before all was done; None if it did not."""


def begin(limit: int | None, max_tokens: int | None) -> Sitting:
    """A sitting that begins now."""
    began = datetime.now(UTC).isoformat(timespec="seconds")
    commit = source_commit(Path(ecphoryrag.__file__).parent)
    return Sitting(began, commit, versions(), machine(), limit, max_tokens)


def read_sittings(run: Path) -> list[JsonValue]:
    """The sittings so far. Raises InputError if the manifest cannot be read."""
    path = run / MANIFEST
    if not path.exists():
        return []
    try:
        record = json.loads(path.read_text("utf-8"))
        return list(record["sittings"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no manifest; restore it, or move it away: the rows do not need it") from error


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell that the configuration asks for, whether it was begun or not."""

    key: str
    label: str
    dataset: str
    encoder: str


def planned_cells(run: Path) -> tuple[PlannedCell, ...]:
    """All of them; none if the folder has no manifest. Raises InputError if it cannot be read."""
    recorded = _read(run).get("cells", [])
    cells = [each for each in recorded if isinstance(each, dict)] if isinstance(recorded, list) else []
    return tuple(PlannedCell(*(str(each.get(name)) for name in PlannedCell.__slots__)) for each in cells)


def planned_questions(run: Path, dataset: str, seed: int) -> int:
    """How many the configuration asks of the set; 0 if the folder has no manifest. Raises InputError."""
    data = _read(run).get("data")
    record = data.get(f"{dataset}, seed {seed}") if isinstance(data, dict) else None
    questions = record.get("questions") if isinstance(record, dict) else None
    return questions if isinstance(questions, int) else 0


def _read(run: Path) -> dict[str, JsonValue]:
    path = run / MANIFEST
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is no manifest ({error}); restore it") from error
    return record if isinstance(record, dict) else {}


def write_manifest(
    run: Path, text: str, planned: Sequence[Planned], models: Identities, sittings: Sequence[JsonValue]
) -> None:
    """Put it in place of the one before. ``text`` is the configuration, ``sittings`` all of them, this one last."""
    data: dict[str, JsonValue] = {}
    for cell in planned:
        data[f"{cell.row.dataset}, seed {cell.row.seed}"] = {
            "digests": dict(cell.dataset.digests),
            "documents": len(cell.dataset.documents),
            "questions": len(cell.dataset.questions),
            "notes": list(cell.dataset.notes),
        }
    record: dict[str, object] = {
        "configuration": text,
        "cells": [
            {
                "key": cell.row.key,
                "label": cell.row.label,
                "dataset": cell.row.dataset,
                "encoder": cell.row.encoder,
                "seed": cell.row.seed,
                "parts": dict(cell.row.parts),
                "files": dict(cell.variant.files),
            }
            for cell in planned
        ],
        "encoders": {name: asdict(identity) for name, identity in models.encoders.items()},
        "generator": models.generator,
        "data": data,
        "settings": planned[0].settings.model_dump(
            mode="json", include={"indexing", "recall", "answering", "extractor"}
        )
        if planned
        else {},
        "sittings": list(sittings),
    }
    path = run / MANIFEST
    draft = path.with_name(f"{MANIFEST}.new")
    draft.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
