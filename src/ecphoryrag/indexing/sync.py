"""Mirroring a folder: what of it is new, changed, moved or gone, found by reading it, and then done step by step.

A document belongs to the folder if its source is a file in it, told by its whole path with links followed, and its id
is what a file there is called; so those from elsewhere are never touched. Moves come first, then what is new and
changed, what is to be forgotten last, each in transactions of its own: whoever is killed goes on by beginning again.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.indexing.items import LeftOut, Loaded
from ecphoryrag.indexing.load import JSONL_SUFFIXES, load_found
from ecphoryrag.indexing.walk import Found, find_files
from ecphoryrag.types import Document, DocumentSummary, Failure, SyncReport

_PLACE = re.compile(r"(?::\d+|\[\d+\])$")
"""The line or the place in a file of records."""
RECORD_SUFFIXES = JSONL_SUFFIXES | {".json"}
MANY = 10
"""Documents that may go without a question, however few there are."""


@dataclass(slots=True)
class Plan:
    """What is to be done, by id where nothing else is said."""

    folder: Path
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    """Unchanged, but with chunks that could not be extracted."""
    moved: list[tuple[str, str, str]] = field(default_factory=list)
    """Former id, id and source; of one that only lies elsewhere, or on another line, both ids are the same."""
    forgotten: list[str] = field(default_factory=list)
    kept: list[Failure] = field(default_factory=list)
    """Documents of which the file is not there to be read, by no decision of the user."""
    failed: list[Failure] = field(default_factory=list)
    left_out: list[Failure] = field(default_factory=list)
    unchanged: int = 0
    files: list[Found] = field(default_factory=list)
    """Those that hold what is to be worked on."""
    own: int = 0
    """Documents that the store had of the folder."""
    below: Counter[str] = field(default_factory=Counter)
    """Those to be forgotten, by the folder in the folder that they lay in."""

    def refusal(self) -> str | None:
        """Why so much must not be forgotten without being asked for; None if it is not much.

        More than half of the folder's documents, and more than ``MANY``, is what a disk below it looks like that is not
        mounted.
        """
        if len(self.forgotten) <= max(MANY, self.own / 2):
            return None
        return (
            f"{len(self.forgotten)} of the {self.own} documents that the store has of {self.folder} are not there any "
            f"more{self._whence()}. Nothing was changed: if a disk below it is not mounted, mount it; if they are to "
            "be forgotten, say so (--allow-mass-forget); --dry-run lists them."
        )

    def _whence(self) -> str:
        """The folder in it from which most of what is gone has gone, if all of that folder's files have."""
        top, count = self.below.most_common(1)[0] if self.below else ("", 0)
        place = self.folder / top
        if not count or (place.is_dir() and any(place.iterdir())):
            return ""
        return f", {count} of them from {place}, which is {'empty' if place.is_dir() else 'not there'}"

    def documents(self, limit: int) -> Iterator[Loaded]:
        """What is to be worked on, read again."""
        wanted = {*self.added, *self.updated, *self.completed}
        for file in self.files:
            for loaded in load_found(file, limit):
                if isinstance(loaded, Document) and loaded.id in wanted:
                    wanted.discard(loaded.id)
                    yield loaded

    def report(self, *, dry_run: bool) -> SyncReport:
        """What a mirroring means to do."""
        return SyncReport(
            str(self.folder),
            dry_run,
            tuple(self.added),
            tuple(self.updated),
            tuple((old, new) for old, new, _ in self.moved if old != new),
            tuple(self.forgotten),
            self.unchanged,
            tuple(self.kept),
            tuple(self.failed),
            tuple(self.left_out),
        )


@dataclass(slots=True)
class _Seen:
    """What was read in the folder."""

    files: dict[str, Found] = field(default_factory=dict)
    """By source of the file."""
    documents: dict[str, tuple[str, str, Found]] = field(default_factory=dict)
    """By id: content hash, source, and the file."""
    blocked: dict[str, str] = field(default_factory=dict)
    """Files and folders that are there and were not read, and why."""


def real_folder(folder: str | Path) -> Path:
    """The folder by the one path that it has, however it was named. Raises InputError if it is none."""
    if not str(folder):
        raise InputError("an empty path; name the working folder as .")
    path = Path(os.path.realpath(folder))
    if not path.is_dir():
        raise InputError(
            f"{folder} is {'a file, and only a folder can be mirrored' if path.exists() else 'not there'}. Nothing was "
            "changed: check the path, and that the disk it is on is mounted."
        )
    return path


