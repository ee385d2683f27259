"""Indexing in a process of its own, to be killed.

    python -m tests.support.index_worker STORE SETTINGS.json DOCUMENTS.jsonl

Adds the documents to the store. Writes ``ready`` to standard output when it is about to begin, and ``done`` at the end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ecphoryrag.memory import Memory
from ecphoryrag.settings import Settings
from ecphoryrag.types import Document


def write_job(folder: Path, settings: Settings, documents: Sequence[Document]) -> tuple[Path, Path]:
    """The two files that a worker reads."""
    configured, texts = folder / "settings.json", folder / "documents.jsonl"
    configured.write_text(settings.model_dump_json(), encoding="utf-8")
    lines = [json.dumps({"id": one.id, "title": one.title, "text": one.text, **one.metadata}) for one in documents]
    texts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return configured, texts


def command(store: Path, job: tuple[Path, Path]) -> list[str]:
    """The words that start a worker."""
    return [sys.executable, "-m", "tests.support.index_worker", str(store), *map(str, job)]


def main() -> None:
    """See the module."""
    store, configured, texts = map(Path, sys.argv[1:])
    settings = Settings(**json.loads(configured.read_text(encoding="utf-8")))
    documents = [json.loads(line) for line in texts.read_text(encoding="utf-8").splitlines()]
    with Memory.open(store, settings=settings) as memory:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        report = memory.add(documents)
        if report.failed or report.incomplete or report.stopped:
            sys.exit(f"not all was indexed: {report.failed or report.incomplete or report.stopped}")
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
