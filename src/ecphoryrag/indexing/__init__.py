"""The road of a document: load, chunk, extract, encode, commit."""

from __future__ import annotations

from ecphoryrag.indexing.estimate import History, estimate
from ecphoryrag.indexing.importing import Source, import_lines, importable
from ecphoryrag.indexing.items import LeftOut, Loaded, document_from, load_items
from ecphoryrag.indexing.load import LoadedPaths, load_paths, load_records, load_stdin
from ecphoryrag.indexing.passages import passage_head, passage_vectors
from ecphoryrag.indexing.pipeline import index, retry
from ecphoryrag.indexing.progress import Progress, ProgressCallback, Stage
from ecphoryrag.indexing.reembed import reembed
from ecphoryrag.indexing.sources import chosen
from ecphoryrag.indexing.sync import Plan, plan_sync

__all__ = [
    "History",
    "LeftOut",
    "Loaded",
    "LoadedPaths",
    "Plan",
    "Progress",
    "ProgressCallback",
    "Source",
    "Stage",
    "chosen",
    "document_from",
    "estimate",
    "import_lines",
    "importable",
    "index",
    "load_items",
    "load_paths",
    "load_records",
    "load_stdin",
    "passage_head",
    "passage_vectors",
    "plan_sync",
    "reembed",
    "retry",
]