def plan_sync(
    folder: str | Path,
    documents: Sequence[DocumentSummary],
    incomplete: Sequence[str],
    limit: int,
    *,
    allow_empty: bool = False,
) -> Plan:
    """What would make the store's documents of this folder those that are in it; ``limit`` is that of a file's bytes.

    Raises InputError if the folder is not there or cannot be read, and, unless ``allow_empty``, if it holds no document
    at all while the store has some of it.
    """
    plan = Plan(real_folder(folder))
    seen = _read(plan, limit)
    own = {one.id: one for one in documents if _belongs(one, plan.folder)}
    plan.own = len(own)
    if str(plan.folder) in seen.blocked:
        raise InputError(f"{plan.folder} {seen.blocked[str(plan.folder)]}. Nothing was changed.")
    if own and not seen.documents and not allow_empty:
        raise InputError(
            f"{plan.folder} holds no document, and the store has {len(own)} of it. Nothing was changed: if the disk is "
            "not mounted, mount it; if they are to be forgotten, say so (--allow-empty)."
        )
    gone = {id_: one for id_, one in own.items() if id_ not in seen.documents}
    _decide(plan, seen, {one.id: one for one in documents}, gone, frozenset(incomplete))
    for id_, one in sorted(gone.items()):
        reason = _why_kept(seen, one.source or "")
        if reason is None:
            plan.forgotten.append(id_)
            _, *inner, _ = ("", *Path(_file(one.source)).relative_to(plan.folder).parts)
            plan.below.update(inner[:1])
        else:
            plan.kept.append(Failure(id_, reason))
    plan.kept += [
        Failure(
            one.id,
            f"its file {one.source} is not there, but that is a path from the folder that `ecphory add` was run in, "
            "which may be another: if it is gone, run `ecphory forget` with this id",
        )
        for one in documents
        if one.id not in seen.documents and _may_belong(one, plan.folder)
    ]
    worked = {seen.documents[id_][2].source for id_ in (*plan.added, *plan.updated, *plan.completed)}
    plan.files = [file for source, file in seen.files.items() if source in worked]
    return plan


def _read(plan: Plan, limit: int) -> _Seen:
    seen = _Seen()
    for met in find_files([plan.folder]):
        if isinstance(met, LeftOut):
            plan.left_out.append(Failure(met.source, met.reason))
            seen.blocked[met.source] = f"is left out now: {met.reason}"
        elif isinstance(met, Failure):
            plan.failed.append(met)
            seen.blocked[met.source] = met.reason
        else:
            seen.files[met.source] = met
            for loaded in load_found(met, limit):
                _take(plan, seen, met, loaded)
    return seen


def _take(plan: Plan, seen: _Seen, file: Found, loaded: Loaded) -> None:
    if isinstance(loaded, Document):
        source, content = loaded.source or file.source, loaded.content_hash
        first = seen.documents.setdefault(loaded.id, (content, source, file))
        if first[0] != content:
            plan.failed.append(Failure(source, f"the id {loaded.id!r} was already given, with other content"))
    elif isinstance(loaded, Failure):
        plan.failed.append(loaded)
        seen.blocked[file.source] = loaded.reason


def _may_belong(document: DocumentSummary, folder: Path) -> bool:
    """Whether it came from this folder if its path, which begins at some working folder, began at the present one."""
    file = Path(_file(document.source))
    here = Path(os.path.realpath(file.parent)) / file.name
    if not document.source or file.is_absolute() or not here.is_relative_to(folder) or os.path.lexists(here):
        return False
    return file.suffix.lower() in RECORD_SUFFIXES or document.id == here.relative_to(folder).as_posix()


def _belongs(document: DocumentSummary, folder: Path) -> bool:
    """Whether it came from this folder, and is called what a file in it is called; records have names of their own."""
    source = Path(document.source or "")
    file = Path(_file(document.source))
    if file.suffix.lower() in RECORD_SUFFIXES:
        return file.is_absolute() and file.is_relative_to(folder)
    return source.is_relative_to(folder) and document.id == source.relative_to(folder).as_posix()


def _why_kept(seen: _Seen, source: str) -> str | None:
    """Why a document of this source is not known to be gone; None if it is."""
    for path in dict.fromkeys((source, _PLACE.sub("", source))):
        for place in (path, *map(str, Path(path).parents)):
            if place in seen.blocked:
                return f"not forgotten, for {place} {seen.blocked[place]}"
    return None


def _decide(
    plan: Plan,
    seen: _Seen,
    known: Mapping[str, DocumentSummary],
    gone: dict[str, DocumentSummary],
    incomplete: frozenset[str],
) -> None:
    """Sort what was read into what is new, changed, moved and as it was; what moved is no longer ``gone``."""
    by_content: dict[str, list[str]] = {}
    for id_, one in sorted(gone.items(), reverse=True):
        if _why_kept(seen, one.source or "") is None:
            by_content.setdefault(one.content_hash, []).append(id_)
    for id_, (content, source, file) in seen.documents.items():
        there = known.get(id_)
        if there is None:
            candidates = by_content.get(content)
            if candidates:
                old = candidates.pop()
                del gone[old]
                plan.moved.append((old, id_, source))
                if old in incomplete:
                    plan.completed.append(id_)
            else:
                plan.added.append(id_)
            continue
        ours = _belongs(there, plan.folder) or _is_file(there.source, file)
        if not ours and not (there.content_hash == content and _is_gone(there.source)):
            plan.failed.append(Failure(source, _taken(id_, there)))
            continue
        if there.source != source:
            plan.moved.append((id_, id_, source))
        if there.content_hash != content:
            plan.updated.append(id_)
        elif id_ in incomplete:
            plan.completed.append(id_)
        else:
            plan.unchanged += 1


def _file(source: str | None) -> str:
    return _PLACE.sub("", source or "")


def _is_file(source: str | None, file: Found) -> bool:
    """Whether the source, as it was named from the working folder, is this file."""
    return bool(source) and os.path.realpath(_file(source)) == os.path.realpath(file.path)


def _is_gone(source: str | None) -> bool:
    """Whether the source was a file that is no longer there: then its folder has moved to here."""
    return bool(source) and Path(_file(source)).is_absolute() and not os.path.lexists(_file(source))


def _taken(id_: str, there: DocumentSummary) -> str:
    whence = f"from {there.source}" if there.source else "that came from no file"
    return (
        f"the id {id_!r} is that of a document {whence}, which is kept. Mirror the folder that both lie in, "
        "use a store for each, or forget that document"
    )
