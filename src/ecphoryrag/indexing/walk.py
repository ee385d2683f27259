"""From what a user names (files, folders, globs) to the files to be read, in an order that does not change."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TypeAlias

from ecphoryrag.indexing.files import shown
from ecphoryrag.indexing.ignore import RuleChain, ignoring, rules_above, rules_in
from ecphoryrag.indexing.items import LeftOut
from ecphoryrag.types import Failure

STORE_SUFFIX = ".ecphory"
"""A store, and the files beside it (``x.ecphory-wal``, ``x.ecphory.format-3``), are not documents."""
_BESIDE_STORE = (f"{STORE_SUFFIX}-", f"{STORE_SUFFIX}.format-")
MAGIC = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Found:
    """A file to be read: its place, the id of its document, and its name in reports."""

    path: Path
    id: str
    source: str


Met: TypeAlias = Found | LeftOut | Failure


def find_files(paths: Sequence[str | Path]) -> Iterator[Met]:
    """The files meant, each once, in the order named; in a folder sorted, its own files before those further down.

    The id of a file in a named folder is its path relative to that folder; of a file that is named itself, or by a
    glob, its path relative to the working folder, or its whole path if it lies elsewhere. What is named itself is
    taken even if it is hidden or git-ignored; symbolic links never are.
    """
    seen: set[str] = set()
    for path in paths:
        if not str(path):  # Path("") would be the working folder: what a script means by an empty variable is not that
            yield Failure('""', "an empty path; name the working folder as .")
            continue
        for met in _find(Path(path)):
            key = os.path.realpath(met.path) if isinstance(met, Found) else f"{type(met).__name__} {met.source}"
            if key not in seen:
                seen.add(key)
                yield met


def _find(path: Path) -> Iterator[Met]:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if MAGIC & set(str(path)):
            yield from _glob(path)
        else:
            yield Failure(shown(path), "no such file or folder")
        return
    except (OSError, ValueError) as error:  # a name that is too long or holds a NUL
        reason = error.strerror if isinstance(error, OSError) else str(error)
        yield Failure(shown(path), f"cannot be read: {reason}")
        return
    if stat.S_ISLNK(mode):
        yield LeftOut(shown(path), f"a symbolic link; name what it points to: {shown(os.path.realpath(path))}")
    elif stat.S_ISDIR(mode):
        yield from _folder(path)
    elif stat.S_ISREG(mode):
        yield _found(path, _named_id(path))
    else:
        yield Failure(shown(path), "not a regular file; a pipe can be read from standard input, as -")


def _named_id(path: Path) -> str:
    absolute, here = _absolute(path), Path.cwd()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else absolute).as_posix()


def _absolute(path: Path) -> Path:
    """The path from the root, without ``..``, links left as they are: an id must not depend on where a link leads."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve would follow links


def _found(path: Path, id: str) -> Found | Failure:
    try:
        id.encode("utf-8")
    except UnicodeEncodeError:
        return Failure(shown(path), "its name is not valid UTF-8, so it makes no id; rename it")
    return Found(path, id, shown(path))


def _folder(folder: Path, depth: int | None = None) -> Iterator[Met]:
    """All files below, to ``depth`` levels if it is given."""
    base = str(_absolute(folder))
    chain, failures = rules_above(base)
    yield from failures
    pending: list[tuple[str, PurePath, RuleChain]] = [(base, PurePath(), chain)]
    while pending:
        absolute, relative, chain = pending.pop()
        own, failures = rules_in(absolute)
        yield from failures
        try:
            with os.scandir(absolute) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            yield Failure(shown(folder / relative), f"cannot be read: {error.strerror}")
            continue
        below: list[tuple[str, PurePath, RuleChain]] = []
        for entry in entries:
            path = relative / entry.name
            reason = _left_out(entry, chain + own)
            if reason:
                yield LeftOut(shown(folder / path), reason)
            elif not entry.is_dir(follow_symlinks=False):
                yield _found(folder / path, path.as_posix())
            elif depth is None or len(path.parts) < depth:
                below.append((entry.path, path, chain + own))
        pending.extend(reversed(below))


def _left_out(entry: os.DirEntry[str], chain: RuleChain) -> str | None:
    """The rule by which the entry is passed over."""
    folder = entry.is_dir(follow_symlinks=False)
    if entry.is_symlink():
        return "a symbolic link"
    if entry.name.startswith("."):
        return "hidden"
    if pattern := ignoring(chain, entry.path, folder=folder):
        return f"git-ignored: {pattern}"
    if not folder and not entry.is_file(follow_symlinks=False):
        return "not a regular file"
    if not folder and (entry.name.endswith(STORE_SUFFIX) or any(one in entry.name for one in _BESIDE_STORE)):
        return "a store of this program"
    return None


def _glob(pattern: Path) -> Iterator[Met]:
    """Files that match, by the rules of a folder: a pattern does not name a file, so hidden and ignored stay out."""
    fixed = next(at for at, part in enumerate(pattern.parts) if MAGIC & set(part))
    base, wanted = Path(*pattern.parts[:fixed]), pattern.parts[fixed:]
    matched = False
    if base.is_dir():
        for met in _folder(base, None if "**" in wanted else len(wanted)):
            if isinstance(met, Found):
                if matches(PurePath(met.id).parts, wanted):
                    matched = True
                    yield _found(met.path, _named_id(met.path))
            elif matches(PurePath(met.source).parts[fixed:], wanted):
                matched = True
                yield met
    if not matched:
        yield Failure(shown(pattern), "no file matches")


def matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the path matches segment by segment; ``**`` stands for any number of folders, none included."""
    reachable = {0}
    for part in parts:
        after: set[int] = set()
        for at in _skip_stars(reachable, wanted):
            if at < len(wanted) and wanted[at] == "**":
                after.add(at)
            elif at < len(wanted) and fnmatchcase(part, wanted[at]):
                after.add(at + 1)
        reachable = after
    return len(wanted) in _skip_stars(reachable, wanted)


def _skip_stars(states: set[int], wanted: Sequence[str]) -> set[int]:
    """The states, and those behind a ``**`` that stands for nothing."""
    reached = set(states)
    for at in sorted(states):
        following = at
        while following < len(wanted) and wanted[following] == "**":
            following += 1
            reached.add(following)
    return reached
